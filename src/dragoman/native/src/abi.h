// Every struct that Python shares with the kernels. native/abi.py has the same ones, and compares
// them with these when the library is loaded (abi.cpp).
#pragma once

#include "dispatch.h"

// ---- attention.cpp, attention_pairs.cpp

// Element (row, head, i) of a tensor lies at [row * its row stride + head * width + i].
struct Attention {
  const int32_t *query_offsets, *key_offsets;  // (sentences + 1)
  const int32_t *query_names;  // of the rows of queries, for dropout; may be null
  int64_t sentences, heads, key_width, value_width;
  int64_t query_row, key_row, value_row, out_row;  // row strides, in elements
  int64_t causal;
  float scale, rate;
  uint64_t seed;
};

// ---- linear.cpp

// One of the weights whose outputs stand side by side in dy: (outputs x inputs), and its bias.
struct Part {
  float *weight;
  float *bias;  // may be null
  int64_t outputs;
  int64_t add;  // add to what is there, in place of writing over it
};

// ---- decode.cpp

enum : int32_t { RELU, SWISH, GELU };  // native/abi.py has the same numbers

// Sizes and choices of a Transformer.
struct Shape {
  int32_t model_dim, ffn_dim, heads, key_width, value_width;
  int32_t encoder_layers, decoder_layers;
  int32_t source_vocabulary, target_vocabulary;
  int32_t pre_norm;
  int32_t hidden_token;  // a token that nothing may attend to; -1: none
  int32_t one_embedding; // whether source and target share theirs
  int32_t zero_token;    // a target token whose embedding is zero; -1: none
  int32_t activation;    // of the feed-forward layers: RELU, SWISH or GELU
};

// What a Transformer multiplies and divides by.
struct Factors {
  float attention;  // what scores are multiplied with, 1 / sqrt(d_k)
  float embedding;  // sqrt(d_model)
  float epsilon;    // of the layer norms
};

// ---- search.cpp

// One search of a batch.
struct Group {
  int64_t rows, width, length, limit, least, prefix, ngram, ended, quota;
  double alpha, shift, ceiling, worst;
  uint64_t key;
  int64_t next_rows, keep;
  uint8_t done, splits, draws, recorded, special, shrinks;
};

// One continuation that a group looks at.
struct Looked {
  int64_t candidate, token;
  double total;
  uint8_t ends, goes_on;
};

// One hypothesis that has ended and is worth keeping.
struct Ended {
  int64_t group, row, length;
  double end;
};

// What a run of steps found of a group that keeps one hypothesis.
struct Found {
  int64_t length;  // of the best that ended, or was cut; -1: none in this run
  double end;      // log-probability of the end symbol; NaN: it was cut
};

// Where the arrays of a search lie.
struct Live {
  Group *groups;
  Looked *looked;  // `columns` to a group
  Ended *ended;
  Found *found;              // one to a group
  int32_t *found_tokens;     // `places` to a group
  float *found_log_probabilities;  // likewise
  int32_t *tokens;           // `places` to a row
  float *log_probabilities;  // likewise
  double *totals;
  int64_t *last, *parents;
  int64_t places, columns;
};

// How to let a model take a step. `best` is decode_best of
// decode.cpp and returns 0, or what was wrong, and then nothing has changed.
struct Step {
  int (*best)(void *state, const int64_t *tokens, int rows, int count, const float *positions,
              int known, int k, float *log_probabilities, int64_t *ids);
  int (*select)(void *state, const int64_t *rows, int count);
  void *state;
  const float *positions;
  int64_t known;
};

// What is asked of some steps, and what came of them.
struct Run {
  int64_t groups, rows;      // `rows` is kept up to date
  int64_t k, eos;
  int64_t steps;             // at most so many; then: how many were taken
  int64_t enough;            // stop when groups of so many rows in all are done
  float *log_probabilities;  // room for rows x k
  int64_t *ids;
  const int64_t *forbidden;  // tokens that no output may hold
  int64_t count;             // how many
  int64_t any_done, wrong;   // found: whether a group is done; what `best` returned
};
