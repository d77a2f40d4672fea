// levels: avx512 avx512vnni avx2 neon
// One step of an LSTM for many sequences, and its gradients (native/lstm.py).
//
//   i, f, o = sigmoid(a), g = tanh(a), a = gates + bias + again
//   c = f before + i g,  h = o tanh(c)
//
// Gates lie as torch has them, i, f, g, o of one row after each other. Sums are fp32.
#include "threads.h"
#include "vector_math.h"

namespace {

constexpr int64_t PART = 16;  // rows per task

static ALWAYS_INLINE Vec sigmoid(Vec x) {
  const Vec one = all(1.0f);
  return one / (one + exponential(zero() - x));
}

// Row r reads its gates from row rows[r] (null: r). Its activations are kept for the way back.
template <class T>
static void forward(const T *gates, int64_t stride, const int64_t *rows, const float *bias,
                    const T *again, const float *before, float *active, float *cells, T *hiddens,
                    int64_t count, int64_t width) {
  parallel_for((count + PART - 1) / PART, [&](int64_t task) {
    const int64_t end = (task + 1) * PART < count ? (task + 1) * PART : count;
    for (int64_t r = task * PART; r < end; r++) {
      const T *given = gates + (rows == nullptr ? r : rows[r]) * stride, *more = again + r * 4 * width;
      float *kept = active + r * 4 * width;
      for (int64_t j = 0; j < width; j += LANES) {
        const int64_t left = width - j;
        Vec a[4];
        for (int k = 0; k < 4; k++) {
          const int64_t at = k * width + j;
          a[k] = load_some(given + at, left) + load_some(bias + at, left) + load_some(more + at, left);
          a[k] = k == 2 ? hyperbolic_tangent(a[k]) : sigmoid(a[k]);
          store_some(kept + at, a[k], left);
        }
        const Vec c = fma(a[0], a[2], a[1] * load_some(before + r * width + j, left));
        store_some(cells + r * width + j, c, left);
        store_some(hiddens + r * width + j, a[3] * hyperbolic_tangent(c), left);
      }
    }
  });
}

// The first `going` rows have a step behind this one: later_h and later_c are what it sent back;
// later_c becomes what this one sends. of_hidden and of_cell (null: none) come from outside.
template <class T>
static void backward(const T *of_hidden, int64_t hidden_stride, const float *of_cell,
                     int64_t cell_stride, const int64_t *rows, const float *active,
                     const float *cells, const float *before, const T *later_h, float *later_c,
                     T *of_gates, int64_t count, int64_t going, int64_t width) {
  parallel_for((count + PART - 1) / PART, [&](int64_t task) {
    const int64_t end = (task + 1) * PART < count ? (task + 1) * PART : count;
    for (int64_t r = task * PART; r < end; r++) {
      const int64_t row = rows == nullptr ? r : rows[r];
      const float *kept = active + r * 4 * width;
      T *out = of_gates + r * 4 * width;
      for (int64_t j = 0; j < width; j += LANES) {
        const int64_t left = width - j, at = r * width + j;
        const Vec one = all(1.0f);
        const Vec i = load_some(kept + j, left), f = load_some(kept + width + j, left);
        const Vec g = load_some(kept + 2 * width + j, left), o = load_some(kept + 3 * width + j, left);
        const Vec bent = hyperbolic_tangent(load_some(cells + at, left));
        Vec dh = zero(), dc = zero();
        if (of_hidden != nullptr) dh = load_some(of_hidden + row * hidden_stride + j, left);
        if (of_cell != nullptr) dc = load_some(of_cell + row * cell_stride + j, left);
        if (r < going) {
          dh = dh + load_some(later_h + at, left);
          dc = dc + load_some(later_c + at, left);
        }
        dc = fma(dh * o, one - bent * bent, dc);
        store_some(out + j, dc * g * i * (one - i), left);
        store_some(out + width + j, dc * load_some(before + at, left) * f * (one - f), left);
        store_some(out + 2 * width + j, dc * i * (one - g * g), left);
        store_some(out + 3 * width + j, dh * bent * o * (one - o), left);
        store_some(later_c + at, dc * f, left);
      }
    }
  });
}

}  // namespace

#define DRAGOMAN_LSTM(T, suffix)                                                                 \
  KERNEL(void, lstm_forward_##suffix, const T *gates, int64_t stride, const int64_t *rows,       \
         const float *bias, const T *again, const float *before, float *active, float *cells,    \
         T *hiddens, int64_t count, int64_t width) {                                             \
    forward<T>(gates, stride, rows, bias, again, before, active, cells, hiddens, count, width);  \
  }                                                                                              \
  KERNEL(void, lstm_backward_##suffix, const T *of_hidden, int64_t hidden_stride,                \
         const float *of_cell, int64_t cell_stride, const int64_t *rows, const float *active,    \
         const float *cells, const float *before, const T *later_h, float *later_c, T *of_gates, \
         int64_t count, int64_t going, int64_t width) {                                          \
    backward<T>(of_hidden, hidden_stride, of_cell, cell_stride, rows, active, cells, before,     \
                later_h, later_c, of_gates, count, going, width);                                \
  }

DRAGOMAN_LSTM(bf16, bf16)
DRAGOMAN_LSTM(float, fp32)
