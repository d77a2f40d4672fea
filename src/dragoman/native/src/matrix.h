// Matrix products on prepacked operands: fp32, and with AVX-512 bf16 too (vdpbf16ps). On Intel's tiles
// bf16 alone (matrix_tiles.h).
//
// C (M x N) = A (M x S) B (S x N), where one of the S steps is one fp32 number or a pair of bf16
// numbers, 32 bits either way, so both precisions share one layout and one loop.
//
//   A is read in place: row i, step s is the 32-bit word a[i * row + s * step].
//   B is packed in panels of PANEL columns: [N / PANEL][packed_steps(S)][PANEL] words, padded with
//   zeros.
#pragma once

#include "random.h"
#include "threads.h"
#include "tiles.h"
#include "vector_math.h"

#if defined(__AVX512BF16__) || defined(DRAGOMAN_TILES)
#define DRAGOMAN_BF16_PRODUCTS
#endif

namespace {

#if defined(DRAGOMAN_TILES)
constexpr int PANEL = 32;  // columns of a packed panel: two tiles
constexpr int STEPS = 16;  // a panel has a multiple of so many: the depth of a tile
#else
constexpr int PANEL = 4 * LANES;
constexpr int STEPS = 1;
#endif
constexpr int PANEL_VECTORS = PANEL / LANES;

// What a row of C has in the columns of a panel.
struct Sums {
  Vec v[PANEL_VECTORS];
};

static ALWAYS_INLINE Sums load_sums(const float *from) {
  Sums sums;
#pragma GCC unroll 4
  for (int v = 0; v < PANEL_VECTORS; v++) sums.v[v] = load(from + v * LANES);
  return sums;
}

static ALWAYS_INLINE int64_t panels_of(int64_t columns) { return (columns + PANEL - 1) / PANEL; }
static ALWAYS_INLINE int64_t packed_steps(int64_t steps) {
  return (steps + STEPS - 1) / STEPS * STEPS;
}

// ---- what is done with the sums of a row

// The first `width` of a panel's columns.
template <class T>
static ALWAYS_INLINE void store_row(T *out, int64_t width, const Sums &sums) {
#pragma GCC unroll 4
  for (int v = 0; v < PANEL_VECTORS; v++) {
    if (width > v * LANES) store_some(out + v * LANES, sums.v[v], width - v * LANES);
  }
}

#if defined(__AVX512BF16__)
static ALWAYS_INLINE __m512i join_bf16(Vec low, Vec high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v));
}

static ALWAYS_INLINE void store_row(bf16 *out, int64_t width, const Sums &sums) {
  if (width < PANEL) return store_row<bf16>(out, width, sums);
#pragma GCC unroll 2
  for (int v = 0; v < PANEL_VECTORS; v += 2) {
    _mm512_storeu_si512(out + v * LANES, join_bf16(sums.v[v], sums.v[v + 1]));
  }
}
#endif

// ---- element types

template <class T>
constexpr bool is_bf16 = sizeof(T) == 2;

template <class T>
static ALWAYS_INLINE const uint32_t *words(const T *p) {
  return reinterpret_cast<const uint32_t *>(p);
}

template <class T>
constexpr int64_t per_word = 4 / sizeof(T);

#if defined(__AVX512BF16__)

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

// Two bf16 rows -> a panel's words (first[j], second[j]); zeros from column `width` on. A missing
// second row reads as zeros.
static ALWAYS_INLINE void interleave(const bf16 *first, const bf16 *second, int64_t width,
                                     uint32_t *out) {
  const uint64_t columns = width >= PANEL ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
#pragma GCC unroll 2
  for (int half = 0; half < PANEL / 32; half++) {
    const __mmask32 mask = static_cast<__mmask32>(columns >> (32 * half));
    const __m512i a = _mm512_maskz_loadu_epi16(mask, first + 32 * half);
    const __m512i b = second == nullptr ? _mm512_setzero_si512()
                                        : _mm512_maskz_loadu_epi16(mask, second + 32 * half);
    _mm512_storeu_si512(out + 32 * half, pair_low(a, b));
    _mm512_storeu_si512(out + 32 * half + 16, pair_high(a, b));
  }
}

#elif defined(DRAGOMAN_TILES)

