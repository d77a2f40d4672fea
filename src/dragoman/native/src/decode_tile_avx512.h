// A tile of the int8 product in 24 of the 32 registers of AVX-512 (decode_product.h).
#pragma once

namespace {

// Named accumulators and inline assembly: GCC 12 spills arrays of them, at half the speed.
#define DECODE_DOT(c, x, w) asm("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(x), "v"(w))
#define DECODE_ROW(r) __m512i r##0 = s0, r##1 = s1, r##2 = s2, r##3 = s3
#define DECODE_STEP(r, i)                                                         \
  if constexpr (ROWS > i) {                                                         \
    int32_t four;                                                                   \
    __builtin_memcpy(&four, row##i + k, 4);                                         \
    const __m512i x = _mm512_set1_epi32(four);                                      \
    DECODE_DOT(r##0, x, w0);                                                      \
    DECODE_DOT(r##1, x, w1);                                                      \
    DECODE_DOT(r##2, x, w2);                                                      \
    DECODE_DOT(r##3, x, w3);                                                      \
  }
#define DECODE_STORE(r, i)                                                        \
  if constexpr (ROWS > i) {                                                         \
    const Floats sums[PANEL_VECTORS] = {_mm512_cvtepi32_ps(r##0), _mm512_cvtepi32_ps(r##1), \
                                        _mm512_cvtepi32_ps(r##2), _mm512_cvtepi32_ps(r##3)}; \
    store(i, sums);                                                                 \
  }

template <int ROWS, int LINES, class Store>
static ALWAYS_INLINE void tile(const uint8_t* rows, size_t stride, const int8_t* panel, int depth,
                               const int32_t* start, const int8_t* ahead, Store&& store) {
  const __m512i s0 = _mm512_loadu_si512(start), s1 = _mm512_loadu_si512(start + 16),
                s2 = _mm512_loadu_si512(start + 32), s3 = _mm512_loadu_si512(start + 48);
  const uint8_t *row0 = rows, *row1 = rows + stride, *row2 = rows + 2 * stride,
                *row3 = rows + 3 * stride, *row4 = rows + 4 * stride, *row5 = rows + 5 * stride;
  DECODE_ROW(a);
  DECODE_ROW(b);
  DECODE_ROW(c);
  DECODE_ROW(d);
  DECODE_ROW(e);
  DECODE_ROW(f);
  for (int k = 0; k < depth; k += 4) {
    const __m512i w0 = _mm512_loadu_si512(panel), w1 = _mm512_loadu_si512(panel + 64),
                  w2 = _mm512_loadu_si512(panel + 128), w3 = _mm512_loadu_si512(panel + 192);
    panel += 256;
    for (int line = 0; line < LINES; ++line) prefetch(ahead + 64 * line);
    ahead += 64 * LINES;
    DECODE_STEP(a, 0)
    DECODE_STEP(b, 1)
    DECODE_STEP(c, 2)
    DECODE_STEP(d, 3)
    DECODE_STEP(e, 4)
    DECODE_STEP(f, 5)
  }
  DECODE_STORE(a, 0)
  DECODE_STORE(b, 1)
  DECODE_STORE(c, 2)
  DECODE_STORE(d, 3)
  DECODE_STORE(e, 4)
  DECODE_STORE(f, 5)
}
#undef DECODE_DOT
#undef DECODE_ROW
#undef DECODE_STEP
#undef DECODE_STORE

}  // namespace
