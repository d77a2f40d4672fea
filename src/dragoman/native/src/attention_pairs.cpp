// levels: avx512
// Multi-head attention over packed rows in bf16, for even head widths (native/attention.py).
//
// As in attention.cpp, one task is one head of one sentence and no weights are stored. Here products
// take bf16 numbers in pairs (vdpbf16ps), and scores lie the other way round: a row per key, with 16
// queries side by side. Softmax then runs down the rows, 16 queries at a time, and never adds up
// the lanes of a register; sentences are short, and that would be most of the work.
//
// Shapes: S keys, K key width, Kv value width; words are pairs of bf16 numbers.
#include "abi.h"
#include "matrix.h"

namespace {

constexpr int64_t QUERIES = 16;

// ---- small products: C (rows x columns, fp32) = or += A B, where word (i, s) of A is
// a[i * a_row + s * a_step] and step s of B begins at b + s * b_row

template <int R, int VECS, bool ADD>
static __attribute__((noinline)) void pair_tile(int64_t steps, const uint32_t *a, int64_t a_row,
                                                int64_t a_step, const uint32_t *b, int64_t b_row,
                                                float *c, int64_t c_row) {
  __m512 sums[R][VECS];
  for (int r = 0; r < R; r++) {
    for (int v = 0; v < VECS; v++) {
      sums[r][v] = ADD ? _mm512_loadu_ps(c + r * c_row + v * 16) : _mm512_setzero_ps();
    }
  }
  for (int64_t s = 0; s < steps; s++) {
    __m512bh right[VECS];
    for (int v = 0; v < VECS; v++) {
      right[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + s * b_row + v * 16));
    }
    for (int r = 0; r < R; r++) {
      const __m512bh left = reinterpret_cast<__m512bh>(
          _mm512_set1_epi32(static_cast<int>(a[r * a_row + s * a_step])));
      for (int v = 0; v < VECS; v++) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], left, right[v]);
    }
  }
  for (int r = 0; r < R; r++) {
    for (int v = 0; v < VECS; v++) _mm512_storeu_ps(c + r * c_row + v * 16, sums[r][v]);
  }
}

template <int VECS, bool ADD>
static inline void pair_rows(int64_t rows, int64_t steps, const uint32_t *a, int64_t a_row,
                             int64_t a_step, const uint32_t *b, int64_t b_row, float *c,
                             int64_t c_row) {
  constexpr int MOST = VECS == 1 ? 12 : 8;
  int64_t i = 0;
  for (; i + MOST <= rows; i += MOST) {
    pair_tile<MOST, VECS, ADD>(steps, a + i * a_row, a_row, a_step, b, b_row, c + i * c_row, c_row);
  }
  for (; i + 4 <= rows; i += 4) {
    pair_tile<4, VECS, ADD>(steps, a + i * a_row, a_row, a_step, b, b_row, c + i * c_row, c_row);
  }
  for (; i + 2 <= rows; i += 2) {
    pair_tile<2, VECS, ADD>(steps, a + i * a_row, a_row, a_step, b, b_row, c + i * c_row, c_row);
  }
  if (i < rows) {
    pair_tile<1, VECS, ADD>(steps, a + i * a_row, a_row, a_step, b, b_row, c + i * c_row, c_row);
  }
}

// `columns` is a multiple of 16.
template <bool ADD>
static void pair_product(int64_t rows, int64_t columns, int64_t steps, const uint32_t *a,
                         int64_t a_row, int64_t a_step, const uint32_t *b, int64_t b_row, float *c,
                         int64_t c_row) {
  int64_t j = 0;
  for (; j + 32 <= columns; j += 32) {
    pair_rows<2, ADD>(rows, steps, a, a_row, a_step, b + j, b_row, c + j, c_row);
  }
  if (j < columns) pair_rows<1, ADD>(rows, steps, a, a_row, a_step, b + j, b_row, c + j, c_row);
}

// ---- layouts

static ALWAYS_INLINE int64_t to_16(int64_t n) { return (n + 15) / 16 * 16; }
static ALWAYS_INLINE int64_t to_32(int64_t n) { return (n + 31) / 32 * 32; }
static ALWAYS_INLINE int64_t pairs_of(int64_t n) { return (n + 1) / 2; }

