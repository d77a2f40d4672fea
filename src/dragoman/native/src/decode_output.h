// The output layer: all logits, or only the k best with their exact log-probabilities.
#pragma once

#include "decode_state.h"

namespace {

static void all_logits(State& state, float* logits) {
  const Model& m = *state.model;
  const int vocabulary = m.shape.target_vocabulary;
  project(m.output, state.work.bytes.data(), m.width, state.work.scale.data(), state.work.count,
          [&](int r, int column, const Floats(&values)[PANEL_VECTORS]) INLINE_LAMBDA {
            store_columns(logits + static_cast<size_t>(r) * vocabulary, column, vocabulary, values);
          });
}

template <bool SHORT, bool BIASED>
static void look_at_all(State& state, const Int8Weights& w, int k) {
  const Model& m = *state.model;
  const int count = state.work.count;
  const float* scales = state.work.scale.data();
  float* panel = state.best.panel.data();
  for (int first = 0; first < count; first += BLOCK_ROWS) {
    const int block = count - first < BLOCK_ROWS ? count - first : BLOCK_ROWS;
    const uint8_t* bytes = state.work.bytes.data() + static_cast<size_t>(first) * m.width;
    product(w, bytes, m.width, block,
            [&](int i, int column, const Floats(&sums)[PANEL_VECTORS]) INLINE_LAMBDA {
              for (int j = 0; j < PANEL_VECTORS; ++j) {
                const int at = column + LANES * j;
                Floats value = logits_of<BIASED>(w, at, sums[j], scales[first + i]);
                if constexpr (SHORT) {
                  const uint64_t allowed =
                      state.rows[first + i].source->allowed[column / PANEL];
                  value = choose(static_cast<unsigned>(allowed >> (LANES * j)) & 0xFFFF, value,
                                 every(-1.0e30f));
                }
                store(panel + i * PANEL + LANES * j, value);
              }
              if (i == block - 1)
                look_at_panel(state.best, BIASED ? state.best.ones.data() : scales, first, block, k,
                              column);
            });
  }
}

template <bool SHORT>
static void look_at_all(State& state, const Int8Weights& w, int k) {
  if (state.biased) return look_at_all<SHORT, true>(state, w, k);
  look_at_all<SHORT, false>(state, w, k);
}

static void best_tokens(State& state, int k, float* log_probabilities, int64_t* ids) {
  const int count = state.work.count;
  state.best.begin(count, k);
  if (state.has_subset) {
    look_at_all<true>(state, state.subset, k);
  } else {
    look_at_all<false>(state, state.model->output, k);
  }
  state.best.finish(count, k, state.biased ? state.best.ones.data() : state.work.scale.data(),
                    state.has_subset ? state.names.data() : nullptr, log_probabilities, ids);
}

}  // namespace
