// Random bits as a pure function of (seed, name of the row, column): dropout masks are never stored,
// the backward pass makes them again, and they depend on neither the number of threads nor the
// instruction set. native/dropout.py computes the same bits with torch. A row that keeps its name
// keeps its mask in whatever batch it stands; without names, a row is known by its number.
//
// The row named r has the 32-bit key  mix(mix(low(seed) + r) ^ high(seed)).  Columns come in blocks
// of 32; lane j (0..15) of block b hashes the counter 16 b + j:  h = mix(key + 16 b + j).  The low
// half of h serves column 32 b + j, the high half column 32 b + 16 + j. An element is dropped when
// its 16 bits are below round(65536 p).
//
// mix is lowbias32 (C. Wellons, "Prospecting for hash functions", 2018).
#pragma once

#include "vector_math.h"

namespace {

static ALWAYS_INLINE uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

static ALWAYS_INLINE Int mix(Int x) {
  x = x ^ shift_right<16>(x);
  x = x * all_int(0x7feb352du);
  x = x ^ shift_right<15>(x);
  x = x * all_int(0x846ca68bu);
  return x ^ shift_right<16>(x);
}

// The name of a row; `names` may be null.
static ALWAYS_INLINE uint32_t row_name(const int32_t *names, int64_t row) {
  return static_cast<uint32_t>(names == nullptr ? row : names[row]);
}

static ALWAYS_INLINE uint32_t row_key(uint64_t seed, uint32_t name) {
  const uint32_t low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  return mix(mix(low + name) ^ high);
}

// What dropout with probability p multiplies an element by: 0, or 1 / (share that is kept).
struct Dropout {
  uint32_t threshold;
  float scale;

  explicit Dropout(float p) {
    const float rounded = floorf(p * 65536.0f + 0.5f);
    threshold = static_cast<uint32_t>(rounded < 65535.0f ? rounded : 65535.0f);
    scale = 65536.0f / (65536.0f - static_cast<float>(threshold));
  }
  ALWAYS_INLINE bool off() const { return threshold == 0; }
};

constexpr int BLOCK = 32;             // columns that share one hash of 16 lanes
constexpr int VECTORS = BLOCK / LANES;  // vectors in a block

// The factors (0 or scale) of the 32 columns of block `block` of a row.
static ALWAYS_INLINE void dropout_factors(const Dropout &dropout, uint32_t key, int64_t block,
                                          Vec factors[VECTORS]) {
  const Int threshold = all_int(dropout.threshold);
  const Vec kept = all(dropout.scale), none = zero();
  for (int part = 0; part < VECTORS / 2; part++) {
    const uint32_t first = key + static_cast<uint32_t>(block * 16 + part * LANES);
    const Int bits = mix(all_int(first) + lane_numbers());
    factors[part] = where(at_least(low_half(bits), threshold), kept, none);
    factors[part + VECTORS / 2] = where(at_least(shift_right<16>(bits), threshold), kept, none);
  }
}

}  // namespace
