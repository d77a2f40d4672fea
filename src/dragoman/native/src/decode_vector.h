// Sixteen floats at a time on every instruction set that the int8 decoder runs on: each has a header
// with the same names, and the kernels are written once over them.
//
// Wider than the set's own vectors where those hold fewer, so that weights, keys and values have
// one layout everywhere (vector_math.h serves the training kernels).
//
//   Floats  16 fp32 lanes
//   Words   32 bf16 values, seen as 16 pairs: the even one in the low half of each 32-bit lane
//
//   load, store, add, subtract, multiply, divide, zero, every, magnitude
//   multiply_add(a, b, c)  a b + c
//   sum, largest           of all lanes
//   above(a, b)            a bit for each lane: a > b
//   choose(bits, a, b)     a where the lane's bit is set, else b
//   power_of_two(x)        with a relative error of 4e-6; 0, or nearly, for x far below -126
//   store_bytes            sixteen values of 0 ... 255, rounded
//   load_bf16, store_bf16  16, or 32 one after the other; rounded, ties away from zero
//   load_words, load_pairs, store_words
//   pair(even, odd)        lane i becomes the pair (even[i], odd[i]) in bf16
//   interleave_low, interleave_high   within each quarter of 128 bits: the low (high) four words
//   pair_product(c, a, b)  c[i] + a[2i] b[2i] + a[2i+1] b[2i+1]
//   sum_groups(v, width)   each group of neighbouring lanes gets its sum in all its lanes
//   prefetch
//
// For products of bytes (decode_product.h)
//
//   from_whole             LANES int32 as floats, where there are Intel's tiles
//   SUMS_IN_WORDS          whether products of eight inputs are added in 16 bits
//   BYTES_ABOVE            what its bytes lack of the unsigned ones that are meant
//
// AVX-512 has its own tile; the other headers have
//
//   Sums, SUM_LANES        int32 lanes; load_sums; as_floats: LANES of them
//   add_step, add_four     sums += STEP_INPUTS (four) inputs of some rows times weights of some
//                          columns; the next four inputs' weights are `group` bytes further on
//   sum_vectors(rows)      how many times LANES columns the registers hold the sums of
#pragma once

#include "dispatch.h"

#define INLINE_LAMBDA __attribute__((always_inline))

namespace {
constexpr int LANES = 16;
}

#if defined(__AVX512F__)
#include "decode_avx512.h"
#elif defined(__AVX2__)
#include "decode_avx2.h"
#else
#include "decode_neon.h"
#endif
