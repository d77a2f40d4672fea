// levels: amx avx512 avx512vnni avxvnni avx2 amxtwin neon
// The int8 encoder and decoder of a Transformer: a whole step of a search in one call.
//
// C interface, used by native/decoder.py. Handles are opaque; a model may be used by any number
// of threads at once, a state by one at a time.
#include "decode_encoder.h"
#include "decode_output.h"
#include "decode_pack.h"
#include "decode_state.h"

namespace {

// While one row attends, keys and values of the row so many behind it come nearer: they lie
// scattered, so the processor does not foresee which are wanted.
static constexpr int ROWS_AHEAD = 8;

static ALWAYS_INLINE void fetch(const Model& m, const List<Slot>& slots, int key, int value) {
  for (size_t i = 0; i < slots.size(); ++i) {
    for (int j = 0; j < m.heads.key_size(); j += 32) prefetch(slots[i] + key + j);
    for (int j = 0; j < m.heads.value_size(); j += 32) prefetch(slots[i] + value + j);
  }
}

// Attention of every row; slots(r): where the keys and values of row r lie.
template <class Slots>
static ALWAYS_INLINE void attend_rows(State& state, int layer, const Slots& slots) {
  const Model& m = *state.model;
  Rows& work = state.work;
  const int key = 2 * layer * m.part, value = key + m.part;
  for (int r = 0; r < work.count; ++r) {
    const int later = r + ROWS_AHEAD;
    if (later < work.count && &slots(later) != &slots(later - 1)) fetch(m, slots(later), key, value);
    attend_row(m, work, r, state.queries.data() + static_cast<size_t>(r) * m.keys,
               slots(r).data(), static_cast<int>(slots(r).size()), key, value);
  }
}

static void self_attention(State& state, const DecoderLayer& layer, int index) {
  const Model& m = *state.model;
  Rows& work = state.work;
  const int key = 2 * index * m.part, value = key + m.part;
  project(layer.projections, work.bytes.data(), m.width, work.scale.data(), work.count,
          [&](int r, int column, const Floats(&values)[PANEL_VECTORS]) INLINE_LAMBDA {
            uint16_t* to;
            if (column < m.keys) {
              to = state.queries.data() + static_cast<size_t>(r) * m.keys + column;
            } else if (column < 2 * m.keys) {
              to = state.slots[r] + key + column - m.keys;
            } else {
              to = state.slots[r] + value + column - 2 * m.keys;
            }
            store_bf16_panel(to, values);
          });
  attend_rows(state, index, [&](int r) INLINE_LAMBDA -> const List<Slot>& {
    return *state.rows[r].past;
  });
  add_projection(m, work, layer.output, 0, work.count, work.narrow.data(), m.keys,
                 work.narrow_scale.data());
}

static void cross_attention(State& state, const DecoderLayer& layer, int index) {
  const Model& m = *state.model;
  Rows& work = state.work;
  project(layer.cross_query, work.bytes.data(), m.width, work.scale.data(), work.count,
          [&](int r, int column, const Floats(&values)[PANEL_VECTORS]) INLINE_LAMBDA {
            store_bf16_panel(state.queries.data() + static_cast<size_t>(r) * m.keys + column,
                             values);
          });
  attend_rows(state, index, [&](int r) INLINE_LAMBDA -> const List<Slot>& {
    return state.rows[r].source->memory;
  });
  add_projection(m, work, layer.cross_output, 0, work.count, work.narrow.data(), m.keys,
                 work.narrow_scale.data());
}

// Takes in one token a row; the stream then stands quantised before the output layer.
// `tokens` are `stride` apart. `positions` (.., width) is the table of position vectors.
static void take_in(State& state, const int64_t* tokens, int stride, const float* positions) {
  const Model& m = *state.model;
  Rows& work = state.work;
  const int count = static_cast<int>(state.rows.size());
  const bool pre = m.shape.pre_norm;
  work.shape(m, count);
  state.slots.reserve(count);
  state.queries.reserve(static_cast<size_t>(count) * m.keys);
  for (int r = 0; r < count; ++r) {
    Row& row = state.rows[r];
    const int64_t token = tokens[static_cast<size_t>(r) * stride];
    state.slots[r] = state.take_slot(row.source);
    if (token != m.shape.hidden_token) row.past->push(state.slots[r]);
    const float scale = token == m.shape.zero_token ? 0.0f : m.factors.embedding;
    embed(m, m.target_embedding, token, scale,
          positions + static_cast<size_t>(row.source->position) * m.width,
          work.x.data() + static_cast<size_t>(r) * m.width);
  }
  if (!pre) quantise_rows(m, work);
  for (int i = 0; i < m.shape.decoder_layers; ++i) {
    const DecoderLayer& layer = m.decoder[i];
    if (pre) norm_rows(m, work, layer.self_norm);
    self_attention(state, layer, i);
    norm_rows(m, work, pre ? layer.cross_norm : layer.self_norm);
    cross_attention(state, layer, i);
    norm_rows(m, work, pre ? layer.feed_forward_norm : layer.cross_norm);
    feed_forward(m, work, layer.feed_forward);
    if (!pre) norm_rows(m, work, layer.feed_forward_norm);
  }
  if (pre) norm_rows(m, work, m.decoder_norm);
  // Positions move on once per source, however many rows it has.
  for (int r = 0; r < count; ++r) state.rows[r].source->rows = 0;
  for (int r = 0; r < count; ++r)
    if (state.rows[r].source->rows++ == 0) ++state.rows[r].source->position;
}


// 0 if these tokens can be taken in, else what decode_step returns.
static int check(const State& state, const int64_t* tokens, int rows, int count, int known) {
  if (rows != static_cast<int>(state.rows.size())) return -2;
  const int64_t vocabulary = state.model->shape.target_vocabulary;
  int longest = 0;
  for (size_t r = 0; r < state.rows.size(); ++r) {
    const int position = state.rows[r].source->position;
    if (position > longest) longest = position;
    for (int i = 0; i < count; ++i)
      if (tokens[r * count + i] < 0 || tokens[r * count + i] >= vocabulary) return -1;
  }
  return longest + count > known ? longest + count : 0;
}

}  // namespace

