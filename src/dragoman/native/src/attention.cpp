// levels: avx512 avx512vnni avx2 neon
// Multi-head attention over packed rows, forward and backward (native/attention.py).
//
// One task is one head of one sentence. Its keys and values are laid out as fp32 in the thread's own
// memory, transposed where a product needs it; queries pass by in blocks of a few rows, whose scores
// never leave the cache. The forward pass keeps log(sum(exp(scores))) per row and head, and the
// backward pass makes scores and dropout mask again: memory grows linearly with length.
// attention_pairs.cpp is the faster one for bf16.
#include "abi.h"
#include "random.h"
#include "threads.h"

namespace {

static ALWAYS_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static ALWAYS_INLINE int64_t padded(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// ---- small products in fp32: C (rows x columns) = or += A B

constexpr int ROWS = 6;

template <int R, int VECS, bool ADD>
static ALWAYS_INLINE void small_tile(int64_t steps, const float *a, int64_t a_row, int64_t a_step,
                                     const float *b, int64_t b_row, float *c, int64_t c_row) {
  Vec sums[R][VECS];
  for (int r = 0; r < R; r++) {
    for (int v = 0; v < VECS; v++) {
      sums[r][v] = ADD ? load(c + r * c_row + v * LANES) : zero();
    }
  }
  for (int64_t s = 0; s < steps; s++) {
    Vec right[VECS];
    for (int v = 0; v < VECS; v++) right[v] = load(b + s * b_row + v * LANES);
    for (int r = 0; r < R; r++) {
      const Vec left = all(a[r * a_row + s * a_step]);
      for (int v = 0; v < VECS; v++) sums[r][v] = fma(left, right[v], sums[r][v]);
    }
  }
  for (int r = 0; r < R; r++) {
    for (int v = 0; v < VECS; v++) store(c + r * c_row + v * LANES, sums[r][v]);
  }
}

template <int R, bool ADD>
static inline void small_rows(int64_t columns, int64_t steps, const float *a, int64_t a_row,
                              int64_t a_step, const float *b, int64_t b_row, float *c,
                              int64_t c_row) {
  int64_t j = 0;
  for (; j + 2 * LANES <= columns; j += 2 * LANES) {
    small_tile<R, 2, ADD>(steps, a, a_row, a_step, b + j, b_row, c + j, c_row);
  }
  if (j < columns) small_tile<R, 1, ADD>(steps, a, a_row, a_step, b + j, b_row, c + j, c_row);
}

// `columns` is a multiple of LANES; A's element (i, s) is a[i * a_row + s * a_step].
template <bool ADD>
static __attribute__((noinline)) void small_product(int64_t rows, int64_t columns, int64_t steps,
                                                    const float *a, int64_t a_row, int64_t a_step,
                                                    const float *b, int64_t b_row, float *c,
                                                    int64_t c_row) {
  int64_t i = 0;
  for (; i + ROWS <= rows; i += ROWS) {
    small_rows<ROWS, ADD>(columns, steps, a + i * a_row, a_row, a_step, b, b_row, c + i * c_row,
                          c_row);
  }
  if (rows - i >= 3) {
    small_rows<3, ADD>(columns, steps, a + i * a_row, a_row, a_step, b, b_row, c + i * c_row,
                       c_row);
    i += 3;
  }
  for (; i < rows; i++) {
    small_rows<1, ADD>(columns, steps, a + i * a_row, a_row, a_step, b, b_row, c + i * c_row,
                       c_row);
  }
}

// ---- between the tensors and a thread's own memory

// out[i][j] = x[i][j] * scale, columns up to `padded(width)` filled with zeros
template <class T>
static void copy_rows(const T *x, int64_t x_row, int64_t rows, int64_t width, float scale,
                      float *out) {
  const int64_t out_row = padded(width);
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < width; j += LANES) {
      store(out + i * out_row + j, load_some(x + i * x_row + j, width - j) * all(scale));
    }
  }
}

