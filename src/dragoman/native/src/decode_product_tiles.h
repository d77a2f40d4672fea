// The int8 product on Intel's tiles (tiles.h), over the panels that the other instruction sets take.
//
// Four bytes of a column fill a word in a panel as they do in a tile, so 16 columns of 64 inputs are
// a tile of 16 rows that lie a panel's row apart. A panel (64 columns) meets up to 32 rows of bytes
// in two squares of 2 x 2 tiles, or up to 16 rows in four tiles side by side. Sums begin as in
// registers and are whole numbers, so they are the same to the bit.
#pragma once

#include "tiles.h"

namespace {

// For fewer, registers are about as fast where weights come from beyond the core's own cache, as they
// do in most models (docs/experiments/int8-on-amx.md).
constexpr int LEAST_TILE_ROWS = 4;

constexpr int PANEL_ROW = 4 * PANEL;                  // bytes: four inputs of all columns
constexpr int INPUT_BYTES = TILE_HEIGHT * PANEL_ROW;  // of TILE_BYTES inputs of a panel

// Where a panel's sums wait for their scales.
struct alignas(64) TileSums {
  int32_t at[2 * TILE_HEIGHT * PANEL];

  template <class Store>
  ALWAYS_INLINE void hand_on(int first, int end, int row, int column, Store&& store) const {
    for (int i = first; i < end; ++i) {
      const int32_t* from = at + PANEL * i;
      const Floats sums[PANEL_VECTORS] = {from_whole(from), from_whole(from + LANES),
                                          from_whole(from + 2 * LANES), from_whole(from + 3 * LANES)};
      store(row + i, column, sums);
    }
  }
};

// Up to 16 rows of one panel.
static ALWAYS_INLINE void few_rows_by_tiles(const uint8_t* rows, size_t stride, const int8_t* panel,
                                            int depth, const int32_t* start, TileSums& sums) {
  tile_load<0>(start, 0);
  tile_load<1>(start + LANES, 0);
  tile_load<2>(start + 2 * LANES, 0);
  tile_load<3>(start + 3 * LANES, 0);
  for (int k = 0; k < depth; k += TILE_BYTES, panel += INPUT_BYTES) {
    tile_load<4>(rows + k, stride);
    tile_load<6>(panel, PANEL_ROW);
    tile_dot_u8s8<0, 4, 6>();
    tile_load<7>(panel + TILE_BYTES, PANEL_ROW);
    tile_dot_u8s8<1, 4, 7>();
    tile_load<6>(panel + 2 * TILE_BYTES, PANEL_ROW);
    tile_dot_u8s8<2, 4, 6>();
    tile_load<7>(panel + 3 * TILE_BYTES, PANEL_ROW);
    tile_dot_u8s8<3, 4, 7>();
  }
  tile_store<0>(sums.at, PANEL_ROW);
  tile_store<1>(sums.at + LANES, PANEL_ROW);
  tile_store<2>(sums.at + 2 * LANES, PANEL_ROW);
  tile_store<3>(sums.at + 3 * LANES, PANEL_ROW);
}

// 32 columns of a panel for two tiles of rows, of which the first has `first`.
static ALWAYS_INLINE void square_by_tiles(const uint8_t* rows, size_t stride, int first,
                                          const int8_t* panel, int depth, const int32_t* start,
                                          int32_t* sums) {
  const uint8_t* second = rows + stride * first;
  tile_load<0>(start, 0);
  tile_load<1>(start + LANES, 0);
  tile_load<2>(start, 0);
  tile_load<3>(start + LANES, 0);
  for (int k = 0; k < depth; k += TILE_BYTES, panel += INPUT_BYTES) {
    tile_load<6>(panel, PANEL_ROW);
    tile_load<4>(rows + k, stride);
    tile_dot_u8s8<0, 4, 6>();
    tile_load<5>(second + k, stride);
    tile_dot_u8s8<2, 5, 6>();
    tile_load<7>(panel + TILE_BYTES, PANEL_ROW);
    tile_dot_u8s8<1, 4, 7>();
    tile_dot_u8s8<3, 5, 7>();
  }
  tile_store<0>(sums, PANEL_ROW);
  tile_store<1>(sums + LANES, PANEL_ROW);
  tile_store<2>(sums + PANEL * first, PANEL_ROW);
  tile_store<3>(sums + PANEL * first + LANES, PANEL_ROW);
}

// product() of decode_product.h.
template <class Store>
static inline void product_by_tiles(const Int8Weights& w, const uint8_t* bytes, size_t stride,
                                    int rows, Store&& store) {
  const size_t panel_bytes = static_cast<size_t>(PANEL) * w.depth;
  const int8_t* panel = w.weights.data();
  TileSums sums;
  if (rows <= TILE_HEIGHT) {
    const Tiles tiles(rows, rows);
    for (int column = 0; column < w.columns; column += PANEL, panel += panel_bytes) {
      few_rows_by_tiles(bytes, stride, panel, w.depth, w.start.data() + column, sums);
      sums.hand_on(0, rows, 0, column, store);
    }
    return;
  }
  // Blocks of one size, so that tiles are configured once: the last may have rows of the one before.
  const int blocks = (rows + 2 * TILE_HEIGHT - 1) / (2 * TILE_HEIGHT);
  const int block = (rows + blocks - 1) / blocks, first = (block + 1) / 2;
  const Tiles tiles(first, block - first);
  for (int column = 0; column < w.columns; column += PANEL, panel += panel_bytes) {
    const int32_t* start = w.start.data() + column;
    for (int done = 0; done < rows; done += block) {
      const int row = done + block <= rows ? done : rows - block;
      const uint8_t* from = bytes + stride * row;
      square_by_tiles(from, stride, first, panel, w.depth, start, sums.at);
      square_by_tiles(from, stride, first, panel + 2 * TILE_BYTES, w.depth, start + PANEL / 2,
                      sums.at + PANEL / 2);
      sums.hand_on(done - row, block, row, column, store);
    }
  }
}

}  // namespace
