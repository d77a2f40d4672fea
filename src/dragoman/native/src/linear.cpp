// levels: avx512
// Linear layers for training: y = x Wᵀ + b and its gradients, on packed weights (native/linear.py).
//
// A weight W (N x K) is packed twice per update: `forward` as the B operand of x Wᵀ (columns N,
// steps along K) and `backward` as that of dy W (columns K, steps along N). Several matrices may be
// packed as one whose rows are theirs, one after the other (queries, keys and values).
#include "matrix.h"

namespace {

// Steps s .. s + 15 (of which `left` exist) of one row of fp32 weights, as words.
template <bool BF16>
static ALWAYS_INLINE Vec words_of_row(const float *w, int64_t s, int64_t left) {
  if (!BF16) return load(w + s, left);
  const Vec low = load(w + 2 * s, larger(0, 2 * left));
  const Vec high = left > 8 ? load(w + 2 * s + 16, 2 * left - 16) : zero();
  return {_mm512_castsi512_ps(join_bf16(low, high))};
}

// forward[panel][s][j]: word s of row 64 panel + j.
template <bool BF16>
static void pack_forward(const float *const *rows, int64_t outputs, int64_t steps, int64_t panel,
                         uint32_t *out) {
  for (int64_t s = 0; s < steps; s += 16) {
    const int64_t left = steps - s;
    for (int64_t j = 0; j < PANEL; j += 16) {
      Vec block[LANES];
      for (int64_t i = 0; i < LANES; i++) {
        const int64_t n = panel * PANEL + j + i;
        block[i] = n < outputs ? words_of_row<BF16>(rows[n], s, left) : zero();
      }
      transpose(block);
      for (int64_t i = 0; i < smaller(LANES, left); i++) {
        _mm512_storeu_ps(out + (s + i) * PANEL + j, block[i].v);
      }
    }
  }
}

// backward[panel][s][j]: column 64 panel + j of row s (fp32) or of rows 2s and 2s + 1 (bf16).
template <bool BF16>
static void pack_backward(const float *const *rows, int64_t outputs, int64_t inputs, int64_t panel,
                          uint32_t *out) {
  const int64_t first = panel * PANEL, width = smaller(PANEL, inputs - first);
  const int64_t steps = BF16 ? (outputs + 1) / 2 : outputs;
  for (int64_t s = 0; s < steps; s++) {
    for (int64_t j = 0; j < PANEL; j += 16) {
      const int64_t left = larger(0, width - j);
      const float *one = rows[BF16 ? 2 * s : s] + first + j;
      if (BF16) {
        const Vec a = load(one, left);
        const Vec b = 2 * s + 1 < outputs ? load(rows[2 * s + 1] + first + j, left) : zero();
        const __m512i low = _mm512_cvtepu16_epi32(pack_bf16(a));
        const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(pack_bf16(b)), 16);
        _mm512_storeu_si512(out + s * PANEL + j, _mm512_or_si512(low, high));
      } else {
        _mm512_storeu_ps(out + s * PANEL + j, load(one, left).v);
      }
    }
  }
}

template <bool BF16>
static void pack_weights(const float *const *weights, const int64_t *outputs, int64_t count,
                         int64_t inputs, uint32_t *forward, uint32_t *backward) {
  int64_t total = 0;
  for (int64_t w = 0; w < count; w++) total += outputs[w];
  const float **rows = scratch<const float *>(0, static_cast<size_t>(total + 1));
  int64_t at = 0;
  for (int64_t w = 0; w < count; w++) {
    for (int64_t n = 0; n < outputs[w]; n++) rows[at++] = weights[w] + n * inputs;
  }
  const int64_t forward_steps = BF16 ? (inputs + 1) / 2 : inputs;
  const int64_t backward_steps = BF16 ? (total + 1) / 2 : total;
  const int64_t forward_panels = panels_of(total), backward_panels = panels_of(inputs);
  parallel_for(forward_panels + backward_panels, [&](int64_t task) {
    if (task < forward_panels) {
      pack_forward<BF16>(rows, total, forward_steps, task,
                         forward + task * forward_steps * PANEL);
    } else {
      task -= forward_panels;
      pack_backward<BF16>(rows, total, inputs, task, backward + task * backward_steps * PANEL);
    }
  });
}

template <class T>
constexpr bool is_bf16 = sizeof(T) == 2;

