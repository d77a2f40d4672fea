"""PARSEVAL: precision, recall and F1 of the labelled brackets of a parse.

Brackets are counted as EVALB does with its parameters COLLINS.prm (Black et al., 1991; Collins,
1997), as in papers: a bracket is a label and the words from first to last; words that are
punctuation are taken out first; function tags are not part of a label; ADVP and PRT count as the
same label; the root bracket does not count. Two departures, where EVALB gives no figure or a
flattering one:

* Only the tags of the reference decide what is punctuation. EVALB uses the tags of each tree, and
  refuses a parse whose tags take out other words; parses without tags could not be scored.
* The root bracket is left out under each of its usual labels, and also if it has no label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError
from dragoman.forms.tree import EMPTY, TOPS, Tree
from dragoman.metrics.classification import Matches, Place, add_matches, matches_of

PUNCTUATION = frozenset({",", ":", "``", "''", "."})
"""Tags of punctuation, whose words are taken out; brackets with such a label do not count."""
SHORT = 40
"""The most words, punctuation included, of sentences that are also scored separately."""

_BINS = (10, 20, 30, SHORT)
LENGTHS = (*_BINS, 0)
"""The most words in each bin of sentences; 0 stands for the last bin, which has no limit."""
_SAME = {"PRT": "ADVP"}

Statistics = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ScoredSentence:
    """The score of one parse against its reference."""

    words: int
    """The number of words, including punctuation."""
    scored: int
    """Words that are not punctuation; a sentence without any is not scored."""
    labels: Mapping[str, Matches]
    """The counts of brackets for each label."""
    tags: int
    """The number of scored words with the reference's tag."""

    @property
    def brackets(self) -> Matches:
        """The brackets of all labels together."""
        return sum(self.labels.values(), Matches())

    @property
    def is_exact(self) -> bool:
        """True if reference and parse have the same brackets."""
        return self.brackets.right == self.brackets.found == self.brackets.there


def score_parse(reference: Tree, parse: Tree) -> ScoredSentence:
    """Score a parse. Errors: ``DataError`` if the trees have different words."""
    expected, parsed = _nonempty_leaves(reference), _nonempty_leaves(parse)
    words = [[leaf.word for leaf in leaves] for leaves in (expected, parsed)]
    if words[0] != words[1]:
        raise DataError(_difference(*words))
    counts = [leaf.label not in PUNCTUATION for leaf in expected]
    behind = [0, *accumulate(counts)]
    given, wanted = (
        [bracket for _, bracket in _brackets(tree, behind)] for tree in (parse, reference)
    )
    tags = sum(
        counted and _SAME.get(leaf.label, leaf.label) == _SAME.get(other.label, other.label)
        for counted, leaf, other in zip(counts, expected, parsed, strict=True)
    )
    return ScoredSentence(len(counts), sum(counts), matches_of(given, wanted), tags)


def differing_brackets(reference: Tree, parse: Tree) -> tuple[frozenset[int], frozenset[int]]:
    """The brackets that ``score_parse`` does not match: those of the reference, and those of the
    parse, by their places in ``Tree.brackets()``. Both trees are over the same words.

    If a bracket occurs more often in one tree than in the other, its last occurrences are
    unmatched.
    """
    behind = [0, *accumulate(leaf.label not in PUNCTUATION for leaf in _nonempty_leaves(reference))]
    wanted, given = _brackets(reference, behind), _brackets(parse, behind)

    def of_one(these: list[tuple[int, Place]], others: list[tuple[int, Place]]) -> set[int]:
        left = Counter(bracket for _, bracket in others)
        places = set()
        for place, bracket in these:
            if left[bracket]:
                left[bracket] -= 1
            else:
                places.add(place)
        return places

    return frozenset(of_one(wanted, given)), frozenset(of_one(given, wanted))


def _nonempty_leaves(tree: Tree) -> list[Tree]:
    """The leaves of a tree that are not empty elements."""
    return [leaf for leaf in tree.leaves() if leaf.label != EMPTY]


def _brackets(tree: Tree, behind: list[int]) -> list[tuple[int, Place]]:
    """The brackets that count, outermost first, each with its place in ``Tree.brackets()``.
    ``behind[n]``: the number of counted words among the first n."""
    brackets: list[tuple[int, Place]] = []
    places = count()

    def walk(node: Tree, first: int) -> int:
        if node.is_leaf:
            return first + (node.label != EMPTY)
        place, end = next(places), first
        for child in node.children:
            end = walk(child, end)
        label = _same(node.label)
        if behind[first] < behind[end] and label not in TOPS and label not in PUNCTUATION:
            brackets.append((place, (label, behind[first], behind[end])))
        return end

    walk(tree, 0)
    return sorted(brackets)


def _same(label: str) -> str:
    """A label as EVALB compares it: cut at the first mark of a function, ADVP for PRT."""
    cut = label.replace("=", "-").split("-")[0]
    return _SAME.get(cut, cut)


def _difference(expected: list[str | None], parsed: list[str | None]) -> str:
    place = next(
        (n for n, both in enumerate(zip(expected, parsed, strict=False)) if both[0] != both[1]),
        min(len(expected), len(parsed)),
    )
    both = (
        repr(words[place]) if place < len(words) else "nothing more" for words in (expected, parsed)
    )
    return "word {} is {} in the reference and {} in the parse: the words must be the same".format(
        place + 1, *both
    )


