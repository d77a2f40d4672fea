// levels: avx512 avx512vnni avx2 neon
// The scores of additive attention, energy . tanh(query + key), and their gradients
// (native/additive.py). Where a key is not allowed nothing is computed.
#include "threads.h"
#include "vector_math.h"

namespace {

// scores[b][r][s] = energy . tanh(query[b][r] + key[b][s]); 0 where allowed[b][s] is 0.
template <class T>
static void scores_forward(const T *query, const T *keys, const float *energy,
                           const uint8_t *allowed, T *scores, int64_t batch, int64_t queries,
                           int64_t source, int64_t width) {
  parallel_for(batch * queries, [&](int64_t task) {
    const int64_t b = task / queries;
    const T *q = query + task * width;
    for (int64_t s = 0; s < source; s++) {
      Vec total = zero();
      if (allowed[b * source + s]) {
        const T *k = keys + (b * source + s) * width;
        for (int64_t j = 0; j < width; j += LANES) {
          const int64_t left = width - j;
          const Vec bent = hyperbolic_tangent(load_some(q + j, left) + load_some(k + j, left));
          total = fma(load_some(energy + j, left), bent, total);
        }
      }
      const float score = sum(total);
      if constexpr (sizeof(T) == 2) {
        scores[task * source + s] = bf16_of(score);
      } else {
        scores[task * source + s] = score;
      }
    }
  });
}

static ALWAYS_INLINE float number(float value) { return value; }
static ALWAYS_INLINE float number(bf16 value) { return float_of(value); }

// Sums of a source stay in registers and in a strip of LANES columns. `sums` (batch, width): what
// each source adds to the gradient of energy.
template <class T>
static void scores_backward(const T *grad, const T *query, const T *keys, const float *energy,
                            const uint8_t *allowed, T *of_query, T *of_keys, float *sums,
                            int64_t batch, int64_t queries, int64_t source, int64_t width) {
  parallel_for(batch, [&](int64_t b) {
    float *strip = scratch<float>(0, static_cast<size_t>(source * LANES));
    for (int64_t j = 0; j < width; j += LANES) {
      const int64_t left = width - j;
      const Vec v = load_some(energy + j, left);
      Vec of_energy = zero();
      for (int64_t s = 0; s < source; s++) store(strip + s * LANES, zero());
      for (int64_t r = 0; r < queries; r++) {
        const int64_t row = b * queries + r;
        const Vec q = load_some(query + row * width + j, left);
        Vec of_q = zero();
        for (int64_t s = 0; s < source; s++) {
          if (!allowed[b * source + s]) continue;
          const Vec g = all(number(grad[row * source + s]));
          const Vec k = load_some(keys + (b * source + s) * width + j, left);
          const Vec bent = hyperbolic_tangent(q + k);
          const Vec slope = (all(1.0f) - bent * bent) * g * v;
          of_energy = fma(g, bent, of_energy);
          of_q = of_q + slope;
          store(strip + s * LANES, load(strip + s * LANES) + slope);
        }
        store_some(of_query + row * width + j, of_q, left);
      }
      for (int64_t s = 0; s < source; s++) {
        store_some(of_keys + (b * source + s) * width + j, load(strip + s * LANES), left);
      }
      store_some(sums + b * width + j, of_energy, left);
    }
  });
}

}  // namespace

#define DRAGOMAN_ADDITIVE(T, suffix)                                                             \
  KERNEL(void, additive_forward_##suffix, const T *query, const T *keys, const float *energy,    \
         const uint8_t *allowed, T *scores, int64_t batch, int64_t queries, int64_t source,      \
         int64_t width) {                                                                        \
    scores_forward<T>(query, keys, energy, allowed, scores, batch, queries, source, width);      \
  }                                                                                              \
  KERNEL(void, additive_backward_##suffix, const T *grad, const T *query, const T *keys,         \
         const float *energy, const uint8_t *allowed, T *of_query, T *of_keys, float *sums,      \
         int64_t batch, int64_t queries, int64_t source, int64_t width) {                        \
    scores_backward<T>(grad, query, keys, energy, allowed, of_query, of_keys, sums, batch,       \
                       queries, source, width);                                                  \
  }

DRAGOMAN_ADDITIVE(bf16, bf16)
DRAGOMAN_ADDITIVE(float, fp32)
