// Matrix products on prepacked operands: AVX-512 only, bf16 (vdpbf16ps) and fp32.
//
// C (M x N) = A (M x S) B (S x N), where one of the S steps is one fp32 number or a pair of bf16
// numbers, 32 bits either way, so both precisions share one layout and one loop.
//
//   A is read in place: row i, step s is the 32-bit word a[i * row + s * step].
//   B is packed in panels of 64 columns: [N / 64][S][64] words, padded with zeros.
//
// A tile of 6 rows x 64 columns lives in 24 named accumulators. GCC 12 spills arrays of them (half
// the speed), and spills named ones where the tile is inlined into other code (a third of it).
#pragma once

#include "random.h"
#include "threads.h"
#include "vector_math.h"

#if !defined(__AVX512BF16__)
#error "matrix.h needs AVX-512 with bf16"
#endif

namespace {

constexpr int PANEL = 64;      // columns of a packed panel
constexpr int TILE_ROWS = 6;

static ALWAYS_INLINE int64_t panels_of(int64_t columns) { return (columns + PANEL - 1) / PANEL; }

template <bool BF16>
struct Multiply;
template <>
struct Multiply<true> {
  static ALWAYS_INLINE void add(__m512 &c, __m512i a, __m512i b) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
  }
};
template <>
struct Multiply<false> {
  static ALWAYS_INLINE void add(__m512 &c, __m512i a, __m512i b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
  }
};

#define DRAGOMAN_TILE_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