@dataclass(frozen=True)
class Parseval:
    """Counts brackets over many parses, and scores them together."""

    counted: Sequence[ScoredSentence]
    """The sentences with words other than punctuation; only these are scored."""
    skipped: int
    """The number of sentences that are only punctuation."""

    @classmethod
    def of(cls, sentences: Iterable[ScoredSentence]) -> Parseval:
        """Take the sentences to score among those that are given."""
        every = list(sentences)
        counted = [sentence for sentence in every if sentence.scored]
        return cls(counted, len(every) - len(counted))

    @property
    def sentences(self) -> int:
        """The number of sentences that are scored."""
        return len(self.counted)

    @cached_property
    def by_length(self) -> dict[int, Matches]:
        """The brackets of each bin of sentence lengths. A key is the most words of its bin; 0 is
        the last bin, which has no limit."""
        matches: dict[int, Matches] = {}
        for sentence in self.counted:
            length = next((most for most in _BINS if sentence.words <= most), 0)
            add_matches(matches, {length: sentence.brackets})
        return matches

    @cached_property
    def by_label(self) -> dict[str, Matches]:
        """Count the matched brackets of each label separately."""
        matches: dict[str, Matches] = {}
        for sentence in self.counted:
            add_matches(matches, sentence.labels)
        return matches

    @property
    def brackets(self) -> Matches:
        """The counts of the brackets of all sentences."""
        return sum(self.by_length.values(), Matches())

    @property
    def short(self) -> list[ScoredSentence]:
        """The sentences with at most ``SHORT`` words."""
        return [sentence for sentence in self.counted if sentence.words <= SHORT]

    @property
    def scores(self) -> dict[str, float]:
        """Return the scores by name, in percent."""
        every, short = self.brackets, self.short
        of_short = sum((sentence.brackets for sentence in short), Matches())
        words = sum(sentence.scored for sentence in self.counted)
        return {
            "f1": 100 * every.f1,
            "precision": 100 * every.precision,
            "recall": 100 * every.recall,
            "exact": _exact_share(self.counted),
            "tags": 100 * sum(sentence.tags for sentence in self.counted) / max(1, words),
            "f1_40": 100 * of_short.f1,
            "exact_40": _exact_share(short),
        }

    def tables(self) -> str:
        """The scores by length and by label as plain text, the most frequent labels first."""
        rows = [
            (length_name(most), self.by_length[most]) for most in LENGTHS if most in self.by_length
        ]
        labels = sorted(self.by_label.items(), key=lambda item: (-item[1].there, item[0]))
        head = f"{'':<20} {'F1':>7} {'prec.':>7} {'recall':>7} {'brackets':>9}"
        return "\n".join([head, *map(_row, rows), "", head, *map(_row, labels)])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "scores": self.scores,
            "sentences": self.sentences,
            "skipped": self.skipped,
            "by_length": {str(most): _as_dict(m) for most, m in sorted(self.by_length.items())},
            "by_label": {label: _as_dict(m) for label, m in sorted(self.by_label.items())},
        }


def _exact_share(sentences: Sequence[ScoredSentence]) -> float:
    return 100 * sum(sentence.is_exact for sentence in sentences) / max(1, len(sentences))


def _as_dict(m: Matches) -> dict[str, int]:
    return {"matched": m.right, "reference": m.there, "parse": m.found}


def length_name(most: int) -> str:
    """The name of a bin of ``LENGTHS``."""
    place = LENGTHS.index(most)
    least = LENGTHS[place - 1] + 1 if place else 1
    return f"{least}-{most} words" if most else f"{least} words and more"


# Statistics that are summed over sentences and then scored, for tests of significance.


def statistics_of(sentences: Sequence[ScoredSentence]) -> Statistics:
    """(N, 4) for each sentence: matched brackets; brackets of reference and parse together; 1 if it
    has scored words; 1 if all its brackets are right, too."""
    statistics = np.zeros((len(sentences), 4))
    for place, sentence in enumerate(sentences):
        brackets, counts = sentence.brackets, sentence.scored > 0
        statistics[place] = brackets.right, brackets.both, counts, counts and sentence.is_exact
    return statistics


def f1s(sums: Statistics) -> Statistics:
    """F1 of sums of statistics, (M, 4) -> (M,), in percent."""
    return np.asarray(200 * sums[:, 0] / np.maximum(sums[:, 1], 1))


def exact_shares(sums: Statistics) -> Statistics:
    """Exact parses of sums of statistics, (M, 4) -> (M,), in percent."""
    return np.asarray(100 * sums[:, 3] / np.maximum(sums[:, 2], 1))


def _row(named: tuple[str, Matches]) -> str:
    name, m = named
    f1, precision, recall = (100 * share for share in (m.f1, m.precision, m.recall))
    return f"{name:<20} {f1:7.2f} {precision:7.2f} {recall:7.2f} {m.there:9,}"


class RightBranching:
    """Right-branching trees, the usual baseline of a parser (Klein and Manning, 2002, *A generative
    constituent-context model for improved grammar induction*). Each bracket contains one word and a
    bracket of all words after it, the typical shape of English trees."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self._top = Counter(tree.label for tree in trees).most_common(1)[0][0]
        # Labels of brackets that end where the sentence ends, final punctuation aside.
        labels: Counter[str] = Counter()
        for tree in trees:
            node = tree
            while not node.is_leaf:
                inner = [child for child in node.children if not child.is_leaf]
                if not inner:
                    break
                node = inner[-1]
                labels[node.label] += 1
        self._label = labels.most_common(1)[0][0] if labels else self._top

    def parse(self, words: Sequence[str]) -> Tree:
        """The right-branching tree of a sentence."""
        leaves = [Tree("XX", word=word) for word in words]
        stop = [leaves.pop()] if len(leaves) > 1 and not words[-1].isalnum() else []
        node = leaves.pop()
        for leaf in reversed(leaves[1:]):
            node = Tree(self._label, (leaf, node))
        first = leaves[:1]
        if node.is_leaf and not first:
            return Tree(self._top, (node, *stop))
        return Tree(self._top, (*first, node, *stop))