// out[s][i] = word s of row i, for 16 rows of which `rows` exist: (width / 2) x 16.
static ALWAYS_INLINE void words_across(const bf16 *x, int64_t x_row, int64_t rows, int64_t width,
                                       uint32_t *out) {
  for (int64_t s = 0; s < width / 2; s += 16) {
    const __mmask16 some = first_lanes(width / 2 - s);
    Vec block[LANES];
#pragma GCC unroll 16
    for (int64_t i = 0; i < LANES; i++) {
      const uint32_t *from = words(x + (i < rows ? i : 0) * x_row) + s;
      const __mmask16 mask = i < rows ? some : 0;
      block[i].v = _mm512_castsi512_ps(_mm512_maskz_loadu_epi32(mask, from));
    }
    transpose(block);
    // Steps beyond the width are written too; `out` has room for them.
#pragma GCC unroll 16
    for (int64_t i = 0; i < LANES; i++) _mm512_storeu_ps(out + (s + i) * QUERIES, block[i].v);
  }
}

// out[s][j] = (x[2s][j], x[2s + 1][j]): pairs_of(rows) x to_32(width) words.
static ALWAYS_INLINE void words_down(const bf16 *x, int64_t x_row, int64_t rows, int64_t width,
                                     uint32_t *out) {
  const int64_t out_row = to_32(width);
  for (int64_t s = 0; s < pairs_of(rows); s++) {
    const bf16 *first = x + 2 * s * x_row;
    const bool both = 2 * s + 1 < rows;
    for (int64_t j = 0; j < width; j += 32) {
      const int64_t left = width - j;
      const __mmask32 mask = left >= 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
      const __m512i a = _mm512_maskz_loadu_epi16(mask, first + j);
      const __m512i b = _mm512_maskz_loadu_epi16(both ? mask : 0, first + j + (both ? x_row : 0));
      _mm512_storeu_si512(out + s * out_row + j, pair_low(a, b));
      _mm512_storeu_si512(out + s * out_row + j + 16, pair_high(a, b));
    }
  }
}

// Rows side by side: rows x to_32(width) numbers.
static ALWAYS_INLINE void gather_rows(const bf16 *x, int64_t x_row, int64_t rows, int64_t width,
                                      bf16 *out) {
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < width; j += 32) {
      const int64_t left = width - j;
      const __mmask32 mask = left >= 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
      _mm512_storeu_si512(out + i * to_32(width) + j,
                          _mm512_maskz_loadu_epi16(mask, x + i * x_row + j));
    }
  }
}

// 16 words (a[i], b[i])
static ALWAYS_INLINE __m512i word_pairs(Vec a, Vec b) {
  const __m512i both = join_bf16(a, b);  // a's 16 numbers, then b's
  const __m512i order =
      _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                       21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, both);
}

static ALWAYS_INLINE void put(const float *in, int64_t in_row, int64_t rows, int64_t width,
                              float scale, bf16 *x, int64_t x_row) {
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < width; j += 16) {
      store_some(x + i * x_row + j, load(in + i * in_row + j) * all(scale), width - j);
    }
  }
}

// ---- masks of 16 queries, for one key at a time

struct Masks {
  Int keys;       // of the dropout rows of the 16 queries (random.h)
  Int threshold;
  Vec kept;
  bool drops;
  int64_t first;  // the first of the 16 queries, in its sentence
  bool causal;

  Masks(const Attention &at, const Dropout &dropout, int64_t row, int64_t count, int64_t query,
        int64_t head)
      : keys(all_int(0)),
        threshold(all_int(dropout.threshold)),
        kept(all(dropout.scale)),
        drops(!dropout.off()),
        first(query),
        causal(at.causal != 0) {
    const uint32_t low = static_cast<uint32_t>(at.seed), high = static_cast<uint32_t>(at.seed >> 32);
    Int names = all_int(static_cast<uint32_t>(row)) + lane_numbers();
    if (at.query_names != nullptr) {
      names.v = _mm512_maskz_loadu_epi32(first_lanes(count), at.query_names + row);
    }
    const Int rows = names * all_int(static_cast<uint32_t>(at.heads)) +
                     all_int(low + static_cast<uint32_t>(head));
    keys = mix(mix(rows) ^ all_int(high));
  }

  // Queries that see key j.
  ALWAYS_INLINE Mask sees(int64_t j) const {
    if (!causal || j <= first) return static_cast<Mask>(0xffff);
    return static_cast<Mask>(j - first >= 16 ? 0 : 0xffffu << (j - first));
  }

