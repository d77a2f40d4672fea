// Sixteen floats at a time on every instruction set that the int8 decoder runs on.
//
// Wider than the level's own vectors where those hold eight, so that weights, keys and values have
// one layout everywhere (vector_math.h serves the training kernels).
//
//   Floats  16 fp32 lanes
//   Words   32 bf16 values, seen as 16 pairs: the even one in the low half of each 32-bit lane
#pragma once

// GCC takes the unmasked lanes of its own intrinsics for uninitialised.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "dispatch.h"

namespace {

#define INLINE_LAMBDA __attribute__((always_inline))

constexpr int LANES = 16;

#if defined(__AVX512F__)

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

#else  // AVX2: a vector is two registers

static ALWAYS_INLINE void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}

struct Floats {
  __m256 low, high;
};
struct Words {
  __m256i low, high;
};

static ALWAYS_INLINE Floats zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
static ALWAYS_INLINE Floats every(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
static ALWAYS_INLINE Floats load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
static ALWAYS_INLINE void store(float* p, Floats v) {
  _mm256_storeu_ps(p, v.low);
  _mm256_storeu_ps(p + 8, v.high);
}
static ALWAYS_INLINE Floats add(Floats a, Floats b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
static ALWAYS_INLINE Floats subtract(Floats a, Floats b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
static ALWAYS_INLINE Floats multiply(Floats a, Floats b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
static ALWAYS_INLINE Floats divide(Floats a, Floats b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
static ALWAYS_INLINE Floats multiply_add(Floats a, Floats b, Floats c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
static ALWAYS_INLINE Floats larger(Floats a, Floats b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
static ALWAYS_INLINE Floats magnitude(Floats a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
static ALWAYS_INLINE float sum(Floats a) {
  const __m256 eight = _mm256_add_ps(a.low, a.high);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
static ALWAYS_INLINE float largest(Floats a) {
  const __m256 eight = _mm256_max_ps(a.low, a.high);
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}
static ALWAYS_INLINE unsigned above(Floats a, Floats b) {
  return static_cast<unsigned>(
             _mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ))) |
         static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ)))
             << 8;
}
static ALWAYS_INLINE __m256 choose(unsigned bits, __m256 a, __m256 b) {
  const __m256i lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lanes);
  return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lanes)));
}
static ALWAYS_INLINE Floats choose(unsigned bits, Floats a, Floats b) {
  return {choose(bits, a.low, b.low), choose(bits >> 8, a.high, b.high)};
}
static ALWAYS_INLINE __m256 power_of_two(__m256 x) {
  x = _mm256_max_ps(x, _mm256_set1_ps(-126.0f));
  const __m256 whole = _mm256_floor_ps(x);
  const __m256 fraction = _mm256_sub_ps(x, whole);
  __m256 y = _mm256_set1_ps(0.0136839829f);
  y = _mm256_fmadd_ps(y, fraction, _mm256_set1_ps(0.0517177355f));
  y = _mm256_fmadd_ps(y, fraction, _mm256_set1_ps(0.241621323f));
  y = _mm256_fmadd_ps(y, fraction, _mm256_set1_ps(0.692969551f));
  y = _mm256_fmadd_ps(y, fraction, _mm256_set1_ps(1.0000036f));
  const __m256i exponent =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(y, _mm256_castsi256_ps(exponent));
}
static ALWAYS_INLINE Floats power_of_two(Floats x) {
  return {power_of_two(x.low), power_of_two(x.high)};
}
static ALWAYS_INLINE void store_bytes(uint8_t* p, Floats v) {
  const __m256i words =
      _mm256_packs_epi32(_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi16(_mm256_castsi256_si128(ordered),
                                    _mm256_extracti128_si256(ordered, 1)));
}
static ALWAYS_INLINE __m256i load_half(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
static ALWAYS_INLINE Words load_words(const uint16_t* p) { return {load_half(p), load_half(p + 16)}; }
static ALWAYS_INLINE Words load_pairs(const uint32_t* p) { return {load_half(p), load_half(p + 8)}; }
static ALWAYS_INLINE void store_words(uint32_t* p, Words v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v.low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), v.high);
}
static ALWAYS_INLINE __m256i rounded(__m256 v) {
  return _mm256_add_epi32(_mm256_castps_si256(v), _mm256_set1_epi32(0x8000));
}
static ALWAYS_INLINE __m256i pair(__m256 even, __m256 odd) {
  return _mm256_or_si256(
      _mm256_srli_epi32(rounded(even), 16),
      _mm256_and_si256(rounded(odd), _mm256_set1_epi32(static_cast<int>(0xFFFF0000))));
}
static ALWAYS_INLINE Words pair(Floats even, Floats odd) {
  return {pair(even.low, odd.low), pair(even.high, odd.high)};
}
static ALWAYS_INLINE void store_bf16_half(uint16_t* p, Floats v) {
  const __m256i words = _mm256_packus_epi32(_mm256_srli_epi32(rounded(v.low), 16),
                                            _mm256_srli_epi32(rounded(v.high), 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(words, 0xD8));
}
static ALWAYS_INLINE void store_bf16(uint16_t* p, Floats first, Floats second) {
  store_bf16_half(p, first);
  store_bf16_half(p + 16, second);
}
static ALWAYS_INLINE Floats load_bf16(const uint16_t* p) {
  const __m256i low = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i high =
      _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
}
static ALWAYS_INLINE Words interleave_low(Words a, Words b) {
  return {_mm256_unpacklo_epi16(a.low, b.low), _mm256_unpacklo_epi16(a.high, b.high)};
}
static ALWAYS_INLINE Words interleave_high(Words a, Words b) {
  return {_mm256_unpackhi_epi16(a.low, b.low), _mm256_unpackhi_epi16(a.high, b.high)};
}
static ALWAYS_INLINE __m256 pair_product(__m256 c, __m256i a, __m256i b) {
  const __m256i top = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  c = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
                      _mm256_castsi256_ps(_mm256_slli_epi32(b, 16)), c);
  return _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(a, top)),
                         _mm256_castsi256_ps(_mm256_and_si256(b, top)), c);
}
static ALWAYS_INLINE Floats pair_product(Floats c, Words a, Words b) {
  return {pair_product(c.low, a.low, b.low), pair_product(c.high, a.high, b.high)};
}
static ALWAYS_INLINE __m256 sum_groups(__m256 v, int width) {
  if (width > 1) v = _mm256_add_ps(v, _mm256_permute_ps(v, 0xB1));
  if (width > 2) v = _mm256_add_ps(v, _mm256_permute_ps(v, 0x4E));
  if (width > 4) v = _mm256_add_ps(v, _mm256_permute2f128_ps(v, v, 0x01));
  return v;
}
static ALWAYS_INLINE Floats sum_groups(Floats v, int width) {
  Floats out = {sum_groups(v.low, width), sum_groups(v.high, width)};
  if (width > 8) out.low = out.high = _mm256_add_ps(out.low, out.high);
  return out;
}

#endif

}  // namespace
