// NEON with dot products (Armv8.2 FEAT_DotProd): a vector is four registers.
//
// Bytes are multiplied as signed by signed, which all such processors do; unsigned by signed asks
// for i8mm. So activations are seen with 128 less, and an accumulator begins with that much more
// (decode_product.h): the sums are the same integers as everywhere.
#pragma once

#include <arm_neon.h>

#include "dispatch.h"

namespace {

struct Floats {
  float32x4_t at[4];
};
struct Words {
  uint32x4_t at[4];
};

static ALWAYS_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }

// One result of four registers.
template <class Lane>
static ALWAYS_INLINE Floats each(const Lane& lane) {
  return {{lane(0), lane(1), lane(2), lane(3)}};
}
template <class Lane>
static ALWAYS_INLINE Words each_word(const Lane& lane) {
  return {{lane(0), lane(1), lane(2), lane(3)}};
}

static ALWAYS_INLINE Floats every(float x) {
  return each([=](int) INLINE_LAMBDA { return vdupq_n_f32(x); });
}
static ALWAYS_INLINE Floats zero() { return every(0.0f); }
static ALWAYS_INLINE Floats load(const float* p) {
  return each([=](int i) INLINE_LAMBDA { return vld1q_f32(p + 4 * i); });
}
static ALWAYS_INLINE void store(float* p, Floats v) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, v.at[i]);
}
static ALWAYS_INLINE Floats add(Floats a, Floats b) {
  return each([&](int i) INLINE_LAMBDA { return vaddq_f32(a.at[i], b.at[i]); });
}
static ALWAYS_INLINE Floats subtract(Floats a, Floats b) {
  return each([&](int i) INLINE_LAMBDA { return vsubq_f32(a.at[i], b.at[i]); });
}
static ALWAYS_INLINE Floats multiply(Floats a, Floats b) {
  return each([&](int i) INLINE_LAMBDA { return vmulq_f32(a.at[i], b.at[i]); });
}
static ALWAYS_INLINE Floats divide(Floats a, Floats b) {
  return each([&](int i) INLINE_LAMBDA { return vdivq_f32(a.at[i], b.at[i]); });
}
static ALWAYS_INLINE Floats multiply_add(Floats a, Floats b, Floats c) {
  return each([&](int i) INLINE_LAMBDA { return vfmaq_f32(c.at[i], a.at[i], b.at[i]); });
}
// Of a number and what is none, the number.
static ALWAYS_INLINE Floats larger(Floats a, Floats b) {
  return each([&](int i) INLINE_LAMBDA { return vmaxnmq_f32(a.at[i], b.at[i]); });
}
static ALWAYS_INLINE Floats magnitude(Floats a) {
  return each([&](int i) INLINE_LAMBDA { return vabsq_f32(a.at[i]); });
}
static ALWAYS_INLINE float sum(Floats a) {
  return vaddvq_f32(vaddq_f32(vaddq_f32(a.at[0], a.at[2]), vaddq_f32(a.at[1], a.at[3])));
}
static ALWAYS_INLINE float largest(Floats a) {
  return vmaxnmvq_f32(
      vmaxnmq_f32(vmaxnmq_f32(a.at[0], a.at[1]), vmaxnmq_f32(a.at[2], a.at[3])));
}

