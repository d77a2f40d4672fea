// levels: avx512 avx2
// Dropout, and the sum x + Dropout(sublayer) of pre-norm layers (native/dropout.py, native/norm.py).
#include "random.h"
#include "threads.h"

namespace {

constexpr int64_t PART = 64;  // rows per task

// out = base + Dropout(x); base may be null.
template <class T>
static void apply(const T *x, int64_t x_row, const T *base, int64_t base_row, T *out,
                  int64_t out_row, int64_t rows, int64_t width, float rate, uint64_t seed,
                  const int32_t *names) {
  const Dropout dropout(rate);
  parallel_for((rows + PART - 1) / PART, [&](int64_t task) {
    const int64_t end = (task + 1) * PART < rows ? (task + 1) * PART : rows;
    for (int64_t r = task * PART; r < end; r++) {
      const uint32_t key = row_key(seed, row_name(names, r));
      for (int64_t j = 0; j < width; j += BLOCK) {
        Vec f[VECTORS];
        dropout_factors(dropout, key, j / BLOCK, f);
        for (int v = 0; v < VECTORS && j + v * LANES < width; v++) {
          const int64_t at = j + v * LANES, left = width - at;
          Vec a = load_some(x + r * x_row + at, left) * f[v];
          if (base != nullptr) a = a + load_some(base + r * base_row + at, left);
          store_some(out + r * out_row + at, a, left);
        }
      }
    }
  });
}

}  // namespace

#define DRAGOMAN_DROPOUT(T, suffix)                                                           \
  KERNEL(void, dropout_##suffix, const T *x, int64_t x_row, T *out, int64_t out_row,          \
         int64_t rows, int64_t width, float rate, uint64_t seed, const int32_t *names) {      \
    apply<T>(x, x_row, nullptr, 0, out, out_row, rows, width, rate, seed, names);             \
  }                                                                                           \
  KERNEL(void, residual_##suffix, const T *x, int64_t x_row, const T *base, int64_t base_row, \
         T *out, int64_t out_row, int64_t rows, int64_t width, float rate, uint64_t seed,     \
         const int32_t *names) {                                                              \
    apply<T>(x, x_row, base, base_row, out, out_row, rows, width, rate, seed, names);         \
  }

DRAGOMAN_DROPOUT(bf16, bf16)
DRAGOMAN_DROPOUT(float, fp32)
