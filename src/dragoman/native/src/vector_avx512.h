// AVX-512: a vector is one register of sixteen.
#pragma once

#include <immintrin.h>

#include "dispatch.h"

namespace {

constexpr int LANES = 16;
struct Vec {
  __m512 v;
};
using Mask = __mmask16;

static ALWAYS_INLINE void fetch(const void *p) {
  _mm_prefetch(static_cast<const char *>(p), _MM_HINT_T1);
}
static ALWAYS_INLINE Mask first_lanes(int64_t count) {
  return static_cast<Mask>(count >= LANES ? 0xffffu : (1u << count) - 1u);
}
static ALWAYS_INLINE Vec zero() { return {_mm512_setzero_ps()}; }
static ALWAYS_INLINE Vec all(float value) { return {_mm512_set1_ps(value)}; }
static ALWAYS_INLINE Vec load(const float *p) { return {_mm512_loadu_ps(p)}; }
static ALWAYS_INLINE Vec load(const bf16 *p) {
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}
static ALWAYS_INLINE Vec load(const float *p, int64_t count) {
  return {_mm512_maskz_loadu_ps(first_lanes(count), p)};
}
static ALWAYS_INLINE Vec load(const bf16 *p, int64_t count) {
  const __m256i half = _mm256_maskz_loadu_epi16(first_lanes(count), p);
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}
static ALWAYS_INLINE __m256i pack_bf16(Vec a) {
#if defined(__AVX512BF16__)
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a.v));
#else
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
#endif
}
static ALWAYS_INLINE void store(float *p, Vec a) { _mm512_storeu_ps(p, a.v); }
static ALWAYS_INLINE void store(bf16 *p, Vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), pack_bf16(a));
}
static ALWAYS_INLINE void store(float *p, Vec a, int64_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), a.v);
}
static ALWAYS_INLINE void store(bf16 *p, Vec a, int64_t count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), pack_bf16(a));
}
static ALWAYS_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
static ALWAYS_INLINE Vec maximum(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec minimum(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
static ALWAYS_INLINE Vec square_root(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
static ALWAYS_INLINE Vec round_even(Vec a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
static ALWAYS_INLINE Vec power_of_two(Vec n) {
  const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
}
static ALWAYS_INLINE float sum(Vec a) { return _mm512_reduce_add_ps(a.v); }
static ALWAYS_INLINE float largest(Vec a) { return _mm512_reduce_max_ps(a.v); }
static ALWAYS_INLINE Vec keep_first(Vec a, int64_t count, Vec other) {
  return {_mm512_mask_blend_ps(first_lanes(count), other.v, a.v)};
}
static ALWAYS_INLINE Mask greater(Vec a, Vec b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ);
}
static ALWAYS_INLINE Vec where(Mask m, Vec a, Vec b) {
  return {_mm512_mask_blend_ps(m, b.v, a.v)};
}

static ALWAYS_INLINE void transpose(Vec rows[LANES]) {
  __m512i r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) r[i] = _mm512_castps_si512(rows[i].v);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    rows[i].v = _mm512_castsi512_ps(_mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
    rows[i + 8].v = _mm512_castsi512_ps(_mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
    rows[i + 4].v = _mm512_castsi512_ps(_mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88));
    rows[i + 12].v = _mm512_castsi512_ps(_mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd));
  }
}

struct Int {
  __m512i v;
};
static ALWAYS_INLINE Int all_int(uint32_t value) {
  return {_mm512_set1_epi32(static_cast<int>(value))};
}
static ALWAYS_INLINE Int lane_numbers() {
  return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}
static ALWAYS_INLINE Int operator+(Int a, Int b) { return {_mm512_add_epi32(a.v, b.v)}; }
static ALWAYS_INLINE Int operator*(Int a, Int b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
static ALWAYS_INLINE Int operator^(Int a, Int b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int BITS>
static ALWAYS_INLINE Int shift_right(Int a) {
  return {_mm512_srli_epi32(a.v, BITS)};
}
static ALWAYS_INLINE Int low_half(Int a) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi32(0xffff))};
}
static ALWAYS_INLINE Mask at_least(Int a, Int b) { return _mm512_cmpge_epi32_mask(a.v, b.v); }

}  // namespace
