// Products of bf16 numbers on tiles (matrix.h, tiles.h).
//
// Four tiles of sums, 32 rows x 32 columns, at a time: two tiles of A and two of B are loaded for four
// products. A panel of B is gone through by all rows of a block before the next panel begins: it stays
// in the first-level cache, which A's rows need not.
#pragma once

namespace {

constexpr int64_t BLOCK_ROWS = 2 * TILE_HEIGHT;  // rows of the four tiles
constexpr int64_t SUMS_ROW = PANEL + 16;         // floats from row to row of their sums: an odd number
                                                 // of cache lines, so that rows do not share a set

// out (rows x PANEL) = or, with `add`, += A times `steps` steps of a panel. `a` and `below` are the first
// tiles of A's upper and lower rows: a row every `a_row` words, the next tile `next` words further. The
// tiles are shaped for their numbers of rows. `out_row` in floats.
template <bool BOTH>
static ALWAYS_INLINE void tile_block(const uint32_t *a, const uint32_t *below, int64_t a_row,
                                     int64_t next, const uint32_t *panel, int64_t steps, bool add,
                                     float *out, int64_t out_row) {
  const int64_t stride = 4 * out_row, a_stride = 4 * a_row;
  float *lower = out + TILE_HEIGHT * out_row;
  if (add) {
    tile_load<0>(out, stride), tile_load<1>(out + 16, stride);
    if (BOTH) tile_load<2>(lower, stride), tile_load<3>(lower + 16, stride);
  } else {
    tile_zero<0>(), tile_zero<1>();
    if (BOTH) tile_zero<2>(), tile_zero<3>();
  }
  for (int64_t s = 0; s < steps; s += STEPS) {
    tile_load<6>(panel, 4 * PANEL);
    tile_load<4>(a, a_stride);
    tile_dot_bf16<0, 4, 6>();
    if (BOTH) {
      tile_load<5>(below, a_stride);
      tile_dot_bf16<2, 5, 6>();
    }
    tile_load<7>(panel + 16, 4 * PANEL);
    tile_dot_bf16<1, 4, 7>();
    if (BOTH) tile_dot_bf16<3, 5, 7>();
    a += next, below += next, panel += STEPS * PANEL;
  }
  tile_store<0>(out, stride), tile_store<1>(out + 16, stride);
  if (BOTH) tile_store<2>(lower, stride), tile_store<3>(lower + 16, stride);
}

// The same for 1 ... 32 rows of A that follow each other. The tiles are shaped for 16 and 16 rows before
// and after.
static inline void any_block(Tiles &tiles, int64_t rows, const uint32_t *a, int64_t a_row,
                             const uint32_t *panel, int64_t steps, bool add, float *out,
                             int64_t out_row) {
  const uint32_t *below = a + TILE_HEIGHT * a_row;
  if (rows == BLOCK_ROWS) {
    return tile_block<true>(a, below, a_row, STEPS, panel, steps, add, out, out_row);
  }
  const int first = static_cast<int>(smaller(rows, TILE_HEIGHT));
  tiles.shape(first, rows > TILE_HEIGHT ? static_cast<int>(rows - TILE_HEIGHT) : 1);
  if (rows > TILE_HEIGHT) {
    tile_block<true>(a, below, a_row, STEPS, panel, steps, add, out, out_row);
  } else {
    tile_block<false>(a, below, a_row, STEPS, panel, steps, add, out, out_row);
  }
  tiles.shape(TILE_HEIGHT, TILE_HEIGHT);
}

// A's rows as tiles read them: in place, or where a sum does not end with a tile, a copy in `slot` with
// zeros behind it. Its row stride replaces `row`.
static inline const uint32_t *whole_steps(const uint32_t *a, int64_t &row, int64_t rows,
                                          int64_t steps, int slot) {
  const int64_t whole = packed_steps(steps);
  if (whole == steps) return a;
  uint32_t *copy = scratch<uint32_t>(slot, static_cast<size_t>(rows * whole));
  for (int64_t i = 0; i < rows; i++) {
    memcpy(copy + i * whole, a + i * row, static_cast<size_t>(steps) * 4);
    memset(copy + i * whole + steps, 0, static_cast<size_t>(whole - steps) * 4);
  }
  row = whole;
  return copy;
}

// Rows of C that one task works on: enough tasks for all threads, and A's block within the second-level
// cache beside one panel of B.
static ALWAYS_INLINE int64_t rows_per_task(int64_t rows, int64_t steps) {
  const int64_t by_cache = larger(64, smaller(512, 128 * 1024 / larger(1, steps)));
  const int64_t share = (rows + 4 * dragoman_threads() - 1) / (4 * dragoman_threads());
  return (smaller(by_cache, larger(share, 1)) + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
}

template <bool BF16, class Finish, class Prepare = Nothing>
static inline void product(const uint32_t *a, int64_t row, int64_t rows, const uint32_t *b,
                           int64_t columns, int64_t steps, const Finish &finish,
                           const Prepare &prepare = {}) {
  static_assert(BF16, "tiles multiply no fp32 numbers");
  if (rows == 0 || columns == 0) return;
  const int64_t block = rows_per_task(rows, steps), whole = packed_steps(steps);
  const int64_t blocks = (rows + block - 1) / block, panels = panels_of(columns);
  const int64_t wanted = 4 * dragoman_threads();
  const int64_t groups = blocks >= wanted ? 1 : smaller(panels, (wanted + blocks - 1) / blocks);
  const int64_t group = (panels + groups - 1) / groups;
  parallel_for(blocks * groups, [&](int64_t task) {
    const int64_t first = task % blocks * block, count = smaller(block, rows - first);
    const int64_t end = smaller((task / blocks + 1) * group, panels);
    int64_t in_row = row;
    const uint32_t *in = whole_steps(a + first * row, in_row, count, steps, 2);
    float *sums = scratch<float>(3, static_cast<size_t>(BLOCK_ROWS * SUMS_ROW));
    Tiles tiles(TILE_HEIGHT, TILE_HEIGHT);
    for (int64_t panel = task / blocks * group; panel < end; panel++) {
      const int64_t column = panel * PANEL, width = smaller(PANEL, columns - column);
      for (int64_t i = 0; i < count; i += BLOCK_ROWS) {
        const int64_t now = smaller(BLOCK_ROWS, count - i);
        prepare(first + i, now, column);
        any_block(tiles, now, in + i * in_row, in_row, b + panel * whole * PANEL, whole, false, sums,
                  SUMS_ROW);
        for (int64_t r = 0; r < now; r++) {
          finish(first + i + r, column, width, load_sums(sums + r * SUMS_ROW));
        }
      }
    }
  });
}

}  // namespace
