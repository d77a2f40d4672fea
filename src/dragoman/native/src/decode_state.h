// What a search carries from step to step.
//
// Keys and values of one position are a slot, PAGE_SLOTS of them are a page: first layer's keys of
// all its positions, their values, second layer's keys, and so on, so that neighbours are read in
// one sweep. Slots are never copied or reordered: every row holds the addresses of the slots of its
// own past, so that selecting rows costs a copy of addresses. A source owns its pages, those of its
// encoded words and those of its hypotheses' pasts; when its last row goes they serve the next.
#pragma once

#include "decode_best.h"

namespace {

// Its keys in layer l are 2 l part behind this address, its values (2 l + 1) part.
using Slot = uint16_t*;

struct Source {
  int position = 0;    // rows of one source always stand at one position
  int rows = 0;
  int used = 0;        // slots taken from the last page
  List<Slot> pages;
  List<Slot> memory;   // the visible encoded words
  List<int32_t> tokens;      // what it reads, where there is a shortlist
  Buffer<uint64_t> allowed;  // a bit for each column of State::subset
};

struct Row {
  Source* source;
  List<Slot>* past;    // positions that may be attended to
};

static bool has_bias(const Int8Weights& output, const Shape& shape) {
  for (int t = 0; t < shape.target_vocabulary; ++t)
    if (output.bias[t] != 0.0f) return true;
  return false;
}

struct State {
  const Model* model;
  Rows work;
  List<Row> rows;
  List<Row> fresh;             // select() builds the next rows here
  List<Source*> idle_sources;
  List<List<Slot>*> idle_pasts;
  List<Slot> free_pages;
  List<Slot> chunks;           // what free() gets in the end
  Buffer<int> uses;
  Buffer<Slot> slots;          // (rows), where this step writes
  Buffer<uint16_t> queries;    // (rows, keys)
  Best best;                   // of the output layer
  // The output layer over what the shortlists of all sources under way allow.
  bool has_subset = false;
  Int8Weights subset;
  List<int32_t> names;         // the token of each of its columns
  Buffer<int32_t> column_of;   // of each token; -1: none

  const bool biased;           // whether any token's logit has a bias

  explicit State(const Model* m) : model(m), biased(has_bias(m->output, m->shape)) {}

  ~State() {
    for (size_t r = 0; r < rows.size(); ++r) release_past(rows[r]);
    for (size_t r = 0; r < rows.size(); ++r)
      if (--rows[r].source->rows == 0) delete rows[r].source;
    for (size_t i = 0; i < idle_sources.size(); ++i) delete idle_sources[i];
    for (size_t i = 0; i < idle_pasts.size(); ++i) delete idle_pasts[i];
    for (size_t i = 0; i < chunks.size(); ++i) std::free(chunks[i]);
  }

  void release_past(Row& row) {
    row.past->clear();
    idle_pasts.push(row.past);
  }

  void release_source(Source* source) {
    for (size_t i = 0; i < source->pages.size(); ++i) free_pages.push(source->pages[i]);
    source->pages.clear();
    source->memory.clear();
    source->tokens.clear();
    source->used = source->position = 0;
    idle_sources.push(source);
  }

  Source* take_source() {
    return idle_sources.size() > 0 ? idle_sources.pop() : new Source();
  }
  List<Slot>* take_past() { return idle_pasts.size() > 0 ? idle_pasts.pop() : new List<Slot>(); }

  void grow() {
    // An odd number of cache lines apart, so that sources do not share the same few sets.
    const size_t page = 2 * static_cast<size_t>(model->shape.decoder_layers) * model->part + 32;
    size_t pages = (4u << 20) / (page * sizeof(uint16_t));
    if (pages < 4) pages = 4;
    Slot chunk = static_cast<Slot>(allocate(pages * page * sizeof(uint16_t)));
    chunks.push(chunk);
    for (size_t i = pages; i-- > 0;) free_pages.push(chunk + i * page);
  }

  Slot take_slot(Source* source) {
    if (source->pages.size() == 0 || source->used == PAGE_SLOTS) {
      if (free_pages.size() == 0) grow();
      source->pages.push(free_pages.pop());
      source->used = 0;
    }
    Slot page = source->pages[source->pages.size() - 1];
    return page + static_cast<size_t>(source->used++) * model->keys;
  }

  // New sources behind the rows under way, one row each. `encoded` (P, model_dim); `tokens` (P) of
  // the sources or null: with them, and a shortlist, only its tokens may follow.
  void admit(const float* encoded, const int32_t* lengths, int batch, const uint8_t* visible,
             const int64_t* tokens) {
    if (batch == 0) return;
    const Model& m = *model;
    const bool is_short = tokens != nullptr && m.shortlist.count > 0;
    const bool before = rows.size() == 0 || has_subset;
    int first = 0;
    for (int b = 0; b < batch;) {
      int count = 0, begin = first;
      work.shape(m, BLOCK_ROWS);
      slots.reserve(BLOCK_ROWS);
      // Fill a block of rows with visible words of as many sentences as come.
      for (; b < batch; ++b) {
        if (count > 0 && count + lengths[b] > BLOCK_ROWS) break;
        Source* source = take_source();
        source->rows = 1;
        rows.push({source, take_past()});
        for (int i = begin; is_short && i < begin + lengths[b]; ++i)
          source->tokens.push(static_cast<int32_t>(tokens[i]));
        for (int i = begin; i < begin + lengths[b]; ++i) {
          if (visible != nullptr && !visible[i]) continue;
          if (count == BLOCK_ROWS) {
            write_memory(count);
            count = 0;
          }
          Slot slot = take_slot(source);
          source->memory.push(slot);
          slots[count] = slot;
          float* x = work.x.data() + static_cast<size_t>(count) * m.width;
          __builtin_memcpy(x, encoded + static_cast<size_t>(i) * m.shape.model_dim,
                           sizeof(float) * m.shape.model_dim);
          for (int j = m.shape.model_dim; j < m.width; ++j) x[j] = 0.0f;
          ++count;
        }
        begin += lengths[b];
      }
      first = begin;
      write_memory(count);
    }
    has_subset = is_short && before;
    if (has_subset) choose_columns();
  }