template <class T>
static ALWAYS_INLINE const uint32_t *words(const T *p) {
  return reinterpret_cast<const uint32_t *>(p);
}

template <class T>
constexpr int64_t per_word = 4 / sizeof(T);

static ALWAYS_INLINE Vec bias_at(const float *bias, int64_t column, int64_t width, int64_t part) {
  if (bias == nullptr) return zero();
  return load(bias + column + part * 16, larger(0, width - part * 16));
}

template <class T>
static void forward(const T *x, int64_t x_row, const uint32_t *weight, const float *bias, T *out,
                    int64_t out_row, int64_t rows, int64_t outputs, int64_t inputs) {
  product<is_bf16<T>>(
      words(x), x_row / per_word<T>, rows, weight, outputs, inputs / per_word<T>,
      [=](int64_t i, int64_t column, int64_t width, Vec a, Vec b, Vec c, Vec d) {
        store_row(out + i * out_row + column, width, a + bias_at(bias, column, width, 0),
                  b + bias_at(bias, column, width, 1), c + bias_at(bias, column, width, 2),
                  d + bias_at(bias, column, width, 3));
      });
}

// Dropout(ReLU(x Wᵀ + b))
template <class T>
static void forward_relu(const T *x, int64_t x_row, const uint32_t *weight, const float *bias,
                         T *out, int64_t out_row, int64_t rows, int64_t outputs, int64_t inputs,
                         float rate, uint64_t seed) {
  const Dropout dropout(rate);
  product<is_bf16<T>>(
      words(x), x_row / per_word<T>, rows, weight, outputs, inputs / per_word<T>,
      [=](int64_t i, int64_t column, int64_t width, Vec a, Vec b, Vec c, Vec d) {
        a = maximum(a + bias_at(bias, column, width, 0), zero());
        b = maximum(b + bias_at(bias, column, width, 1), zero());
        c = maximum(c + bias_at(bias, column, width, 2), zero());
        d = maximum(d + bias_at(bias, column, width, 3), zero());
        if (!dropout.off()) {
          const uint32_t key = row_key(seed, i);
          Vec f[VECTORS], g[VECTORS];
          dropout_factors(dropout, key, column / BLOCK, f);
          dropout_factors(dropout, key, column / BLOCK + 1, g);
          a = a * f[0], b = b * f[1], c = c * g[0], d = d * g[1];
        }
        store_row(out + i * out_row + column, width, a, b, c, d);
      });
}

// dx = dy W; with `hidden`, the output of forward_relu that x stands for, the gradient goes through
// its ReLU and dropout too.
template <class T>
static void backward_input(const T *dy, int64_t dy_row, const uint32_t *weight, T *dx,
                           int64_t dx_row, int64_t rows, int64_t outputs, int64_t inputs,
                           const T *hidden, int64_t hidden_row, float rate) {
  const Vec scale = all(Dropout(rate).scale);
  const auto through = [=](const T *h, int64_t left, Vec v) {
    return left > 0 ? where(greater(load(h, left), zero()), v * scale, zero()) : v;
  };
  product<is_bf16<T>>(
      words(dy), dy_row / per_word<T>, rows, weight, inputs, outputs / per_word<T>,
      [=](int64_t i, int64_t column, int64_t width, Vec a, Vec b, Vec c, Vec d) {
        if (hidden != nullptr) {
          const T *h = hidden + i * hidden_row + column;
          a = through(h, width, a), b = through(h + 16, width - 16, b);
          c = through(h + 32, width - 32, c), d = through(h + 48, width - 48, d);
        }
        store_row(dx + i * dx_row + column, width, a, b, c, d);
      });
}

// ---- the gradient of the weights

constexpr int64_t SUM_ROWS = 256;  // rows of x and dy that are packed and summed at a time

// Row pairs (bf16) or rows (fp32) of x, columns first .. first + 64, as steps of a panel.
static ALWAYS_INLINE void step_words(const bf16 *x, int64_t x_row, int64_t rows, int64_t s,
                                     int64_t first, int64_t width, uint32_t *out) {
  const bf16 *one = x + 2 * s * x_row + first;
  interleave(one, 2 * s + 1 < rows ? one + x_row : nullptr, width, out);
}
static ALWAYS_INLINE void step_words(const float *x, int64_t x_row, int64_t, int64_t s,
                                     int64_t first, int64_t width, uint32_t *out) {
  const float *from = x + s * x_row + first;
  for (int64_t j = 0; j < PANEL; j += 16) {
    const Vec v = width >= PANEL ? load(from + j) : load(from + j, larger(0, width - j));
    _mm512_storeu_si512(out + j, _mm512_castps_si512(v.v));
  }
}