// The bits 1, 2, 4, 8 of four lanes.
static ALWAYS_INLINE uint32x4_t lane_bits() {
  const uint32_t bits[4] = {1, 2, 4, 8};
  return vld1q_u32(bits);
}
static ALWAYS_INLINE unsigned above(Floats a, Floats b) {
  unsigned found = 0;
  for (int i = 0; i < 4; ++i)
    found |= vaddvq_u32(vandq_u32(vcgtq_f32(a.at[i], b.at[i]), lane_bits())) << (4 * i);
  return found;
}
static ALWAYS_INLINE Floats choose(unsigned bits, Floats a, Floats b) {
  return each([&](int i) INLINE_LAMBDA {
    return vbslq_f32(vtstq_u32(vdupq_n_u32(bits >> (4 * i)), lane_bits()), a.at[i], b.at[i]);
  });
}
static ALWAYS_INLINE Floats power_of_two(Floats given) {
  return each([&](int i) INLINE_LAMBDA {
    const float32x4_t x = vmaxnmq_f32(given.at[i], vdupq_n_f32(-126.0f));
    const float32x4_t whole = vrndmq_f32(x), fraction = vsubq_f32(x, whole);
    float32x4_t y = vdupq_n_f32(0.0136839829f);
    y = vfmaq_f32(vdupq_n_f32(0.0517177355f), y, fraction);
    y = vfmaq_f32(vdupq_n_f32(0.241621323f), y, fraction);
    y = vfmaq_f32(vdupq_n_f32(0.692969551f), y, fraction);
    y = vfmaq_f32(vdupq_n_f32(1.0000036f), y, fraction);
    const int32x4_t exponent = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(whole), vdupq_n_s32(127)), 23);
    return vmulq_f32(y, vreinterpretq_f32_s32(exponent));
  });
}
static ALWAYS_INLINE void store_bytes(uint8_t* p, Floats v) {
  uint16x8_t words[2];
  for (int i = 0; i < 2; ++i)
    words[i] = vcombine_u16(vqmovun_s32(vcvtnq_s32_f32(v.at[2 * i])),
                            vqmovun_s32(vcvtnq_s32_f32(v.at[2 * i + 1])));
  vst1q_u8(p, vcombine_u8(vqmovn_u16(words[0]), vqmovn_u16(words[1])));
}

static ALWAYS_INLINE Words load_words(const uint16_t* p) {
  return each_word([=](int i) INLINE_LAMBDA { return vreinterpretq_u32_u16(vld1q_u16(p + 8 * i)); });
}
static ALWAYS_INLINE Words load_pairs(const uint32_t* p) {
  return each_word([=](int i) INLINE_LAMBDA { return vld1q_u32(p + 4 * i); });
}
static ALWAYS_INLINE void store_words(uint32_t* p, Words v) {
  for (int i = 0; i < 4; ++i) vst1q_u32(p + 4 * i, v.at[i]);
}
static ALWAYS_INLINE uint32x4_t rounded(float32x4_t v) {
  return vaddq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(0x8000));
}
// Lane i becomes the pair (even[i], odd[i]) in bf16: the top half of one under that of the other.
static ALWAYS_INLINE Words pair(Floats even, Floats odd) {
  return each_word([&](int i) INLINE_LAMBDA {
    return vsriq_n_u32(rounded(odd.at[i]), rounded(even.at[i]), 16);
  });
}
static ALWAYS_INLINE void store_bf16(uint16_t* p, Floats first, Floats second) {
  for (int i = 0; i < 4; ++i) {
    vst1_u16(p + 4 * i, vshrn_n_u32(rounded(first.at[i]), 16));
    vst1_u16(p + 16 + 4 * i, vshrn_n_u32(rounded(second.at[i]), 16));
  }
}
static ALWAYS_INLINE Floats load_bf16(const uint16_t* p) {
  return each([=](int i) INLINE_LAMBDA {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16));
  });
}
static ALWAYS_INLINE Words interleave_low(Words a, Words b) {
  return each_word([&](int i) INLINE_LAMBDA {
    return vreinterpretq_u32_u16(
        vzip1q_u16(vreinterpretq_u16_u32(a.at[i]), vreinterpretq_u16_u32(b.at[i])));
  });
}
static ALWAYS_INLINE Words interleave_high(Words a, Words b) {
  return each_word([&](int i) INLINE_LAMBDA {
    return vreinterpretq_u32_u16(
        vzip2q_u16(vreinterpretq_u16_u32(a.at[i]), vreinterpretq_u16_u32(b.at[i])));
  });
}
static ALWAYS_INLINE Floats pair_product(Floats c, Words a, Words b) {
  const uint32x4_t top = vdupq_n_u32(0xFFFF0000);
  return each([&](int i) INLINE_LAMBDA {
    const float32x4_t low = vfmaq_f32(c.at[i], vreinterpretq_f32_u32(vshlq_n_u32(a.at[i], 16)),
                                      vreinterpretq_f32_u32(vshlq_n_u32(b.at[i], 16)));
    return vfmaq_f32(low, vreinterpretq_f32_u32(vandq_u32(a.at[i], top)),
                     vreinterpretq_f32_u32(vandq_u32(b.at[i], top)));
  });
}
static ALWAYS_INLINE Floats sum_groups(Floats v, int width) {
  if (width > 1)
    v = each([&](int i) INLINE_LAMBDA { return vaddq_f32(v.at[i], vrev64q_f32(v.at[i])); });
  if (width > 2)
    v = each([&](int i) INLINE_LAMBDA { return vaddq_f32(v.at[i], vextq_f32(v.at[i], v.at[i], 2)); });
  if (width > 4)
    v = each([&](int i) INLINE_LAMBDA { return vaddq_f32(v.at[i], v.at[i ^ 1]); });
  if (width > 8)
    v = each([&](int i) INLINE_LAMBDA { return vaddq_f32(v.at[i], v.at[i ^ 2]); });
  return v;
}

