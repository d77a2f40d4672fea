// fp32 rows as B operands of matrix.h.
#pragma once

#include "matrix.h"

namespace {

// LANES steps from s on (of which `left` exist) of one row of fp32 weights, as words.
template <bool BF16>
static ALWAYS_INLINE Vec words_of_row(const float *w, int64_t s, int64_t left) {
#if defined(__AVX512BF16__)
  if (BF16) {
    const Vec low = load(w + 2 * s, larger(0, 2 * left));
    const Vec high = left > 8 ? load(w + 2 * s + 16, 2 * left - 16) : zero();
    return {_mm512_castsi512_ps(join_bf16(low, high))};
  }
#elif defined(DRAGOMAN_TILES)
  bf16 numbers[2 * LANES] = {};
  for (int64_t i = 0; i < smaller(2 * left, 2 * LANES); i++) numbers[i] = bf16_of(w[2 * s + i]);
  return load(reinterpret_cast<const float *>(numbers));
#endif
  return load(w + s, left);
}

// What a panel has behind its last step.
static ALWAYS_INLINE void clear_steps(uint32_t *panel, int64_t steps) {
  const int64_t more = packed_steps(steps) - steps;
  if (more > 0) memset(panel + steps * PANEL, 0, static_cast<size_t>(more * PANEL) * 4);
}

// forward[panel][s][j]: word s of row PANEL panel + j.
template <bool BF16>
static void pack_forward(const float *const *rows, int64_t outputs, int64_t steps, int64_t panel,
                         uint32_t *out) {
  for (int64_t s = 0; s < steps; s += LANES) {
    const int64_t left = steps - s;
    for (int64_t j = 0; j < PANEL; j += LANES) {
      Vec block[LANES];
      for (int64_t i = 0; i < LANES; i++) {
        const int64_t n = panel * PANEL + j + i;
        block[i] = n < outputs ? words_of_row<BF16>(rows[n], s, left) : zero();
      }
      transpose(block);
      for (int64_t i = 0; i < smaller(LANES, left); i++) {
        store(reinterpret_cast<float *>(out + (s + i) * PANEL + j), block[i]);
      }
    }
  }
  clear_steps(out, steps);
}

// backward[panel][s][j]: column PANEL panel + j of row s (fp32) or of rows 2s and 2s + 1 (bf16).
template <bool BF16>
static void pack_backward(const float *const *rows, int64_t outputs, int64_t inputs, int64_t panel,
                          uint32_t *out) {
  const int64_t first = panel * PANEL, width = smaller(PANEL, inputs - first);
  const int64_t steps = BF16 ? (outputs + 1) / 2 : outputs;
  for (int64_t s = 0; s < steps; s++) {
    for (int64_t j = 0; j < PANEL; j += LANES) {
      const int64_t left = larger(0, width - j);
      const float *one = rows[BF16 ? 2 * s : s] + first + j;
#if defined(__AVX512BF16__)
      if (BF16) {
        const Vec a = load(one, left);
        const Vec b = 2 * s + 1 < outputs ? load(rows[2 * s + 1] + first + j, left) : zero();
        const __m512i low = _mm512_cvtepu16_epi32(pack_bf16(a));
        const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(pack_bf16(b)), 16);
        _mm512_storeu_si512(out + s * PANEL + j, _mm512_or_si512(low, high));
        continue;
      }
#elif defined(DRAGOMAN_TILES)
      bf16 pair[2][PANEL] = {};
      for (int64_t i = 0; i < smaller(LANES, left); i++) {
        pair[0][i] = bf16_of(one[i]);
        if (2 * s + 1 < outputs) pair[1][i] = bf16_of(rows[2 * s + 1][first + j + i]);
      }
      uint32_t both[PANEL];
      interleave(pair[0], pair[1], PANEL, both);
      memcpy(out + s * PANEL + j, both, LANES * 4);
      continue;
#endif
      store(reinterpret_cast<float *>(out + s * PANEL + j), load(one, left));
    }
  }
  clear_steps(out, steps);
}

}  // namespace