// Room for a model, whose parts are zero until they are packed, or filled by who has kept them.
KERNEL(void*, decode_model_new, const Shape* shape, const Factors* factors) {
  Model* model = new Model();
  lay_out(*model, *shape, *factors);
  return model;
}

// Once, into a model whose parts are zero.
KERNEL(void, decode_model_pack, void* model, const float* const* weights) {
  pack_model(*static_cast<Model*>(model), Weights32{weights});
}

// Where the parts lie and how many bytes each has -> how many there are. Null: count them alone.
KERNEL(int, decode_model_parts, void* model, void** places, int64_t* sizes) {
  int count = 0;
  each_part(*static_cast<Model*>(model), [&](void* place, size_t bytes) {
    if (places != nullptr) {
      places[count] = place;
      sizes[count] = static_cast<int64_t>(bytes);
    }
    ++count;
  });
  return count;
}

KERNEL(void, decode_model_free, void* model) { delete static_cast<Model*>(model); }

// Width of the rows of a table of positions: model_dim rounded up, the rest zero.
KERNEL(int, decode_model_width, const void* model) {
  return static_cast<const Model*>(model)->width;
}

// From now on, states that are told their sources' tokens choose among these target tokens alone.
// offsets (source vocabulary + 1) into `candidates`.
KERNEL(void, decode_model_shortlist, void* model, const int32_t* always, int count,
       const int32_t* offsets, const int32_t* candidates) {
  Model& m = *static_cast<Model*>(model);
  const int tokens = m.shape.source_vocabulary + 1, all = offsets[tokens - 1];
  m.shortlist.count = count;
  m.shortlist.always.reserve(count);
  m.shortlist.offsets.reserve(tokens);
  m.shortlist.candidates.reserve(all);
  for (int i = 0; i < count; ++i) m.shortlist.always[i] = always[i];
  for (int i = 0; i < tokens; ++i) m.shortlist.offsets[i] = offsets[i];
  for (int i = 0; i < all; ++i) m.shortlist.candidates[i] = candidates[i];
  const int depth = m.output.depth;
  m.shortlist.weights.reserve(static_cast<size_t>(m.shape.target_vocabulary) * depth);
  for (int t = 0; t < m.shape.target_vocabulary; ++t) {
    const int8_t* from = m.output.column(t);
    int8_t* to = m.shortlist.weights.data() + static_cast<size_t>(t) * depth;
    for (int k = 0; k < depth; k += 4, from += 4 * PANEL) __builtin_memcpy(to + k, from, 4);
  }
}