// out[j][i] = x[i][j]; out's rows are `padded(rows)` long, filled with zeros
template <class T>
static void copy_transposed(const T *x, int64_t x_row, int64_t rows, int64_t width, float *out) {
  const int64_t out_row = padded(rows);
  for (int64_t i = 0; i < rows; i += LANES) {
    for (int64_t j = 0; j < width; j += LANES) {
      Vec block[LANES];
      for (int64_t r = 0; r < LANES; r++) {
        block[r] = i + r < rows ? load_some(x + (i + r) * x_row + j, width - j) : zero();
      }
      transpose(block);
      for (int64_t r = 0; r < smaller(LANES, width - j); r++) {
        store(out + (j + r) * out_row + i, block[r]);
      }
    }
  }
}

template <class T>
static void put_rows(const float *in, int64_t rows, int64_t width, T *x, int64_t x_row) {
  const int64_t in_row = padded(width);
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < width; j += LANES) {
      store_some(x + i * x_row + j, load(in + i * in_row + j), width - j);
    }
  }
}

// Rows of queries at a time: their scores fit the first-level cache.
static inline int64_t rows_per_block(int64_t keys) {
  const int64_t fit = 6144 / (padded(keys) + 1) / ROWS * ROWS;
  return fit < ROWS ? ROWS : fit > 4 * ROWS ? 4 * ROWS : fit;
}

// Weights of one row from its scores (columns 0 .. count real, zeros up to `to`), in place:
// softmax, before dropout. Returns log(sum(exp)).
static ALWAYS_INLINE float softmax_row(float *row, int64_t count, int64_t to) {
  Vec top = all(-INFINITY);
  for (int64_t j = 0; j < count; j += LANES) {
    top = maximum(top, keep_first(load(row + j), count - j, all(-INFINITY)));
  }
  const float most = largest(top);
  Vec total = zero();
  for (int64_t j = 0; j < count; j += LANES) {
    const Vec e = keep_first(exponential(load(row + j) - all(most)), count - j, zero());
    store(row + j, e);
    total = total + e;
  }
  const float whole = sum(total);
  const Vec share = all(1.0f / whole);
  for (int64_t j = 0; j < count; j += LANES) store(row + j, load(row + j) * share);
  for (int64_t j = padded(count); j < to; j += LANES) store(row + j, zero());
  return most + logf(whole);
}

// What the mask of a head's weights for a row of queries is known by.
static ALWAYS_INLINE uint32_t mask_name(const Attention &at, int64_t row, int64_t head) {
  return row_name(at.query_names, row) * static_cast<uint32_t>(at.heads) +
         static_cast<uint32_t>(head);
}

static ALWAYS_INLINE void drop_row(float *row, int64_t to, const Dropout &dropout, uint64_t seed,
                                   uint32_t name) {
  const uint32_t key = row_key(seed, name);
  for (int64_t j = 0; j < to; j += BLOCK) {
    Vec f[VECTORS];
    dropout_factors(dropout, key, j / BLOCK, f);
    for (int v = 0; v < VECTORS && j + v * LANES < to; v++) {
      store(row + j + v * LANES, load(row + j + v * LANES) * f[v]);
    }
  }
}

