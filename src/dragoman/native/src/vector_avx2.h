// AVX2: a vector is one register of eight.
#pragma once

#include <immintrin.h>

#include "dispatch.h"

namespace {

constexpr int LANES = 8;
struct Vec {
  __m256 v;
};
struct Mask {
  __m256 v;
};

static ALWAYS_INLINE void fetch(const void *p) {
  _mm_prefetch(static_cast<const char *>(p), _MM_HINT_T1);
}

static ALWAYS_INLINE __m256i first_lanes_bits(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count > 8 ? 8 : count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static ALWAYS_INLINE Vec zero() { return {_mm256_setzero_ps()}; }
static ALWAYS_INLINE Vec all(float value) { return {_mm256_set1_ps(value)}; }
static ALWAYS_INLINE Vec load(const float *p) { return {_mm256_loadu_ps(p)}; }
static ALWAYS_INLINE Vec load(const bf16 *p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16))};
}
static ALWAYS_INLINE Vec load(const float *p, int64_t count) {
  return {_mm256_maskload_ps(p, first_lanes_bits(count))};
}
static ALWAYS_INLINE Vec load(const bf16 *p, int64_t count) {
  bf16 block[8] = {};
  for (int64_t i = 0; i < count && i < 8; i++) block[i] = p[i];
  return load(block);
}
static ALWAYS_INLINE __m128i pack_bf16(Vec a) {
  const __m256i bits = _mm256_castps_si256(a.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256 nan = _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q);
  up = _mm256_blendv_epi8(up, _mm256_set1_epi32(0x7fc00000), _mm256_castps_si256(nan));
  up = _mm256_srli_epi32(up, 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(up), _mm256_extracti128_si256(up, 1));
}
static ALWAYS_INLINE void store(float *p, Vec a) { _mm256_storeu_ps(p, a.v); }
static ALWAYS_INLINE void store(bf16 *p, Vec a) {
  _mm_storeu_si128(reinterpret_cast<__m128i *>(p), pack_bf16(a));
}
static ALWAYS_INLINE void store(float *p, Vec a, int64_t count) {
  _mm256_maskstore_ps(p, first_lanes_bits(count), a.v);
}
static ALWAYS_INLINE void store(bf16 *p, Vec a, int64_t count) {
  bf16 block[8];
  store(block, a);
  for (int64_t i = 0; i < count && i < 8; i++) p[i] = block[i];
}
static ALWAYS_INLINE Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
static ALWAYS_INLINE Vec maximum(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec minimum(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec square_root(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
static ALWAYS_INLINE Vec round_even(Vec a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
static ALWAYS_INLINE Vec power_of_two(Vec n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23))};
}
static ALWAYS_INLINE float sum(Vec a) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
static ALWAYS_INLINE float largest(Vec a) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}
static ALWAYS_INLINE Vec keep_first(Vec a, int64_t count, Vec other) {
  return {_mm256_blendv_ps(other.v, a.v, _mm256_castsi256_ps(first_lanes_bits(count)))};
}
static ALWAYS_INLINE Mask greater(Vec a, Vec b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)};
}
static ALWAYS_INLINE Vec where(Mask m, Vec a, Vec b) {
  return {_mm256_blendv_ps(b.v, a.v, m.v)};
}

static ALWAYS_INLINE void transpose(Vec rows[LANES]) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(rows[i].v, rows[i + 1].v);
    t[i + 1] = _mm256_unpackhi_ps(rows[i].v, rows[i + 1].v);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    rows[i].v = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    rows[i + 4].v = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
}

struct Int {
  __m256i v;
};
static ALWAYS_INLINE Int all_int(uint32_t value) {
  return {_mm256_set1_epi32(static_cast<int>(value))};
}
static ALWAYS_INLINE Int lane_numbers() { return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)}; }
static ALWAYS_INLINE Int operator+(Int a, Int b) { return {_mm256_add_epi32(a.v, b.v)}; }
static ALWAYS_INLINE Int operator*(Int a, Int b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
static ALWAYS_INLINE Int operator^(Int a, Int b) { return {_mm256_xor_si256(a.v, b.v)}; }
template <int BITS>
static ALWAYS_INLINE Int shift_right(Int a) {
  return {_mm256_srli_epi32(a.v, BITS)};
}
static ALWAYS_INLINE Int low_half(Int a) {
  return {_mm256_and_si256(a.v, _mm256_set1_epi32(0xffff))};
}
static ALWAYS_INLINE Mask at_least(Int a, Int b) {
  const __m256i below = _mm256_cmpgt_epi32(b.v, a.v);
  return {_mm256_castsi256_ps(_mm256_xor_si256(below, _mm256_set1_epi32(-1)))};
}

}  // namespace
