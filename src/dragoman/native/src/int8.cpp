// levels: amx avx512 avx512vnni avxvnni avx2 amxtwin neon
// Linear maps in int8 for models whose steps torch runs, and what LSTMs and gated convolutions do
// with the result while it is near (native/int8.py). Rows are fp32 and quantised as they come.
//
// A map of g groups has outputs for each of g gates. 16 outputs of every gate stand side by side in
// its columns, so that a panel holds all gates of some units and is done with at once.
#include "decode_best.h"

namespace {

struct Map {
  Int8Weights weights;
  int inputs, outputs;  // outputs of one group
  int groups;
  int width;            // inputs rounded up to whole panels
  bool biased;

  // Of what is handed out: one row after the other, or all gates, padding and all.
  int columns() const { return groups == 1 ? outputs : weights.columns; }
};

// What a thread works in.
struct Work {
  Buffer<float> row;
  Buffer<float> scale;
  Buffer<uint8_t> bytes;
  Buffer<float> panel;     // (block, 64)
  Buffer<float> hidden;    // (sequences, outputs) of a recurrence
  Buffer<float> cell;
  Best best;
};

static Work& work() {
  static thread_local Work found;
  return found;
}

// Rows of x, `stride` apart, become bytes.
static void take_in(Work& w, const Map& m, const float* x, int64_t stride, int rows) {
  w.scale.reserve(rows);
  w.bytes.reserve(static_cast<size_t>(rows) * m.width);
  w.row.reserve(m.width);
  for (int i = m.inputs; i < m.width; ++i) w.row[i] = 0.0f;
  for (int r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
    if (m.inputs != m.width) {
      __builtin_memcpy(w.row.data(), row, sizeof(float) * m.inputs);
      row = w.row.data();
    }
    w.scale[r] = quantise(row, m.width, peak_of(row, m.width),
                          w.bytes.data() + static_cast<size_t>(r) * m.width);
  }
}

// Each panel of the product of all rows in turn: use(row, column, panel), where `panel` are the 64
// values of a row. By itself: between two tiles of a product what is done with them would keep the
// multipliers waiting.
template <class Use>
static void each_panel(Work& w, const Map& m, int rows, const Use& use) {
  w.panel.reserve(static_cast<size_t>(BLOCK_ROWS) * PANEL);
  float* panel = w.panel.data();
  for (int first = 0; first < rows; first += BLOCK_ROWS) {
    const int block = rows - first < BLOCK_ROWS ? rows - first : BLOCK_ROWS;
    product(m.weights, w.bytes.data() + static_cast<size_t>(first) * m.width, m.width, block,
            [&](int i, int column, const Floats(&sums)[PANEL_VECTORS]) INLINE_LAMBDA {
              const Floats scale = every(w.scale[first + i]);
              for (int j = 0; j < PANEL_VECTORS; ++j)
                store(panel + i * PANEL + LANES * j,
                      value_of(m.weights, column + LANES * j, sums[j], scale));
              if (i == block - 1)
                for (int r = 0; r < block; ++r) use(first + r, column, panel + r * PANEL);
            });
  }
}

// One step of an LSTM for some sequences, whose hidden vectors have been taken in. gates(r): what
// is added to the gates of row r, in the order of the map's columns. Cells (rows, outputs) are
// read and written over, hidden vectors written.
template <class Gates>
static void lstm_step(Work& w, const Map& m, int rows, const Gates& gates, float* cells,
                      float* hidden) {
  each_panel(w, m, rows, [&](int r, int column, const float* panel) {
    const float* more = gates(r) + column;
    Floats a[PANEL_VECTORS];
    for (int j = 0; j < PANEL_VECTORS; ++j)
      a[j] = add(load(panel + LANES * j), load(more + LANES * j));
    const int unit = column / PANEL_VECTORS;
    float* cell = cells + static_cast<size_t>(r) * m.outputs;
    const Floats now = multiply_add(sigmoid(a[1]), load_some(cell, unit, m.outputs),
                                    multiply(sigmoid(a[0]), hyperbolic_tangent(a[2])));
    store_some(cell, unit, m.outputs, now);
    store_some(hidden + static_cast<size_t>(r) * m.outputs, unit, m.outputs,
               multiply(sigmoid(a[3]), hyperbolic_tangent(now)));
  });
}

}  // namespace

// weight (groups x outputs, inputs), bias (groups x outputs) or null; packed now.
KERNEL(void*, int8_new, const float* weight, const float* bias, int groups, int outputs,
       int inputs) {
  Map* m = new Map();
  m->inputs = inputs;
  m->outputs = outputs;
  m->groups = groups;
  m->width = round_up(inputs, PANEL);
  m->biased = bias != nullptr;
  Int8Weights& w = m->weights;
  w.shape(groups == 1 ? outputs : groups * round_up(outputs, LANES), m->width, true);
  for (int g = 0; g < groups; ++g)
    for (int o = 0; o < outputs; ++o) {
      const int from = g * outputs + o;
      const int column = groups == 1 ? o : (o / LANES * groups + g) * LANES + o % LANES;
      w.fill(column, weight + static_cast<size_t>(from) * inputs, bias ? bias[from] : 0.0f, inputs,
             nullptr, 1.0f);
    }
  // Columns that are no token must never win.
  if (groups == 1)
    for (int c = outputs; c < w.columns; ++c) w.bias[c] = -1.0e30f;
  return m;
}

KERNEL(void, int8_free, void* map) { delete static_cast<Map*>(map); }

KERNEL(int, int8_columns, const void* map) { return static_cast<const Map*>(map)->columns(); }

