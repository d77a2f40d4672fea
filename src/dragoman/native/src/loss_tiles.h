// Cross-entropy on tiles (loss.cpp), where products are so fast that logits must not leave the caches.
//
// A block of rows goes through the vocabulary twice, a group of columns at a time. First logits become
// exp(logit - largest so far), kept in bf16 where their gradients will stand; the largest so far is
// remembered for each row and group. When the sums are known, each group becomes gradients, and at once a
// part of the sums of the hidden rows' gradients.
#pragma once

namespace {

constexpr int64_t MOST_ROWS = 128;       // of one task
constexpr int64_t CHUNK_ROWS = 1024;     // rows between two additions to dW
constexpr int64_t GROUP = 16 * PANEL;    // columns of a group
constexpr int64_t LOGITS_ROW = GROUP + 16;

static ALWAYS_INLINE int64_t slopes_length(int64_t vocabulary) {
  return (vocabulary + 2 * STEPS - 1) / (2 * STEPS) * (2 * STEPS) + 32;
}

// What a row knows of the columns that it has seen.
struct Seen {
  float most, total;  // the largest logit, and the sum of exp(logit - most)
  float all_of;       // the sum of all logits
  float aim;          // the target's
};

// `count` logits of a row, which become exp(logit - most) in `out` unless it is null.
static ALWAYS_INLINE void see(const float *logits, int64_t count, Seen &row, bf16 *out) {
  Vec top = all(row.most), sums = zero();
  for (int64_t j = 0; j < count; j += LANES) {
    const Vec v = load(logits + j);
    const int64_t left = count - j;
    top = maximum(top, left >= LANES ? v : keep_first(v, left, top));
    sums = sums + (left >= LANES ? v : keep_first(v, left, zero()));
  }
  const float before = row.most;
  row.most = largest(top);
  row.all_of += sum(sums);
  const Vec most = all(row.most);
  Vec total = zero();
  for (int64_t j = 0; j < count; j += LANES) {
    const int64_t left = count - j;
    Vec e = exponential(load(logits + j) - most);
    if (left < LANES) e = keep_first(e, left, zero());
    total = total + e;
    if (out != nullptr) store_some(out + j, e, left);
  }
  row.total = row.total * expf(before - row.most) + sum(total);
}

// slopes = slopes * share - spread
static ALWAYS_INLINE void finish_slopes(bf16 *slopes, int64_t count, float share, float spread) {
  for (int64_t j = 0; j < count; j += LANES) {
    const int64_t left = count - j;
    store_some(slopes + j, fma(load_some(slopes + j, left), all(share), all(-spread)), left);
  }
}

// losses, nlls (P); dhidden (P, D) and dweight (V, D) are not computed if null.
template <class T>
static void cross_entropy(const T *hidden, int64_t hidden_row, const uint32_t *forward,
                          const uint32_t *backward, const int64_t *targets, int64_t rows,
                          int64_t vocabulary, int64_t width, float smoothing, float *losses,
                          float *nlls, T *dhidden, T *slopes, float *dweight) {
  const int64_t slopes_row = slopes_length(vocabulary), groups = (vocabulary + GROUP - 1) / GROUP;
  const int64_t panels = panels_of(vocabulary), wide_panels = panels_of(width);
  const int64_t steps = width / 2, whole = packed_steps(steps);
  const int64_t back_steps = packed_steps((vocabulary + 1) / 2);
  const int64_t sums_row = wide_panels * PANEL + 16;
  const float spread = smoothing / static_cast<float>(vocabulary);
  for (int64_t first = 0; first < rows; first += CHUNK_ROWS) {
    const int64_t chunk = smaller(CHUNK_ROWS, rows - first);
    const int64_t share = (chunk + dragoman_threads() - 1) / dragoman_threads();
    const int64_t block =
        smaller(MOST_ROWS, (share + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS);
    parallel_for((chunk + block - 1) / block, [&](int64_t task) {
      const int64_t begin = first + task * block, count = smaller(block, first + chunk - begin);
      float *logits = scratch<float>(3, static_cast<size_t>(MOST_ROWS * LOGITS_ROW));
      float *tops = scratch<float>(5, static_cast<size_t>(groups * MOST_ROWS));
      bf16 *out = slopes == nullptr ? nullptr : slopes + (begin - first) * slopes_row;
      int64_t in_row = hidden_row / 2;
      const uint32_t *in =
          whole_steps(words(hidden + begin * hidden_row), in_row, count, steps, 2);
      Seen seen[MOST_ROWS];
      for (int64_t i = 0; i < count; i++) seen[i] = {-INFINITY, 0.0f, 0.0f, 0.0f};
      Tiles tiles(TILE_HEIGHT, TILE_HEIGHT);
      for (int64_t group = 0; group < groups; group++) {
        const int64_t column = group * GROUP, here = smaller(GROUP, vocabulary - column);
        for (int64_t panel = column / PANEL; panel < smaller(panels, (column + GROUP) / PANEL);
             panel++) {
          for (int64_t i = 0; i < count; i += BLOCK_ROWS) {
            any_block(tiles, smaller(BLOCK_ROWS, count - i), in + i * in_row, in_row,
                      forward + panel * whole * PANEL, whole, false,
                      logits + i * LOGITS_ROW + panel * PANEL - column, LOGITS_ROW);
          }
        }
        for (int64_t i = 0; i < count; i++) {
          const int64_t target = targets[begin + i] - column;
          if (target >= 0 && target < here) seen[i].aim = logits[i * LOGITS_ROW + target];
          see(logits + i * LOGITS_ROW, here, seen[i],
              out == nullptr ? nullptr : out + i * slopes_row + column);
          tops[group * MOST_ROWS + i] = seen[i].most;
        }
      }
      for (int64_t i = 0; i < count; i++) {
        const float log_sum = seen[i].most + logf(seen[i].total);
        const float nll = log_sum - seen[i].aim;
        const float uniform = log_sum - seen[i].all_of / static_cast<float>(vocabulary);
        nlls[begin + i] = nll;
        losses[begin + i] = (1.0f - smoothing) * nll + smoothing * uniform;
      }
      if (out == nullptr) return;
      float *sums = scratch<float>(4, static_cast<size_t>(MOST_ROWS * sums_row));
      for (int64_t group = 0; group < groups; group++) {
        const int64_t column = group * GROUP, here = smaller(GROUP, vocabulary - column);
        const int64_t words_here = smaller(GROUP / 2, back_steps - column / 2);
        for (int64_t i = 0; i < count; i++) {
          const float scale = 1.0f / seen[i].total;
          bf16 *row = out + i * slopes_row + column;
          finish_slopes(row, here, expf(tops[group * MOST_ROWS + i] - seen[i].most) * scale, spread);
          for (int64_t j = here; j < 2 * words_here; j++) row[j] = 0;
          const int64_t target = targets[begin + i] - column;
          if (target < 0 || target >= here) continue;
          const float likely = expf(seen[i].aim - seen[i].most) * scale;
          row[target] = bf16_of(likely - spread - (1.0f - smoothing));
        }
        if (dhidden == nullptr) continue;
        for (int64_t panel = 0; panel < wide_panels; panel++) {
          const uint32_t *packed = backward + (panel * back_steps + column / 2) * PANEL;
          for (int64_t i = 0; i < count; i += BLOCK_ROWS) {
            any_block(tiles, smaller(BLOCK_ROWS, count - i),
                      words(out + i * slopes_row + column), slopes_row / 2, packed, words_here,
                      group > 0, sums + i * sums_row + panel * PANEL, sums_row);
          }
        }
      }
      if (dhidden == nullptr) return;
      for (int64_t i = 0; i < count; i++) {
        for (int64_t panel = 0; panel < wide_panels; panel++) {
          const int64_t column = panel * PANEL;
          store_row(dhidden + (begin + i) * width + column, smaller(PANEL, width - column),
                    load_sums(sums + i * sums_row + column));
        }
      }
    });
    if (dweight != nullptr) {
      const Part part{dweight, nullptr, vocabulary, first > 0};
      backward_weight<T>(slopes, slopes_row, hidden + first * hidden_row, hidden_row, &part, 1,
                         chunk, width);
    }
  }
}

}  // namespace