  ALWAYS_INLINE Vec factor(int64_t j) const {
    const Int bits = mix(keys + all_int(static_cast<uint32_t>(j / 32 * 16 + j % 16)));
    const Int own = j % 32 < 16 ? low_half(bits) : shift_right<16>(bits);
    return where(at_least(own, threshold), kept, zero());
  }
};

static ALWAYS_INLINE Vec only(Mask mask, Vec a) { return {_mm512_maskz_mov_ps(mask, a.v)}; }

// One head of one sentence.
struct Place {
  int64_t queries, keys, query, key, head;  // counts, first rows

  Place(const Attention &at, int64_t sentence, int64_t head) : head(head) {
    query = at.query_offsets[sentence];
    key = at.key_offsets[sentence];
    queries = at.query_offsets[sentence + 1] - query;
    keys = at.key_offsets[sentence + 1] - key;
  }
};

// body(place) for every head of every sentence. One task takes all heads of a sentence where there
// are enough of them: the rows of a head lie next to those of the next, which are asked for ahead.
template <class Body>
static inline void for_each_head(const Attention &at, const Body &body) {
  const int64_t together = at.sentences >= 16 * dragoman_threads() ? at.heads : 1;
  const int64_t groups = at.heads / together;
  parallel_for(at.sentences * groups, [&](int64_t task) {
    for (int64_t i = 0; i < together; i++) {
      body(Place(at, task / groups, task % groups * together + i), i + 1 < together);
    }
  });
}

// The scale is above zero. `tops` holds two numbers per row and head: the largest score, and 1 / sum(exp(score - largest)).
static void forward(const Attention &at, const bf16 *query, const bf16 *key, const bf16 *value,
                    bf16 *out, float *tops) {
  const Dropout dropout(at.rate);
  const int64_t width = at.key_width, wide = at.value_width;
  for_each_head(at, [&](const Place &place, bool another) {
    if (place.queries == 0) return;
    if (another) {
      const int64_t next = place.head + 1;
      fetch_rows(query + place.query * at.query_row + next * width, 2 * at.query_row,
                 place.queries, 2 * width);
      fetch_rows(key + place.key * at.key_row + next * width, 2 * at.key_row, place.keys,
                 2 * width);
      fetch_rows(value + place.key * at.value_row + next * wide, 2 * at.value_row, place.keys,
                 2 * wide);
    }
    const size_t most = static_cast<size_t>(place.keys + 1);
    uint32_t *values = scratch<uint32_t>(0, most * static_cast<size_t>(to_32(wide) + to_32(width)));
    bf16 *keys = reinterpret_cast<bf16 *>(values + most * to_32(wide));
    uint32_t *queries = scratch<uint32_t>(1, static_cast<size_t>(to_16(width / 2) * QUERIES));
    float *scores = scratch<float>(2, most * QUERIES);
    uint32_t *weights = scratch<uint32_t>(3, most * QUERIES);
    float *result = scratch<float>(4, static_cast<size_t>(QUERIES * to_32(wide)));
    words_down(value + place.key * at.value_row + place.head * wide, at.value_row, place.keys, wide,
               values);
    gather_rows(key + place.key * at.key_row + place.head * width, at.key_row, place.keys, width,
                keys);
    for (int64_t i = 0; i < place.queries; i += QUERIES) {
      const int64_t count = smaller(QUERIES, place.queries - i), row = place.query + i;
      const int64_t seen = at.causal ? smaller(place.keys, i + count) : place.keys;
      const Masks masks(at, dropout, row, count, i, place.head);
      words_across(query + row * at.query_row + place.head * width, at.query_row, count, width,
                   queries);
      pair_product<false>(seen, QUERIES, width / 2, words(keys), to_32(width) / 2, 1, queries,
                          QUERIES, scores, QUERIES);
      Vec top = all(-INFINITY), total = zero();
      for (int64_t j = 0; j < seen; j++) {
        const Vec score = load(scores + j * QUERIES);
        top = where(masks.sees(j), maximum(top, score), top);
      }
      const Vec scale = all(at.scale);
      for (int64_t j = 0; j < seen; j++) {
        const Vec score = (load(scores + j * QUERIES) - top) * scale;
        const Vec weight = only(masks.sees(j), exponential(score));
        total = total + weight;
        store(scores + j * QUERIES, weight);
      }
      const Vec share = all(1.0f) / total;
      for (int64_t j = 0; j < seen; j += 2) {
        Vec first = load(scores + j * QUERIES) * share, second = zero();
        if (j + 1 < seen) second = load(scores + (j + 1) * QUERIES) * share;
        if (masks.drops) first = first * masks.factor(j), second = second * masks.factor(j + 1);
        _mm512_storeu_si512(weights + j / 2 * QUERIES, word_pairs(first, second));
      }
      pair_product<false>(count, to_16(wide), pairs_of(seen), weights, 1, QUERIES, values,
                          to_32(wide), result, to_32(wide));
      put(result, to_32(wide), count, wide, 1.0f, out + row * at.out_row + place.head * wide,
          at.out_row);
      if (tops != nullptr) {
        float top_of[QUERIES], share_of[QUERIES];
        store(top_of, top), store(share_of, share);
        for (int64_t r = 0; r < count; r++) {
          float *to = tops + 2 * ((row + r) * at.heads + place.head);
          to[0] = top_of[r], to[1] = share_of[r];
        }
      }
    }
  });
}

