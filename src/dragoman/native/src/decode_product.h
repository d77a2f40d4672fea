// The int8 matrix product: unsigned activations times signed weights, for few rows.
//
// An activation x is stored as the byte round(x / s) + 128 (or round(x / s), s = max / 255, where
// no value is negative); weights as round(w / t) in -127 ... 127 with one scale t per output
// column. The 128 is taken back by starting every accumulator at -128 times the column's sum.
// Weights lie in panels of 64 columns; in a panel, four consecutive inputs of a column share one
// 32-bit lane, which is what vpdpbusd multiplies and sums.
//
// Without vpdpbusd, vpmaddubsw sums two products in 16 bits, and those of eight inputs are added
// there before they are widened: twice as fast as widening bytes first. So that no activations can
// overflow them, a column's scale is made larger until the weights of one sign among those whose
// products meet never come to more than 128: 255 x 128 < 2^15.
#pragma once

#include "decode_buffer.h"
#include "decode_vector.h"

namespace {

constexpr int PANEL = 64;      // columns of a panel
constexpr int TILE_ROWS = 6;   // 6 rows x 64 columns fill 24 of 32 registers
constexpr int PANEL_VECTORS = PANEL / LANES;

#if defined(__AVX512F__) || defined(__AVXVNNI__)
constexpr bool SUMS_IN_WORDS = false;
#else
constexpr bool SUMS_IN_WORDS = true;  // products of eight inputs are added in 16 bits
#endif
constexpr float MOST_IN_WORDS = 126.0f;  // and 4 x 1/2 when they are rounded

// Rows of smaller numbers are as good as zero: what they would be multiplied by is infinite.
constexpr float LEAST_PEAK = 1e-30f;

static inline int round_up(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

// A weight matrix ready for `product`.
struct Int8Weights {
  int columns = 0;       // a multiple of PANEL; columns not filled give zero
  int depth = 0;         // a multiple of 4; inputs not filled count nothing
  bool offset = true;    // whether activations come with the zero point 128
  Buffer<int8_t> weights;
  Buffer<float> scale;   // (columns)
  Buffer<float> bias;    // (columns)
  Buffer<int32_t> start; // (columns), what an accumulator begins with
  const Int8Weights* next = nullptr;  // whose first panel is wanted when this one is done
  Buffer<float> weighs;  // for `heaviest`

  void shape(int wanted_columns, int wanted_depth, bool zero_point) {
    columns = round_up(wanted_columns, PANEL);
    depth = round_up(wanted_depth, 4);
    offset = zero_point;
    weights.reserve(static_cast<size_t>(columns) * depth);
    scale.reserve(columns);
    bias.reserve(columns);
    start.reserve(columns);
  }

  // The first four weights of a column; the next four are 4 PANEL further, and so on.
  int8_t* column(int c) {
    return weights.data() + static_cast<size_t>(c / PANEL) * PANEL * depth + c % PANEL * 4;
  }
  const int8_t* column(int c) const { return const_cast<Int8Weights*>(this)->column(c); }

  int8_t& at(int c, int input) {
    return column(c)[static_cast<size_t>(input / 4) * PANEL * 4 + input % 4];
  }

  // One output: `row` has `inputs` weights; place[i], if given, says which input i is here.
  void fill(int c, const float* row, float row_bias, int inputs, const int* place,
            float gain) {
    float most = 0.0f;
    for (int i = 0; i < inputs; ++i) {
      const float size = row[i] < 0 ? -row[i] : row[i];
      if (size > most) most = size;
    }
    float step = most / 127.0f;
    float inverse = most > LEAST_PEAK ? 127.0f / most : 0.0f;
    if (SUMS_IN_WORDS && inverse > 0) {
      const float least = heaviest(row, inputs, place) * (4.0f / MOST_IN_WORDS);
      if (least > step) step = least, inverse = 1.0f / least;
    }
    int32_t total = 0;
    for (int i = 0; i < inputs; ++i) {
      const int value = static_cast<int>(__builtin_rintf(row[i] * inverse));
      at(c, place ? place[i] : i) = static_cast<int8_t>(value);
      total += value;
    }
    scale[c] = step * gain;
    bias[c] = row_bias * gain;
    start[c] = offset ? -128 * total : 0;
  }

  // A quarter of the most that weights of one sign come to among the four whose products are added
  // in one word: inputs 0, 1, 4, 5 and 2, 3, 6, 7 of every eight.
  float heaviest(const float* row, int inputs, const int* place) {
    const int words = round_up(depth, 8) / 4;
    weighs.reserve(2 * words);
    for (int i = 0; i < 2 * words; ++i) weighs[i] = 0.0f;
    for (int i = 0; i < inputs; ++i) {
      const int at = place ? place[i] : i;
      const int word = at / 8 * 2 + at % 4 / 2;
      weighs[2 * word + (row[i] < 0)] += 0.25f * (row[i] < 0 ? -row[i] : row[i]);
    }
    float most = 0.0f;
    for (int i = 0; i < 2 * words; ++i)
      if (weighs[i] > most) most = weighs[i];
    return most;
  }
};

// ---- activations to bytes

static inline float peak_of(const float* x, int width) {
  Floats most = zero(), more = zero();
  for (int i = 0; i < width; i += 2 * LANES) {
    most = larger(most, magnitude(load(x + i)));
    more = larger(more, magnitude(load(x + i + LANES)));
  }
  return largest(larger(most, more));
}

// `width` floats (a multiple of 32), none beyond `peak`, -> bytes around 128; returns the scale.
static inline float quantise(const float* x, int width, float peak, uint8_t* out) {
  const Floats inverse = every(peak > LEAST_PEAK ? 127.0f / peak : 0.0f);
  const Floats middle = every(128.0f);
  for (int i = 0; i < width; i += LANES)
    store_bytes(out + i, multiply_add(load(x + i), inverse, middle));
  return peak / 127.0f;
}

// The same for bf16 values that are never negative: all 256 steps count.
static inline float quantise_positive(const uint16_t* x, int width, float peak, uint8_t* out) {
  const Floats inverse = every(peak > LEAST_PEAK ? 255.0f / peak : 0.0f);
  for (int i = 0; i < width; i += LANES) store_bytes(out + i, multiply(load_bf16(x + i), inverse));
  return peak / 255.0f;
}

// ---- tiles

// What a tile hands on: for each of its rows, four vectors of 16 columns, as fp32 sums still
// without scales. `store(row, column, sums)`.

#if defined(__AVX512F__)

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

// `ahead`: part of the next panel, brought into the cache on the way, LINES cache lines at a time;
// the processor's own prefetching stops at every page of 4 KB.
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

#else

static ALWAYS_INLINE __m256i four_of(const uint8_t* bytes) {
  int32_t four;
  __builtin_memcpy(&four, bytes, 4);
  return _mm256_set1_epi32(four);
}

// sums[i] += four inputs of a row times their weights, eight columns each.
template <int COUNT>
static ALWAYS_INLINE void add_four(__m256i (&sums)[COUNT], const uint8_t* row,
                                   const int8_t* weights) {
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

// The next eight.
template <int COUNT>
static ALWAYS_INLINE void add_eight(__m256i (&sums)[COUNT], const uint8_t* row,
                                    const int8_t* weights) {
#if defined(__AVXVNNI__)
  add_four(sums, row, weights);
  add_four(sums, row + 4, weights + 4 * PANEL);
#else
  const __m256i x = four_of(row), y = four_of(row + 4);
#pragma GCC unroll 8
  for (int i = 0; i < COUNT; ++i) {
    const __m256i v = load_half(weights + 32 * i), w = load_half(weights + 4 * PANEL + 32 * i);
    const __m256i words = _mm256_add_epi16(_mm256_maddubs_epi16(x, v), _mm256_maddubs_epi16(y, w));
    sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
  }
#endif
}

// One to three rows, as many columns at a time as 16 registers hold the sums and the weights of.
template <int ROWS, int LINES>
static ALWAYS_INLINE void few_rows(const uint8_t* rows, size_t stride, const int8_t* panel,
                                   int depth, const int32_t* start, const int8_t* ahead,
                                   Floats (*out)[PANEL_VECTORS]) {
  constexpr int VECTORS = ROWS == 1 ? 4 : SUMS_IN_WORDS ? 1 : 2, HALVES = 2 * VECTORS;
  constexpr int AHEAD = 2 * LINES * VECTORS / PANEL_VECTORS;  // cache lines in every step
  for (int vector = 0; vector < PANEL_VECTORS; vector += VECTORS) {
    __m256i sums[ROWS][HALVES];
    for (int r = 0; r < ROWS; ++r)
      for (int i = 0; i < HALVES; ++i) sums[r][i] = load_half(start + LANES * vector + 8 * i);
    const int8_t* weights = panel + 4 * LANES * vector;
    int k = 0;
    for (; k + 8 <= depth; k += 8, weights += 8 * PANEL) {
      for (int line = 0; line < AHEAD; ++line) prefetch(ahead + 64 * line);
      ahead += 64 * AHEAD;
#pragma GCC unroll 3
      for (int r = 0; r < ROWS; ++r) add_eight(sums[r], rows + r * stride + k, weights);
    }
    if (k < depth)
      for (int r = 0; r < ROWS; ++r) add_four(sums[r], rows + r * stride + k, weights);
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < VECTORS; ++v)
        out[r][vector + v] = {_mm256_cvtepi32_ps(sums[r][2 * v]),
                              _mm256_cvtepi32_ps(sums[r][2 * v + 1])};
  }
}

template <int ROWS, int LINES, class Store>
static ALWAYS_INLINE void tile(const uint8_t* rows, size_t stride, const int8_t* panel, int depth,
                               const int32_t* start, const int8_t* ahead, Store&& store) {
  Floats sums[ROWS][PANEL_VECTORS];
  constexpr int FIRST = ROWS < 4 ? ROWS : (ROWS + 1) / 2;
  few_rows<FIRST, LINES>(rows, stride, panel, depth, start, ahead, sums);
  if constexpr (ROWS > FIRST)
    few_rows<ROWS - FIRST, 0>(rows + FIRST * stride, stride, panel, depth, start, ahead, sums + FIRST);
  for (int i = 0; i < ROWS; ++i) store(i, sums[i]);
}

#endif

// A tile of `count` rows, 1 ... TILE_ROWS.
template <int LINES, class Store>
static ALWAYS_INLINE void any_tile(int count, const uint8_t* rows, size_t stride,
                                   const int8_t* panel, int depth, const int32_t* start,
                                   const int8_t* ahead, Store&& store) {
  switch (count) {
    case 1: return tile<1, LINES>(rows, stride, panel, depth, start, ahead, store);
    case 2: return tile<2, LINES>(rows, stride, panel, depth, start, ahead, store);
    case 3: return tile<3, LINES>(rows, stride, panel, depth, start, ahead, store);
    case 4: return tile<4, LINES>(rows, stride, panel, depth, start, ahead, store);
    case 5: return tile<5, LINES>(rows, stride, panel, depth, start, ahead, store);
    default: return tile<6, LINES>(rows, stride, panel, depth, start, ahead, store);
  }
}

// All panels of `w` over `rows` rows of bytes, `stride` bytes apart.
// store(row, column, sums): four vectors, integer sums of columns column ... column + 63.
template <class Store>
static inline void product(const Int8Weights& w, const uint8_t* bytes, size_t stride, int rows,
                           Store&& store) {
  if (rows == 0) return;
  const int tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
  const int few = rows / tiles, more = rows % tiles;  // the first `more` tiles take few + 1 rows
  const size_t panel_bytes = static_cast<size_t>(PANEL) * w.depth;
  for (int column = 0; column < w.columns; column += PANEL) {
    const int8_t* panel = w.weights.data() + panel_bytes * (column / PANEL);
    const int8_t* next = panel + panel_bytes;
    if (column + PANEL == w.columns) next = w.next != nullptr ? w.next->weights.data() : panel;
    const int32_t* start = w.start.data() + column;
    int row = 0;
    for (int t = 0; t < tiles; ++t) {
      const int count = few + (t < more);
      const uint8_t* first = bytes + stride * row;
      const auto put = [&](int i, const Floats(&sums)[PANEL_VECTORS]) INLINE_LAMBDA {
        store(row + i, column, sums);
      };
      // The first four tiles fetch a quarter of the next panel each, or the only one all of it.
      const int8_t* ahead = next + (tiles < 4 ? 0 : panel_bytes / 4 * (t < 4 ? t : 3));
      if (tiles < 4) {
        any_tile<4>(count, first, stride, panel, w.depth, start, ahead, put);
      } else {
        any_tile<1>(count, first, stride, panel, w.depth, start, ahead, put);
      }
      row += count;
    }
  }
}

}  // namespace
