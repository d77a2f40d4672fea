// levels: avx512 avx512vnni avx2 neon
// Dropout(scale * E[id] + place) in one pass, and the gradient of E (native/embedding.py).
#include "random.h"
#include "threads.h"

namespace {

constexpr int64_t PART = 64;  // rows per task

// `places` (L, D) is indexed by `positions` (P); null: no places are added.
template <class T>
static void forward(const float *matrix, const int64_t *ids, const float *places,
                    const int64_t *positions, T *out, int64_t rows, int64_t width, float scale,
                    float rate, uint64_t seed, const int32_t *names) {
  const Dropout dropout(rate);
  parallel_for((rows + PART - 1) / PART, [&](int64_t task) {
    const int64_t end = (task + 1) * PART < rows ? (task + 1) * PART : rows;
    for (int64_t r = task * PART; r < end; r++) {
      const float *from = matrix + ids[r] * width;
      const float *place = places == nullptr ? nullptr : places + positions[r] * width;
      const uint32_t key = row_key(seed, row_name(names, r));
      for (int64_t j = 0; j < width; j += BLOCK) {
        Vec f[VECTORS];
        dropout_factors(dropout, key, j / BLOCK, f);
        for (int v = 0; v < VECTORS && j + v * LANES < width; v++) {
          const int64_t at = j + v * LANES, left = width - at;
          Vec a = load_some(from + at, left) * all(scale);
          if (place != nullptr) a = a + load_some(place + at, left);
          store_some(out + r * width + at, a * f[v], left);
        }
      }
    }
  });
}

// dmatrix[ids[r]] += scale * mask * grad[r]. Each task owns a range of ids, so that rows are added
// in their order on any number of threads.
template <class T>
static void backward(const T *grad, const int64_t *ids, float *dmatrix, int64_t vocabulary,
                     int64_t rows, int64_t width, float scale, float rate, uint64_t seed,
                     const int32_t *names) {
  const Dropout dropout(rate);
  constexpr int64_t RANGES = 32;
  parallel_for(RANGES, [&](int64_t task) {
    // Frequent tokens have neighbouring ids: ids are dealt out in turn.
    for (int64_t r = 0; r < rows; r++) {
      const int64_t id = ids[r];
      if (id % RANGES != task || id >= vocabulary) continue;
      float *to = dmatrix + id * width;
      const uint32_t key = row_key(seed, row_name(names, r));
      for (int64_t j = 0; j < width; j += BLOCK) {
        Vec f[VECTORS];
        dropout_factors(dropout, key, j / BLOCK, f);
        for (int v = 0; v < VECTORS && j + v * LANES < width; v++) {
          const int64_t at = j + v * LANES, left = width - at;
          const Vec g = load_some(grad + r * width + at, left) * f[v];
          store_some(to + at, fma(g, all(scale), load_some(to + at, left)), left);
        }
      }
    }
  });
}

}  // namespace

#define DRAGOMAN_EMBEDDING(T, suffix)                                                          \
  KERNEL(void, embedding_forward_##suffix, const float *matrix, const int64_t *ids,            \
         const float *places, const int64_t *positions, T *out, int64_t rows, int64_t width,   \
         float scale, float rate, uint64_t seed, const int32_t *names) {                       \
    forward<T>(matrix, ids, places, positions, out, rows, width, scale, rate, seed, names);    \
  }                                                                                            \
  KERNEL(void, embedding_backward_##suffix, const T *grad, const int64_t *ids, float *dmatrix, \
         int64_t vocabulary, int64_t rows, int64_t width, float scale, float rate,             \
         uint64_t seed, const int32_t *names) {                                                \
    backward<T>(grad, ids, dmatrix, vocabulary, rows, width, scale, rate, seed, names);        \
  }

DRAGOMAN_EMBEDDING(bf16, bf16)
DRAGOMAN_EMBEDDING(float, fp32)