// ---- sums of products of bytes (decode_product.h)

using Sums = int32x4_t;
constexpr int SUM_LANES = 4;
constexpr int STEP_INPUTS = 16;
constexpr bool SUMS_IN_WORDS = false;
constexpr int BYTES_ABOVE = 128;  // what signed bytes lack of the unsigned ones that are meant
static constexpr int sum_vectors(int rows) { return rows == 1 ? 4 : 2; }

static ALWAYS_INLINE Sums load_sums(const int32_t* p) { return vld1q_s32(p); }
static ALWAYS_INLINE Floats as_floats(const Sums* sums) {
  return each([=](int i) INLINE_LAMBDA { return vcvtq_f32_s32(sums[i]); });
}

static ALWAYS_INLINE int8x16_t with_sign(uint8x16_t bytes) {
  return vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(0x80)));
}

// Four inputs of each row.
template <int ROWS, int COUNT>
static ALWAYS_INLINE void add_four(Sums (&sums)[ROWS][COUNT], const uint8_t* rows, size_t stride,
                                   const int8_t* weights) {
#pragma GCC unroll 3
  for (int r = 0; r < ROWS; ++r) {
    uint32_t four;
    __builtin_memcpy(&four, rows + r * stride, 4);
    const int8x16_t x = with_sign(vreinterpretq_u8_u32(vdupq_n_u32(four)));
#pragma GCC unroll 16
    for (int i = 0; i < COUNT; ++i)
      sums[r][i] = vdotq_s32(sums[r][i], vld1q_s8(weights + 16 * i), x);
  }
}

// Sixteen: a register of a row's inputs serves four groups of four.
template <int ROWS, int COUNT>
static ALWAYS_INLINE void add_step(Sums (&sums)[ROWS][COUNT], const uint8_t* rows, size_t stride,
                                   const int8_t* weights, size_t group) {
  int8x16_t x[ROWS];
#pragma GCC unroll 3
  for (int r = 0; r < ROWS; ++r) x[r] = with_sign(vld1q_u8(rows + r * stride));
#define ADD_GROUP(g)                                                          \
  _Pragma("GCC unroll 16") for (int i = 0; i < COUNT; ++i) {                  \
    const int8x16_t w = vld1q_s8(weights + g * group + 16 * i);               \
    _Pragma("GCC unroll 3") for (int r = 0; r < ROWS; ++r)                    \
        sums[r][i] = vdotq_laneq_s32(sums[r][i], w, x[r], g);                 \
  }
  ADD_GROUP(0)
  ADD_GROUP(1)
  ADD_GROUP(2)
  ADD_GROUP(3)
#undef ADD_GROUP
}

}  // namespace
