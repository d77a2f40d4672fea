// levels: amx avx512 avx512vnni avx2 amxtwin neon
// Linear layers for training: y = x Wᵀ + b and its gradients, on packed weights (native/linear.py).
//
// A weight W (N x K) is packed twice per update: `forward` as the B operand of x Wᵀ (columns N,
// steps along K) and `backward` as that of dy W (columns K, steps along N). Several matrices may be
// packed as one whose rows are theirs, one after the other (queries, keys and values).
#include "gradient.h"
#include "pack.h"

namespace {

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
                         forward + task * packed_steps(forward_steps) * PANEL);
    } else {
      task -= forward_panels;
      pack_backward<BF16>(rows, total, inputs, task,
                          backward + task * packed_steps(backward_steps) * PANEL);
    }
  });
}

static ALWAYS_INLINE void add_bias(const float *bias, int64_t column, int64_t width, Sums &sums) {
  if (bias == nullptr) return;
#pragma GCC unroll 4
  for (int v = 0; v < PANEL_VECTORS; v++) {
    sums.v[v] = sums.v[v] + load(bias + column + v * LANES, larger(0, width - v * LANES));
  }
}

// A `prepare` of `product`: what `finish` will read or write of a row-major array.
template <class T>
static ALWAYS_INLINE auto fetch_panel(const T *first, int64_t row) {
  const int64_t size = sizeof(T);
  return [=](int64_t i, int64_t count, int64_t column) {
    fetch_rows(first + i * row + column, row * size, count, PANEL * size);
  };
}

template <class T>
static void forward(const T *x, int64_t x_row, const uint32_t *weight, const float *bias, T *out,
                    int64_t out_row, int64_t rows, int64_t outputs, int64_t inputs) {
  product<is_bf16<T>>(words(x), x_row / per_word<T>, rows, weight, outputs, inputs / per_word<T>,
                      [=](int64_t i, int64_t column, int64_t width, Sums sums) {
                        add_bias(bias, column, width, sums);
                        store_row(out + i * out_row + column, width, sums);
                      },
                      fetch_panel(out, out_row));
}

// Dropout(ReLU(x Wᵀ + b))
template <class T>
static void forward_relu(const T *x, int64_t x_row, const uint32_t *weight, const float *bias,
                         T *out, int64_t out_row, int64_t rows, int64_t outputs, int64_t inputs,
                         float rate, uint64_t seed, const int32_t *names) {
  const Dropout dropout(rate);
  product<is_bf16<T>>(
      words(x), x_row / per_word<T>, rows, weight, outputs, inputs / per_word<T>,
      [=](int64_t i, int64_t column, int64_t width, Sums sums) {
        add_bias(bias, column, width, sums);
#pragma GCC unroll 4
        for (int v = 0; v < PANEL_VECTORS; v++) sums.v[v] = maximum(sums.v[v], zero());
        if (!dropout.off()) {
          const uint32_t key = row_key(seed, row_name(names, i));
          Vec f[PANEL_VECTORS];
          for (int block = 0; block < PANEL / BLOCK; block++) {
            dropout_factors(dropout, key, column / BLOCK + block, f + block * VECTORS);
          }
#pragma GCC unroll 4
          for (int v = 0; v < PANEL_VECTORS; v++) sums.v[v] = sums.v[v] * f[v];
        }
        store_row(out + i * out_row + column, width, sums);
      },
      fetch_panel(out, out_row));
}

// dx = dy W; with `hidden`, the output of forward_relu that x stands for, the gradient goes through
// its ReLU and dropout too.
template <class T>
static void backward_input(const T *dy, int64_t dy_row, const uint32_t *weight, T *dx,
                           int64_t dx_row, int64_t rows, int64_t outputs, int64_t inputs,
                           const T *hidden, int64_t hidden_row, float rate) {
  const Vec scale = all(Dropout(rate).scale);
  const auto fetch_hidden = fetch_panel(hidden, hidden_row);
  const auto through = [=](const T *h, int64_t left, Vec v) {
    return left > 0 ? where(greater(load(h, left), zero()), v * scale, zero()) : v;
  };
  product<is_bf16<T>>(
      words(dy), dy_row / per_word<T>, rows, weight, inputs, outputs / per_word<T>,
      [=](int64_t i, int64_t column, int64_t width, Sums sums) {
        if (hidden != nullptr) {
          const T *h = hidden + i * hidden_row + column;
#pragma GCC unroll 4
          for (int v = 0; v < PANEL_VECTORS; v++) {
            sums.v[v] = through(h + v * LANES, width - v * LANES, sums.v[v]);
          }
        }
        store_row(dx + i * dx_row + column, width, sums);
      },
      [=](int64_t i, int64_t count, int64_t column) {
        if (hidden != nullptr) fetch_hidden(i, count, column);
      });
}

}  // namespace

#define DRAGOMAN_LINEAR(T, suffix)                                                               \
  /* Words that `forward` (columns = outputs, length = inputs) and `backward` (the other way      \
     round) take: panels x steps x PANEL. */                                                     \
  KERNEL(int64_t, packed_words_##suffix, int64_t columns, int64_t length) {                      \
    const int64_t steps = (length + per_word<T> - 1) / per_word<T>;                              \
    return panels_of(columns) * packed_steps(steps) * PANEL;                                     \
  }                                                                                              \
  KERNEL(void, pack_weights_##suffix, const float *const *weights, const int64_t *outputs,       \
         int64_t count, int64_t inputs, uint32_t *to_forward, uint32_t *to_backward) {           \
    pack_weights<is_bf16<T>>(weights, outputs, count, inputs, to_forward, to_backward);          \
  }                                                                                              \
  KERNEL(void, linear_forward_##suffix, const T *x, int64_t x_row, const uint32_t *weight,       \
         const float *bias, T *out, int64_t out_row, int64_t rows, int64_t outputs,              \
         int64_t inputs) {                                                                       \
    forward<T>(x, x_row, weight, bias, out, out_row, rows, outputs, inputs);                     \
  }                                                                                              \
  KERNEL(void, linear_relu_##suffix, const T *x, int64_t x_row, const uint32_t *weight,          \
         const float *bias, T *out, int64_t out_row, int64_t rows, int64_t outputs,              \
         int64_t inputs, float rate, uint64_t seed, const int32_t *names) {                      \
    forward_relu<T>(x, x_row, weight, bias, out, out_row, rows, outputs, inputs, rate, seed,     \
                    names);                                                                      \
  }                                                                                              \
  KERNEL(void, linear_backward_input_##suffix, const T *dy, int64_t dy_row,                      \
         const uint32_t *weight, T *dx, int64_t dx_row, int64_t rows, int64_t outputs,           \
         int64_t inputs, const T *hidden, int64_t hidden_row, float rate) {                      \
    backward_input<T>(dy, dy_row, weight, dx, dx_row, rows, outputs, inputs, hidden, hidden_row, \
                      rate);                                                                     \
  }                                                                                              \
  KERNEL(void, linear_backward_weight_##suffix, const T *dy, int64_t dy_row, const T *x,         \
         int64_t x_row, const Part *parts, int64_t count, int64_t rows, int64_t inputs) {        \
    backward_weight<T>(dy, dy_row, x, x_row, parts, count, rows, inputs);                        \
  }

#if !defined(DRAGOMAN_TILES)
DRAGOMAN_LINEAR(float, fp32)
#endif
#if defined(DRAGOMAN_BF16_PRODUCTS)
DRAGOMAN_LINEAR(bf16, bf16)
#endif
