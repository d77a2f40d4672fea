// A Transformer's weights, packed for int8 products: what every state and every thread shares.
#pragma once

#include "abi.h"
#include "decode_attention.h"
#include "decode_product.h"

namespace {

// Positions of one source whose keys and values lie together (decode_state.h).
static constexpr int PAGE_SLOTS = 16;

// Weights arrive as one list of fp32 matrices (outputs, inputs) and vectors; null: there is none.
struct Weights32 {
  const float* const* at;
  const float* next() { return *at++; }
};

struct Norm {
  Buffer<float> weight, bias;  // zero in the padding, so that padding stays zero
};

struct FeedForward {
  Int8Weights inner, outer;
};

struct EncoderLayer {
  Int8Weights projections;  // query | key | value
  Int8Weights output;
  Norm attention_norm, feed_forward_norm;
  FeedForward feed_forward;
};

struct DecoderLayer {
  Int8Weights projections;  // query | key | value
  Int8Weights output;
  Int8Weights cross_query, cross_output;
  Norm self_norm, cross_norm, feed_forward_norm;
  FeedForward feed_forward;
};

// Target tokens that may follow from a source: some always, some by each of its tokens.
struct Shortlist {
  Buffer<int32_t> always;
  int count = 0;              // of `always`; 0: there is no shortlist
  Buffer<int32_t> offsets;    // (source vocabulary + 1)
  Buffer<int32_t> candidates; // those of source token s stand at offsets[s] ... offsets[s + 1]
  Buffer<int8_t> weights;     // the output layer's columns once more, each in one piece
};

struct Model {
  Shape shape;
  Factors factors;
  HeadLayout heads;
  int width = 0;         // model_dim rounded up to whole panels
  int hidden_width = 0;  // ffn_dim likewise
  int keys = 0;          // of one position and layer, in whole panels; values take as much room
  int part = 0;          // keys (or values) of one layer on a page: PAGE_SLOTS positions
  EncoderLayer* encoder = nullptr;
  DecoderLayer* decoder = nullptr;
  Int8Weights memory;         // key | value of every decoder layer's cross-attention
  Int8Weights output;         // logits
  Norm encoder_norm, decoder_norm;
  Shortlist shortlist;
  Buffer<uint16_t> source_embedding, own_target_embedding;  // bf16
  const uint16_t* target_embedding = nullptr;

  ~Model() {
    delete[] encoder;
    delete[] decoder;
  }
};

// ---- packing

// Which input of a matrix stands where, for an output projection over permuted values.
struct Places {
  Buffer<int> at;
  explicit Places(const HeadLayout& heads, int value_width) {
    at.reserve(static_cast<size_t>(heads.heads) * value_width);
    for (int h = 0; h < heads.heads; ++h)
      for (int d = 0; d < value_width; ++d) at[h * value_width + d] = heads.context_place(h, d);
  }
};

static void pack_norm(Norm& norm, Weights32& from, int model_dim, int width) {
  const float *weight = from.next(), *bias = from.next();
  if (weight == nullptr) return;
  norm.weight.reserve(width);
  norm.bias.reserve(width);
  for (int i = 0; i < model_dim; ++i) {
    norm.weight[i] = weight[i];
    norm.bias[i] = bias[i];
  }
}

static void pack_linear(Int8Weights& packed, const float* weight, const float* bias, int outputs,
                        int inputs, bool zero_point) {
  packed.shape(outputs, inputs, zero_point);
  for (int o = 0; o < outputs; ++o)
    packed.fill(o, weight + static_cast<size_t>(o) * inputs, bias ? bias[o] : 0.0f, inputs,
                nullptr, 1.0f);
}

static void pack_keys(Int8Weights& packed, int column, const Model& m, const float* weight,
                      const float* bias, float gain) {
  for (int h = 0; h < m.shape.heads; ++h)
    for (int d = 0; d < m.shape.key_width; ++d) {
      const int o = h * m.shape.key_width + d;
      packed.fill(column + m.heads.key_place(h, d),
                  weight + static_cast<size_t>(o) * m.shape.model_dim, bias[o],
                  m.shape.model_dim, nullptr, gain);
    }
}

static void pack_values(Int8Weights& packed, int column, const Model& m, const float* weight,
                        const float* bias) {
  for (int h = 0; h < m.shape.heads; ++h)
    for (int d = 0; d < m.shape.value_width; ++d) {
      const int o = h * m.shape.value_width + d;
      packed.fill(column + m.heads.value_place(h, d),
                  weight + static_cast<size_t>(o) * m.shape.model_dim, bias[o],
                  m.shape.model_dim, nullptr, 1.0f);
    }
}

static void pack_output(Int8Weights& packed, const Model& m, const float* weight, const float* bias) {
  const Places places(m.heads, m.shape.value_width);
  const int inputs = m.shape.heads * m.shape.value_width;
  packed.shape(m.shape.model_dim, m.heads.value_size(), true);
  for (int o = 0; o < m.shape.model_dim; ++o)
    packed.fill(o, weight + static_cast<size_t>(o) * inputs, bias[o], inputs, places.at.data(),
                1.0f);
}

static constexpr float LOG2_E = 1.44269504f;

// query, key, value, output: weight and bias each.
static void pack_self_attention(Int8Weights& projections, Int8Weights& output, const Model& m,
                                Weights32& from) {
  const float* w[8];
  for (const float*& each : w) each = from.next();
  projections.shape(3 * m.keys, m.shape.model_dim, true);
  pack_keys(projections, 0, m, w[0], w[1], m.factors.attention * LOG2_E);
  pack_keys(projections, m.keys, m, w[2], w[3], 1.0f);
  pack_values(projections, 2 * m.keys, m, w[4], w[5]);
  pack_output(output, m, w[6], w[7]);
}

static void pack_cross_attention(DecoderLayer& layer, int index, Model& m, Weights32& from) {
  const float* w[8];
  for (const float*& each : w) each = from.next();
  layer.cross_query.shape(m.keys, m.shape.model_dim, true);
  pack_keys(layer.cross_query, 0, m, w[0], w[1], m.factors.attention * LOG2_E);
  pack_keys(m.memory, 2 * index * m.keys, m, w[2], w[3], 1.0f);
  pack_values(m.memory, (2 * index + 1) * m.keys, m, w[4], w[5]);
  pack_output(layer.cross_output, m, w[6], w[7]);
}

static void pack_feed_forward(FeedForward& packed, const Model& m, Weights32& from) {
  const float *inner = from.next(), *inner_bias = from.next();
  const float *outer = from.next(), *outer_bias = from.next();
  pack_linear(packed.inner, inner, inner_bias, m.shape.ffn_dim, m.shape.model_dim, true);
  pack_linear(packed.outer, outer, outer_bias, m.shape.model_dim, m.shape.ffn_dim, false);
}

static void pack_embedding(Buffer<uint16_t>& packed, const float* weight, int rows,
                           const Model& m) {
  packed.reserve(static_cast<size_t>(rows) * m.width);
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < m.shape.model_dim; ++i) {
      uint32_t bits;
      const float x = weight[static_cast<size_t>(r) * m.shape.model_dim + i];
      __builtin_memcpy(&bits, &x, 4);
      packed[static_cast<size_t>(r) * m.width + i] =
          static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
    }
}