// One tile: out (row stride `out_row`) = start (likewise; null for zeros) + A's rows times a panel.
// A function of its own, so that the compiler has nothing else to keep in registers.
template <bool BF16, int ROWS>
static __attribute__((noinline)) void tile(const uint32_t *RESTRICT a, int64_t row, int64_t step,
                                           const uint32_t *RESTRICT b, int64_t steps,
                                           const float *start, float *out, int64_t out_row) {
  __m512 c00, c01, c02, c03, c10, c11, c12, c13, c20, c21, c22, c23;
  __m512 c30, c31, c32, c33, c40, c41, c42, c43, c50, c51, c52, c53;
#define DRAGOMAN_START(i)                                        \
  if (start != nullptr && ROWS > i) {                            \
    c##i##0 = _mm512_loadu_ps(start + i * out_row);              \
    c##i##1 = _mm512_loadu_ps(start + i * out_row + 16);         \
    c##i##2 = _mm512_loadu_ps(start + i * out_row + 32);         \
    c##i##3 = _mm512_loadu_ps(start + i * out_row + 48);         \
  } else {                                                       \
    c##i##0 = c##i##1 = c##i##2 = c##i##3 = _mm512_setzero_ps(); \
  }
  DRAGOMAN_TILE_ROWS(DRAGOMAN_START)
#undef DRAGOMAN_START
  using M = Multiply<BF16>;
#pragma GCC unroll 1
  for (int64_t s = 0; s < steps; s++) {
    const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 16);
    const __m512i b2 = _mm512_loadu_si512(b + 32), b3 = _mm512_loadu_si512(b + 48);
#define DRAGOMAN_STEP(i)                                               \
  if (ROWS > i) {                                                      \
    const __m512i x = _mm512_set1_epi32(static_cast<int>(a[i * row])); \
    M::add(c##i##0, x, b0);                                            \
    M::add(c##i##1, x, b1);                                            \
    M::add(c##i##2, x, b2);                                            \
    M::add(c##i##3, x, b3);                                            \
  }
    DRAGOMAN_TILE_ROWS(DRAGOMAN_STEP)
#undef DRAGOMAN_STEP
    a += step;
    b += PANEL;
  }
#define DRAGOMAN_STORE(i)                           \
  if (ROWS > i) {                                   \
    _mm512_storeu_ps(out + i * out_row, c##i##0);      \
    _mm512_storeu_ps(out + i * out_row + 16, c##i##1); \
    _mm512_storeu_ps(out + i * out_row + 32, c##i##2); \
    _mm512_storeu_ps(out + i * out_row + 48, c##i##3); \
  }
  DRAGOMAN_TILE_ROWS(DRAGOMAN_STORE)
#undef DRAGOMAN_STORE
}

// `rows` (1..6) chosen at run time.
template <bool BF16>
static inline void tile_of(int64_t rows, const uint32_t *a, int64_t row, int64_t step,
                           const uint32_t *b, int64_t steps, const float *start, float *out,
                           int64_t out_row) {
  switch (rows) {
    case 6: return tile<BF16, 6>(a, row, step, b, steps, start, out, out_row);
    case 5: return tile<BF16, 5>(a, row, step, b, steps, start, out, out_row);
    case 4: return tile<BF16, 4>(a, row, step, b, steps, start, out, out_row);
    case 3: return tile<BF16, 3>(a, row, step, b, steps, start, out, out_row);
    case 2: return tile<BF16, 2>(a, row, step, b, steps, start, out, out_row);
    default: return tile<BF16, 1>(a, row, step, b, steps, start, out, out_row);
  }
}

// ---- what is done with the 64 sums of a row

static ALWAYS_INLINE void store_row(float *out, int64_t width, Vec a, Vec b, Vec c, Vec d) {
  if (width >= PANEL) {
    store(out, a), store(out + 16, b), store(out + 32, c), store(out + 48, d);
  } else {
    store(out, a, width);
    if (width > 16) store(out + 16, b, width - 16);
    if (width > 32) store(out + 32, c, width - 32);
    if (width > 48) store(out + 48, d, width - 48);
  }
}

static ALWAYS_INLINE __m512i join_bf16(Vec low, Vec high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v));
}

static ALWAYS_INLINE void store_row(bf16 *out, int64_t width, Vec a, Vec b, Vec c, Vec d) {
  if (width >= PANEL) {
    _mm512_storeu_si512(out, join_bf16(a, b));
    _mm512_storeu_si512(out + 32, join_bf16(c, d));
  } else {
    store(out, a, width);
    if (width > 16) store(out + 16, b, width - 16);
    if (width > 32) store(out + 32, c, width - 32);
    if (width > 48) store(out + 48, d, width - 48);
  }
}

// ---- element types

template <class T>
constexpr bool is_bf16 = sizeof(T) == 2;

template <class T>
static ALWAYS_INLINE const uint32_t *words(const T *p) {
  return reinterpret_cast<const uint32_t *>(p);
}

template <class T>
constexpr int64_t per_word = 4 / sizeof(T);

// ---- packing

// The words (a[j], b[j]) of 16 columns, the low or the high half of 32 bf16 numbers.
static ALWAYS_INLINE __m512i pair_low(__m512i a, __m512i b) {
  const __m512i order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  return _mm512_permutex2var_epi16(a, order, b);
}
static ALWAYS_INLINE __m512i pair_high(__m512i a, __m512i b) {
  const __m512i order =
      _mm512_set_epi16(63, 31, 62, 30, 61, 29, 60, 28, 59, 27, 58, 26, 57, 25, 56, 24, 55, 23, 54,
                       22, 53, 21, 52, 20, 51, 19, 50, 18, 49, 17, 48, 16);
  return _mm512_permutex2var_epi16(a, order, b);
}

// Two bf16 rows -> 64 words (first[j], second[j]); zeros from column `width` on. A missing second
// row reads as zeros.
static ALWAYS_INLINE void interleave(const bf16 *first, const bf16 *second, int64_t width,
                                     uint32_t *out) {
  const uint64_t columns = width >= PANEL ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  for (int half = 0; half < 2; half++) {
    const __mmask32 mask = static_cast<__mmask32>(columns >> (32 * half));
    const __m512i a = _mm512_maskz_loadu_epi16(mask, first + 32 * half);
    const __m512i b = second == nullptr ? _mm512_setzero_si512()
                                        : _mm512_maskz_loadu_epi16(mask, second + 32 * half);
    _mm512_storeu_si512(out + 32 * half, pair_low(a, b));
    _mm512_storeu_si512(out + 32 * half + 16, pair_high(a, b));
  }
}

static ALWAYS_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static ALWAYS_INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Rows of C that one task works on: enough tasks for all threads, and A's block within the second
// level cache beside one panel of B.
static ALWAYS_INLINE int64_t rows_per_task(int64_t rows, int64_t steps) {
  const int64_t by_cache = larger(48, smaller(192, 64 * 1024 / larger(1, steps)));
  const int64_t share = (rows + 4 * dragoman_threads() - 1) / (4 * dragoman_threads());
  return (smaller(by_cache, larger(share, TILE_ROWS)) + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
}

constexpr int64_t MOST_STEPS = 512;  // steps of a panel that the caches hold beside A's rows

// C = A B with A's rows contiguous (step 1). `finish(i, column, width, v0..v3)` takes 64 sums of
// row i from column `column`, of which `width` are real.
template <bool BF16, class Finish>
static inline void product(const uint32_t *a, int64_t row, int64_t rows, const uint32_t *b,
                           int64_t columns, int64_t steps, const Finish &finish) {
  if (rows == 0 || columns == 0) return;
  const int64_t block = rows_per_task(rows, steps);
  const int64_t blocks = (rows + block - 1) / block, panels = panels_of(columns);
  const int64_t wanted = 4 * dragoman_threads();
  const int64_t groups = blocks >= wanted ? 1 : smaller(panels, (wanted + blocks - 1) / blocks);
  const int64_t group = (panels + groups - 1) / groups;
  parallel_for(blocks * groups, [&](int64_t task) {
    const int64_t first = task % blocks * block, last = smaller(first + block, rows);
    const int64_t end = smaller((task / blocks + 1) * group, panels);
    for (int64_t panel = task / blocks * group; panel < end; panel++) {
      const int64_t column = panel * PANEL, width = smaller(PANEL, columns - column);
      const uint32_t *packed = b + panel * steps * PANEL;
      // Long sums are cut, and wait in `partial` between the cuts.
      const bool cut = steps > MOST_STEPS;
      float *partial = scratch<float>(3, static_cast<size_t>(cut ? block * PANEL : 0) + 6 * PANEL);
      for (int64_t done = 0; done < steps; done += MOST_STEPS) {
        const int64_t now = smaller(MOST_STEPS, steps - done);
        for (int64_t i = first; i < last; i += TILE_ROWS) {
          const int64_t tile_rows = smaller(TILE_ROWS, last - i);
          float *sums = cut ? partial + (i - first) * PANEL : partial;
          tile_of<BF16>(tile_rows, a + i * row + done, row, 1, packed + done * PANEL, now,
                        done == 0 ? nullptr : sums, sums, PANEL);
          if (done + now < steps) continue;
          for (int64_t r = 0; r < tile_rows; r++, sums += PANEL) {
            finish(i + r, column, width, load(sums), load(sums + 16), load(sums + 32),
                   load(sums + 48));
          }
        }
      }
    }
  });
}

}  // namespace