  // Gathers the columns of the output layer that any source under way may need. A row still sees
  // those of its own source alone, so that neighbours change nothing.
  void choose_columns() {
    const Model& m = *model;
    const Shortlist& list = m.shortlist;
    const int vocabulary = m.shape.target_vocabulary;
    column_of.reserve(vocabulary);
    for (int t = 0; t < vocabulary; ++t) column_of[t] = -1;
    for (int i = 0; i < list.count; ++i) column_of[list.always[i]] = 0;
    const Source* last = nullptr;
    for (size_t r = 0; r < rows.size(); ++r) {
      const Source* source = rows[r].source;
      if (source == last) continue;
      last = source;
      for (size_t i = 0; i < source->tokens.size(); ++i)
        for (int c = list.offsets[source->tokens[i]]; c < list.offsets[source->tokens[i] + 1]; ++c)
          column_of[list.candidates[c]] = 0;
    }
    names.clear();
    for (int t = 0; t < vocabulary; ++t)
      if (column_of[t] == 0) {
        column_of[t] = static_cast<int32_t>(names.size());
        names.push(t);
      }
    const int count = static_cast<int>(names.size());
    subset.shape(count, m.shape.model_dim, true);
    for (int c = 0; c < subset.columns; ++c) {
      subset.scale[c] = c < count ? m.output.scale[names[c]] : 0.0f;
      subset.bias[c] = c < count ? m.output.bias[names[c]] : -1.0e30f;
      subset.start[c] = c < count ? m.output.start[names[c]] : 0;
      if (c >= count) continue;
      const int8_t* from = list.weights.data() + static_cast<size_t>(names[c]) * subset.depth;
      int8_t* to = subset.column(c);
      for (int k = 0; k < subset.depth; k += 4, to += 4 * PANEL)
        __builtin_memcpy(to, from + k, 4);
    }
    last = nullptr;
    for (size_t r = 0; r < rows.size(); ++r) {
      Source* source = rows[r].source;
      if (source == last) continue;
      last = source;
      const size_t words = subset.columns / 64;
      source->allowed.reserve(words);
      for (size_t i = 0; i < words; ++i) source->allowed[i] = 0;
      for (int i = 0; i < list.count; ++i) allow(source, list.always[i]);
      for (size_t i = 0; i < source->tokens.size(); ++i)
        for (int c = list.offsets[source->tokens[i]]; c < list.offsets[source->tokens[i] + 1]; ++c)
          allow(source, list.candidates[c]);
    }
  }

  void allow(Source* source, int token) {
    const int column = column_of[token];
    source->allowed[column / 64] |= uint64_t{1} << (column % 64);
  }

  // out (rows, V): 1 for every token that may follow. All of them, where there is no shortlist.
  void allowed(uint8_t* out) const {
    const Shortlist& list = model->shortlist;
    const size_t vocabulary = model->shape.target_vocabulary;
    std::memset(out, has_subset ? 0 : 1, rows.size() * vocabulary);
    if (!has_subset) return;
    for (size_t r = 0; r < rows.size(); ++r, out += vocabulary) {
      const List<int32_t>& tokens = rows[r].source->tokens;
      for (int i = 0; i < list.count; ++i) out[list.always[i]] = 1;
      for (size_t i = 0; i < tokens.size(); ++i)
        for (int c = list.offsets[tokens[i]]; c < list.offsets[tokens[i] + 1]; ++c)
          out[list.candidates[c]] = 1;
    }
  }

  void write_memory(int count) {
    const Model& m = *model;
    work.count = count;
    quantise_rows(m, work);
    project(m.memory, work.bytes.data(), m.width, work.scale.data(), count,
            [&](int r, int column, const Floats(&values)[PANEL_VECTORS]) INLINE_LAMBDA {
              const int part = column / m.keys;
              store_bf16_panel(slots[r] + part * m.part + column % m.keys, values);
            });
  }

  // Rows `wanted` in that order. False if one of them does not exist.
  bool select(const int64_t* wanted, int count) {
    const int before = static_cast<int>(rows.size());
    bool same = count == before;
    for (int i = 0; i < count; ++i) {
      if (wanted[i] < 0 || wanted[i] >= before) return false;
      same = same && wanted[i] == i;
    }
    if (same) return true;
    uses.reserve(before);
    for (int r = 0; r < before; ++r) uses[r] = 0;
    fresh.clear();
    for (int i = 0; i < count; ++i) {
      Row row = rows[wanted[i]];
      if (uses[wanted[i]]++ > 0) {
        const List<Slot>* past = row.past;
        row.past = take_past();
        row.past->resize(past->size());
        if (past->size() > 0)
          __builtin_memcpy(row.past->data(), past->data(), sizeof(Slot) * past->size());
        ++row.source->rows;
      }
      fresh.push(row);
    }
    for (int r = 0; r < before; ++r) {
      if (uses[r] > 0) continue;
      release_past(rows[r]);
      if (--rows[r].source->rows == 0) release_source(rows[r].source);
    }
    rows.resize(count);
    for (int i = 0; i < count; ++i) rows[i] = fresh[i];
    return true;
  }
};

}  // namespace
