// The gradient of a weight on tiles (gradient.h): dW = dyᵀ x, where a tile of A holds 16 columns of dy,
// transposed, and a tile of B two rows of x in each of its own.
#pragma once

namespace {

constexpr int64_t SUM_ROWS = 512;  // rows of x and dy that are packed and summed at a time

#if defined(__AVX512BF16__)

// 8 rows of a tile: columns 0 ... 7 of 32 rows of x, transposed.
static ALWAYS_INLINE void transpose_eight(const bf16 *x, int64_t x_row, uint32_t *out) {
  __m512i r[8], t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {  // lane l: row 8 l + i
    const auto part = [=](int l) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i *>(x + (8 * l + i) * x_row));
    };
    r[i] = _mm512_inserti32x4(_mm512_castsi128_si512(part(0)), part(1), 1);
    r[i] = _mm512_inserti32x4(_mm512_inserti32x4(r[i], part(2), 2), part(3), 3);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {  // columns 0 ... 3 and 4 ... 7 of rows 2 i and 2 i + 1
    t[i] = _mm512_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    t[i + 4] = _mm512_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {  // i = 0, 2: columns 0 ... 3; i = 4, 6: columns 4 ... 7
    r[i] = _mm512_unpacklo_epi32(t[i], t[i + 1]);
    r[i + 1] = _mm512_unpackhi_epi32(t[i], t[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    const int from = i / 2 * 4 + i % 2;
    _mm512_storeu_si512(out + 2 * i * STEPS, _mm512_unpacklo_epi64(r[from], r[from + 2]));
    _mm512_storeu_si512(out + (2 * i + 1) * STEPS, _mm512_unpackhi_epi64(r[from], r[from + 2]));
  }
}

#endif

// A tile of A: row j holds column j of x, `rows` numbers and zeros behind them.
static ALWAYS_INLINE void transposed_tile(const bf16 *x, int64_t x_row, int64_t rows, int64_t width,
                                          uint32_t *out) {
#if defined(__AVX512BF16__)
  if (rows >= 2 * STEPS && width >= TILE_HEIGHT) {
    transpose_eight(x, x_row, out);
    transpose_eight(x + 8, x_row, out + 8 * STEPS);
    return;
  }
#endif
  bf16 numbers[TILE_HEIGHT][2 * STEPS] = {};
  for (int64_t i = 0; i < smaller(rows, 2 * STEPS); i++) {
    for (int64_t j = 0; j < smaller(width, TILE_HEIGHT); j++) numbers[j][i] = x[i * x_row + j];
  }
  memcpy(out, numbers, sizeof(numbers));
}

// sums[j] += every number in column j
static ALWAYS_INLINE void add_rows(const bf16 *x, int64_t x_row, int64_t rows, int64_t width,
                                   float *sums) {
  for (int64_t j = 0; j < width; j += LANES) {
    Vec total = load_some(sums + j, width - j), other = zero();
    for (int64_t i = 0; i + 1 < rows; i += 2) {
      total = total + load_some(x + i * x_row + j, width - j);
      other = other + load_some(x + (i + 1) * x_row + j, width - j);
    }
    if (rows & 1) total = total + load_some(x + (rows - 1) * x_row + j, width - j);
    store_some(sums + j, total + other, width - j);
  }
}

// The rectangle of dW with outputs n0 ... n1 of `part` and inputs of panels first ... last. `dy` begins
// at the part's columns.
static inline void gradient_block(const bf16 *dy, int64_t dy_row, int64_t, const bf16 *x,
                                  int64_t x_row, const Part &part, int64_t n0, int64_t n1,
                                  int64_t first_panel, int64_t last_panel, int64_t rows,
                                  int64_t inputs) {
  const int64_t most_steps = SUM_ROWS / 2, panel_words = most_steps * PANEL;
  const int64_t across = (n1 - n0 + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
  // Tile by tile: 16 outputs, step after step, then the next 16.
  uint32_t *left = scratch<uint32_t>(1, static_cast<size_t>(across * most_steps));
  uint32_t *right = scratch<uint32_t>(2, static_cast<size_t>(MOST_PANELS * panel_words));
  float *edge = scratch<float>(3, static_cast<size_t>(BLOCK_ROWS * SUMS_ROW));
  float *sums = part.bias != nullptr && first_panel == 0 ? part.bias + n0 : nullptr;
  if (!part.add && sums != nullptr) memset(sums, 0, static_cast<size_t>(n1 - n0) * sizeof(float));
  Tiles tiles(TILE_HEIGHT, TILE_HEIGHT);
  for (int64_t p = 0; p == 0 || p < rows; p += SUM_ROWS) {
    const int64_t count = smaller(SUM_ROWS, rows - p), steps = packed_steps((count + 1) / 2);
    const bf16 *dy_block = dy + p * dy_row, *x_block = x + p * x_row;
    // As the rows lie in memory: what a few of them hold is read together, while the next are fetched.
    for (int64_t s = 0; s < steps; s += STEPS) {
      const bf16 *dy_rows = dy_block + 2 * s * dy_row + n0, *x_rows = x_block + 2 * s * x_row;
      const int64_t now = smaller(2 * STEPS, count - 2 * s);
      const int64_t later = smaller(2 * STEPS, rows - p - 2 * s - now);
      fetch_rows(dy_rows + now * dy_row, 2 * dy_row, later, 2 * (n1 - n0));
      fetch_rows(x_rows + now * x_row + first_panel * PANEL, 2 * x_row, later,
                 2 * smaller((last_panel - first_panel) * PANEL, inputs - first_panel * PANEL));
      for (int64_t n = 0; n < across; n += TILE_HEIGHT) {
        transposed_tile(dy_rows + n, dy_row, now, larger(0, n1 - n0 - n),
                        left + n * most_steps + s * TILE_HEIGHT);
      }
      if (sums != nullptr) add_rows(dy_rows, dy_row, now, n1 - n0, sums);
      for (int64_t panel = first_panel; panel < last_panel; panel++) {
        const int64_t column = panel * PANEL;
        uint32_t *words = right + (panel - first_panel) * panel_words + s * PANEL;
        for (int64_t i = 0; i < 2 * STEPS; i += 2, words += PANEL) {
          const bf16 *one = x_rows + i * x_row + column;
          if (i < now) {
            interleave(one, i + 1 < now ? one + x_row : nullptr, inputs - column, words);
          } else {
            memset(words, 0, PANEL * 4);
          }
        }
      }
    }
    const bool add = part.add || p > 0;
    for (int64_t panel = first_panel; panel < last_panel; panel++) {
      const int64_t column = panel * PANEL, width = smaller(PANEL, inputs - column);
      const uint32_t *words = right + (panel - first_panel) * panel_words;
      for (int64_t n = n0; n < n1; n += BLOCK_ROWS) {
        float *out = part.weight + n * inputs + column;
        const bool inside = width == PANEL && n + BLOCK_ROWS <= n1;
        float *to = inside ? out : edge;
        const int64_t to_row = inside ? inputs : SUMS_ROW;
        const uint32_t *upper = left + (n - n0) * most_steps;
        tile_block<true>(upper, upper + TILE_HEIGHT * most_steps, STEPS, TILE_HEIGHT * STEPS, words,
                         steps, inside && add, to, to_row);
        if (inside) continue;
        for (int64_t r = 0; r < smaller(BLOCK_ROWS, n1 - n); r++) {
          for (int64_t j = 0; j < width; j += LANES) {
            Vec sum = load(edge + r * SUMS_ROW + j);
            if (add) sum = sum + load_some(out + r * inputs + j, width - j);
            store_some(out + r * inputs + j, sum, width - j);
          }
        }
      }
    }
  }
}

}  // namespace
