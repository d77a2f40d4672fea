// The gradient of a weight, dW = dyᵀ x, summed over rows in fp32.
#pragma once

#include "abi.h"
#include "matrix.h"

namespace {

// The share of one task: outputs, of which it takes a multiple of OUTPUTS, and panels of inputs.
#if defined(DRAGOMAN_TILES)
constexpr int64_t OUTPUTS = BLOCK_ROWS, LEAST_OUTPUTS = 128, MOST_OUTPUTS = 256, MOST_PANELS = 16;
#else
constexpr int64_t OUTPUTS = TILE_ROWS, LEAST_OUTPUTS = 60, MOST_OUTPUTS = 264, MOST_PANELS = 4;
#endif

}  // namespace

#if defined(DRAGOMAN_TILES)
#include "gradient_tiles.h"
#else

namespace {

constexpr int64_t SUM_ROWS = 128;  // rows of x and dy that are packed and summed at a time

// Row pairs (bf16) or rows (fp32) of x, a panel's columns from `first`, as steps of a panel.
#if defined(__AVX512BF16__)
static ALWAYS_INLINE void step_words(const bf16 *x, int64_t x_row, int64_t rows, int64_t s,
                                     int64_t first, int64_t width, uint32_t *out) {
  const bf16 *one = x + 2 * s * x_row + first;
  interleave(one, 2 * s + 1 < rows ? one + x_row : nullptr, width, out);
}
#endif
static ALWAYS_INLINE void step_words(const float *x, int64_t x_row, int64_t, int64_t s,
                                     int64_t first, int64_t width, uint32_t *out) {
  const float *from = x + s * x_row + first;
  for (int64_t j = 0; j < PANEL; j += LANES) {
    const Vec v = width >= PANEL ? load(from + j) : load(from + j, larger(0, width - j));
    store(reinterpret_cast<float *>(out + j), v);
  }
}

// total += the numbers of 16 (8) words
template <class T>
static ALWAYS_INLINE void add_words(Vec &total, const uint32_t *from) {
#if defined(__AVX512BF16__)
  if constexpr (is_bf16<T>) {
    Multiply<true>::add(total.v, _mm512_loadu_si512(from), _mm512_set1_epi16(0x3f80));
    return;
  }
#endif
  total = total + load(reinterpret_cast<const float *>(from));
}

// sums[n] += every number in column n of packed steps
template <class T>
static ALWAYS_INLINE void add_steps(const uint32_t *packed, int64_t stride, int64_t steps,
                                    int64_t width, float *sums) {
  for (int64_t n = 0; n < width; n += LANES) {
    Vec total = load_some(sums + n, width - n), other = zero();
    const uint32_t *column = packed + n;
    for (int64_t s = 0; s + 1 < steps; s += 2, column += 2 * stride) {
      add_words<T>(total, column);
      add_words<T>(other, column + stride);
    }
    if (steps & 1) add_words<T>(total, column);
    store_some(sums + n, total + other, width - n);
  }
}

// The rectangle of dW with outputs n0 .. n1 of `part` and inputs of panels first .. last. `dy` begins
// at the part's columns, of which `width` can be read.
template <class T>
static inline void gradient_block(const T *dy, int64_t dy_row, int64_t dy_width, const T *x,
                                  int64_t x_row, const Part &part, int64_t n0, int64_t n1,
                                  int64_t first_panel, int64_t last_panel, int64_t rows,
                                  int64_t inputs) {
  const int64_t most_steps = SUM_ROWS / per_word<T>;
  // An odd number of cache lines per step, so that the steps of a tile do not share a set.
  const int64_t stride = panels_of(n1 - n0) * PANEL + 16;
  uint32_t *left = scratch<uint32_t>(1, static_cast<size_t>(most_steps * stride));
  uint32_t *right = scratch<uint32_t>(2, static_cast<size_t>(MOST_PANELS * most_steps * PANEL));
  float *dw = part.weight;
  float *sums = part.bias != nullptr && first_panel == 0 ? part.bias + n0 : nullptr;
  if (!part.add) {
    const int64_t from = first_panel * PANEL, to = smaller(last_panel * PANEL, inputs);
    for (int64_t n = n0; n < n1; n++) {
      memset(dw + n * inputs + from, 0, static_cast<size_t>(to - from) * sizeof(float));
    }
    if (sums != nullptr) memset(sums, 0, static_cast<size_t>(n1 - n0) * sizeof(float));
  }
  for (int64_t p = 0; p < rows; p += SUM_ROWS) {
    const int64_t count = smaller(SUM_ROWS, rows - p);
    const int64_t steps = (count + per_word<T> - 1) / per_word<T>;
    const T *dy_block = dy + p * dy_row, *x_block = x + p * x_row;
    for (int64_t s = 0; s < steps; s++) {
      for (int64_t n = n0; n < n1; n += PANEL) {
        step_words(dy_block, dy_row, count, s, n, dy_width - n, left + s * stride + (n - n0));
      }
      for (int64_t panel = first_panel; panel < last_panel; panel++) {
        step_words(x_block, x_row, count, s, panel * PANEL, inputs - panel * PANEL,
                   right + ((panel - first_panel) * most_steps + s) * PANEL);
      }
    }
    if (sums != nullptr) add_steps<T>(left, stride, steps, n1 - n0, sums);
    // The next block of rows is fetched while this one is summed: of each row only a few columns
    // are read, too few for the processor to guess what comes next. Tile by tile a column of lines,
    // first of dy, then of x.
    const int64_t next = p + SUM_ROWS, size = sizeof(T);
    const T *next_dy = dy + next * dy_row + n0, *next_x = x + next * x_row + first_panel * PANEL;
    const int64_t dy_lines = ((n1 - n0) * size + 126) / 64;
    const int64_t lines = dy_lines + ((last_panel - first_panel) * PANEL * size + 126) / 64;
    const int64_t rows_a_tile = larger(1, steps / 2);
    int64_t line = next < rows ? 0 : lines, row = 0;
    const auto ahead = [&]() -> Ahead {
      if (line >= lines) return {nullptr, 0};
      const bool of_dy = line < dy_lines;
      const T *first = of_dy ? next_dy + row * dy_row + line * 64 / size
                             : next_x + row * x_row + (line - dy_lines) * 64 / size;
      row += rows_a_tile;
      if (row >= smaller(SUM_ROWS, rows - next)) row = 0, line++;
      return {first, (of_dy ? dy_row : x_row) * size};
    };
    for (int64_t panel = first_panel; panel < last_panel; panel++) {
      const int64_t column = panel * PANEL, width = smaller(PANEL, inputs - column);
      const uint32_t *packed = right + (panel - first_panel) * most_steps * PANEL;
      for (int64_t n = n0; n < n1; n += TILE_ROWS) {
        float *out = dw + n * inputs + column;
        const int64_t tile_rows = smaller(TILE_ROWS, n1 - n);
        const uint32_t *words = left + (n - n0);
        if (width >= PANEL) {
          tile_of<is_bf16<T>>(tile_rows, words, 1, stride, packed, steps, out, out, inputs,
                              ahead());
          continue;
        }
        float edge[TILE_ROWS * PANEL];
        tile_of<is_bf16<T>>(tile_rows, words, 1, stride, packed, steps, nullptr, edge, PANEL);
        for (int64_t r = 0; r < tile_rows; r++) {
          for (int64_t j = 0; j < width; j++) out[r * inputs + j] += edge[r * PANEL + j];
        }
      }
    }
  }
}

}  // namespace

