// NEON: a vector is two registers of four, so that rows are cut as with AVX2 and sums are taken in
// the same order. 6 rows x 2 vectors of sums (matrix.h) are 24 of the 32 registers.
#pragma once

#include <arm_neon.h>

#include "dispatch.h"

namespace {

constexpr int LANES = 8;
struct Vec {
  float32x4_t low, high;
};
struct Mask {
  uint32x4_t low, high;
};

static ALWAYS_INLINE void fetch(const void *p) { __builtin_prefetch(p, 0, 2); }

static ALWAYS_INLINE Mask first_lanes(int64_t count) {
  const int32_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const int32x4_t most = vdupq_n_s32(static_cast<int32_t>(count > 8 ? 8 : count));
  return {vcgtq_s32(most, vld1q_s32(numbers)), vcgtq_s32(most, vld1q_s32(numbers + 4))};
}
static ALWAYS_INLINE Vec zero() { return {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)}; }
static ALWAYS_INLINE Vec all(float value) { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }
static ALWAYS_INLINE Vec load(const float *p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
static ALWAYS_INLINE float32x4_t widened(uint16x4_t half) {
  return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
}
static ALWAYS_INLINE Vec load(const bf16 *p) {
  return {widened(vld1_u16(p)), widened(vld1_u16(p + 4))};
}
template <class T>
static ALWAYS_INLINE Vec load(const T *p, int64_t count) {
  T block[LANES] = {};
  for (int64_t i = 0; i < count && i < LANES; i++) block[i] = p[i];
  return load(block);
}
static ALWAYS_INLINE uint16x4_t narrowed(float32x4_t a) {
  const uint32x4_t bits = vreinterpretq_u32_f32(a);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t up = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
  // What is no number is not equal to itself.
  return vshrn_n_u32(vbslq_u32(vceqq_f32(a, a), up, vdupq_n_u32(0x7fc00000)), 16);
}
static ALWAYS_INLINE void store(float *p, Vec a) {
  vst1q_f32(p, a.low);
  vst1q_f32(p + 4, a.high);
}
static ALWAYS_INLINE void store(bf16 *p, Vec a) {
  vst1_u16(p, narrowed(a.low));
  vst1_u16(p + 4, narrowed(a.high));
}
template <class T>
static ALWAYS_INLINE void store(T *p, Vec a, int64_t count) {
  T block[LANES];
  store(block, a);
  for (int64_t i = 0; i < count && i < LANES; i++) p[i] = block[i];
}
static ALWAYS_INLINE Vec operator+(Vec a, Vec b) {
  return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}
static ALWAYS_INLINE Vec operator-(Vec a, Vec b) {
  return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
}
static ALWAYS_INLINE Vec operator*(Vec a, Vec b) {
  return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}
static ALWAYS_INLINE Vec operator/(Vec a, Vec b) {
  return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
}
static ALWAYS_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}
static ALWAYS_INLINE Mask greater(Vec a, Vec b) {
  return {vcgtq_f32(a.low, b.low), vcgtq_f32(a.high, b.high)};
}
static ALWAYS_INLINE Vec where(Mask m, Vec a, Vec b) {
  return {vbslq_f32(m.low, a.low, b.low), vbslq_f32(m.high, a.high, b.high)};
}
// Of a number and what is none the second, as on x86; vmaxq_f32 and vmaxnmq_f32 choose otherwise.
static ALWAYS_INLINE Vec maximum(Vec a, Vec b) { return where(greater(a, b), a, b); }
static ALWAYS_INLINE Vec minimum(Vec a, Vec b) { return where(greater(b, a), a, b); }
static ALWAYS_INLINE Vec square_root(Vec a) { return {vsqrtq_f32(a.low), vsqrtq_f32(a.high)}; }
static ALWAYS_INLINE Vec round_even(Vec a) { return {vrndnq_f32(a.low), vrndnq_f32(a.high)}; }
static ALWAYS_INLINE float32x4_t power_of_two(float32x4_t n) {
  const int32x4_t exponent = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
  return vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23));
}
static ALWAYS_INLINE Vec power_of_two(Vec n) {
  return {power_of_two(n.low), power_of_two(n.high)};
}
static ALWAYS_INLINE float sum(Vec a) {
  const float32x4_t four = vaddq_f32(a.low, a.high);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
static ALWAYS_INLINE float largest(Vec a) {
  return vmaxnmvq_f32(vmaxnmq_f32(a.low, a.high));
}
static ALWAYS_INLINE Vec keep_first(Vec a, int64_t count, Vec other) {
  return where(first_lanes(count), a, other);
}

// The four numbers of one half of a row, four rows' of them: columns become rows.
static ALWAYS_INLINE void transpose_four(float32x4_t &a, float32x4_t &b, float32x4_t &c,
                                         float32x4_t &d) {
  const float64x2_t ab = vreinterpretq_f64_f32(vtrn1q_f32(a, b));
  const float64x2_t ab_odd = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
  const float64x2_t cd = vreinterpretq_f64_f32(vtrn1q_f32(c, d));
  const float64x2_t cd_odd = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
  a = vreinterpretq_f32_f64(vtrn1q_f64(ab, cd));
  b = vreinterpretq_f32_f64(vtrn1q_f64(ab_odd, cd_odd));
  c = vreinterpretq_f32_f64(vtrn2q_f64(ab, cd));
  d = vreinterpretq_f32_f64(vtrn2q_f64(ab_odd, cd_odd));
}
// LANES x LANES numbers, transposed in registers: each quarter of them, and two quarters change
// places.
static ALWAYS_INLINE void transpose(Vec rows[LANES]) {
  for (int i = 0; i < 8; i += 4) {
    transpose_four(rows[i].low, rows[i + 1].low, rows[i + 2].low, rows[i + 3].low);
    transpose_four(rows[i].high, rows[i + 1].high, rows[i + 2].high, rows[i + 3].high);
  }
  for (int i = 0; i < 4; i++) {
    const float32x4_t other = rows[i].high;
    rows[i].high = rows[i + 4].low;
    rows[i + 4].low = other;
  }
}

struct Int {
  uint32x4_t low, high;
};
static ALWAYS_INLINE Int all_int(uint32_t value) {
  return {vdupq_n_u32(value), vdupq_n_u32(value)};
}
static ALWAYS_INLINE Int lane_numbers() {
  const uint32_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  return {vld1q_u32(numbers), vld1q_u32(numbers + 4)};
}
static ALWAYS_INLINE Int operator+(Int a, Int b) {
  return {vaddq_u32(a.low, b.low), vaddq_u32(a.high, b.high)};
}
static ALWAYS_INLINE Int operator*(Int a, Int b) {
  return {vmulq_u32(a.low, b.low), vmulq_u32(a.high, b.high)};
}
static ALWAYS_INLINE Int operator^(Int a, Int b) {
  return {veorq_u32(a.low, b.low), veorq_u32(a.high, b.high)};
}
template <int BITS>
static ALWAYS_INLINE Int shift_right(Int a) {
  return {vshrq_n_u32(a.low, BITS), vshrq_n_u32(a.high, BITS)};
}
static ALWAYS_INLINE Int low_half(Int a) {
  return {vandq_u32(a.low, vdupq_n_u32(0xffff)), vandq_u32(a.high, vdupq_n_u32(0xffff))};
}
static ALWAYS_INLINE Mask at_least(Int a, Int b) {
  return {vcgeq_u32(a.low, b.low), vcgeq_u32(a.high, b.high)};
}

}  // namespace
