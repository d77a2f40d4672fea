// AVX2: a vector is two registers. Bytes are multiplied by AVX-VNNI where there is that.
#pragma once

#include <immintrin.h>

#include "dispatch.h"

namespace {

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

// ---- products of bytes (decode_product.h)

using Sums = __m256i;
constexpr int SUM_LANES = 8;
constexpr int STEP_INPUTS = 8;
constexpr int BYTES_ABOVE = 0;
#if defined(__AVXVNNI__)
constexpr bool SUMS_IN_WORDS = false;
#else
constexpr bool SUMS_IN_WORDS = true;
#endif
static constexpr int sum_vectors(int rows) { return rows == 1 ? 4 : SUMS_IN_WORDS ? 1 : 2; }

static ALWAYS_INLINE Sums load_sums(const int32_t* p) { return load_half(p); }
static ALWAYS_INLINE Floats as_floats(const Sums* sums) {
  return {_mm256_cvtepi32_ps(sums[0]), _mm256_cvtepi32_ps(sums[1])};
}

static ALWAYS_INLINE Floats from_whole(const int32_t* p) {
  const Sums sums[] = {load_sums(p), load_sums(p + SUM_LANES)};
  return as_floats(sums);
}

static ALWAYS_INLINE __m256i four_of(const uint8_t* bytes) {
  int32_t four;
  __builtin_memcpy(&four, bytes, 4);
  return _mm256_set1_epi32(four);
}

// One row's four inputs.
template <int COUNT>
static ALWAYS_INLINE void add_four(Sums (&sums)[COUNT], const uint8_t* row, const int8_t* weights) {
  const __m256i x = four_of(row);
#pragma GCC unroll 8
  for (int i = 0; i < COUNT; ++i) {
    const __m256i w = load_half(weights + 32 * i);
#if defined(__AVXVNNI__)
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums[i]) : "x"(x), "x"(w));
#else
    const __m256i words = _mm256_maddubs_epi16(x, w);
    sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
#endif
  }
}

// One row's eight.
template <int COUNT>
static ALWAYS_INLINE void add_eight(Sums (&sums)[COUNT], const uint8_t* row, const int8_t* weights,
                                    size_t group) {
#if defined(__AVXVNNI__)
  add_four(sums, row, weights);
  add_four(sums, row + 4, weights + group);
#else
  const __m256i x = four_of(row), y = four_of(row + 4);
#pragma GCC unroll 8
  for (int i = 0; i < COUNT; ++i) {
    const __m256i v = load_half(weights + 32 * i), w = load_half(weights + group + 32 * i);
    const __m256i words = _mm256_add_epi16(_mm256_maddubs_epi16(x, v), _mm256_maddubs_epi16(y, w));
    sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
  }
#endif
}

template <int ROWS, int COUNT>
static ALWAYS_INLINE void add_step(Sums (&sums)[ROWS][COUNT], const uint8_t* rows, size_t stride,
                                   const int8_t* weights, size_t group) {
#pragma GCC unroll 3
  for (int r = 0; r < ROWS; ++r) add_eight(sums[r], rows + r * stride, weights, group);
}

template <int ROWS, int COUNT>
static ALWAYS_INLINE void add_four(Sums (&sums)[ROWS][COUNT], const uint8_t* rows, size_t stride,
                                   const int8_t* weights) {
  for (int r = 0; r < ROWS; ++r) add_four(sums[r], rows + r * stride, weights);
}

}  // namespace