template <class T>
static void forward(const Attention &at, const T *query, const T *key, const T *value, T *out,
                    float *log_sums) {
  const Dropout dropout(at.rate);
  parallel_for(at.sentences * at.heads, [&](int64_t task) {
    const int64_t sentence = task / at.heads, head = task % at.heads;
    const int64_t q0 = at.query_offsets[sentence], k0 = at.key_offsets[sentence];
    const int64_t queries = at.query_offsets[sentence + 1] - q0;
    const int64_t keys = at.key_offsets[sentence + 1] - k0;
    const int64_t width = at.key_width, wide = at.value_width;
    if (queries == 0) return;
    const int64_t across = padded(keys), out_wide = padded(wide);
    const int64_t block = rows_per_block(keys);
    float *keys_across = scratch<float>(0, static_cast<size_t>(width * across));
    float *values = scratch<float>(1, static_cast<size_t>(keys * out_wide));
    float *rows = scratch<float>(2, static_cast<size_t>(block * padded(width)));
    float *scores = scratch<float>(3, static_cast<size_t>(block * across));
    float *result = scratch<float>(4, static_cast<size_t>(block * out_wide));
    copy_transposed(key + k0 * at.key_row + head * width, at.key_row, keys, width, keys_across);
    copy_rows(value + k0 * at.value_row + head * wide, at.value_row, keys, wide, 1.0f, values);
    for (int64_t i = 0; i < queries; i += block) {
      const int64_t count = smaller(block, queries - i);
      const int64_t seen = at.causal ? smaller(keys, i + count) : keys, to = padded(seen);
      copy_rows(query + (q0 + i) * at.query_row + head * width, at.query_row, count, width,
                at.scale, rows);
      small_product<false>(count, to, width, rows, padded(width), 1, keys_across, across, scores,
                           across);
      for (int64_t r = 0; r < count; r++) {
        const int64_t own = at.causal ? smaller(keys, i + r + 1) : keys;
        const int64_t row = q0 + i + r, place = row * at.heads + head;
        const float log_sum = softmax_row(scores + r * across, own, to);
        if (log_sums != nullptr) log_sums[place] = log_sum;
        if (!dropout.off()) drop_row(scores + r * across, to, dropout, at.seed, mask_name(at, row, head));
      }
      small_product<false>(count, out_wide, seen, scores, across, 1, values, out_wide, result,
                           out_wide);
      put_rows(result, count, wide, out + (q0 + i) * at.out_row + head * wide, at.out_row);
    }
  });
}

