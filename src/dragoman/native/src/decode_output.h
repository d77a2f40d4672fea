// The output layer: all logits, or only the k best with their exact log-probabilities.
//
// The k best are found and the softmax's denominator is summed a panel at a time; logits go no
// further than the nearest cache.
#pragma once

#include "decode_state.h"

namespace {

// Below every logit, above the columns that are no token.
static constexpr float LEAST = -1.0e29f;

static void all_logits(State& state, float* logits) {
  const Model& m = *state.model;
  const int vocabulary = m.shape.target_vocabulary;
  project(m.output, state.work.bytes.data(), m.width, state.work.scale.data(), state.work.count,
          [&](int r, int column, const Floats(&values)[PANEL_VECTORS]) INLINE_LAMBDA {
            float* at = logits + static_cast<size_t>(r) * vocabulary + column;
            for (int j = 0; j < PANEL_VECTORS; ++j) {
              const int left = vocabulary - column - LANES * j;
              if (left >= LANES) {
                store(at + LANES * j, values[j]);
              } else {
                float rest[LANES];
                store(rest, values[j]);
                for (int i = 0; i < left; ++i) at[LANES * j + i] = rest[i];
              }
            }
          });
}

// Room for a row's candidates: as many as fit into a vector, or k.
static inline int room_for(int k) { return k > LANES ? k : LANES; }

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
static ALWAYS_INLINE void look_at(State& state, int r, int k, int column, float row_scale,
                                  const Floats (&values)[PANEL_VECTORS]) {
  Candidates& row = state.candidates[r];
  const size_t room = room_for(k);
  const Floats most = larger(larger(values[0], values[1]), larger(values[2], values[3]));
  // Logits in powers of two are values x to_powers; sums are relative to `reference`.
  const float to_powers = row_scale * LOG2_E;
  float* total = state.sums.data() + static_cast<size_t>(r) * LANES;
  if (column == 0) {
    row.reference = largest(most) * to_powers;
    store(total, zero());
  }
  if (above(most, every(row.threshold)) != 0) {
    float* own = state.best_values.data() + r * room;
    insert(row, own, state.best_ids.data() + r * room, k, values, column);
    const float best = own[0] * to_powers;
    if (best > row.reference + 60.0f) {  // far from overflow, which is at 127
      store(total, multiply(load(total), power_of_two(every(row.reference - best))));
      row.reference = best;
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
static __attribute__((noinline)) void look_at_panel(State& state, int first, int block, int k,
                                                    int column) {
  const float* panel = state.panel.data();
  for (int r = first; r < first + block; ++r, panel += PANEL) {
    Floats values[PANEL_VECTORS];
    for (int j = 0; j < PANEL_VECTORS; ++j) values[j] = load(panel + LANES * j);
    look_at(state, r, k, column, state.work.scale[r], values);
  }
}

template <bool SHORT>
static void look_at_all(State& state, const Int8Weights& w, int k) {
  const Model& m = *state.model;
  const int count = state.work.count;
  state.panel.reserve(static_cast<size_t>(BLOCK_ROWS) * PANEL);
  float* panel = state.panel.data();
  for (int first = 0; first < count; first += BLOCK_ROWS) {
    const int block = count - first < BLOCK_ROWS ? count - first : BLOCK_ROWS;
    const uint8_t* bytes = state.work.bytes.data() + static_cast<size_t>(first) * m.width;
    product(w, bytes, m.width, block,
            [&](int i, int column, const Floats(&sums)[PANEL_VECTORS]) INLINE_LAMBDA {
              for (int j = 0; j < PANEL_VECTORS; ++j) {
                const int at = column + LANES * j;
                Floats value = multiply_add(sums[j], load(w.scale.data() + at),
                                            load(w.bias.data() + at));
                if constexpr (SHORT) {
                  const uint64_t allowed =
                      state.rows[first + i].source->allowed[column / PANEL];
                  value = choose(static_cast<unsigned>(allowed >> (LANES * j)) & 0xFFFF, value,
                                 every(-1.0e30f));
                }
                store(panel + i * PANEL + LANES * j, value);
              }
              if (i == block - 1) look_at_panel(state, first, block, k, column);
            });
  }
}

static void best_tokens(State& state, int k, float* log_probabilities, int64_t* ids) {
  const int count = state.work.count;
  const size_t room = room_for(k);
  state.candidates.reserve(count);
  state.sums.reserve(static_cast<size_t>(count) * LANES);
  state.best_values.reserve(count * room);
  state.best_ids.reserve(count * room);
  for (int r = 0; r < count; ++r) state.candidates[r] = {LEAST, 0.0f};
  // A place stays unfilled where a shortlist is shorter than k, or logits are no numbers.
  for (size_t i = 0; i < count * room; ++i) {
    state.best_values[i] = LEAST;
    state.best_ids[i] = 0;
  }
  if (state.has_subset) {
    look_at_all<true>(state, state.subset, k);
  } else {
    look_at_all<false>(state, state.model->output, k);
  }
  for (int r = 0; r < count; ++r) {
    const Candidates& row = state.candidates[r];
    const float total = sum(load(state.sums.data() + static_cast<size_t>(r) * LANES));
    const float normaliser = (row.reference + __builtin_log2f(total)) / LOG2_E;
    for (int j = 0; j < k; ++j) {
      const size_t at = static_cast<size_t>(r) * k + j;
      const float value = state.best_values[r * room + j];
      const int32_t name = state.best_ids[r * room + j];
      log_probabilities[at] =
          value > LEAST ? value * state.work.scale[r] - normaliser : -__builtin_inff();
      ids[at] = state.has_subset ? state.names[name] : name;
    }
  }
}

}  // namespace
