// AVX-512 with VNNI: a vector is one register. Pairs of bf16 have units of their own where there is
// AVX512-BF16.
#pragma once

// GCC takes the unmasked lanes of its own intrinsics for uninitialised.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "dispatch.h"

namespace {

using Floats = __m512;
using Words = __m512i;

static ALWAYS_INLINE Floats zero() { return _mm512_setzero_ps(); }
static ALWAYS_INLINE Floats every(float x) { return _mm512_set1_ps(x); }
static ALWAYS_INLINE Floats load(const float* p) { return _mm512_loadu_ps(p); }
static ALWAYS_INLINE void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
static ALWAYS_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
static ALWAYS_INLINE Floats subtract(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
static ALWAYS_INLINE Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
static ALWAYS_INLINE Floats divide(Floats a, Floats b) { return _mm512_div_ps(a, b); }
static ALWAYS_INLINE Floats multiply_add(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}
static ALWAYS_INLINE Floats larger(Floats a, Floats b) { return _mm512_max_ps(a, b); }
static ALWAYS_INLINE Floats magnitude(Floats a) { return _mm512_abs_ps(a); }
static ALWAYS_INLINE float sum(Floats a) { return _mm512_reduce_add_ps(a); }
static ALWAYS_INLINE float largest(Floats a) { return _mm512_reduce_max_ps(a); }

// One bit per lane: a > b.
static ALWAYS_INLINE unsigned above(Floats a, Floats b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

// a where the lane's bit is set, else b.
static ALWAYS_INLINE Floats choose(unsigned bits, Floats a, Floats b) {
  return _mm512_mask_mov_ps(b, static_cast<__mmask16>(bits), a);
}

// 2^x with a relative error of 4e-6; 0 for x far below -126.
static ALWAYS_INLINE Floats power_of_two(Floats x) {
  const Floats fraction = _mm512_reduce_ps(x, 0x01);  // x - floor(x)
  Floats y = every(0.0136839829f);
  y = multiply_add(y, fraction, every(0.0517177355f));
  y = multiply_add(y, fraction, every(0.241621323f));
  y = multiply_add(y, fraction, every(0.692969551f));
  y = multiply_add(y, fraction, every(1.0000036f));
  return _mm512_scalef_ps(y, x);
}

// Sixteen values of 0 ... 255, rounded to bytes.
static ALWAYS_INLINE void store_bytes(uint8_t* p, Floats v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(v)));
}

static ALWAYS_INLINE Words load_words(const uint16_t* p) {
  return _mm512_loadu_si512(reinterpret_cast<const void*>(p));
}
static ALWAYS_INLINE void store_words(uint32_t* p, Words v) {
  _mm512_storeu_si512(reinterpret_cast<void*>(p), v);
}
static ALWAYS_INLINE Words load_pairs(const uint32_t* p) {
  return _mm512_loadu_si512(reinterpret_cast<const void*>(p));
}

// The top halves of fp32 lanes after rounding; ties away from zero are as good as to even here.
static ALWAYS_INLINE Words rounded(Floats v) {
  return _mm512_add_epi32(_mm512_castps_si512(v), _mm512_set1_epi32(0x8000));
}

// Lane i becomes the pair (even[i], odd[i]) in bf16.
static ALWAYS_INLINE Words pair(Floats even, Floats odd) {
  return _mm512_ternarylogic_epi32(_mm512_srli_epi32(rounded(even), 16), rounded(odd),
                                   _mm512_set1_epi32(0xFFFF0000), 0xF8);  // a | (b & c)
}

// 32 values, one after the other.
static ALWAYS_INLINE void store_bf16(uint16_t* p, Floats first, Floats second) {
#if defined(__AVX512BF16__)
  _mm512_storeu_si512(reinterpret_cast<void*>(p),
                      reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first)));
#else
  __m256i* to = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(to, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded(first), 16)));
  _mm256_storeu_si256(to + 1, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded(second), 16)));
#endif
}
static ALWAYS_INLINE Floats load_bf16(const uint16_t* p) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

// Within each quarter of 128 bits: the low (high) four words of a and b, interleaved.
static ALWAYS_INLINE Words interleave_low(Words a, Words b) { return _mm512_unpacklo_epi16(a, b); }
static ALWAYS_INLINE Words interleave_high(Words a, Words b) { return _mm512_unpackhi_epi16(a, b); }

// c[i] + a[2i] b[2i] + a[2i+1] b[2i+1]
static ALWAYS_INLINE Floats pair_product(Floats c, Words a, Words b) {
#if defined(__AVX512BF16__)
  return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
#else
  const Words top = _mm512_set1_epi32(0xFFFF0000);
  c = multiply_add(_mm512_castsi512_ps(_mm512_slli_epi32(a, 16)),
                   _mm512_castsi512_ps(_mm512_slli_epi32(b, 16)), c);
  return multiply_add(_mm512_castsi512_ps(_mm512_and_si512(a, top)),
                      _mm512_castsi512_ps(_mm512_and_si512(b, top)), c);
#endif
}

static ALWAYS_INLINE void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}

// Every group of `width` neighbouring lanes gets the sum of the group in all its lanes.
static ALWAYS_INLINE Floats sum_groups(Floats v, int width) {
  if (width > 1) v = add(v, _mm512_permute_ps(v, 0xB1));
  if (width > 2) v = add(v, _mm512_permute_ps(v, 0x4E));
  if (width > 4) v = add(v, _mm512_shuffle_f32x4(v, v, 0xB1));
  if (width > 8) v = add(v, _mm512_shuffle_f32x4(v, v, 0x4E));
  return v;
}

// ---- products of bytes (decode_product.h)

static ALWAYS_INLINE Floats from_whole(const int32_t* p) {
  return _mm512_cvtepi32_ps(_mm512_loadu_si512(p));
}

constexpr bool SUMS_IN_WORDS = false;
constexpr int BYTES_ABOVE = 0;

}  // namespace