#endif

namespace {

// dW and db of `count` parts over P rows. Each task owns a rectangle and packs what it reads of x
// and dy itself, block of rows by block of rows: no thread waits for another.
template <class T>
static void backward_weight(const T *dy, int64_t dy_row, const T *x, int64_t x_row,
                            const Part *parts, int64_t count, int64_t rows, int64_t inputs) {
  int64_t outputs = 0, tasks = 0;
  const int64_t panels = panels_of(inputs), wide = smaller(panels, MOST_PANELS);
  const int64_t across = (panels + wide - 1) / wide;
  const int64_t pieces = (2 * dragoman_threads() + count * across - 1) / (count * across);
  // How many outputs of a part one task takes: the larger, the less is packed twice.
  const auto chunk_of = [=](const Part &part) {
    const int64_t share = larger((part.outputs + pieces - 1) / pieces, LEAST_OUTPUTS);
    return (smaller(share, MOST_OUTPUTS) + OUTPUTS - 1) / OUTPUTS * OUTPUTS;
  };
  for (int64_t i = 0; i < count; i++) {
    outputs += parts[i].outputs;
    tasks += (parts[i].outputs + chunk_of(parts[i]) - 1) / chunk_of(parts[i]);
  }
  parallel_for(tasks * across, [&](int64_t task) {
    int64_t at = task % tasks, before = 0;
    const Part *part = parts;
    int64_t chunk = chunk_of(*part);
    while (at >= (part->outputs + chunk - 1) / chunk) {
      at -= (part->outputs + chunk - 1) / chunk;
      before += part->outputs;
      chunk = chunk_of(*++part);
    }
    const int64_t first_panel = task / tasks * wide;
    gradient_block(dy + before, dy_row, outputs - before, x, x_row, *part, at * chunk,
                   smaller(at * chunk + chunk, part->outputs), first_panel,
                   smaller(first_panel + wide, panels), rows, inputs);
  });
}

}  // namespace
