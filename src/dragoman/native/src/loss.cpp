// levels: amx avx512 avx512vnni avx2 amxtwin neon
// Cross-entropy with label smoothing and its gradients, without stored logits (native/loss.py).
//
// Rows are taken a block at a time: their logits, in the thread's own memory, become their loss and
// at once the gradient by the logits, from which the gradients of hidden rows and weights follow.
// So the output layer is computed once, not again in the backward pass.
#include "gradient.h"
#include "matrix.h"

#if defined(DRAGOMAN_TILES)
#include "loss_tiles.h"
#else

namespace {

constexpr int64_t BLOCK_ROWS = 48;     // rows of one task
constexpr int64_t CHUNK_ROWS = 1008;   // rows between two additions to dW

static ALWAYS_INLINE int64_t even(int64_t n) { return (n + 1) / 2 * 2; }
static ALWAYS_INLINE int64_t slopes_length(int64_t vocabulary) { return even(vocabulary) + 32; }

// Loss of one row from its logits, which become exp(logit - largest).
struct RowLoss {
  float share;  // 1 / sum of what is left in the row
  float nll, uniform;
};

static ALWAYS_INLINE RowLoss row_loss(float *logits, int64_t vocabulary, int64_t target) {
  Vec top = all(-INFINITY), all_of = zero();
  for (int64_t j = 0; j < vocabulary; j += LANES) {
    const int64_t left = vocabulary - j;
    const Vec v = load(logits + j);
    top = maximum(top, left >= LANES ? v : keep_first(v, left, all(-INFINITY)));
    all_of = all_of + (left >= LANES ? v : keep_first(v, left, zero()));
  }
  const float most = largest(top), mean = sum(all_of) / static_cast<float>(vocabulary);
  const float aim = logits[target];
  Vec total = zero();
  for (int64_t j = 0; j < vocabulary; j += LANES) {
    const int64_t left = vocabulary - j;
    Vec e = exponential(load(logits + j) - all(most));
    if (left < LANES) e = keep_first(e, left, zero());
    store(logits + j, e);
    total = total + e;
  }
  const float whole = sum(total), log_sum = most + logf(whole);
  return {1.0f / whole, log_sum - aim, log_sum - mean};
}

// out = softmax - smoothing / V - (1 - smoothing) [target]
template <class T>
static ALWAYS_INLINE void row_gradient(const float *row, float share, int64_t vocabulary,
                                       int64_t target, float smoothing, T *out) {
  const float spread = smoothing / static_cast<float>(vocabulary);
  for (int64_t j = 0; j < vocabulary; j += LANES) {
    store_some(out + j, fma(load(row + j), all(share), all(-spread)), vocabulary - j);
  }
  const float right = row[target] * share - spread - (1.0f - smoothing);
  if constexpr (is_bf16<T>) {
    out[target] = bf16_of(right);
  } else {
    out[target] = right;
  }
  for (int64_t j = vocabulary; j < even(vocabulary); j++) out[j] = 0;
}

template <class T>
static void store_hidden(const float *in, int64_t width, int64_t at, int64_t rows, T *out,
                         int64_t out_row) {
  for (int64_t r = 0; r < rows; r++) {
    store_row(out + r * out_row + at, smaller(PANEL, width - at), load_sums(in + r * PANEL));
  }
}

// losses, nlls (P); dhidden (P, D) and dweight (V, D) are not computed if null.
template <class T>
static void cross_entropy(const T *hidden, int64_t hidden_row, const uint32_t *forward,
                          const uint32_t *backward, const int64_t *targets, int64_t rows,
                          int64_t vocabulary, int64_t width, float smoothing, float *losses,
                          float *nlls, T *dhidden, T *slopes, float *dweight) {
  const int64_t panels = panels_of(vocabulary), logits_row = panels * PANEL + 16;
  const int64_t slopes_row = slopes_length(vocabulary);
  const int64_t steps = width / per_word<T>;
  const int64_t back_steps = (vocabulary + per_word<T> - 1) / per_word<T>;
  for (int64_t first = 0; first < rows; first += CHUNK_ROWS) {
    const int64_t chunk = smaller(CHUNK_ROWS, rows - first);
    parallel_for((chunk + BLOCK_ROWS - 1) / BLOCK_ROWS, [&](int64_t task) {
      const int64_t begin = task * BLOCK_ROWS, count = smaller(BLOCK_ROWS, chunk - begin);
      float *logits = scratch<float>(3, static_cast<size_t>(BLOCK_ROWS * logits_row));
      const uint32_t *in = words(hidden + (first + begin) * hidden_row);
      const int64_t in_row = hidden_row / per_word<T>;
      for (int64_t panel = 0; panel < panels; panel++) {
        for (int64_t i = 0; i < count; i += TILE_ROWS) {
          float *out = logits + i * logits_row + panel * PANEL;
          for (int64_t done = 0; done < steps; done += MOST_STEPS) {
            tile_of<is_bf16<T>>(smaller(TILE_ROWS, count - i), in + i * in_row + done, in_row, 1,
                                forward + (panel * steps + done) * PANEL,
                                smaller(MOST_STEPS, steps - done), done == 0 ? nullptr : out, out,
                                logits_row);
          }
        }
      }
      T *out = slopes + begin * slopes_row;
      for (int64_t i = 0; i < count; i++) {
        const int64_t row = first + begin + i, target = targets[row];
        const RowLoss loss = row_loss(logits + i * logits_row, vocabulary, target);
        nlls[row] = loss.nll;
        losses[row] = (1.0f - smoothing) * loss.nll + smoothing * loss.uniform;
        if (slopes != nullptr) {
          row_gradient(logits + i * logits_row, loss.share, vocabulary, target, smoothing,
                       out + i * slopes_row);
        }
      }
      if (dhidden == nullptr) return;
      float *partial = logits;  // the logits are used up
      for (int64_t panel = 0; panel < panels_of(width); panel++) {
        for (int64_t done = 0; done < back_steps; done += MOST_STEPS) {
          for (int64_t i = 0; i < count; i += TILE_ROWS) {
            tile_of<is_bf16<T>>(
                smaller(TILE_ROWS, count - i), words(out) + i * (slopes_row / per_word<T>) + done,
                slopes_row / per_word<T>, 1, backward + (panel * back_steps + done) * PANEL,
                smaller(MOST_STEPS, back_steps - done), done == 0 ? nullptr : partial + i * PANEL,
                partial + i * PANEL, PANEL);
          }
        }
        store_hidden(partial, width, panel * PANEL, count, dhidden + (first + begin) * width,
                     width);
      }
    });
    if (dweight != nullptr) {
      const Part part{dweight, nullptr, vocabulary, first > 0};
      backward_weight<T>(slopes, slopes_row, hidden + first * hidden_row, hidden_row, &part, 1,
                         chunk, width);
    }
  }
}

}  // namespace

#endif

#define DRAGOMAN_LOSS(T, suffix)                                                                 \
  /* Elements that `slopes` takes. */                                                            \
  KERNEL(int64_t, cross_entropy_slopes_##suffix, int64_t rows, int64_t vocabulary) {             \
    return smaller(rows, CHUNK_ROWS) * slopes_length(vocabulary) + 64;                           \
  }                                                                                              \
  KERNEL(void, cross_entropy_##suffix, const T *hidden, int64_t hidden_row,                      \
         const uint32_t *to_forward, const uint32_t *to_backward, const int64_t *targets,        \
         int64_t rows, int64_t vocabulary, int64_t width, float smoothing, float *losses,        \
         float *nlls, T *dhidden, T *slopes, float *dweight) {                                   \
    cross_entropy<T>(hidden, hidden_row, to_forward, to_backward, targets, rows, vocabulary,     \
                     width, smoothing, losses, nlls, dhidden, slopes, dweight);                  \
  }

#if !defined(DRAGOMAN_TILES)
DRAGOMAN_LOSS(float, fp32)
#endif
#if defined(DRAGOMAN_BF16_PRODUCTS)
DRAGOMAN_LOSS(bf16, bf16)
#endif
