// One step of beam search over all sentences: what search/beam.py says in numpy, in one pass.
//
// The structs are the records of search/live.py, field by field; Python owns all the memory.
#include <math.h>
#include <string.h>

#include "threads.h"

namespace {

struct Group {
  int64_t rows, width, length, limit, least, prefix, ngram, ended, quota;
  double alpha, ceiling, worst;
  uint64_t key;
  int64_t next_rows;
  uint8_t done, splits, draws, recorded, special;

  bool is_splitting() const { return splits && length == prefix; }
};

struct Looked {
  int64_t candidate, token;
  double total;
  uint8_t ends, goes_on;
};

struct Ended {
  int64_t group, row, length;
  double end;
};

struct Live {
  Group *groups;
  Looked *looked;  // `columns` to a group
  Ended *ended;
  int32_t *tokens;           // `places` to a row
  float *log_probabilities;  // likewise
  double *totals;
  int64_t *last, *parents;
  int64_t places, columns;
};

// -inf, what is not a number, and forbidden tokens are never chosen.
struct Choice {
  const float *log_probabilities;
  const int64_t *ids;
  const int64_t *forbidden;  // `stride` from row to row, `count` of each
  int64_t count, stride;

  bool allows(int64_t row, int64_t candidate) const {
    if (!(log_probabilities[candidate] > -INFINITY)) return false;
    for (int64_t f = 0; f < count; f++)
      if (forbidden[row * stride + f] == ids[candidate]) return false;
    return true;
  }
};

}  // namespace

// -> how many hypotheses have ended that are better than the worst that their group keeps.
DRAGOMAN_EXPORT int64_t dragoman_beam_expand(const Live *live, int64_t groups,
                                             const float *log_probabilities, const int64_t *ids,
                                             int64_t k, int64_t eos, const int64_t *forbidden,
                                             int64_t count, int64_t stride) {
  const Choice choice{log_probabilities, ids, forbidden, count, stride};
  int64_t ended = 0, first = 0;
  for (int64_t g = 0; g < groups; g++) {
    const Group &group = live->groups[g];
    Looked *looked = live->looked + g * live->columns;
    const bool may_grow = group.length < group.limit, splitting = group.is_splitting();
    // A row's candidates stand best first, so the best of a group is the best of the rows' heads.
    int64_t *head = scratch<int64_t>(0, static_cast<size_t>(group.rows));
    memset(head, 0xff, static_cast<size_t>(group.rows) * sizeof(int64_t));  // ~0: look from 0
    int64_t going_on = 0;
    for (int64_t c = 0; c < 2 * group.width; c++) {
      double best = -INFINITY;
      int64_t from = -1;
      for (int64_t r = 0; r < group.rows; r++) {
        const int64_t row = first + r;
        if (head[r] < 0) {  // a new head is looked for only where the last one was taken
          head[r] = ~head[r];
          while (head[r] < k && !choice.allows(row, row * k + head[r])) head[r]++;
        }
        if (head[r] == k) continue;
        const float cost = log_probabilities[row * k + head[r]];
        const double total = live->totals[row] + static_cast<double>(cost);
        if (total > best) best = total, from = r;
      }
      Looked &one = looked[c];
      one.total = best;
      one.ends = one.goes_on = 0;
      if (from < 0) continue;
      one.candidate = (first + from) * k + head[from];
      head[from] = ~(head[from] + 1);
      one.token = ids[one.candidate];
      if (one.token == eos) {
        if (c >= group.width) continue;
        one.ends = 1;
        const double length = 6.0 + static_cast<double>(group.length);  // 5, and the end symbol
        if (best / pow(length / 6.0, group.alpha) > group.worst)
          live->ended[ended++] = {g, first + from, group.length,
                                  static_cast<double>(log_probabilities[one.candidate])};
      } else if (may_grow && going_on < group.width && (!splitting || c < group.width)) {
        one.goes_on = 1;
        going_on++;
      }
    }
    first += group.rows;
  }
  return ended;
}

// -> whether any group is done.
DRAGOMAN_EXPORT int64_t dragoman_beam_judge(const Live *live, int64_t groups) {
  bool any = false;
  for (int64_t g = 0; g < groups; g++) {
    Group &group = live->groups[g];
    Looked *looked = live->looked + g * live->columns;
    double best = -INFINITY;
    group.next_rows = 0;
    for (int64_t c = 0; c < 2 * group.width; c++) {
      group.ended += looked[c].ends;
      if (looked[c].goes_on && group.next_rows++ == 0) best = looked[c].total;
    }
    group.done = group.next_rows == 0 ||
                 (!group.is_splitting() &&
                  (group.worst >= best / group.ceiling || group.ended >= group.quota));
    if (!group.done) continue;
    any = true;
    group.next_rows = 0;
    for (int64_t c = 0; c < 2 * group.width; c++) looked[c].goes_on = 0;
  }
  return any;
}

// -> twice the number of rows that go on, plus one if any of them moved.
DRAGOMAN_EXPORT int64_t dragoman_beam_move(const Live *live, int64_t groups, int64_t rows,
                                           const float *log_probabilities, int64_t k) {
  int64_t count = 0, longest = 0;
  bool moved = false;
  for (int64_t g = 0; g < groups; g++) {
    const Group &group = live->groups[g];
    const Looked *looked = live->looked + g * live->columns;
    for (int64_t c = 0, left = group.next_rows; left > 0; c++) {
      if (!looked[c].goes_on) continue;
      left--;
      live->parents[count] = looked[c].candidate / k;
      moved |= live->parents[count] != count;
      count++;
    }
    if (group.next_rows > 0 && group.length > longest) longest = group.length;
  }
  moved |= count != rows;
  int32_t *tokens = scratch<int32_t>(1, static_cast<size_t>(2 * count * longest));
  float *costs = reinterpret_cast<float *>(tokens + count * longest);
  const size_t bytes = static_cast<size_t>(longest) * sizeof(int32_t);
  // Two passes, since a row may be wanted by several and moves up as well as down.
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t m = 0; m < count; m++) {
      const int64_t parent = live->parents[m];
      if (parent == m) continue;
      if (pass == 0) {
        memcpy(tokens + m * longest, live->tokens + parent * live->places, bytes);
        memcpy(costs + m * longest, live->log_probabilities + parent * live->places, bytes);
      } else {
        memcpy(live->tokens + m * live->places, tokens + m * longest, bytes);
        memcpy(live->log_probabilities + m * live->places, costs + m * longest, bytes);
      }
    }
  }
  int64_t m = 0;
  for (int64_t g = 0; g < groups; g++) {
    Group &group = live->groups[g];
    const Looked *looked = live->looked + g * live->columns;
    for (int64_t c = 0, left = group.next_rows; left > 0; c++) {
      if (!looked[c].goes_on) continue;
      left--;
      const int64_t place = m * live->places + group.length;
      live->tokens[place] = static_cast<int32_t>(looked[c].token);
      live->log_probabilities[place] = log_probabilities[looked[c].candidate];
      live->totals[m] = looked[c].total;
      live->last[m] = looked[c].token;
      m++;
    }
    group.rows = group.next_rows;
    group.length++;
  }
  return 2 * count + moved;
}
