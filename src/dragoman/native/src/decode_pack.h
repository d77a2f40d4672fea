// fp32 weights -> those of a model whose parts have their room (decode_model.h).
#pragma once

#include "decode_model.h"

namespace {

// Weights arrive as one list of fp32 matrices (outputs, inputs) and vectors; null: there is none.
struct Weights32 {
  const float* const* at;
  const float* next() { return *at++; }
};

// Which input of a matrix stands where, for an output projection over permuted values.
struct Places {
  Buffer<int> at;
  explicit Places(const HeadLayout& heads, int value_width) {
    at.reserve(static_cast<size_t>(heads.heads) * value_width);
    for (int h = 0; h < heads.heads; ++h)
      for (int d = 0; d < value_width; ++d) at[h * value_width + d] = heads.context_place(h, d);
  }
};

static void pack_norm(Norm& norm, const Model& m, Weights32& from) {
  const float *weight = from.next(), *bias = from.next();
  if (weight == nullptr) return;
  for (int i = 0; i < m.shape.model_dim; ++i) {
    norm.weight[i] = weight[i];
    norm.bias[i] = bias[i];
  }
}

static void pack_linear(Int8Weights& packed, const float* weight, const float* bias, int outputs,
                        int inputs) {
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
  for (int o = 0; o < m.shape.model_dim; ++o)
    packed.fill(o, weight + static_cast<size_t>(o) * inputs, bias[o], inputs, places.at.data(),
                1.0f);
}

// query, key, value, output: weight and bias each.
static void pack_self_attention(Int8Weights& projections, Int8Weights& output, const Model& m,
                                Weights32& from) {
  const float* w[8];
  for (const float*& each : w) each = from.next();
  pack_keys(projections, 0, m, w[0], w[1], m.factors.attention * LOG2_E);
  pack_keys(projections, m.keys, m, w[2], w[3], 1.0f);
  pack_values(projections, 2 * m.keys, m, w[4], w[5]);
  pack_output(output, m, w[6], w[7]);
}

static void pack_cross_attention(DecoderLayer& layer, int index, Model& m, Weights32& from) {
  const float* w[8];
  for (const float*& each : w) each = from.next();
  pack_keys(layer.cross_query, 0, m, w[0], w[1], m.factors.attention * LOG2_E);
  pack_keys(m.memory, 2 * index * m.keys, m, w[2], w[3], 1.0f);
  pack_values(m.memory, (2 * index + 1) * m.keys, m, w[4], w[5]);
  pack_output(layer.cross_output, m, w[6], w[7]);
}

static void pack_feed_forward(FeedForward& packed, const Model& m, Weights32& from) {
  const float *inner = from.next(), *inner_bias = from.next();
  const float *outer = from.next(), *outer_bias = from.next();
  pack_linear(packed.inner, inner, inner_bias, m.shape.ffn_dim, m.shape.model_dim);
  pack_linear(packed.outer, outer, outer_bias, m.shape.model_dim, m.shape.ffn_dim);
}

static void pack_embedding(Buffer<uint16_t>& packed, const float* weight, int rows,
                           const Model& m) {
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
// the target embedding, the output matrix and its bias (null: none).
static void pack_model(Model& m, Weights32 from) {
  for (int i = 0; i < m.shape.encoder_layers; ++i) {
    EncoderLayer& layer = m.encoder[i];
    pack_self_attention(layer.projections, layer.output, m, from);
    pack_norm(layer.attention_norm, m, from);
    pack_feed_forward(layer.feed_forward, m, from);
    pack_norm(layer.feed_forward_norm, m, from);
  }
  for (int i = 0; i < m.shape.decoder_layers; ++i) {
    DecoderLayer& layer = m.decoder[i];
    pack_self_attention(layer.projections, layer.output, m, from);
    pack_norm(layer.self_norm, m, from);
    pack_cross_attention(layer, i, m, from);
    pack_norm(layer.cross_norm, m, from);
    pack_feed_forward(layer.feed_forward, m, from);
    pack_norm(layer.feed_forward_norm, m, from);
  }
  pack_norm(m.encoder_norm, m, from);
  pack_norm(m.decoder_norm, m, from);
  const float *source = from.next(), *target = from.next(), *output = from.next();
  const float* output_bias = from.next();
  const int vocabulary = m.shape.target_vocabulary;
  pack_embedding(m.source_embedding, source, m.shape.source_vocabulary, m);
  if (!m.shape.one_embedding) pack_embedding(m.own_target_embedding, target, vocabulary, m);
  pack_linear(m.output, output, output_bias, vocabulary, m.shape.model_dim);
  // Columns that are no token must never win.
  for (int c = vocabulary; c < m.output.columns; ++c) m.output.bias[c] = -1.0e30f;
}

}  // namespace
