// The int8 matrix product: unsigned activations times signed weights, for few rows.
//
// An activation x is stored as the byte round(x / s) + 128 (or, where no value is below -lift, as
// round((x + lift) / s), s = (max + lift) / 255; lift is 0 behind a ReLU); weights as round(w / t) in -127 ... 127 with one scale t per output
// column. The 128 is taken back by starting every accumulator at -128 times the column's sum, the
// lift by lowering the column's bias.
// Weights lie in panels of 64 columns; in a panel, four consecutive inputs of a column share one
// 32-bit lane, which is what vpdpbusd and Intel's tiles (decode_product_tiles.h) multiply and sum.
//
// Without vpdpbusd, vpmaddubsw sums two products in 16 bits, and those of eight inputs are added
// there before they are widened: twice as fast as widening bytes first. So that no activations can
// overflow them, a column's scale is made larger until the weights of one sign among those whose
// products meet never come to more than 128: 255 x 128 < 2^15.
//
// Where bytes are multiplied as signed by signed (NEON), activations are read with 128 less and
// accumulators begin with 128 times the column's sum more.
#pragma once

#include "decode_buffer.h"
#include "decode_vector.h"
#include "tiles.h"

namespace {

constexpr int PANEL = 64;      // columns of a panel
constexpr int TILE_ROWS = 6;   // 6 rows x 64 columns fill 24 of 32 registers
constexpr int PANEL_VECTORS = PANEL / LANES;

// Inputs that a product takes at once.
#if defined(DRAGOMAN_TILES)
constexpr int WHOLE_DEPTH = TILE_BYTES;
#else
constexpr int WHOLE_DEPTH = 4;
#endif

constexpr float MOST_IN_WORDS = 126.0f;  // and 4 x 1/2 when they are rounded

// Rows of smaller numbers are as good as zero: what they would be multiplied by is infinite.
constexpr float LEAST_PEAK = 1e-30f;

static inline int round_up(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

// A weight matrix ready for `product`.
struct Int8Weights {
  int columns = 0;       // a multiple of PANEL; columns not filled give zero
  int depth = 0;         // a multiple of WHOLE_DEPTH; inputs not filled count nothing
  bool offset = true;    // whether activations come with the zero point 128
  float lift = 0.0f;     // else: what is added to them, so that none is negative
  Buffer<int8_t> weights;
  Buffer<float> scale;   // (columns)
  Buffer<float> bias;    // (columns)
  Buffer<int32_t> start; // (columns), what an accumulator begins with
  const Int8Weights* next = nullptr;  // whose first panel is wanted when this one is done
  Buffer<float> weighs;  // for `heaviest`

  void shape(int wanted_columns, int wanted_depth, bool zero_point) {
    columns = round_up(wanted_columns, PANEL);
    depth = round_up(wanted_depth, WHOLE_DEPTH);
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
    bias[c] = row_bias * gain - lift * (scale[c] * static_cast<float>(total));
    start[c] = ((offset ? -128 : 0) + BYTES_ABOVE) * total;
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

// The same for bf16 values that are never below -lift: all 256 steps count.
static inline float quantise_positive(const uint16_t* x, int width, float peak, float lift,
                                      uint8_t* out) {
  const float range = peak + lift;
  const float by = range > LEAST_PEAK ? 255.0f / range : 0.0f;
  const Floats inverse = every(by), lowest = every(lift * by);
  for (int i = 0; i < width; i += LANES)
    store_bytes(out + i, multiply_add(load_bf16(x + i), inverse, lowest));
  return range / 255.0f;
}

// ---- tiles

// What a tile hands on: for each of its rows, four vectors of 16 columns, as fp32 sums still
// without scales. `store(row, column, sums)`.
//
// `ahead`: part of the next panel, brought into the cache on the way, LINES cache lines at a time;
// the processor's own prefetching stops at every page of 4 KB.

#if defined(__AVX512F__)

}  // namespace
#include "decode_tile_avx512.h"
namespace {

#else

// One to three rows, as many columns at a time as the registers hold the sums and the weights of.
template <int ROWS, int LINES>
static ALWAYS_INLINE void few_rows(const uint8_t* rows, size_t stride, const int8_t* panel,
                                   int depth, const int32_t* start, const int8_t* ahead,
                                   Floats (*out)[PANEL_VECTORS]) {
  constexpr int VECTORS = sum_vectors(ROWS), PARTS = LANES / SUM_LANES, COUNT = PARTS * VECTORS;
  // Cache lines in every step.
  constexpr int AHEAD = STEP_INPUTS / 4 * LINES * VECTORS / PANEL_VECTORS;
  for (int vector = 0; vector < PANEL_VECTORS; vector += VECTORS) {
    Sums sums[ROWS][COUNT];
    for (int r = 0; r < ROWS; ++r)
      for (int i = 0; i < COUNT; ++i)
        sums[r][i] = load_sums(start + LANES * vector + SUM_LANES * i);
    const int8_t* weights = panel + 4 * LANES * vector;
    int k = 0;
    for (; k + STEP_INPUTS <= depth; k += STEP_INPUTS, weights += STEP_INPUTS * PANEL) {
      for (int line = 0; line < AHEAD; ++line) prefetch(ahead + 64 * line);
      ahead += 64 * AHEAD;
      add_step(sums, rows + k, stride, weights, 4 * PANEL);
    }
    for (int four = 4; four < STEP_INPUTS && k < depth; four += 4, k += 4, weights += 4 * PANEL)
      add_four(sums, rows + k, stride, weights);
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < VECTORS; ++v) out[r][vector + v] = as_floats(sums[r] + PARTS * v);
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

#if defined(DRAGOMAN_TILES)
}  // namespace
#include "decode_product_tiles.h"
namespace {
#endif

// All panels of `w` over `rows` rows of bytes, `stride` bytes apart.
// store(row, column, sums): four vectors, integer sums of columns column ... column + 63.
template <class Store>
static inline void product(const Int8Weights& w, const uint8_t* bytes, size_t stride, int rows,
                           Store&& store) {
  if (rows == 0) return;
#if defined(DRAGOMAN_TILES)
  if (rows >= LEAST_TILE_ROWS) return product_by_tiles(w, bytes, stride, rows, store);
#endif
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
