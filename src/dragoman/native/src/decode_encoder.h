// The encoder, over packed rows: a few sentences at a time go through all layers together.
#pragma once

#include "decode_layers.h"

namespace {

struct EncoderWork {
  Rows rows;
  Buffer<uint16_t> projections;      // (rows, query | key | value) bf16
  List<const uint16_t*> keys;        // of the visible rows of one sentence
};

static inline void encoder_attention(const Model& m, EncoderWork& work, const EncoderLayer& layer,
                                     const int32_t* lengths, int batch, const uint8_t* visible) {
  Rows& rows = work.rows;
  const size_t stride = layer.projections.columns;
  uint16_t* at = work.projections.data();
  project(layer.projections, rows.bytes.data(), m.width, rows.scale.data(), rows.count,
          [&](int r, int column, const Floats(&values)[PANEL_VECTORS]) INLINE_LAMBDA {
            store_bf16_panel(at + r * stride + column, values);
          });
  int first = 0;
  for (int b = 0; b < batch; ++b) {
    work.keys.clear();
    for (int i = first; i < first + lengths[b]; ++i)
      if (visible == nullptr || visible[i]) work.keys.push(at + i * stride);
    for (int i = first; i < first + lengths[b]; ++i)
      attend_row(m, rows, i, at + i * stride, work.keys.data(),
                 static_cast<int>(work.keys.size()), m.keys, 2 * m.keys);
    first += lengths[b];
  }
  add_projection(m, rows, layer.output, 0, rows.count, rows.narrow.data(), m.keys,
                 rows.narrow_scale.data());
}

// Sentences that fit together into one block, through all layers.
static inline void encode_block(const Model& m, EncoderWork& work, const int64_t* tokens,
                                const int32_t* lengths, int batch, int count,
                                const uint8_t* visible, const float* positions, float* out) {
  Rows& rows = work.rows;
  rows.shape(m, count);
  const bool pre = m.shape.pre_norm;
  int r = 0;
  for (int b = 0; b < batch; ++b)
    for (int i = 0; i < lengths[b]; ++i, ++r)
      embed(m, m.source_embedding.data(), tokens[r], m.factors.embedding,
            positions + static_cast<size_t>(i) * m.width,
            rows.x.data() + static_cast<size_t>(r) * m.width);
  if (!pre) quantise_rows(m, rows);
  for (int i = 0; i < m.shape.encoder_layers; ++i) {
    const EncoderLayer& layer = m.encoder[i];
    work.projections.reserve(static_cast<size_t>(count) * layer.projections.columns);
    if (pre) norm_rows(m, rows, layer.attention_norm);
    encoder_attention(m, work, layer, lengths, batch, visible);
    norm_rows(m, rows, pre ? layer.feed_forward_norm : layer.attention_norm);
    feed_forward(m, rows, layer.feed_forward);
    if (!pre) norm_rows(m, rows, layer.feed_forward_norm);
  }
  for (r = 0; r < count; ++r) {
    float* x = rows.x.data() + static_cast<size_t>(r) * m.width;
    if (pre) normalise(m, m.encoder_norm, x, x);
    __builtin_memcpy(out + static_cast<size_t>(r) * m.shape.model_dim, x,
                     sizeof(float) * m.shape.model_dim);
  }
}

}  // namespace