// Per encoder layer: attention (8), norm (2), feed-forward (4), norm (2). Per decoder layer:
// self-attention (8), norm (2), cross-attention (8), norm (2), feed-forward (4), norm (2). Then
// the encoder's and the decoder's last norm (2 each, null in post-norm), and the source embedding,
// the target embedding and the output matrix.
static void pack_model(Model& m, const Shape& shape, const Factors& factors, Weights32 from) {
  m.shape = shape;
  m.factors = factors;
  m.heads.shape(shape.heads, shape.key_width, shape.value_width);
  m.width = round_up(shape.model_dim, PANEL);
  m.hidden_width = round_up(shape.ffn_dim, PANEL);
  m.keys = round_up(m.heads.key_size(), PANEL);
  if (m.heads.value_size() > m.keys) m.keys = round_up(m.heads.value_size(), PANEL);
  m.part = PAGE_SLOTS * m.keys;
  m.encoder = new EncoderLayer[shape.encoder_layers];
  m.decoder = new DecoderLayer[shape.decoder_layers];
  m.memory.shape(2 * shape.decoder_layers * m.keys, shape.model_dim, true);
  for (int i = 0; i < shape.encoder_layers; ++i) {
    EncoderLayer& layer = m.encoder[i];
    pack_self_attention(layer.projections, layer.output, m, from);
    pack_norm(layer.attention_norm, from, shape.model_dim, m.width);
    pack_feed_forward(layer.feed_forward, m, from);
    pack_norm(layer.feed_forward_norm, from, shape.model_dim, m.width);
  }
  for (int i = 0; i < shape.decoder_layers; ++i) {
    DecoderLayer& layer = m.decoder[i];
    pack_self_attention(layer.projections, layer.output, m, from);
    pack_norm(layer.self_norm, from, shape.model_dim, m.width);
    pack_cross_attention(layer, i, m, from);
    pack_norm(layer.cross_norm, from, shape.model_dim, m.width);
    pack_feed_forward(layer.feed_forward, m, from);
    pack_norm(layer.feed_forward_norm, from, shape.model_dim, m.width);
  }
  pack_norm(m.encoder_norm, from, shape.model_dim, m.width);
  pack_norm(m.decoder_norm, from, shape.model_dim, m.width);
  const float *source = from.next(), *target = from.next(), *output = from.next();
  pack_embedding(m.source_embedding, source, shape.source_vocabulary, m);
  if (target == source) {
    m.target_embedding = m.source_embedding.data();
  } else {
    pack_embedding(m.own_target_embedding, target, shape.target_vocabulary, m);
    m.target_embedding = m.own_target_embedding.data();
  }
  pack_linear(m.output, output, nullptr, shape.target_vocabulary, shape.model_dim, true);
  for (int i = 0; i < shape.encoder_layers; ++i) {
    EncoderLayer& layer = m.encoder[i];
    layer.projections.next = &layer.output;
    layer.output.next = &layer.feed_forward.inner;
    layer.feed_forward.inner.next = &layer.feed_forward.outer;
    layer.feed_forward.outer.next =
        i + 1 < shape.encoder_layers ? &m.encoder[i + 1].projections : nullptr;
  }
  for (int i = 0; i < shape.decoder_layers; ++i) {
    DecoderLayer& layer = m.decoder[i];
    layer.projections.next = &layer.output;
    layer.output.next = &layer.cross_query;
    layer.cross_query.next = &layer.cross_output;
    layer.cross_output.next = &layer.feed_forward.inner;
    layer.feed_forward.inner.next = &layer.feed_forward.outer;
    layer.feed_forward.outer.next =
        i + 1 < shape.decoder_layers ? &m.decoder[i + 1].projections : &m.output;
  }
  // Columns that are no token must never win.
  for (int c = shape.target_vocabulary; c < m.output.columns; ++c) m.output.bias[c] = -1.0e30f;
}

}  // namespace
