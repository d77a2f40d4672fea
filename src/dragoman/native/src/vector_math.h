// Vectors of floats of the level's width, with the few functions that the training kernels need.
// Each instruction set has a header with the same names, and the kernels are written once over them
// (decode_vector.h serves the int8 decoder).
//
//   Vec                    LANES floats: 16 with AVX-512, 8 with AVX2 and NEON
//   Mask                   a truth for each lane
//   Int                    LANES whole numbers of 32 bits
//
//   load, store            floats, or bf16 values: uint16_t in memory, floats in registers. With
//                          `count` only so many elements are touched (0 ... LANES); the other lanes
//                          read as zero
//   zero, all              one number in all lanes
//   + - * /, fma(a, b, c)  a b + c
//   maximum, minimum       the second where either is no number
//   square_root
//   round_even             to the nearest whole number
//   power_of_two(n)        2^n for whole numbers n in -126 ... 127
//   sum, largest           of all lanes
//   keep_first(a, n, b)    a in the first n lanes, b in the rest
//   greater, where(m, a, b)   a where the lane's mask is set, else b
//   transpose(rows)        LANES vectors: columns become rows
//   all_int, lane_numbers (0, 1, 2 ...), + * ^, shift_right<bits>, low_half (16 bits)
//   at_least(a, b)         lanes where a >= b, both below 2^31
//   fetch                  a cache line into the second-level cache
#pragma once

#include <math.h>
#include <string.h>

#include "dispatch.h"

namespace {

using bf16 = uint16_t;

static ALWAYS_INLINE float float_of(bf16 value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float out;
  memcpy(&out, &bits, 4);
  return out;
}

// Rounds to nearest, ties to even, as torch does; a NaN stays one.
static ALWAYS_INLINE bf16 bf16_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<bf16>((bits >> 16) | 0x40);
  return static_cast<bf16>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

}  // namespace

#if defined(__AVX512F__)
#include "vector_avx512.h"
#elif defined(__AVX2__)
#include "vector_avx2.h"
#elif defined(__aarch64__)
#include "vector_neon.h"
#else
#error "vector_math.h needs AVX2, AVX-512 or NEON: name the levels in the source's first lines"
#endif

namespace {

// Ask for `count` rows of `bytes` each to be brought into the second-level cache.
static ALWAYS_INLINE void fetch_rows(const void *first, int64_t row_bytes, int64_t count,
                                     int64_t bytes) {
  const char *row = static_cast<const char *>(first);
  for (int64_t i = 0; i < count; i++, row += row_bytes) {
    for (int64_t at = 0; at < bytes; at += 64) fetch(row + at);
  }
}

// As load and store with a count, without its price where all lanes are there.
template <class T>
static ALWAYS_INLINE Vec load_some(const T *p, int64_t left) {
  return left >= LANES ? load(p) : load(p, left);
}
template <class T>
static ALWAYS_INLINE void store_some(T *p, Vec a, int64_t left) {
  if (left >= LANES) {
    store(p, a);
  } else {
    store(p, a, left);
  }
}

// e^x for x <= 88; below -87.3 it is e^-87.3 (about 1e-38), so -infinity gives next to nothing.
// Cephes' polynomial on [-ln2/2, ln2/2]; relative error below 2e-7.
static ALWAYS_INLINE Vec exponential(Vec x) {
  x = minimum(maximum(x, all(-87.3f)), all(88.0f));
  const Vec n = round_even(x * all(1.44269504088896341f));
  x = fma(n, all(-0.693359375f), x);
  x = fma(n, all(2.12194440e-4f), x);
  Vec y = fma(all(1.9875691500e-4f), x, all(1.3981999507e-3f));
  y = fma(y, x, all(8.3334519073e-3f));
  y = fma(y, x, all(4.1665795894e-2f));
  y = fma(y, x, all(1.6666665459e-1f));
  y = fma(y, x, all(5.0000001201e-1f));
  y = fma(y, x * x, x + all(1.0f));
  return y * power_of_two(n);
}

// Within 2e-7; exponential() bounds its argument, so the ends are -1 and 1.
static ALWAYS_INLINE Vec hyperbolic_tangent(Vec x) {
  const Vec one = all(1.0f);
  return one - all(2.0f) / (one + exponential(x + x));
}

}  // namespace
