// Steps of beam search over all sentences: what search/beam.py says in numpy, in one pass, and, for
// searches that ask for nothing special, many steps in one call, the model's own among them.
//
// Python owns all the memory (search/beam_state.py).
#include <math.h>
#include <string.h>

#include "abi.h"
#include "threads.h"

namespace {

// Whether a group becomes one per hypothesis by this step.
static bool is_splitting(const Group &group) {
  return group.splits && group.length == group.prefix;
}

// The length penalty of an output of so many tokens and the end symbol (search/hypothesis.py).
static double penalty(const Group &group, int64_t length) {
  const double end = group.shift + 1.0;
  return pow((end + static_cast<double>(length)) / end, group.alpha);
}

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
    if (group.rows == 0) continue;  // done earlier in this run
    Looked *looked = live->looked + g * live->columns;
    const bool may_grow = group.length < group.limit;
    const int64_t width = group.width - (group.shrinks ? group.ended : 0);
    // How many continuations, the ends among them, are left for those that go on.
    const int64_t within = group.shrinks || is_splitting(group) ? width : 2 * group.width;
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
        if (c >= width) continue;
        one.ends = 1;
        if (best / penalty(group, group.length) > group.worst)
          live->ended[ended++] = {g, first + from, group.length,
                                  static_cast<double>(log_probabilities[one.candidate])};
      } else if (may_grow && going_on < width && c < within) {
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
    if (group.rows == 0) continue;
    Looked *looked = live->looked + g * live->columns;
    double best = -INFINITY;
    group.next_rows = 0;
    for (int64_t c = 0; c < 2 * group.width; c++) {
      group.ended += looked[c].ends;
      if (looked[c].goes_on && group.next_rows++ == 0) best = looked[c].total;
    }
    group.done = group.next_rows == 0 ||
                 (!is_splitting(group) &&
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
    if (group.rows == 0) continue;
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

namespace {

// The first `length` tokens of a row become what was found of a group.
static void keep(const Live &live, int64_t group, int64_t row, int64_t length, double end) {
  const size_t bytes = static_cast<size_t>(length) * sizeof(int32_t);
  const int64_t from = row * live.places, to = group * live.places;
  memcpy(live.found_tokens + to, live.tokens + from, bytes);
  memcpy(live.found_log_probabilities + to, live.log_probabilities + from, bytes);
  live.found[group] = {length, end};
}

}  // namespace

// Steps of groups that keep one hypothesis each and ask for nothing special. A group that is done
// stays where it is, without rows, until Python puts it away; `found` says what became of it.
DRAGOMAN_EXPORT void dragoman_beam_run(const Live *live, const Step *step, Run *run) {
  const int64_t most = run->steps, groups = run->groups;
  int64_t freed = 0;
  run->steps = run->any_done = run->wrong = 0;
  for (int64_t g = 0; g < groups; g++) live->found[g].length = -1;
  while (run->steps < most && run->rows > 0 && freed < run->enough) {
    run->wrong = step->best(step->state, live->last, static_cast<int>(run->rows), 1,
                            step->positions, static_cast<int>(step->known),
                            static_cast<int>(run->k), run->log_probabilities, run->ids);
    if (run->wrong != 0) return;
    const int64_t ended = dragoman_beam_expand(live, groups, run->log_probabilities, run->ids,
                                               run->k, run->eos, run->forbidden, run->count,
                                               0);
    for (int64_t e = 0; e < ended; e++) {
      const Ended &one = live->ended[e];
      Group &group = live->groups[one.group];
      const double score =
          (live->totals[one.row] + one.end) / penalty(group, one.length);
      if (!(score > group.worst)) continue;
      keep(*live, one.group, one.row, one.length, one.end);
      group.worst = score;
    }
    if (dragoman_beam_judge(live, groups)) {
      int64_t first = 0;
      for (int64_t g = 0; g < groups; g++) {
        const Group &group = live->groups[g];
        if (group.rows > 0 && group.done) {
          run->any_done = 1;
          freed += group.width;
          // Nothing has ended and nothing may follow: the best that is live, as it stands.
          if (group.worst == -INFINITY) keep(*live, g, first, group.length, NAN);
        }
        first += group.rows;
      }
    }
    const int64_t moved =
        dragoman_beam_move(live, groups, run->rows, run->log_probabilities, run->k);
    run->rows = moved >> 1;
    run->steps++;
    if (moved & 1) step->select(step->state, live->parents, static_cast<int>(run->rows));
  }
}
