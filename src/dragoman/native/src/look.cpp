// levels: amx avx512 avx512vnni avxvnni avx2 amxtwin neon
// The rows of a search look at their sources with one head (native/look.py): scores, softmax and
// what is found, row by row.
#include "decode_layers.h"

namespace {

// Twice as many terms at once as one sum has, since each waits for the one before.
static float dot(const float* a, const float* b, int width) {
  Floats total = zero(), more = zero();
  int i = 0;
  for (; i + 2 * LANES <= width; i += 2 * LANES) {
    total = multiply_add(load(a + i), load(b + i), total);
    more = multiply_add(load(a + i + LANES), load(b + i + LANES), more);
  }
  for (; i < width; i += LANES)
    total = multiply_add(load_some(a, i, width), load_some(b, i, width), total);
  return sum(add(total, more));
}

// energy . tanh(query + key)
static float bent(const float* query, const float* key, const float* energy, int width) {
  Floats total = zero();
  for (int i = 0; i < width; i += LANES)
    total = multiply_add(
        load_some(energy, i, width),
        hyperbolic_tangent(add(load_some(query, i, width), load_some(key, i, width))), total);
  return sum(total);
}

}  // namespace

// query (rows, width), keys (batch, source, width), values (batch, source, wide), allowed (batch,
// source): which keys there are. counts (batch): so many rows, in their order, are of each source.
// Scores are scale query . key, or energy . tanh(query + key) where there is an energy (width).
// out (rows, wide): what is found, times factors (batch) if given; 0 where nothing is allowed.
KERNEL(void, look, const float* query, const float* keys, const float* values,
       const uint8_t* allowed, const int64_t* counts, const float* energy, const float* factors,
       float* out, int batch, int source, int width, int wide, float scale) {
  static thread_local Buffer<float> work;
  work.reserve(round_up(source, LANES));
  float* weights = work.data();
  for (int b = 0; b < batch; ++b) {
    const float* key = keys + static_cast<size_t>(b) * source * width;
    const float* value = values + static_cast<size_t>(b) * source * wide;
    const uint8_t* seen = allowed + static_cast<size_t>(b) * source;
    for (int64_t r = 0; r < counts[b]; ++r, query += width, out += wide) {
      float most = -3.0e38f;
      for (int s = 0; s < source; ++s) {
        if (!seen[s]) continue;
        const float* one = key + static_cast<size_t>(s) * width;
        weights[s] =
            energy != nullptr ? bent(query, one, energy, width) : scale * dot(query, one, width);
        if (weights[s] > most) most = weights[s];
      }
      float total = 0.0f;
      for (int s = 0; s < source; s += LANES) {
        const Floats power = power_of_two(
            multiply(subtract(load(weights + s), every(most)), every(LOG2_E)));
        store(weights + s, power);
      }
      for (int s = 0; s < source; ++s) {
        if (!seen[s]) weights[s] = 0.0f;
        total += weights[s];
      }
      const float by = total > 0.0f ? (factors != nullptr ? factors[b] : 1.0f) / total : 0.0f;
      for (int i = 0; i < wide; i += 4 * LANES) {
        Floats found[4] = {zero(), zero(), zero(), zero()};
        for (int s = 0; s < source; ++s) {
          if (weights[s] == 0.0f) continue;
          const Floats weight = every(weights[s] * by);
          const float* row = value + static_cast<size_t>(s) * wide;
          for (int j = 0; j < 4; ++j)
            found[j] = multiply_add(weight, load_some(row, i + LANES * j, wide), found[j]);
        }
        for (int j = 0; j < 4; ++j) store_some(out, i + LANES * j, wide, found[j]);
      }
    }
  }
}