template <class T>
static ALWAYS_INLINE void fetch(const T *from, int64_t count) {
  const char *line = reinterpret_cast<const char *>(from);
  const char *end = reinterpret_cast<const char *>(from + count);
  for (; line < end; line += 64) _mm_prefetch(line, _MM_HINT_T1);
}

// dW (N x K, fp32) = or += dyᵀ x over P rows, and db (N) likewise if it is not null.
template <class T>
static void backward_weight(const T *dy, int64_t dy_row, const T *x, int64_t x_row, float *dw,
                            int64_t dw_row, float *db, int64_t rows, int64_t outputs,
                            int64_t inputs, bool add) {
  // Each task owns a rectangle of dW and packs what it reads of x and dy itself, block of rows by
  // block of rows: packing costs a few percent, and no thread waits for another.
  const int64_t wanted = 4 * dragoman_threads(), panels = panels_of(inputs);
  const int64_t wide = smaller(panels, 4), across = (panels + wide - 1) / wide;
  const int64_t parts = larger(1, smaller((outputs + 65) / 66, (wanted + across - 1) / across));
  const int64_t most = 132;
  int64_t chunk = ((outputs + parts - 1) / parts + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
  if (chunk > most) chunk = most;
  const int64_t chunks = (outputs + chunk - 1) / chunk;
  parallel_for(chunks * across, [&](int64_t task) {
    const int64_t n0 = task % chunks * chunk, n1 = smaller(n0 + chunk, outputs);
    const int64_t first_panel = task / chunks * wide;
    const int64_t last_panel = smaller(first_panel + wide, panels);
    const int64_t most_steps = SUM_ROWS / per_word<T>;
    // An odd number of cache lines per step, so that the steps of a tile do not share a set.
    const int64_t stride = (chunk + PANEL - 1) / PANEL * PANEL + 16;
    uint32_t *left = scratch<uint32_t>(1, static_cast<size_t>(most_steps * stride + PANEL));
    uint32_t *right = scratch<uint32_t>(2, static_cast<size_t>(wide * most_steps * PANEL));
    float *sums = db != nullptr && first_panel == 0 ? db + n0 : nullptr;
    if (!add) {
      for (int64_t n = n0; n < n1; n++) {
        const int64_t from = first_panel * PANEL, to = smaller(last_panel * PANEL, inputs);
        memset(dw + n * dw_row + from, 0, static_cast<size_t>(to - from) * sizeof(float));
      }
      if (sums != nullptr) memset(sums, 0, static_cast<size_t>(n1 - n0) * sizeof(float));
    }
    for (int64_t p = 0; p < rows; p += SUM_ROWS) {
      const int64_t count = smaller(SUM_ROWS, rows - p);
      const int64_t steps = (count + per_word<T> - 1) / per_word<T>;
      const T *dy_block = dy + p * dy_row, *x_block = x + p * x_row;
      for (int64_t s = 0; s < steps; s++) {
        for (int64_t n = n0; n < n1; n += PANEL) {
          step_words(dy_block, dy_row, count, s, n, outputs - n, left + s * stride + (n - n0));
        }
        for (int64_t panel = first_panel; panel < last_panel; panel++) {
          step_words(x_block, x_row, count, s, panel * PANEL, inputs - panel * PANEL,
                     right + ((panel - first_panel) * most_steps + s) * PANEL);
        }
      }
      if (sums != nullptr) {
        for (int64_t n = 0; n < n1 - n0; n += 16) {
          const int64_t width = n1 - n0 - n;
          Vec total = load(sums + n, width);
          for (int64_t i = 0; i < count; i++) {
            total = total + load(dy_block + i * dy_row + n0 + n, width);
          }
          store(sums + n, total, width);
        }
      }
      // The next block of rows is fetched while this one is summed: of each row only a few columns
      // are read, too few for the processor to guess what comes next.
      const int64_t tiles = (n1 - n0 + TILE_ROWS - 1) / TILE_ROWS * (last_panel - first_panel);
      const int64_t next_end = smaller(p + 2 * SUM_ROWS, rows), per_tile = (SUM_ROWS - 1) / tiles + 1;
      int64_t next = p + SUM_ROWS;
      for (int64_t panel = first_panel; panel < last_panel; panel++) {
        const int64_t column = panel * PANEL, width = smaller(PANEL, inputs - column);
        const uint32_t *packed = right + (panel - first_panel) * most_steps * PANEL;
        for (int64_t n = n0; n < n1; n += TILE_ROWS) {
          float *out = dw + n * dw_row + column;
          for (int64_t i = 0; i < per_tile && next < next_end; i++, next++) {
            fetch(dy + next * dy_row + n0, n1 - n0);
            fetch(x + next * x_row + first_panel * PANEL, (last_panel - first_panel) * PANEL);
          }
          const int64_t tile_rows = smaller(TILE_ROWS, n1 - n);
          const uint32_t *tile_words = left + (n - n0);
          if (width >= PANEL) {
            tile_of<is_bf16<T>>(tile_rows, tile_words, 1, stride, packed, steps, out, out, dw_row);
            continue;
          }
          float edge[TILE_ROWS * PANEL];
          tile_of<is_bf16<T>>(tile_rows, tile_words, 1, stride, packed, steps, nullptr, edge, PANEL);
          for (int64_t r = 0; r < tile_rows; r++) {
            for (int64_t j = 0; j < width; j++) out[r * dw_row + j] += edge[r * PANEL + j];
          }
        }
      }
    }
  });
}

}  // namespace

