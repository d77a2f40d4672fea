// A Transformer's weights, packed for int8 products: what every state and every thread shares.
//
// How much room each part takes follows from the shape alone (lay_out), so what one process has
// packed (decode_pack.h) another can put into the same places.
#pragma once

#include <initializer_list>

#include "abi.h"
#include "decode_attention.h"
#include "decode_product.h"

namespace {

// Positions of one source whose keys and values lie together (decode_state.h).
static constexpr int PAGE_SLOTS = 16;

static constexpr float LOG2_E = 1.44269504f;

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

// ---- room

// How far below zero the values of an activation function go: less than this.
static float lift_of(int32_t activation) {
  return activation == SWISH ? 0.2785f : activation == GELU ? 0.1701f : 0.0f;
}

static void lay_out(FeedForward& f, const Model& m) {
  f.inner.shape(m.shape.ffn_dim, m.shape.model_dim, true);
  f.outer.shape(m.shape.model_dim, m.shape.ffn_dim, false);
  f.outer.lift = lift_of(m.shape.activation);
}

static void lay_out(Norm& norm, const Model& m) {
  norm.weight.reserve(m.width);
  norm.bias.reserve(m.width);
}

static void lay_out_attention(Int8Weights& projections, int parts, Int8Weights& output,
                              const Model& m) {
  projections.shape(parts * m.keys, m.shape.model_dim, true);
  output.shape(m.shape.model_dim, m.heads.value_size(), true);
}

// Room for the weights of such a model, all zero.
static void lay_out(Model& m, const Shape& shape, const Factors& factors) {
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
  m.output.shape(shape.target_vocabulary, shape.model_dim, true);
  m.source_embedding.reserve(static_cast<size_t>(shape.source_vocabulary) * m.width);
  if (!shape.one_embedding)
    m.own_target_embedding.reserve(static_cast<size_t>(shape.target_vocabulary) * m.width);
  m.target_embedding =
      shape.one_embedding ? m.source_embedding.data() : m.own_target_embedding.data();
  if (shape.pre_norm) {
    lay_out(m.encoder_norm, m);
    lay_out(m.decoder_norm, m);
  }
  for (int i = 0; i < shape.encoder_layers; ++i) {
    EncoderLayer& layer = m.encoder[i];
    lay_out_attention(layer.projections, 3, layer.output, m);
    lay_out(layer.attention_norm, m);
    lay_out(layer.feed_forward, m);
    lay_out(layer.feed_forward_norm, m);
    layer.projections.next = &layer.output;
    layer.output.next = &layer.feed_forward.inner;
    layer.feed_forward.inner.next = &layer.feed_forward.outer;
    layer.feed_forward.outer.next =
        i + 1 < shape.encoder_layers ? &m.encoder[i + 1].projections : nullptr;
  }
  for (int i = 0; i < shape.decoder_layers; ++i) {
    DecoderLayer& layer = m.decoder[i];
    lay_out_attention(layer.projections, 3, layer.output, m);
    lay_out(layer.self_norm, m);
    lay_out_attention(layer.cross_query, 1, layer.cross_output, m);
    lay_out(layer.cross_norm, m);
    lay_out(layer.feed_forward, m);
    lay_out(layer.feed_forward_norm, m);
    layer.projections.next = &layer.output;
    layer.output.next = &layer.cross_query;
    layer.cross_query.next = &layer.cross_output;
    layer.cross_output.next = &layer.feed_forward.inner;
    layer.feed_forward.inner.next = &layer.feed_forward.outer;
    layer.feed_forward.outer.next =
        i + 1 < shape.decoder_layers ? &m.decoder[i + 1].projections : &m.output;
  }
}

// visit(memory, bytes) for each part that packing fills, in an order that the shape decides.
template <class Visit>
static void each_part(Model& m, const Visit& visit) {
  const auto values = [&](auto& buffer) {
    if (buffer.capacity() > 0) visit(buffer.data(), buffer.capacity() * sizeof(*buffer.data()));
  };
  const auto matrix = [&](Int8Weights& w) {
    values(w.weights);
    values(w.scale);
    values(w.bias);
    values(w.start);
  };
  const auto norm = [&](Norm& n) {
    values(n.weight);
    values(n.bias);
  };
  for (int i = 0; i < m.shape.encoder_layers; ++i) {
    EncoderLayer& layer = m.encoder[i];
    for (Int8Weights* w : {&layer.projections, &layer.output, &layer.feed_forward.inner,
                           &layer.feed_forward.outer})
      matrix(*w);
    for (Norm* n : {&layer.attention_norm, &layer.feed_forward_norm}) norm(*n);
  }
  for (int i = 0; i < m.shape.decoder_layers; ++i) {
    DecoderLayer& layer = m.decoder[i];
    for (Int8Weights* w : {&layer.projections, &layer.output, &layer.cross_query,
                           &layer.cross_output, &layer.feed_forward.inner,
                           &layer.feed_forward.outer})
      matrix(*w);
    for (Norm* n : {&layer.self_norm, &layer.cross_norm, &layer.feed_forward_norm}) norm(*n);
  }
  norm(m.encoder_norm);
  norm(m.decoder_norm);
  matrix(m.memory);
  matrix(m.output);
  values(m.source_embedding);
  values(m.own_target_embedding);
}

}  // namespace
