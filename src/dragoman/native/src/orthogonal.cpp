// levels: amx avx512 avx512vnni avx2 amxtwin neon
// Newton and Schulz's way to the nearest orthogonal matrix, for an optimizer (training/muon.py).
#include "pack.h"

#include <math.h>
#include <stdlib.h>

namespace {

constexpr float A = 3.4445F, B = -4.7750F, C = 2.0315F;  // Jordan et al. 2024
constexpr int TIMES = 5;

template <class T>
static ALWAYS_INLINE int64_t steps_of(int64_t numbers) {
  return (numbers + per_word<T> - 1) / per_word<T>;
}

// X (rows x columns, rows <= columns) -> (a + b G + c G²) X five times, where G = X Xᵀ. All
// are of type T, and X and G beside it in fp32, to be packed. With T = bf16 both sizes are even.
template <class T>
static void orthogonal(float *x, int64_t rows, int64_t columns) {
  const int64_t down = steps_of<T>(rows), across = steps_of<T>(columns);
  const int64_t panels = panels_of(rows), wide = panels_of(columns);
  const int64_t words_of_x = larger(panels * packed_steps(across), wide * packed_steps(down)) * PANEL;
  const size_t square = static_cast<size_t>(rows * rows), whole = static_cast<size_t>(rows * columns);
  float *gram = static_cast<float *>(malloc(square * 4));
  T *low = static_cast<T *>(malloc(whole * sizeof(T)));
  T *gram_low = static_cast<T *>(malloc(square * sizeof(T)));
  T *powers = static_cast<T *>(malloc(square * sizeof(T)));
  uint32_t *packed = static_cast<uint32_t *>(malloc(static_cast<size_t>(words_of_x) * 4));
  const float **of_x = static_cast<const float **>(malloc(static_cast<size_t>(rows) * 16));
  const float **of_gram = of_x + rows;
  double total = 0;
  for (int64_t i = 0; i < rows; i++) {
    of_x[i] = x + i * columns, of_gram[i] = gram + i * rows;
    float sum = 0;
    for (int64_t j = 0; j < columns; j++) sum += of_x[i][j] * of_x[i][j];
    total += static_cast<double>(sum);
  }
  const Vec scale = all(static_cast<float>(1 / fmax(sqrt(total), 1e-7)));
  for (int64_t i = 0; i < rows * columns; i += LANES) {
    const int64_t left = smaller(LANES, rows * columns - i);
    const Vec v = load_some(x + i, left) * scale;
    store_some(low + i, v, left);
    store_some(x + i, load(low + i, left), left);
  }
  const auto pack_rows = [&](const float *const *from, int64_t steps) {
    for (int64_t p = 0; p < panels; p++) {
      pack_forward<is_bf16<T>>(from, rows, steps, p, packed + p * packed_steps(steps) * PANEL);
    }
  };
  // Rows from `first` on of out (rows x outputs) of type T, and the same numbers in `kept`: of_sums
  // times the sums, plus factor times what was kept; columns from `begin` on, a panel's first.
  const auto multiply = [&](const T *left, int64_t steps, int64_t outputs, float *kept, float factor,
                            float of_sums, T *out, int64_t first, int64_t count, int64_t begin) {
    product<is_bf16<T>>(
        words(left) + first * steps, steps, count, packed + begin * packed_steps(steps),
        outputs - begin, steps, [=](int64_t i, int64_t column, int64_t width, Sums sums) {
          const int64_t at = (first + i) * outputs + begin + column;
#pragma GCC unroll 4
          for (int v = 0; v < PANEL_VECTORS; v++) {
            const int64_t there = larger(0, width - v * LANES);
            sums.v[v] = sums.v[v] * all(of_sums);
            if (factor != 0) sums.v[v] = sums.v[v] + load(kept + at + v * LANES, there) * all(factor);
          }
          store_row(out + at, width, sums);
          // Kept as it was rounded: what a later product does not contain would grow.
          for (int v = 0; v < PANEL_VECTORS; v++) {
            sums.v[v] = load(out + at + v * LANES, larger(0, width - v * LANES));
          }
          store_row(kept + at, width, sums);
        });
  };
  // The same where the result is symmetric: panels on and above the diagonal, the others by them.
  const auto multiply_half = [&](const T *left, int64_t steps, float *kept, float factor, float of_sums,
                                 T *out) {
    for (int64_t p = 0; p < rows; p += PANEL) {
      multiply(left, steps, rows, kept, factor, of_sums, out, p, smaller(PANEL, rows - p), p);
      for (int64_t i = p; i < smaller(p + PANEL, rows); i += LANES) {
        for (int64_t j = p + PANEL; j < rows; j += LANES) {
          const int64_t high = smaller(LANES, rows - i), wide = smaller(LANES, rows - j);
          Vec block[LANES];
          for (int64_t k = 0; k < LANES; k++) {
            block[k] = k < high ? load(kept + (i + k) * rows + j, wide) : zero();
          }
          transpose(block);
          for (int64_t k = 0; k < wide; k++) {
            store_some(kept + (j + k) * rows + i, block[k], high);
            store_some(out + (j + k) * rows + i, block[k], high);
          }
        }
      }
    }
  };
  for (int time = 0; time < TIMES; time++) {
    pack_rows(of_x, across);
    multiply_half(low, across, gram, 0, 1, gram_low);
    pack_rows(of_gram, down);  // it is symmetric
    multiply_half(gram_low, down, gram, B, C, powers);
    for (int64_t p = 0; p < wide; p++) {
      pack_backward<is_bf16<T>>(of_x, rows, columns, p, packed + p * packed_steps(down) * PANEL);
    }
    multiply(powers, down, columns, x, A, 1, low, 0, rows, 0);
  }
  free(gram), free(low), free(gram_low), free(powers), free(packed), free(of_x);
}

}  // namespace

#define DRAGOMAN_ORTHOGONAL(T, suffix)                                                             \
  /* In place, each matrix by one thread. */                                                      \
  KERNEL(void, orthogonal_##suffix, float *const *matrices, const int64_t *rows,                   \
         const int64_t *columns, int64_t count) {                                                  \
    parallel_for(count, [&](int64_t m) { orthogonal<T>(matrices[m], rows[m], columns[m]); });      \
  }

#if !defined(DRAGOMAN_TILES)
DRAGOMAN_ORTHOGONAL(float, fp32)
#endif
#if defined(DRAGOMAN_BF16_PRODUCTS)
DRAGOMAN_ORTHOGONAL(bf16, bf16)
#endif
