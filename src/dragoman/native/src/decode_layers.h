// What encoder and decoder do row by row: norms, projections, feed-forward.
#pragma once

#include "decode_model.h"

namespace {

// Rows that go through a matrix together: few enough that their activations stay in the cache.
static constexpr int BLOCK_ROWS = 96;

// The activations of the rows in hand. Belongs to one state, or to one call of the encoder.
struct Rows {
  int count = 0;
  Buffer<float> x;            // (count, width), the residual stream
  Buffer<float> scale;        // (count), of `bytes`
  Buffer<uint8_t> bytes;      // (count, width), the quantised input of the next product
  Buffer<float> context;      // (values), of one row
  Buffer<float> normal;       // (width), of one row
  Buffer<float> scratch;      // of attention
  Buffer<uint8_t> narrow;     // (count, values): quantised contexts
  Buffer<float> narrow_scale; // (count)
  Buffer<float> hidden;       // (block, hidden_width)
  Buffer<uint8_t> hidden_bytes;
  Buffer<float> hidden_scale;

  void shape(const Model& m, int rows) {
    count = rows;
    const size_t n = rows, block = rows < BLOCK_ROWS ? rows : BLOCK_ROWS;
    x.reserve(n * m.width);
    scale.reserve(n);
    bytes.reserve(n * m.width);
    context.reserve(m.values);
    normal.reserve(m.width);
    narrow.reserve(n * m.values);
    narrow_scale.reserve(n);
    hidden.reserve(block * m.hidden_width);
    hidden_bytes.reserve(block * m.hidden_width);
    hidden_scale.reserve(block);
  }
};

// LayerNorm over model_dim of `width` padded values (the padding is zero and stays zero).
static inline void normalise(const Model& m, const Norm& norm, const float* x, float* out) {
  Floats total = zero();
  for (int i = 0; i < m.width; i += LANES) total = add(total, load(x + i));
  const float mean = sum(total) / m.shape.model_dim;
  const Floats middle = every(mean);
  Floats squares = zero();
  for (int i = 0; i < m.width; i += LANES) {
    const Floats d = subtract(load(x + i), middle);
    squares = multiply_add(d, d, squares);
  }
  const float padding = mean * mean * (m.width - m.shape.model_dim);
  const float variance = (sum(squares) - padding) / m.shape.model_dim;
  const Floats by = every(1.0f / __builtin_sqrtf(variance + m.factors.epsilon));
  for (int i = 0; i < m.width; i += LANES) {
    const Floats y = multiply(subtract(load(x + i), middle), by);
    store(out + i, multiply_add(y, load(norm.weight.data() + i), load(norm.bias.data() + i)));
  }
}

static inline void quantise_row(const Model& m, Rows& rows, int r, const float* x) {
  rows.scale[r] = quantise(x, m.width, rows.bytes.data() + static_cast<size_t>(r) * m.width);
}

// The input of the next sub-layer as bytes. Post-norm: the stream itself is normalised by `norm`,
// which closes the sub-layer before; pre-norm: `norm` opens the next one and the stream stays.
static inline void norm_rows(const Model& m, Rows& rows, const Norm& norm) {
  for (int r = 0; r < rows.count; ++r) {
    float* x = rows.x.data() + static_cast<size_t>(r) * m.width;
    float* out = m.shape.pre_norm ? rows.normal.data() : x;
    normalise(m, norm, x, out);
    quantise_row(m, rows, r, out);
  }
}

static inline void quantise_rows(const Model& m, Rows& rows) {
  for (int r = 0; r < rows.count; ++r)
    quantise_row(m, rows, r, rows.x.data() + static_cast<size_t>(r) * m.width);
}

// sums -> values: times both scales, plus bias.
static ALWAYS_INLINE Floats value_of(const Packed& w, int column, Floats sums, Floats row_scale) {
  return multiply_add(multiply(sums, row_scale), load(w.scale.data() + column),
                      load(w.bias.data() + column));
}

// put(row, column, values) for 16 columns at a time; rows in blocks that stay in the cache.
template <class Put>
static inline void project(const Packed& w, const uint8_t* bytes, size_t stride,
                           const float* scales, int rows, const Put& put) {
  for (int first = 0; first < rows; first += BLOCK_ROWS) {
    const int count = rows - first < BLOCK_ROWS ? rows - first : BLOCK_ROWS;
    product(w, bytes + stride * first, stride, count,
            [&](int r, int column, const Floats(&sums)[PANEL_VECTORS]) INLINE_LAMBDA {
              const Floats scale = every(scales[first + r]);
              for (int j = 0; j < PANEL_VECTORS; ++j)
                put(first + r, column + LANES * j,
                    value_of(w, column + LANES * j, sums[j], scale));
            });
  }
}

// stream += projection of what `bytes` holds
static inline void add_projection(const Model& m, Rows& rows, const Packed& w, int first, int count,
                                  const uint8_t* bytes, size_t stride, const float* scales) {
  float* x = rows.x.data() + static_cast<size_t>(first) * m.width;
  project(w, bytes, stride, scales, count, [&](int r, int column, Floats value) INLINE_LAMBDA {
    float* at = x + static_cast<size_t>(r) * m.width + column;
    store(at, add(load(at), value));
  });
}

// stream += W_outer relu(W_inner bytes)
static inline void feed_forward(const Model& m, Rows& rows, const FeedForward& f) {
  for (int first = 0; first < rows.count; first += BLOCK_ROWS) {
    const int count = rows.count - first < BLOCK_ROWS ? rows.count - first : BLOCK_ROWS;
    float* hidden = rows.hidden.data();
    uint8_t* bytes = rows.hidden_bytes.data();
    const Floats least = zero();
    project(f.inner, rows.bytes.data() + static_cast<size_t>(first) * m.width, m.width,
            rows.scale.data() + first, count, [&](int r, int column, Floats value) INLINE_LAMBDA {
              store(hidden + static_cast<size_t>(r) * m.hidden_width + column,
                    larger(value, least));
            });
    for (int r = 0; r < count; ++r)
      rows.hidden_scale[r] =
          quantise_positive(hidden + static_cast<size_t>(r) * m.hidden_width, m.hidden_width,
                            bytes + static_cast<size_t>(r) * m.hidden_width);
    add_projection(m, rows, f.outer, first, count, bytes, m.hidden_width,
                   rows.hidden_scale.data());
  }
}

// Attention's result of one row, quantised for the output projection.
static inline void quantise_context(const Model& m, Rows& rows, int r) {
  rows.narrow_scale[r] =
      quantise(rows.context.data(), m.heads.value_size(),
               rows.narrow.data() + static_cast<size_t>(r) * m.values);
}

// x = embedding[token] * sqrt(d_model) + position
static inline void embed(const Model& m, const uint16_t* table, int64_t token,
                         const float* position, float* x) {
  const uint16_t* row = table + static_cast<size_t>(token) * m.width;
  const Floats factor = every(m.factors.embedding);
  for (int i = 0; i < m.width; i += LANES)
    store(x + i, multiply_add(load_bf16(row + i), factor, load(position + i)));
}

}  // namespace
