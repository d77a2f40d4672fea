// The layout of abi.h as the compiler made it, for native/abi.py to compare with its own.
#include "abi.h"

namespace {

// A struct (its size), then its fields (offset and size) in order.
struct Entry {
  const char *name;
  int64_t offset;  // -1: this entry is a struct
  int64_t size;
};

#define BEGIN(S) {#S, -1, sizeof(S)},
#define FIELD(S, f) {#f, offsetof(S, f), sizeof(S::f)},

constexpr Entry LAYOUT[] = {
    BEGIN(Attention) FIELD(Attention, query_offsets) FIELD(Attention, key_offsets)
        FIELD(Attention, query_names) FIELD(Attention, sentences) FIELD(Attention, heads)
        FIELD(Attention, key_width) FIELD(Attention, value_width) FIELD(Attention, query_row)
        FIELD(Attention, key_row) FIELD(Attention, value_row) FIELD(Attention, out_row)
        FIELD(Attention, causal) FIELD(Attention, scale) FIELD(Attention, rate)
        FIELD(Attention, seed)
    BEGIN(Part) FIELD(Part, weight) FIELD(Part, bias) FIELD(Part, outputs) FIELD(Part, add)
    BEGIN(Shape) FIELD(Shape, model_dim) FIELD(Shape, ffn_dim) FIELD(Shape, heads)
        FIELD(Shape, key_width) FIELD(Shape, value_width) FIELD(Shape, encoder_layers)
        FIELD(Shape, decoder_layers) FIELD(Shape, source_vocabulary)
        FIELD(Shape, target_vocabulary) FIELD(Shape, pre_norm) FIELD(Shape, hidden_token)
        FIELD(Shape, one_embedding) FIELD(Shape, zero_token) FIELD(Shape, activation)
    BEGIN(Factors) FIELD(Factors, attention) FIELD(Factors, embedding) FIELD(Factors, epsilon)
    BEGIN(Group) FIELD(Group, rows) FIELD(Group, width) FIELD(Group, length) FIELD(Group, limit)
        FIELD(Group, least) FIELD(Group, prefix) FIELD(Group, ngram) FIELD(Group, ended)
        FIELD(Group, quota) FIELD(Group, alpha) FIELD(Group, shift) FIELD(Group, ceiling) FIELD(Group, worst)
        FIELD(Group, key) FIELD(Group, next_rows) FIELD(Group, keep) FIELD(Group, done)
        FIELD(Group, splits) FIELD(Group, draws) FIELD(Group, recorded) FIELD(Group, special)
        FIELD(Group, shrinks)
    BEGIN(Looked) FIELD(Looked, candidate) FIELD(Looked, token) FIELD(Looked, total)
        FIELD(Looked, ends) FIELD(Looked, goes_on)
    BEGIN(Ended) FIELD(Ended, group) FIELD(Ended, row) FIELD(Ended, length) FIELD(Ended, end)
    BEGIN(Found) FIELD(Found, length) FIELD(Found, end)
    BEGIN(Live) FIELD(Live, groups) FIELD(Live, looked) FIELD(Live, ended) FIELD(Live, found)
        FIELD(Live, found_tokens) FIELD(Live, found_log_probabilities) FIELD(Live, tokens)
        FIELD(Live, log_probabilities) FIELD(Live, totals) FIELD(Live, last)
        FIELD(Live, parents) FIELD(Live, places) FIELD(Live, columns)
    BEGIN(Step) FIELD(Step, best) FIELD(Step, select) FIELD(Step, state) FIELD(Step, positions)
        FIELD(Step, known)
    BEGIN(Run) FIELD(Run, groups) FIELD(Run, rows) FIELD(Run, k) FIELD(Run, eos)
        FIELD(Run, steps) FIELD(Run, enough) FIELD(Run, log_probabilities) FIELD(Run, ids)
        FIELD(Run, forbidden) FIELD(Run, count) FIELD(Run, any_done) FIELD(Run, wrong)
    {nullptr, 0, 0},
};

}  // namespace

DRAGOMAN_EXPORT const Entry *dragoman_abi() { return LAYOUT; }
