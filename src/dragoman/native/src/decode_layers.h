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
  Buffer<uint16_t> hidden;    // (block, hidden_width) bf16
  Buffer<float> hidden_most;  // (block, 16)
  Buffer<uint8_t> hidden_bytes;
  Buffer<float> hidden_scale;

  void shape(const Model& m, int rows) {
    count = rows;
    const size_t n = rows, block = rows < BLOCK_ROWS ? rows : BLOCK_ROWS;
    x.reserve(n * m.width);
    scale.reserve(n);
    bytes.reserve(n * m.width);
    context.reserve(m.keys);
    normal.reserve(m.width);
    narrow.reserve(n * m.keys);
    narrow_scale.reserve(n);
    hidden.reserve(block * m.hidden_width);
    hidden_bytes.reserve(block * m.hidden_width);
    hidden_scale.reserve(block);
    hidden_most.reserve(block * LANES);
  }
};

// LayerNorm over model_dim of `width` padded values (the padding is zero and stays zero), and
// the largest magnitude of the result.
static inline float normalise(const Model& m, const Norm& norm, const float* x, float* out) {
  // Sums of differences to one of the values: exact enough however far they all are from zero.
  const Floats pivot = every(x[0]);
  Floats sums[4], squares[4];
  for (int j = 0; j < 4; ++j) sums[j] = squares[j] = zero();
  for (int i = 0; i < m.width; i += PANEL)
    for (int j = 0; j < 4; ++j) {
      const Floats d = subtract(load(x + i + LANES * j), pivot);
      sums[j] = add(sums[j], d);
      squares[j] = multiply_add(d, d, squares[j]);
    }
  const float padding = m.width - m.shape.model_dim, count = m.shape.model_dim;
  const float total = sum(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
  const float square = sum(add(add(squares[0], squares[1]), add(squares[2], squares[3])));
  const float mean = (total + padding * x[0]) / count;
  const float variance = (square - padding * x[0] * x[0]) / count - mean * mean;
  const float by = 1.0f / __builtin_sqrtf((variance > 0.0f ? variance : 0.0f) + m.factors.epsilon);
  const Floats factor = every(by), shift = every(-(mean + x[0]) * by);
  Floats most[4];
  for (int j = 0; j < 4; ++j) most[j] = zero();
  for (int i = 0; i < m.width; i += PANEL)
    for (int j = 0; j < 4; ++j) {
      const int at = i + LANES * j;
      const Floats y = multiply_add(load(x + at), factor, shift);
      const Floats z =
          multiply_add(y, load(norm.weight.data() + at), load(norm.bias.data() + at));
      store(out + at, z);
      most[j] = larger(most[j], magnitude(z));
    }
  return largest(larger(larger(most[0], most[1]), larger(most[2], most[3])));
}

// The input of the next sub-layer as bytes. Post-norm: the stream itself is normalised by `norm`,
// which closes the sub-layer before; pre-norm: `norm` opens the next one and the stream stays.
static inline void norm_rows(const Model& m, Rows& rows, const Norm& norm) {
  for (int r = 0; r < rows.count; ++r) {
    float* x = rows.x.data() + static_cast<size_t>(r) * m.width;
    float* out = m.shape.pre_norm ? rows.normal.data() : x;
    const float peak = normalise(m, norm, x, out);
    rows.scale[r] = quantise(out, m.width, peak, rows.bytes.data() + static_cast<size_t>(r) * m.width);
  }
}

static inline void quantise_rows(const Model& m, Rows& rows) {
  for (int r = 0; r < rows.count; ++r) {
    const float* x = rows.x.data() + static_cast<size_t>(r) * m.width;
    rows.scale[r] = quantise(x, m.width, peak_of(x, m.width),
                             rows.bytes.data() + static_cast<size_t>(r) * m.width);
  }
}

// sums -> values: times both scales, plus bias.
static ALWAYS_INLINE Floats value_of(const Int8Weights& w, int column, Floats sums, Floats row_scale) {
  return multiply_add(multiply(sums, row_scale), load(w.scale.data() + column),
                      load(w.bias.data() + column));
}

// put(row, column, values) for 64 columns at a time; rows in blocks that stay in the cache.
template <class Put>
static inline void project(const Int8Weights& w, const uint8_t* bytes, size_t stride,
                           const float* scales, int rows, const Put& put) {
  for (int first = 0; first < rows; first += BLOCK_ROWS) {
    const int count = rows - first < BLOCK_ROWS ? rows - first : BLOCK_ROWS;
    product(w, bytes + stride * first, stride, count,
            [&](int r, int column, const Floats(&sums)[PANEL_VECTORS]) INLINE_LAMBDA {
              const Floats scale = every(scales[first + r]);
              Floats values[PANEL_VECTORS];
              for (int j = 0; j < PANEL_VECTORS; ++j)
                values[j] = value_of(w, column + LANES * j, sums[j], scale);
              put(first + r, column, values);
            });
  }
}

// One vector of a row of `width` floats; 0 beyond it.
static ALWAYS_INLINE Floats load_some(const float* row, int column, int width) {
  if (width - column >= LANES) return load(row + column);
  float rest[LANES] = {};
  for (int i = 0; column + i < width; ++i) rest[i] = row[column + i];
  return load(rest);
}

// 2^(-|x| log2(e) by), which is at most 1.
static ALWAYS_INLINE Floats falling(Floats x, float by) {
  return power_of_two(multiply(magnitude(x), every(-LOG2_E * by)));
}

static ALWAYS_INLINE Floats sigmoid(Floats x) {
  const Floats one = every(1.0f), e = falling(x, 1.0f);
  return divide(choose(above(x, zero()), one, e), add(one, e));
}

static ALWAYS_INLINE Floats hyperbolic_tangent(Floats x) {
  const Floats one = every(1.0f), e = falling(x, 2.0f);
  const Floats size = divide(subtract(one, e), add(one, e));
  return choose(above(x, zero()), size, subtract(zero(), size));
}

// One vector of a row of `width` floats, of which those from `column` on belong to it.
static ALWAYS_INLINE void store_some(float* row, int column, int width, Floats values) {
  if (width - column >= LANES) return store(row + column, values);
  float rest[LANES];
  store(rest, values);
  for (int i = 0; column + i < width; ++i) row[column + i] = rest[i];
}

static ALWAYS_INLINE void store_columns(float* row, int column, int width,
                                        const Floats (&values)[PANEL_VECTORS]) {
  for (int j = 0; j < PANEL_VECTORS; ++j) store_some(row, column + LANES * j, width, values[j]);
}

static ALWAYS_INLINE void store_bf16_panel(uint16_t* to, const Floats (&values)[PANEL_VECTORS]) {
  for (int j = 0; j < PANEL_VECTORS; j += 2) store_bf16(to + LANES * j, values[j], values[j + 1]);
}

// stream += projection of what `bytes` holds
static inline void add_projection(const Model& m, Rows& rows, const Int8Weights& w, int first, int count,
                                  const uint8_t* bytes, size_t stride, const float* scales) {
  float* x = rows.x.data() + static_cast<size_t>(first) * m.width;
  project(w, bytes, stride, scales, count,
          [&](int r, int column, const Floats(&values)[PANEL_VECTORS]) INLINE_LAMBDA {
            float* at = x + static_cast<size_t>(r) * m.width + column;
            for (int j = 0; j < PANEL_VECTORS; ++j)
              store(at + LANES * j, add(load(at + LANES * j), values[j]));
          });
}

// An activation function (abi.h). Swish and GELU are x F(x) = max(x, 0) - |x| F(-|x|), where F is the
// logistic or the normal distribution function; both within 1e-4.
template <int32_t ACTIVATION>
static ALWAYS_INLINE Floats activate(Floats x) {
  const Floats positive = larger(x, zero());
  if constexpr (ACTIVATION == RELU) return positive;
  const Floats size = magnitude(x);
  Floats tail;
  if constexpr (ACTIVATION == SWISH) {  // e / (1 + e), by a polynomial for 1 / (1 + e)
    const Floats e = power_of_two(multiply(size, every(-LOG2_E)));
    tail = multiply_add(every(0.152245019f), e, every(-0.532857568f));
    tail = multiply_add(tail, e, every(0.865893527f));
    tail = multiply_add(tail, e, every(-0.984834969f));
    tail = multiply(multiply_add(tail, e, every(0.999702646f)), e);
  } else {  // a polynomial for the logarithm
    tail = multiply_add(every(-0.0248846798f), size, every(-0.49882022f));
    tail = multiply_add(tail, size, every(-1.12924902f));
    tail = multiply_add(tail, size, every(-1.00353052f));
    tail = power_of_two(larger(tail, every(-126.0f)));
  }
  return subtract(positive, multiply(size, tail));
}

// stream += W_outer activation(W_inner bytes). The hidden values wait in bf16 until the largest of
// their row is known.
template <int32_t ACTIVATION>
static inline void feed_forward_by(const Model& m, Rows& rows, const FeedForward& f) {
  for (int first = 0; first < rows.count; first += BLOCK_ROWS) {
    const int count = rows.count - first < BLOCK_ROWS ? rows.count - first : BLOCK_ROWS;
    uint16_t* hidden = rows.hidden.data();
    float* most = rows.hidden_most.data();
    for (int i = 0; i < count * LANES; i += LANES) store(most + i, zero());
    project(f.inner, rows.bytes.data() + static_cast<size_t>(first) * m.width, m.width,
            rows.scale.data() + first, count,
            [&](int r, int column, const Floats(&values)[PANEL_VECTORS]) INLINE_LAMBDA {
              Floats active[PANEL_VECTORS];
              for (int j = 0; j < PANEL_VECTORS; ++j) active[j] = activate<ACTIVATION>(values[j]);
              store_bf16_panel(hidden + static_cast<size_t>(r) * m.hidden_width + column, active);
              store(most + LANES * r, larger(larger(larger(active[0], active[1]),
                                                    larger(active[2], active[3])),
                                             load(most + LANES * r)));
            });
    for (int r = 0; r < count; ++r)
      rows.hidden_scale[r] = quantise_positive(
          hidden + static_cast<size_t>(r) * m.hidden_width, m.hidden_width,
          largest(load(most + LANES * r)), f.outer.lift,
          rows.hidden_bytes.data() + static_cast<size_t>(r) * m.hidden_width);
    add_projection(m, rows, f.outer, first, count, rows.hidden_bytes.data(), m.hidden_width,
                   rows.hidden_scale.data());
  }
}

static inline void feed_forward(const Model& m, Rows& rows, const FeedForward& f) {
  switch (m.shape.activation) {
    case SWISH: return feed_forward_by<SWISH>(m, rows, f);
    case GELU: return feed_forward_by<GELU>(m, rows, f);
    default: return feed_forward_by<RELU>(m, rows, f);
  }
}

// Attention of row r over `count` positions, quantised for the output projection.
static inline void attend_row(const Model& m, Rows& rows, int r, const uint16_t* query,
                              const uint16_t* const* positions, int count, int key, int value) {
  float* context = rows.context.data();
  attend(m.heads, query, positions, count, key, value, rows.scratch, context);
  const int size = m.heads.value_size();
  rows.narrow_scale[r] = quantise(context, size, peak_of(context, size),
                                  rows.narrow.data() + static_cast<size_t>(r) * m.keys);
}

// x = embedding[token] * scale + position
static inline void embed(const Model& m, const uint16_t* table, int64_t token, float scale,
                         const float* position, float* x) {
  const uint16_t* row = table + static_cast<size_t>(token) * m.width;
  const Floats factor = every(scale);
  for (int i = 0; i < m.width; i += LANES)
    store(x + i, multiply_add(load_bf16(row + i), factor, load(position + i)));
}

}  // namespace
