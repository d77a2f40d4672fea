// Attention of one query over keys and values that lie anywhere, all heads at once.
//
// The columns of the query, key and value projections are permuted when the weights are packed
// (and the rows of the output projection with them), so that one vector of 16 lanes serves all
// heads of a block: with 8 heads, lanes 2h and 2h+1 belong to head h. Scores then need no
// reduction across a whole vector per head, softmax works on all heads in one instruction, and
// the weights that scale the values are already in the right lanes.
//
//   block       16 / fold heads, fold lanes each; as many heads as divide both H and 16
//   key vector  32 bf16: lane l of vector j holds dims (2 fold j + 2 (l % fold), + 1)
//   value vector 32 bf16: so that interleaving two rows' vectors gives lanes of (row, next row)
#pragma once

#include "decode_buffer.h"
#include "decode_vector.h"

namespace {

struct HeadLayout {
  int heads, fold, blocks;
  int key_vectors, value_vectors;  // of 32 values, per block

  void shape(int number, int key_width, int value_width) {
    heads = number;
    int together = 16;
    while (number % together != 0) together /= 2;
    fold = 16 / together;
    blocks = number / together;
    key_vectors = (key_width + 2 * fold - 1) / (2 * fold);
    value_vectors = (value_width + 2 * fold - 1) / (2 * fold);
  }

  int key_size() const { return blocks * key_vectors * 32; }      // values in all
  int value_size() const { return blocks * value_vectors * 32; }

  // Where dimension `dim` of `head` stands in a permuted key (or query).
  int key_place(int head, int dim) const {
    const int together = 16 / fold, block = head / together;
    const int rest = dim % (2 * fold);
    const int lane = head % together * fold + rest / 2;
    return (block * key_vectors + dim / (2 * fold)) * 32 + 2 * lane + rest % 2;
  }

  // ... in a permuted value. interleave_low takes words 0-3 of every eight, _high words 4-7.
  int value_place(int head, int dim) const {
    const int together = 16 / fold, block = head / together;
    const int rest = dim % (2 * fold), half = rest / fold;
    const int lane = head % together * fold + rest % fold;
    return (block * value_vectors + dim / (2 * fold)) * 32 + lane / 4 * 8 + half * 4 + lane % 4;
  }

  // ... in the result of attend().
  int context_place(int head, int dim) const {
    const int together = 16 / fold, block = head / together;
    const int rest = dim % (2 * fold), half = rest / fold;
    const int lane = head % together * fold + rest % fold;
    return ((block * value_vectors + dim / (2 * fold)) * 2 + half) * 16 + lane;
  }
};

// Sums of weighted values, COUNT vectors of 32 at a time. `rows` are addresses; a row's values
// begin `offset` behind its address.
template <int COUNT>
static ALWAYS_INLINE void weigh(const uint32_t* weights, const uint16_t* const* rows, int count,
                                int offset, Floats scale, float* out) {
  Floats low[COUNT], high[COUNT];
  for (int j = 0; j < COUNT; ++j) low[j] = high[j] = zero();
  for (int i = 0; i < count; i += 2, weights += LANES) {
    const Words weight = load_pairs(weights);
    const uint16_t* even = rows[i] + offset;
    const uint16_t* odd = rows[i + 1 < count ? i + 1 : i] + offset;
    for (int j = 0; j < COUNT; ++j) {
      const Words a = load_words(even + 32 * j), b = load_words(odd + 32 * j);
      low[j] = pair_product(low[j], interleave_low(a, b), weight);
      high[j] = pair_product(high[j], interleave_high(a, b), weight);
    }
  }
  for (int j = 0; j < COUNT; ++j) {
    store(out + 32 * j, multiply(low[j], scale));
    store(out + 32 * j + 16, multiply(high[j], scale));
  }
}

// Scores of one block of heads, stored 16 lanes a key; returns the largest of every lane.
// FOLD and VECTORS as in HeadLayout, known when compiled for the usual shapes; 0: `layout` says.
template <int FOLD, int VECTORS>
static ALWAYS_INLINE Floats score(const HeadLayout& layout, const uint16_t* query,
                                  const uint16_t* const* rows, int count, int offset,
                                  float* scores) {
  const int fold = FOLD > 0 ? FOLD : layout.fold;
  const int vectors = VECTORS > 0 ? VECTORS : layout.key_vectors;
  Floats most = every(-3.0e38f);
  for (int i = 0; i < count; ++i) {
    const uint16_t* row = rows[i] + offset;
    Floats x = zero(), y = zero();
    int j = 0;
    for (; j + 1 < vectors; j += 2) {
      x = pair_product(x, load_words(query + 32 * j), load_words(row + 32 * j));
      y = pair_product(y, load_words(query + 32 * j + 32), load_words(row + 32 * j + 32));
    }
    if (j < vectors) x = pair_product(x, load_words(query + 32 * j), load_words(row + 32 * j));
    x = sum_groups(add(x, y), fold);
    store(scores + LANES * i, x);
    most = larger(most, x);
  }
  return most;
}

// softmax over `count` keys; scores are powers of two (log2 e is in the query's scale).
// Row i's permuted bf16 keys (values) begin `key` (`value`) behind rows[i]. out: fp32, in the
// order of context_place; zeros where there is nothing to attend to.
static inline void attend(const HeadLayout& layout, const uint16_t* query,
                          const uint16_t* const* rows, int count, int key, int value,
                          Buffer<float>& scratch, float* out) {
  if (count == 0) {
    for (int i = 0; i < layout.value_size(); ++i) out[i] = 0.0f;
    return;
  }
  const int even = (count + 1) / 2 * 2;
  scratch.reserve(static_cast<size_t>(even) * LANES * 2);
  float* scores = scratch.data();
  uint32_t* weights = reinterpret_cast<uint32_t*>(scores + even * LANES);
  for (int b = 0; b < layout.blocks; ++b) {
    const int first = key + b * layout.key_vectors * 32;
    const uint16_t* asked = query + b * layout.key_vectors * 32;
    Floats most;
    if (layout.fold == 2 && layout.key_vectors == 8) {
      most = score<2, 8>(layout, asked, rows, count, first, scores);
    } else if (layout.fold == 2 && layout.key_vectors == 16) {
      most = score<2, 16>(layout, asked, rows, count, first, scores);
    } else if (layout.fold == 4 && layout.key_vectors == 4) {
      most = score<4, 4>(layout, asked, rows, count, first, scores);
    } else {
      most = score<0, 0>(layout, asked, rows, count, first, scores);
    }
    Floats total = zero();
    if (even > count) store(scores + LANES * count, every(-1.0e30f));
    for (int i = 0; i < even; i += 2) {
      const Floats x = power_of_two(subtract(load(scores + LANES * i), most));
      const Floats y = power_of_two(subtract(load(scores + LANES * (i + 1)), most));
      total = add(total, add(x, y));
      store_words(weights + LANES * (i / 2), pair(x, y));
    }
    const Floats scale = divide(every(1.0f), total);
    const int values = layout.value_vectors;
    int offset = value + b * values * 32, v = 0;
    float* at = out + static_cast<size_t>(b) * values * 32;
    for (; v + 8 <= values; v += 8)
      weigh<8>(weights, rows, count, offset + 32 * v, scale, at + 32 * v);
    for (; v + 2 <= values; v += 2)
      weigh<2>(weights, rows, count, offset + 32 * v, scale, at + 32 * v);
    if (v < values) weigh<1>(weights, rows, count, offset + 32 * v, scale, at + 32 * v);
  }
}

}  // namespace
