// The k best of rows of logits, and their exact log-probabilities.
//
// The k best are found and the softmax's denominator is summed a panel at a time; logits go no
// further than the nearest cache.
#pragma once

#include "decode_layers.h"

namespace {

// Below every logit, above the columns that are no token.
static constexpr float LEAST = -1.0e29f;

// What is known of a row so far.
struct Candidates {
  float threshold;     // the k-th best so far, in units of the row's scale
  float reference;     // what sums of powers of two are relative to
};

// Room for a row's candidates: as many as fit into a vector, or k.
static inline int room_for(int k) { return k > LANES ? k : LANES; }

// The rows in hand.
struct Best {
  Buffer<Candidates> candidates;
  Buffer<float> panel;         // (block, 64): logits; without a bias they lack their rows' scales
  Buffer<float> ones;          // (rows), the scales of logits that lack none
  Buffer<float> sums;          // (rows, 16)
  Buffer<float> values;        // (rows, room_for(k)), best first
  Buffer<int32_t> ids;

  void begin(int rows, int k) {
    const size_t room = room_for(k);
    panel.reserve(static_cast<size_t>(BLOCK_ROWS) * PANEL);
    candidates.reserve(rows);
    sums.reserve(static_cast<size_t>(rows) * LANES);
    values.reserve(rows * room);
    ids.reserve(rows * room);
    ones.reserve(rows);
    for (int r = 0; r < rows; ++r) candidates[r] = {LEAST, 0.0f};
    for (int r = 0; r < rows; ++r) ones[r] = 1.0f;
    // A place stays unfilled where a shortlist is shorter than k, or logits are no numbers.
    for (size_t i = 0; i < rows * room; ++i) {
      values[i] = LEAST;
      ids[i] = 0;
    }
  }

  // `names`: the token of each column; null: its number. `scales` of the rows.
  void finish(int rows, int k, const float* scales, const int32_t* names, float* log_probabilities,
              int64_t* out) const {
    const size_t room = room_for(k);
    for (int r = 0; r < rows; ++r) {
      const float total = sum(load(sums.data() + static_cast<size_t>(r) * LANES));
      const float normaliser = (candidates[r].reference + __builtin_log2f(total)) / LOG2_E;
      for (int j = 0; j < k; ++j) {
        const size_t at = static_cast<size_t>(r) * k + j;
        const float value = values[r * room + j];
        const int32_t name = ids[r * room + j];
        log_probabilities[at] = value > LEAST ? value * scales[r] - normaliser : -__builtin_inff();
        out[at] = names != nullptr ? names[name] : name;
      }
    }
  }
};

// One vector of logits, for `panel`: with a bias they have their row's scale.
template <bool BIASED>
static ALWAYS_INLINE Floats logits_of(const Int8Weights& w, int column, Floats sums, float scale) {
  if constexpr (BIASED) return value_of(w, column, sums, every(scale));
  return multiply_add(sums, load(w.scale.data() + column), load(w.bias.data() + column));
}

// Insert what is above the row's threshold among the 64 `sums` (without the row's scale).
static __attribute__((noinline)) void insert(Candidates& row, float* values, int32_t* ids, int k,
                                             const Floats* sums, int column) {
  float lanes[PANEL];
  uint64_t which = 0;
  for (int j = 0; j < PANEL_VECTORS; ++j) {
    store(lanes + LANES * j, sums[j]);
    which |= static_cast<uint64_t>(above(sums[j], every(row.threshold))) << (LANES * j);
  }
#if defined(__AVX512F__)
  if (k <= LANES) {  // sorted in one vector: what is smaller moves up by one lane
    __m512 best = _mm512_loadu_ps(values);
    __m512i names = _mm512_loadu_si512(ids);
    for (; which != 0; which &= which - 1) {
      const int at = __builtin_ctzll(which);
      const __m512 value = _mm512_set1_ps(lanes[at]);
      const __mmask16 larger_ones = _mm512_cmp_ps_mask(best, value, _CMP_GE_OQ);
      const __mmask16 others = static_cast<__mmask16>(~(larger_ones + 1));
      best = _mm512_mask_expand_ps(value, others, best);
      names = _mm512_mask_expand_epi32(_mm512_set1_epi32(column + at), others, names);
    }
    _mm512_storeu_ps(values, best);
    _mm512_storeu_si512(ids, names);
    row.threshold = values[k - 1];
    return;
  }
#endif
  for (; which != 0; which &= which - 1) {
    const int lane = __builtin_ctzll(which);
    const float value = lanes[lane];
    if (!(value > values[k - 1])) continue;
    int at = k - 1;
    for (; at > 0 && values[at - 1] < value; --at) {
      values[at] = values[at - 1];
      ids[at] = ids[at - 1];
    }
    values[at] = value;
    ids[at] = column + lane;
  }
  row.threshold = values[k - 1];
}

// One panel of one row: candidates, and the sum of powers of two.
static ALWAYS_INLINE void look_at(Best& best, int r, int k, int column, float row_scale,
                                  const Floats (&values)[PANEL_VECTORS]) {
  Candidates& row = best.candidates[r];
  const size_t room = room_for(k);
  const Floats most = larger(larger(values[0], values[1]), larger(values[2], values[3]));
  // Logits in powers of two are values x to_powers; sums are relative to `reference`.
  const float to_powers = row_scale * LOG2_E;
  float* total = best.sums.data() + static_cast<size_t>(r) * LANES;
  if (column == 0) {
    row.reference = largest(most) * to_powers;
    store(total, zero());
  }
  if (above(most, every(row.threshold)) != 0) {
    float* own = best.values.data() + r * room;
    insert(row, own, best.ids.data() + r * room, k, values, column);
    const float greatest = own[0] * to_powers;
    if (greatest > row.reference + 60.0f) {  // far from overflow, which is at 127
      store(total, multiply(load(total), power_of_two(every(row.reference - greatest))));
      row.reference = greatest;
    }
  }
  const Floats factor = every(to_powers), shift = every(-row.reference);
  Floats powers[PANEL_VECTORS];
  for (int j = 0; j < PANEL_VECTORS; ++j)
    powers[j] = power_of_two(multiply_add(values[j], factor, shift));
  store(total, add(load(total), add(add(powers[0], powers[1]), add(powers[2], powers[3]))));
}

// One panel of all rows of a block. By itself: between two tiles of a product the powers would keep
// the multipliers waiting, for which the processor does not look far enough ahead.
static __attribute__((noinline)) void look_at_panel(Best& best, const float* scales, int first,
                                                    int block, int k, int column) {
  const float* panel = best.panel.data();
  for (int r = first; r < first + block; ++r, panel += PANEL) {
    Floats values[PANEL_VECTORS];
    for (int j = 0; j < PANEL_VECTORS; ++j) values[j] = load(panel + LANES * j);
    look_at(best, r, k, column, scales[r], values);
  }
}

}  // namespace
