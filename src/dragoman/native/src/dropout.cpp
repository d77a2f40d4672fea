// levels: avx512 avx512vnni avx2 neon
// Dropout(added), or x + Dropout(added), the residual connection of a pre-norm sub-layer
// (native/dropout.py). Gradients pass through the same mask: the kernel is its own backward pass.
#include "random.h"
#include "threads.h"

namespace {

template <class T>
static void drop(const T *x, const T *added, T *out, int64_t rows, int64_t width, float rate,
                 uint64_t seed, const int32_t *names) {
  const Dropout dropout(rate);
  const int64_t part = 64, parts = (rows + part - 1) / part;
  parallel_for(parts, [&](int64_t task) {
    const int64_t end = (task + 1) * part < rows ? (task + 1) * part : rows;
    for (int64_t r = task * part; r < end; r++) {
      const uint32_t key = row_key(seed, row_name(names, r));
      for (int64_t j = 0; j < width; j += BLOCK) {
        Vec f[VECTORS];
        dropout_factors(dropout, key, j / BLOCK, f);
        for (int v = 0; v < VECTORS && j + v * LANES < width; v++) {
          const int64_t left = width - j - v * LANES, at = r * width + width - left;
          const Vec kept = load_some(added + at, left) * f[v];
          store_some(out + at, x == nullptr ? kept : load_some(x + at, left) + kept, left);
        }
      }
    }
  });
}

}  // namespace

#define DRAGOMAN_DROPOUT(T, suffix)                                                             \
  KERNEL(void, dropout_##suffix, const T *x, const T *added, T *out, int64_t rows, int64_t width, \
         float rate, uint64_t seed, const int32_t *names) {                                     \
    drop<T>(x, added, out, rows, width, rate, seed, names);                                     \
  }

DRAGOMAN_DROPOUT(bf16, bf16)
DRAGOMAN_DROPOUT(float, fp32)