// tokens (P) of `batch` sentences -> out (P, model_dim). `visible` (P) bytes or null.
// Returns 0, or -1 if a token is none of the vocabulary.
// What it works in stays with the thread: a sentence alone would pay more for fresh pages of
// memory than for its products.
KERNEL(int, decode_encode, const void* model, const int64_t* tokens, const int32_t* lengths,
       int batch, const uint8_t* visible, const float* positions, float* out) {
  const Model& m = *static_cast<const Model*>(model);
  int64_t total = 0;
  for (int b = 0; b < batch; ++b) total += lengths[b];
  for (int64_t i = 0; i < total; ++i)
    if (tokens[i] < 0 || tokens[i] >= m.shape.source_vocabulary) return -1;
  static thread_local EncoderWork work;
  for (int b = 0; b < batch;) {
    int end = b, count = 0;
    while (end < batch && (end == b || count + lengths[end] <= BLOCK_ROWS)) count += lengths[end++];
    encode_block(m, work, tokens, lengths + b, end - b, count, visible, positions, out);
    tokens += count;
    if (visible != nullptr) visible += count;
    out += static_cast<size_t>(count) * m.shape.model_dim;
    b = end;
  }
  return 0;
}

KERNEL(void*, decode_state_new, const void* model) {
  return new State(static_cast<const Model*>(model));
}

KERNEL(void, decode_state_free, void* state) { delete static_cast<State*>(state); }

KERNEL(int, decode_state_rows, const void* state) {
  return static_cast<int>(static_cast<const State*>(state)->rows.size());
}

// out (N): tokens taken in by each row.
KERNEL(void, decode_state_lengths, const void* state, int64_t* out) {
  const State& s = *static_cast<const State*>(state);
  for (size_t r = 0; r < s.rows.size(); ++r) out[r] = s.rows[r].source->position;
}

// out (N, V): 1 where a token may follow a row by the shortlist of its source.
KERNEL(void, decode_state_allowed, const void* state, uint8_t* out) {
  static_cast<const State*>(state)->allowed(out);
}

KERNEL(void, decode_state_admit, void* state, const float* encoded, const int32_t* lengths,
       int batch, const uint8_t* visible, const int64_t* tokens) {
  static_cast<State*>(state)->admit(encoded, lengths, batch, visible, tokens);
}

// 1: done; 0: a row that does not exist was asked for, and nothing changed.
KERNEL(int, decode_state_select, void* state, const int64_t* rows, int count) {
  return static_cast<State*>(state)->select(rows, count);
}

// The two below return 0 when done. Else nothing has changed: -1, a token is none of the
// vocabulary; -2, N is not the number of rows; n > 0, the table of positions must have n rows.

// tokens (N, t) -> logits (N, V) of what follows the last.
KERNEL(int, decode_step, void* state, const int64_t* tokens, int rows, int count,
       const float* positions, int known, float* logits) {
  State& s = *static_cast<State*>(state);
  if (const int wrong = check(s, tokens, rows, count, known)) return wrong;
  for (int i = 0; i < count; ++i) take_in(s, tokens + i, count, positions);
  all_logits(s, logits);
  return 0;
}

// tokens (N, t) -> the k best of what follows: log-probabilities (N, k) and ids (N, k).
KERNEL(int, decode_best, void* state, const int64_t* tokens, int rows, int count,
       const float* positions, int known, int k, float* log_probabilities, int64_t* ids) {
  State& s = *static_cast<State*>(state);
  if (const int wrong = check(s, tokens, rows, count, known)) return wrong;
  for (int i = 0; i < count; ++i) take_in(s, tokens + i, count, positions);
  best_tokens(s, k, log_probabilities, ids);
  return 0;
}