// x (rows, inputs), `stride` floats apart -> out (rows, columns), `apart` from each other, added to
// what is there or not.
KERNEL(void, int8_rows, const void* map, const float* x, int64_t stride, int rows, int more,
       float* out, int64_t apart) {
  const Map& m = *static_cast<const Map*>(map);
  Work& w = work();
  const int columns = m.columns();
  take_in(w, m, x, stride, rows);
  project(m.weights, w.bytes.data(), m.width, w.scale.data(), rows,
          [&](int r, int column, const Floats(&values)[PANEL_VECTORS]) INLINE_LAMBDA {
            float* to = out + r * apart;
            Floats sums[PANEL_VECTORS];
            for (int j = 0; j < PANEL_VECTORS; ++j) {
              const int at = column + LANES * j;
              sums[j] = more ? add(values[j], load_some(to, at, columns)) : values[j];
            }
            store_columns(to, column, columns, sums);
          });
}

template <bool BIASED>
static void best_of(const Map& m, Work& w, int rows, int k, float* log_probabilities,
                    int64_t* ids) {
  w.best.begin(rows, k);
  const float* scales = BIASED ? w.best.ones.data() : w.scale.data();
  float* panel = w.best.panel.data();
  for (int first = 0; first < rows; first += BLOCK_ROWS) {
    const int block = rows - first < BLOCK_ROWS ? rows - first : BLOCK_ROWS;
    product(m.weights, w.bytes.data() + static_cast<size_t>(first) * m.width, m.width, block,
            [&](int i, int column, const Floats(&sums)[PANEL_VECTORS]) INLINE_LAMBDA {
              for (int j = 0; j < PANEL_VECTORS; ++j)
                store(panel + i * PANEL + LANES * j,
                      logits_of<BIASED>(m.weights, column + LANES * j, sums[j], w.scale[first + i]));
              if (i == block - 1) look_at_panel(w.best, scales, first, block, k, column);
            });
  }
  w.best.finish(rows, k, scales, nullptr, log_probabilities, ids);
}

// The k best of the outputs: log-probabilities (rows, k) and which they are (rows, k).
KERNEL(void, int8_best, const void* map, const float* x, int64_t stride, int rows, int k,
       float* log_probabilities, int64_t* ids) {
  const Map& m = *static_cast<const Map*>(map);
  Work& w = work();
  take_in(w, m, x, stride, rows);
  if (m.biased) return best_of<true>(m, w, rows, k, log_probabilities, ids);
  best_of<false>(m, w, rows, k, log_probabilities, ids);
}

// Gated linear units of two groups, a and b: out (rows, outputs) = a sigmoid(b).
KERNEL(void, int8_gated, const void* map, const float* x, int64_t stride, int rows, float* out) {
  const Map& m = *static_cast<const Map*>(map);
  Work& w = work();
  take_in(w, m, x, stride, rows);
  each_panel(w, m, rows, [&](int r, int column, const float* panel) {
    float* to = out + static_cast<size_t>(r) * m.outputs;
    for (int j = 0; j < PANEL_VECTORS; j += 2) {
      const int unit = column / 2 + LANES / 2 * j;
      if (unit < m.outputs)
        store_some(to, unit, m.outputs,
                   multiply(load(panel + LANES * j), sigmoid(load(panel + LANES * (j + 1)))));
    }
  });
}

// A step of an LSTM of four groups (i, f, g, o) for rows that come one after the other: `gates`
// (rows, columns) are added, hidden vectors (rows, outputs) read; cells (rows, outputs) are written
// over, `out` (rows, outputs) is written.
KERNEL(void, int8_lstm, const void* map, const float* gates, const float* hidden, int rows,
       float* cells, float* out) {
  const Map& m = *static_cast<const Map*>(map);
  Work& w = work();
  take_in(w, m, hidden, m.outputs, rows);
  const int columns = m.columns();
  lstm_step(w, m, rows,
            [&](int r) INLINE_LAMBDA { return gates + static_cast<size_t>(r) * columns; }, cells,
            out);
}

// All steps of `batch` sequences, the longest first: sizes (steps) of them take part in a step, and
// `places` (P) are the rows of `gates` (P, `apart`), and of `out` and `kept`, in the order of steps.
// `hidden`, `cells` (batch, outputs): what they begin with. out (P, `stride` apart) and
// kept (P, outputs) become hidden vectors and cells.
KERNEL(void, int8_recur, const void* map, const float* gates, int64_t apart, const int64_t* places,
       const int64_t* sizes, int steps, int batch, const float* hidden, const float* cells,
       float* out, int64_t stride, float* kept) {
  const Map& m = *static_cast<const Map*>(map);
  Work& w = work();
  const int width = m.outputs;
  const size_t all = static_cast<size_t>(batch) * width, bytes = sizeof(float) * width;
  w.hidden.reserve(all);
  w.cell.reserve(all);
  __builtin_memcpy(w.hidden.data(), hidden, sizeof(float) * all);
  __builtin_memcpy(w.cell.data(), cells, sizeof(float) * all);
  for (int t = 0; t < steps; places += sizes[t], ++t) {
    const int rows = static_cast<int>(sizes[t]);
    take_in(w, m, w.hidden.data(), width, rows);
    lstm_step(w, m, rows, [&](int r) INLINE_LAMBDA { return gates + places[r] * apart; },
              w.cell.data(), w.hidden.data());
    for (int r = 0; r < rows; ++r) {
      const size_t from = static_cast<size_t>(r) * width;
      __builtin_memcpy(out + places[r] * stride, w.hidden.data() + from, bytes);
      __builtin_memcpy(kept + places[r] * width, w.cell.data() + from, bytes);
    }
  }
}