// The gradients of query, key and value have the row strides of query, key and value.
template <class T>
static void backward(const Attention &at, const T *query, const T *key, const T *value,
                     const float *log_sums, const T *grad, T *dquery, int64_t dquery_row, T *dkey,
                     int64_t dkey_row, T *dvalue, int64_t dvalue_row) {
  const Dropout dropout(at.rate);
  parallel_for(at.sentences * at.heads, [&](int64_t task) {
    const int64_t sentence = task / at.heads, head = task % at.heads;
    const int64_t q0 = at.query_offsets[sentence], k0 = at.key_offsets[sentence];
    const int64_t queries = at.query_offsets[sentence + 1] - q0;
    const int64_t keys = at.key_offsets[sentence + 1] - k0;
    const int64_t width = at.key_width, wide = at.value_width;
    const int64_t across = padded(keys), key_wide = padded(width), value_wide = padded(wide);
    const int64_t block = rows_per_block(2 * keys);
    // keys both ways, values transposed, and the sums of both gradients
    float *keys_across =
        scratch<float>(0, static_cast<size_t>((width + wide) * across));
    float *values_across = keys_across + width * across;
    float *keys_down = scratch<float>(1, static_cast<size_t>(keys * (2 * key_wide + value_wide)));
    float *key_sums = keys_down + keys * key_wide, *value_sums = key_sums + keys * key_wide;
    float *rows = scratch<float>(2, static_cast<size_t>(block * (2 * key_wide + value_wide)));
    float *grads = rows + block * key_wide, *query_sums = grads + block * value_wide;
    float *weights = scratch<float>(3, static_cast<size_t>(2 * block * across));
    float *slopes = weights + block * across;
    const T *key_rows = key + k0 * at.key_row + head * width;
    copy_transposed(key_rows, at.key_row, keys, width, keys_across);
    copy_rows(key_rows, at.key_row, keys, width, 1.0f, keys_down);
    copy_transposed(value + k0 * at.value_row + head * wide, at.value_row, keys, wide,
                    values_across);
    memset(key_sums, 0, static_cast<size_t>(keys * (key_wide + value_wide)) * sizeof(float));
    for (int64_t i = 0; i < queries; i += block) {
      const int64_t count = smaller(block, queries - i);
      const int64_t seen = at.causal ? smaller(keys, i + count) : keys, to = padded(seen);
      copy_rows(query + (q0 + i) * at.query_row + head * width, at.query_row, count, width,
                at.scale, rows);
      copy_rows(grad + (q0 + i) * at.out_row + head * wide, at.out_row, count, wide, 1.0f, grads);
      small_product<false>(count, to, width, rows, key_wide, 1, keys_across, across, weights,
                           across);
      small_product<false>(count, to, wide, grads, value_wide, 1, values_across, across, slopes,
                           across);
      for (int64_t r = 0; r < count; r++) {
        const int64_t own = at.causal ? smaller(keys, i + r + 1) : keys;
        const int64_t row = q0 + i + r, place = row * at.heads + head;
        float *weight = weights + r * across, *slope = slopes + r * across;
        const uint32_t mask_key = row_key(at.seed, mask_name(at, row, head));
        const Vec log_sum = all(log_sums[place]);
        Vec total = zero();
        for (int64_t j = 0; j < to; j += BLOCK) {
          Vec f[VECTORS];
          if (!dropout.off()) dropout_factors(dropout, mask_key, j / BLOCK, f);
          for (int v = 0; v < VECTORS && j + v * LANES < to; v++) {
            const int64_t c = j + v * LANES;
            const Vec w = keep_first(exponential(load(weight + c) - log_sum),
                                     own > c ? own - c : 0, zero());
            const Vec s = dropout.off() ? load(slope + c) : load(slope + c) * f[v];
            total = fma(w, s, total);
            // weight: after dropout, for dV; slope: kept beside for dS, with the plain weight in
            // it below.
            store(weight + c, w);
            store(slope + c, s);
          }
        }
        const Vec mean = all(sum(total));
        for (int64_t j = 0; j < to; j += BLOCK) {
          Vec f[VECTORS];
          if (!dropout.off()) dropout_factors(dropout, mask_key, j / BLOCK, f);
          for (int v = 0; v < VECTORS && j + v * LANES < to; v++) {
            const int64_t c = j + v * LANES;
            const Vec w = load(weight + c);
            store(slope + c, w * (load(slope + c) - mean));
            if (!dropout.off()) store(weight + c, w * f[v]);
          }
        }
      }
      // dV += weightsᵀ grads, dK += slopesᵀ rows (which carry the scale), dQ = slopes K scale
      small_product<true>(seen, value_wide, count, weights, 1, across, grads, value_wide,
                          value_sums, value_wide);
      small_product<true>(seen, key_wide, count, slopes, 1, across, rows, key_wide, key_sums,
                          key_wide);
      small_product<false>(count, key_wide, seen, slopes, across, 1, keys_down, key_wide,
                           query_sums, key_wide);
      for (int64_t e = 0; e < count * key_wide; e += LANES) {
        store(query_sums + e, load(query_sums + e) * all(at.scale));
      }
      put_rows(query_sums, count, width, dquery + (q0 + i) * dquery_row + head * width,
               dquery_row);
    }
    put_rows(key_sums, keys, width, dkey + k0 * dkey_row + head * width, dkey_row);
    put_rows(value_sums, keys, wide, dvalue + k0 * dvalue_row + head * wide, dvalue_row);
  });
}

}  // namespace

#define DRAGOMAN_ATTENTION(T, suffix)                                                          \
  KERNEL(void, attention_forward_##suffix, const Attention *at, const T *query, const T *key,  \
         const T *value, T *out, float *log_sums) {                                            \
    forward<T>(*at, query, key, value, out, log_sums);                                         \
  }                                                                                            \
  KERNEL(void, attention_backward_##suffix, const Attention *at, const T *query, const T *key, \
         const T *value, const float *log_sums, const T *grad, T *dquery, int64_t dquery_row,  \
         T *dkey, int64_t dkey_row, T *dvalue, int64_t dvalue_row) {                           \
    backward<T>(*at, query, key, value, log_sums, grad, dquery, dquery_row, dkey, dkey_row,    \
                dvalue, dvalue_row);                                                           \
  }

DRAGOMAN_ATTENTION(bf16, bf16)
DRAGOMAN_ATTENTION(float, fp32)