static void backward(const Attention &at, const bf16 *query, const bf16 *key, const bf16 *value,
                     const float *tops, const bf16 *grad, bf16 *dquery, int64_t dquery_row,
                     bf16 *dkey, int64_t dkey_row, bf16 *dvalue, int64_t dvalue_row) {
  const Dropout dropout(at.rate);
  const int64_t width = at.key_width, wide = at.value_width;
  const int64_t key_line = to_32(width), value_line = to_32(wide);
  for_each_head(at, [&](const Place &place, bool another) {
    if (another) {
      const int64_t next = place.head + 1;
      fetch_rows(query + place.query * at.query_row + next * width, 2 * at.query_row,
                 place.queries, 2 * width);
      fetch_rows(grad + place.query * at.out_row + next * wide, 2 * at.out_row, place.queries,
                 2 * wide);
      fetch_rows(key + place.key * at.key_row + next * width, 2 * at.key_row, place.keys,
                 2 * width);
      fetch_rows(value + place.key * at.value_row + next * wide, 2 * at.value_row, place.keys,
                 2 * wide);
    }
    const size_t most = static_cast<size_t>(place.keys + 1);
    const size_t lines = static_cast<size_t>(key_line + value_line);
    uint32_t *keys_down = scratch<uint32_t>(0, most * (static_cast<size_t>(key_line) + lines));
    bf16 *keys = reinterpret_cast<bf16 *>(keys_down + most * key_line);
    bf16 *values = keys + most * key_line;
    uint32_t *across = scratch<uint32_t>(
        1, static_cast<size_t>((to_16(width / 2) + to_16(wide / 2)) * QUERIES) + 8 * lines);
    uint32_t *queries = across, *grads = queries + to_16(width / 2) * QUERIES;
    uint32_t *queries_down = grads + to_16(wide / 2) * QUERIES;
    uint32_t *grads_down = queries_down + 8 * key_line;
    float *scores = scratch<float>(2, 2 * most * QUERIES);
    float *slopes = scores + most * QUERIES;
    // Per key: 8 words of weights along the queries, 8 of slopes; then slopes paired along the keys.
    uint32_t *weight_words = scratch<uint32_t>(3, most * (8 + 8 + QUERIES));
    uint32_t *slope_words = weight_words + most * 8, *slope_pairs = slope_words + most * 8;
    float *result = scratch<float>(4, static_cast<size_t>(QUERIES * key_line));
    float *key_sums = scratch<float>(5, most * lines), *value_sums = key_sums + most * key_line;
    const bf16 *key_rows = key + place.key * at.key_row + place.head * width;
    const bf16 *value_rows = value + place.key * at.value_row + place.head * wide;
    words_down(key_rows, at.key_row, place.keys, width, keys_down);
    gather_rows(key_rows, at.key_row, place.keys, width, keys);
    gather_rows(value_rows, at.value_row, place.keys, wide, values);
    if (place.queries == 0 || (at.causal && place.queries < place.keys)) {
      memset(key_sums, 0, most * lines * sizeof(float));
    }
    for (int64_t i = 0; i < place.queries; i += QUERIES) {
      const int64_t count = smaller(QUERIES, place.queries - i), row = place.query + i;
      const int64_t seen = at.causal ? smaller(place.keys, i + count) : place.keys;
      const Masks masks(at, dropout, row, count, i, place.head);
      const bf16 *query_rows = query + row * at.query_row + place.head * width;
      const bf16 *grad_rows = grad + row * at.out_row + place.head * wide;
      words_across(query_rows, at.query_row, count, width, queries);
      words_across(grad_rows, at.out_row, count, wide, grads);
      words_down(query_rows, at.query_row, count, width, queries_down);
      words_down(grad_rows, at.out_row, count, wide, grads_down);
      pair_product<false>(seen, QUERIES, width / 2, words(keys), key_line / 2, 1, queries, QUERIES,
                          scores, QUERIES);
      pair_product<false>(seen, QUERIES, wide / 2, words(values), value_line / 2, 1, grads, QUERIES,
                          slopes, QUERIES);
      float top_of[QUERIES] = {}, share_of[QUERIES] = {};
      for (int64_t r = 0; r < count; r++) {
        const float *from = tops + 2 * ((row + r) * at.heads + place.head);
        top_of[r] = from[0], share_of[r] = from[1];
      }
      const Vec top = load(top_of), share = load(share_of), scale = all(at.scale);
      Vec total = zero();
      for (int64_t j = 0; j < seen; j++) {
        const Vec score = (load(scores + j * QUERIES) - top) * scale;
        const Vec weight = only(masks.sees(j), exponential(score) * share);
        Vec slope = load(slopes + j * QUERIES), dropped = weight;
        if (masks.drops) {
          const Vec factor = masks.factor(j);
          slope = slope * factor;
          dropped = weight * factor;
        }
        total = fma(weight, slope, total);
        store(scores + j * QUERIES, weight);
        store(slopes + j * QUERIES, slope);
        store(reinterpret_cast<bf16 *>(weight_words + j * 8), dropped);
      }
      for (int64_t j = 0; j < seen; j += 2) {
        const Vec first = load(scores + j * QUERIES) * (load(slopes + j * QUERIES) - total);
        Vec second = zero();
        store(reinterpret_cast<bf16 *>(slope_words + j * 8), first);
        if (j + 1 < seen) {
          const int64_t next = (j + 1) * QUERIES;
          second = load(scores + next) * (load(slopes + next) - total);
          store(reinterpret_cast<bf16 *>(slope_words + (j + 1) * 8), second);
        }
        _mm512_storeu_si512(slope_pairs + j / 2 * QUERIES, word_pairs(first, second));
      }
      const auto add_up = [&](int64_t from, int64_t to, auto sum) {
        const int64_t rows = to - from;
        sum(rows, to_16(wide), pairs_of(count), weight_words + from * 8, 8, 1, grads_down,
            value_line, value_sums + from * value_line, value_line);
        sum(rows, to_16(width), pairs_of(count), slope_words + from * 8, 8, 1, queries_down,
            key_line, key_sums + from * key_line, key_line);
      };
      // Keys that no earlier query has seen begin their sums here.
      const int64_t before = i == 0 ? 0 : at.causal ? smaller(place.keys, i) : place.keys;
      if (before > 0) add_up(0, before, pair_product<true>);
      if (before < seen) add_up(before, seen, pair_product<false>);
      pair_product<false>(count, to_16(width), pairs_of(seen), slope_pairs, 1, QUERIES, keys_down,
                          key_line, result, key_line);
      put(result, key_line, count, width, at.scale,
          dquery + row * dquery_row + place.head * width, dquery_row);
    }
    put(key_sums, key_line, place.keys, width, at.scale,
        dkey + place.key * dkey_row + place.head * width, dkey_row);
    put(value_sums, value_line, place.keys, wide, 1.0f,
        dvalue + place.key * dvalue_row + place.head * wide, dvalue_row);
  });
}

}  // namespace

KERNEL(void, attention_pairs_forward_bf16, const Attention *at, const bf16 *query, const bf16 *key,
       const bf16 *value, bf16 *out, float *tops) {
  forward(*at, query, key, value, out, tops);
}

KERNEL(void, attention_pairs_backward_bf16, const Attention *at, const bf16 *query,
       const bf16 *key, const bf16 *value, const float *tops, const bf16 *grad, bf16 *dquery,
       int64_t dquery_row, bf16 *dkey, int64_t dkey_row, bf16 *dvalue, int64_t dvalue_row) {
  backward(*at, query, key, value, tops, grad, dquery, dquery_row, dkey, dkey_row, dvalue,
           dvalue_row);
}