static ALWAYS_INLINE void interleave(const bf16 *first, const bf16 *second, int64_t width,
                                     uint32_t *out) {
  for (int64_t j = 0; j < PANEL; j++) {
    const uint32_t low = j < width ? first[j] : 0;
    out[j] = low | (j < width && second != nullptr ? static_cast<uint32_t>(second[j]) << 16 : 0);
  }
}

#endif

static ALWAYS_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static ALWAYS_INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

struct Nothing {
  void operator()(int64_t, int64_t, int64_t) const {}
};

// product<BF16>(a, row, rows, b, columns, steps, finish, prepare): C = A B with A's rows contiguous
// (step 1). `finish(i, column, width, sums)` takes the sums of row i in a panel's columns from `column`,
// of which `width` are real. `prepare(i, count, column)` is called before the sums of rows
// i .. i + count are made, so that it can fetch what `finish` will read.

}  // namespace

#if defined(DRAGOMAN_TILES)
#include "matrix_tiles.h"
#else

namespace {

constexpr int TILE_ROWS = 6;

// Memory to bring into the second-level cache while a tile is computed, one line in every other
// step: asking for many at once would stall the processor.
struct Ahead {
  const void *first;
  int64_t stride;  // bytes from line to line
};

#if defined(__AVX512BF16__)

constexpr int64_t MOST_STEPS = 512;  // steps of a panel that the caches hold beside A's rows

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

// One tile of 6 rows in 24 accumulators, in assembly: GCC 12 spills an array of them (half the speed),
// and named ones too as soon as anything else is in the loop. out (row stride `out_row`) = start (likewise; null for zeros) + A's rows times a
// panel.
template <bool BF16>
static inline void whole_tile(const uint32_t *a, int64_t row, int64_t step, const uint32_t *b,
                              int64_t steps, const float *start, float *out, int64_t out_row,
                              Ahead ahead) {
#define DRAGOMAN_LOAD(c0, c1, c2, c3)                          \
  "vmovups (%[start]), %%zmm" #c0 "\n vmovups 64(%[start]), %%zmm" #c1 "\n" \
  "vmovups 128(%[start]), %%zmm" #c2 "\n vmovups 192(%[start]), %%zmm" #c3 "\n" \
  "add %[out_row], %[start]\n"
#define DRAGOMAN_CLEAR(c0, c1, c2, c3)                                     \
  "vpxord %%zmm" #c0 ", %%zmm" #c0 ", %%zmm" #c0 "\n"                     \
  "vpxord %%zmm" #c1 ", %%zmm" #c1 ", %%zmm" #c1 "\n"                     \
  "vpxord %%zmm" #c2 ", %%zmm" #c2 ", %%zmm" #c2 "\n"                     \
  "vpxord %%zmm" #c3 ", %%zmm" #c3 ", %%zmm" #c3 "\n"
#define DRAGOMAN_KEEP(c0, c1, c2, c3)                                      \
  "vmovups %%zmm" #c0 ", (%[out])\n vmovups %%zmm" #c1 ", 64(%[out])\n"  \
  "vmovups %%zmm" #c2 ", 128(%[out])\n vmovups %%zmm" #c3 ", 192(%[out])\n" \
  "add %[out_row], %[out]\n"
#define DRAGOMAN_ROW(op, from, x, c0, c1, c2, c3)                          \
  "vpbroadcastd " from ", %%zmm" #x "\n"                                  \
  op " %%zmm0, %%zmm" #x ", %%zmm" #c0 "\n"                               \
  op " %%zmm1, %%zmm" #x ", %%zmm" #c1 "\n"                               \
  op " %%zmm2, %%zmm" #x ", %%zmm" #c2 "\n"                               \
  op " %%zmm3, %%zmm" #x ", %%zmm" #c3 "\n"
#define DRAGOMAN_STEP(op)                                                  \
  "vmovups (%[b]), %%zmm0\n vmovups 64(%[b]), %%zmm1\n"                  \
  "vmovups 128(%[b]), %%zmm2\n vmovups 192(%[b]), %%zmm3\n"              \
  DRAGOMAN_ROW(op, "(%[a])", 4, 8, 9, 10, 11)                              \
  DRAGOMAN_ROW(op, "(%[a],%[row])", 5, 12, 13, 14, 15)                     \
  DRAGOMAN_ROW(op, "(%[a],%[row],2)", 6, 16, 17, 18, 19)                   \
  DRAGOMAN_ROW(op, "(%[lower])", 7, 20, 21, 22, 23)                        \
  DRAGOMAN_ROW(op, "(%[lower],%[row])", 4, 24, 25, 26, 27)                 \
  DRAGOMAN_ROW(op, "(%[lower],%[row],2)", 5, 28, 29, 30, 31)               \
  "add %[step], %[a]\n add %[step], %[lower]\n add $256, %[b]\n"
#define DRAGOMAN_TILES(DO) \
  DO(8, 9, 10, 11) DO(12, 13, 14, 15) DO(16, 17, 18, 19) DO(20, 21, 22, 23) DO(24, 25, 26, 27) \
  DO(28, 29, 30, 31)
#define DRAGOMAN_TILE(op)                                                  \
  __asm__ volatile(                                                        \
      "test %[start], %[start]\n jz 1f\n"                                \
      DRAGOMAN_TILES(DRAGOMAN_LOAD) "jmp 2f\n"                            \
      "1:\n" DRAGOMAN_TILES(DRAGOMAN_CLEAR)                               \
      "2:\n sub $2, %[steps]\n jl 4f\n"                                 \
      ".p2align 5\n"                                                      \
      "3:\n" DRAGOMAN_STEP(op)                                            \
      "prefetcht1 (%[next])\n add %[jump], %[next]\n"                    \
      DRAGOMAN_STEP(op)                                                    \
      "sub $2, %[steps]\n jge 3b\n"                                      \
      "4:\n add $1, %[steps]\n jnz 5f\n" DRAGOMAN_STEP(op)              \
      "5:\n" DRAGOMAN_TILES(DRAGOMAN_KEEP)                                \
      : [a] "+r"(a), [lower] "+r"(lower), [b] "+r"(b), [steps] "+r"(steps), [start] "+r"(start), \
        [out] "+r"(out), [next] "+r"(ahead.first)                          \
      : [row] "r"(row * 4), [step] "r"(step * 4), [out_row] "r"(out_row * 4),                    \
        [jump] "r"(ahead.stride)                                           \
      : "memory", "cc", "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8",  \
        "zmm9", "zmm10", "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "zmm16", "zmm17", "zmm18", \
        "zmm19", "zmm20", "zmm21", "zmm22", "zmm23", "zmm24", "zmm25", "zmm26", "zmm27",         \
        "zmm28", "zmm29", "zmm30", "zmm31")
  const uint32_t *lower = a + 3 * row;
  if (BF16) {
    DRAGOMAN_TILE("vdpbf16ps");
  } else {
    DRAGOMAN_TILE("vfmadd231ps");
  }
#undef DRAGOMAN_LOAD
#undef DRAGOMAN_CLEAR
#undef DRAGOMAN_KEEP
#undef DRAGOMAN_ROW
#undef DRAGOMAN_STEP
#undef DRAGOMAN_TILES
#undef DRAGOMAN_TILE
}

// The same for fewer rows.
template <bool BF16, int ROWS>
static __attribute__((noinline)) void tile(const uint32_t *a, int64_t row, int64_t step,
                                           const uint32_t *b, int64_t steps, const float *start,
                                           float *out, int64_t out_row) {
  __m512 c[ROWS][4];
  for (int i = 0; i < ROWS; i++) {
    for (int v = 0; v < 4; v++) {
      c[i][v] = start != nullptr ? _mm512_loadu_ps(start + i * out_row + 16 * v)
                                 : _mm512_setzero_ps();
    }
  }
#pragma GCC unroll 1
  for (int64_t s = 0; s < steps; s++) {
    for (int i = 0; i < ROWS; i++) {
      const __m512i x = _mm512_set1_epi32(static_cast<int>(a[i * row + s * step]));
      for (int v = 0; v < 4; v++) {
        Multiply<BF16>::add(c[i][v], x, _mm512_loadu_si512(b + s * PANEL + 16 * v));
      }
    }
  }
  for (int i = 0; i < ROWS; i++) {
    for (int v = 0; v < 4; v++) _mm512_storeu_ps(out + i * out_row + 16 * v, c[i][v]);
  }
}

#else

constexpr int64_t MOST_STEPS = 192;  // a panel's steps and six rows of A in the first-level cache

// Half of the columns at a time: 6 rows x 2 vectors and what they are made of fill 16 registers,
// or with NEON 32, which hold half as much.
template <bool BF16, int ROWS>
static __attribute__((noinline)) void tile(const uint32_t *a, int64_t row, int64_t step,
                                           const uint32_t *b, int64_t steps, const float *start,
                                           float *out, int64_t out_row, Ahead ahead) {
  static_assert(!BF16, "there are no products of bf16 numbers here");
  const float *x = reinterpret_cast<const float *>(a), *w = reinterpret_cast<const float *>(b);
  const char *next = static_cast<const char *>(ahead.first);
  for (int half = 0; half < PANEL; half += 2 * LANES) {
    Vec c[ROWS][2];
#pragma GCC unroll 6
    for (int i = 0; i < ROWS; i++) {
      for (int v = 0; v < 2; v++) {
        c[i][v] = start != nullptr ? load(start + i * out_row + half + LANES * v) : zero();
      }
    }
    const float *from = x, *panel = w + half;
    for (int64_t s = 0; s < steps; s++, from += step, panel += PANEL) {
      const Vec first = load(panel), second = load(panel + LANES);
      if ((s & 3) == 0) {
        fetch(next);
        next += ahead.stride;
      }
#pragma GCC unroll 6
      for (int i = 0; i < ROWS; i++) {
        const Vec one = all(from[i * row]);
        c[i][0] = fma(one, first, c[i][0]);
        c[i][1] = fma(one, second, c[i][1]);
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < ROWS; i++) {
      for (int v = 0; v < 2; v++) store(out + i * out_row + half + LANES * v, c[i][v]);
    }
  }
}

template <bool BF16>
static inline void whole_tile(const uint32_t *a, int64_t row, int64_t step, const uint32_t *b,
                              int64_t steps, const float *start, float *out, int64_t out_row,
                              Ahead ahead) {
  tile<BF16, TILE_ROWS>(a, row, step, b, steps, start, out, out_row, ahead);
}
template <bool BF16, int ROWS>
static inline void tile(const uint32_t *a, int64_t row, int64_t step, const uint32_t *b,
                        int64_t steps, const float *start, float *out, int64_t out_row) {
  tile<BF16, ROWS>(a, row, step, b, steps, start, out, out_row, {b, 0});
}

#endif

// `rows` (1..6) chosen at run time.
template <bool BF16>
static inline void tile_of(int64_t rows, const uint32_t *a, int64_t row, int64_t step,
                           const uint32_t *b, int64_t steps, const float *start, float *out,
                           int64_t out_row, Ahead ahead = {nullptr, 0}) {
  switch (rows) {
    case 6:
      if (ahead.first == nullptr) ahead.first = b;
      return whole_tile<BF16>(a, row, step, b, steps, start, out, out_row, ahead);
    case 5: return tile<BF16, 5>(a, row, step, b, steps, start, out, out_row);
    case 4: return tile<BF16, 4>(a, row, step, b, steps, start, out, out_row);
    case 3: return tile<BF16, 3>(a, row, step, b, steps, start, out, out_row);
    case 2: return tile<BF16, 2>(a, row, step, b, steps, start, out, out_row);
    default: return tile<BF16, 1>(a, row, step, b, steps, start, out, out_row);
  }
}

// Rows of C that one task works on: enough tasks for all threads, and A's block within the second
// level cache beside one panel of B.
static ALWAYS_INLINE int64_t rows_per_task(int64_t rows, int64_t steps) {
  const int64_t by_cache = larger(48, smaller(192, 64 * 1024 / larger(1, steps)));
  const int64_t share = (rows + 4 * dragoman_threads() - 1) / (4 * dragoman_threads());
  return (smaller(by_cache, larger(share, TILE_ROWS)) + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
}

template <bool BF16, class Finish, class Prepare = Nothing>
static inline void product(const uint32_t *a, int64_t row, int64_t rows, const uint32_t *b,
                           int64_t columns, int64_t steps, const Finish &finish,
                           const Prepare &prepare = {}) {
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
          if (done + now == steps) prepare(i, tile_rows, column);
          tile_of<BF16>(tile_rows, a + i * row + done, row, 1, packed + done * PANEL, now,
                        done == 0 ? nullptr : sums, sums, PANEL);
          if (done + now < steps) continue;
          for (int64_t r = 0; r < tile_rows; r++, sums += PANEL) {
            finish(i + r, column, width, load_sums(sums));
          }
        }
      }
    }
  });
}

}  // namespace

#endif