// Words that `forward` (columns = outputs, length = inputs) and `backward` (the other way round)
// take: panels x steps x 64.
KERNEL(int64_t, packed_words, int64_t columns, int64_t length, int64_t in_bf16) {
  return panels_of(columns) * (in_bf16 ? (length + 1) / 2 : length) * PANEL;
}

KERNEL(void, pack_weights_bf16, const float *const *weights, const int64_t *outputs, int64_t count,
       int64_t inputs, uint32_t *to_forward, uint32_t *to_backward) {
  pack_weights<true>(weights, outputs, count, inputs, to_forward, to_backward);
}

KERNEL(void, pack_weights_fp32, const float *const *weights, const int64_t *outputs, int64_t count,
       int64_t inputs, uint32_t *to_forward, uint32_t *to_backward) {
  pack_weights<false>(weights, outputs, count, inputs, to_forward, to_backward);
}

#define DRAGOMAN_LINEAR(T, suffix)                                                               \
  KERNEL(void, linear_forward_##suffix, const T *x, int64_t x_row, const uint32_t *weight,       \
         const float *bias, T *out, int64_t out_row, int64_t rows, int64_t outputs,              \
         int64_t inputs) {                                                                       \
    forward<T>(x, x_row, weight, bias, out, out_row, rows, outputs, inputs);                     \
  }                                                                                              \
  KERNEL(void, linear_relu_##suffix, const T *x, int64_t x_row, const uint32_t *weight,          \
         const float *bias, T *out, int64_t out_row, int64_t rows, int64_t outputs,              \
         int64_t inputs, float rate, uint64_t seed) {                                            \
    forward_relu<T>(x, x_row, weight, bias, out, out_row, rows, outputs, inputs, rate, seed);    \
  }                                                                                              \
  KERNEL(void, linear_backward_input_##suffix, const T *dy, int64_t dy_row,                      \
         const uint32_t *weight, T *dx, int64_t dx_row, int64_t rows, int64_t outputs,           \
         int64_t inputs, const T *hidden, int64_t hidden_row, float rate) {                      \
    backward_input<T>(dy, dy_row, weight, dx, dx_row, rows, outputs, inputs, hidden, hidden_row, \
                      rate);                                                                     \
  }                                                                                              \
  KERNEL(void, linear_backward_weight_##suffix, const T *dy, int64_t dy_row, const T *x,         \
         int64_t x_row, float *dw, int64_t dw_row, float *db, int64_t rows, int64_t outputs,     \
         int64_t inputs, int64_t add) {                                                          \
    backward_weight<T>(dy, dy_row, x, x_row, dw, dw_row, db, rows, outputs, inputs, add != 0);   \
  }

DRAGOMAN_LINEAR(bf16, bf16)
DRAGOMAN_LINEAR(float, fp32)
