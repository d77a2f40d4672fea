// What the attention kernels are told (native/attention.py fills it in).
#pragma once

#include "dispatch.h"

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
