// levels: avx512 avx512vnni avx2 neon
// LayerNorm(x + Dropout(sublayer)) in one pass, and its gradients (native/norm.py).
//
// The forward pass keeps the normalised rows and 1 / standard deviation; the backward pass makes
// the dropout mask again.
#include "random.h"
#include "threads.h"

namespace {

// Rows per task: a function of the size alone, so that sums over tasks are the same on any number
// of threads.
static inline int64_t rows_per_part(int64_t rows) {
  const int64_t part = (rows + 255) / 256;
  return part < 64 ? 64 : part;
}

template <class T>
static void forward(const T *x, const T *sublayer, const float *gain, const float *bias, T *out,
                    T *normal, float *scale, int64_t rows, int64_t width, float epsilon,
                    float rate, uint64_t seed, const int32_t *names) {
  const Dropout dropout(sublayer == nullptr ? 0.0f : rate);
  const int64_t part = rows_per_part(rows), parts = (rows + part - 1) / part;
  parallel_for(parts, [&](int64_t task) {
    const int64_t end = (task + 1) * part < rows ? (task + 1) * part : rows;
    float *sum_row = scratch<float>(0, static_cast<size_t>(width + BLOCK));
    for (int64_t r = task * part; r < end; r++) {
      const T *x_row = x + r * width, *s_row = sublayer + r * width;
      const uint32_t key = row_key(seed, row_name(names, r));
      Vec total = zero();
      for (int64_t j = 0; j < width; j += BLOCK) {
        Vec f[VECTORS];
        if (!dropout.off()) dropout_factors(dropout, key, j / BLOCK, f);
        for (int v = 0; v < VECTORS && j + v * LANES < width; v++) {
          const int64_t at = j + v * LANES;
          Vec a = load_some(x_row + at, width - at);
          if (sublayer != nullptr) {
            const Vec s = load_some(s_row + at, width - at);
            a = dropout.off() ? a + s : fma(s, f[v], a);
          }
          store(sum_row + at, a);
          total = total + a;
        }
      }
      const float mean = sum(total) / static_cast<float>(width);
      Vec squares = zero();
      for (int64_t j = 0; j < width; j += LANES) {
        const Vec d = keep_first(load(sum_row + j) - all(mean), width - j, zero());
        squares = fma(d, d, squares);
      }
      const float variance = sum(squares) / static_cast<float>(width);
      const float inverse = 1.0f / sqrtf(variance + epsilon);
      if (scale != nullptr) scale[r] = inverse;
      for (int64_t j = 0; j < width; j += LANES) {
        const int64_t left = width - j;
        const Vec n = (load(sum_row + j) - all(mean)) * all(inverse);
        if (normal != nullptr) store_some(normal + r * width + j, n, left);
        store_some(out + r * width + j, fma(n, load_some(gain + j, left), load_some(bias + j, left)),
                   left);
      }
    }
  });
}

// dx = d(x + Dropout(sublayer)); dsublayer = dx through the mask (not written if null).
// `sums` holds parts x 2 x width floats: what each part adds to the gradients of gain and bias.
template <class T>
static void backward(const T *grad, const T *normal, const float *scale, const float *gain, T *dx,
                     T *dsublayer, float *dgain, float *dbias, int64_t rows, int64_t width,
                     float rate, uint64_t seed, const int32_t *names, float *sums) {
  const Dropout dropout(rate);
  const int64_t part = rows_per_part(rows), parts = (rows + part - 1) / part;
  parallel_for(parts, [&](int64_t task) {
    const int64_t end = (task + 1) * part < rows ? (task + 1) * part : rows;
    float *gain_sum = sums + task * 2 * width, *bias_sum = gain_sum + width;
    memset(gain_sum, 0, static_cast<size_t>(2 * width) * sizeof(float));
    for (int64_t r = task * part; r < end; r++) {
      const T *g_row = grad + r * width, *n_row = normal + r * width;
      Vec first = zero(), second = zero();  // sums of g gain and of g gain n
      for (int64_t j = 0; j < width; j += LANES) {
        const int64_t left = width - j;
        const Vec g = load_some(g_row + j, left), n = load_some(n_row + j, left);
        const Vec weighted = g * load_some(gain + j, left);
        first = first + weighted;
        second = fma(weighted, n, second);
        store_some(gain_sum + j, fma(g, n, load_some(gain_sum + j, left)), left);
        store_some(bias_sum + j, g + load_some(bias_sum + j, left), left);
      }
      const float count = static_cast<float>(width);
      const Vec mean = all(sum(first) / count), slope = all(sum(second) / count);
      const Vec inverse = all(scale[r]);
      const uint32_t key = row_key(seed, row_name(names, r));
      for (int64_t j = 0; j < width; j += BLOCK) {
        Vec f[VECTORS];
        if (dsublayer != nullptr) dropout_factors(dropout, key, j / BLOCK, f);
        for (int v = 0; v < VECTORS && j + v * LANES < width; v++) {
          const int64_t at = j + v * LANES, left = width - at;
          const Vec g = load_some(g_row + at, left) * load_some(gain + at, left);
          const Vec n = load_some(n_row + at, left);
          const Vec d = (g - fma(n, slope, mean)) * inverse;
          store_some(dx + r * width + at, d, left);
          if (dsublayer != nullptr) store_some(dsublayer + r * width + at, d * f[v], left);
        }
      }
    }
  });
  for (int64_t j = 0; j < width; j += LANES) {
    const int64_t left = width - j;
    Vec gain_total = zero(), bias_total = zero();
    for (int64_t task = 0; task < parts; task++) {
      gain_total = gain_total + load_some(sums + task * 2 * width + j, left);
      bias_total = bias_total + load_some(sums + (task * 2 + 1) * width + j, left);
    }
    store_some(dgain + j, gain_total, left);
    store_some(dbias + j, bias_total, left);
  }
}

}  // namespace

// Floats that backward's `sums` takes.
KERNEL(int64_t, norm_sums, int64_t rows, int64_t width) {
  const int64_t part = rows_per_part(rows);
  return (rows + part - 1) / part * 2 * width;
}

#define DRAGOMAN_NORM(T, suffix)                                                                 \
  KERNEL(void, norm_forward_##suffix, const T *x, const T *sublayer, const float *gain,          \
         const float *bias, T *out, T *normal, float *scale, int64_t rows, int64_t width,        \
         float epsilon, float rate, uint64_t seed, const int32_t *names) {                       \
    forward<T>(x, sublayer, gain, bias, out, normal, scale, rows, width, epsilon, rate, seed,    \
               names);                                                                           \
  }                                                                                              \
  KERNEL(void, norm_backward_##suffix, const T *grad, const T *normal, const float *scale,       \
         const float *gain, T *dx, T *dsublayer, float *dgain, float *dbias, int64_t rows,       \
         int64_t width, float rate, uint64_t seed, const int32_t *names, float *sums) {          \
    backward<T>(grad, normal, scale, gain, dx, dsublayer, dgain, dbias, rows, width, rate, seed, \
                names, sums);                                                                           \
  }

DRAGOMAN_NORM(bf16, bf16)
DRAGOMAN_NORM(float, fp32)
