"""Evaluation of a tagger, during training and of a finished run.

A finished run gets accuracy over all words, over known words (those in the training text) and over
unknown ones, F1 of spans if the tags have spans, the most frequent confusions, and the mistakes
with the highest probability. The loss is -log P of the right tag, in nats per word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dragoman.base.measure import SHARE
from dragoman.base.wording import plural
from dragoman.data.labelled import Pieces
from dragoman.forms.form import Pair
from dragoman.metrics.classification import Confusion
from dragoman.metrics.significance import MeasuredSystem
from dragoman.pictures.labels import plain_table
from dragoman.runs.lineage import BASES
from dragoman.runs.run import Run
from dragoman.tasks.shared.evaluation import (
    EvaluationRequest,
    ExampleSet,
    clock,
    samples,
    sign,
)
from dragoman.tasks.shared.label_report import (
    LabelEvaluation,
    LabelReport,
    Mistake,
    surest,
)
from dragoman.tasks.shared.runtime import ComparedRuns
from dragoman.tasks.shared.validation import Validation, samples_of
from dragoman.tasks.tagging.form import Tags, words_and_tags
from dragoman.tasks.tagging.metrics import TagScores, has_spans, spans_of
from dragoman.tasks.tagging.sizes import corpus_of_tags
from dragoman.tasks.tagging.tagger import LogProbabilities, Tagged, Tagger, join_tags
from dragoman.training.records import Evaluation

_AROUND = 4
"""The number of words that are shown before and after a mistake."""


@dataclass(frozen=True)
class TaggingReport(LabelReport):
    """The result of a run on some sentences. Its labels are the run's tags, followed by tags
    that only these sentences have. A mistake is shown as the word in brackets, with the words
    around it."""

    one_label: ClassVar[str] = "tag"
    counted: ClassVar[str] = "words"
    quoted_length: ClassVar[int] = 1000

    pairs: Sequence[Pair]
    tagged: Sequence[Tagged]
    counts: TagScores
    usual: TagScores
    """The scores of always choosing the most frequent tag of each word."""
    new: int
    """The number of words whose tag is not in the training text."""
    shown: dict[str, Any]
    """Samples for the report of a run."""
    words_of: str
    """The name of the run whose training text defines the known words, if this run continued from
    it."""

    @property
    def scores(self) -> dict[str, float]:
        return self.counts.figures() | {"loss": self.nll / max(self.counts.words - self.new, 1)}

    def table(self) -> str:
        """Return the whole report as plain text."""
        whose = f" of {self.words_of}, from which this run was trained" if self.words_of else ""
        read = (
            f"{plural(len(self.pairs), 'sentence')}, {plural(self.counts.words, 'word')}, "
            f"{self.counts.unknown[1]:,} of them not in the training text{whose}; "
            f"{self.seconds:.1f} s"
        )
        figures = self.usual.figures()
        guess = ", ".join(
            f"{self.task.measure(name).called} {self.task.measure(name).text(value)}"
            for name, value in figures.items()
            if name in ("accuracy", "f1")
        )
        parts = [
            f"{self.head}\n{read}",
            self.score_lines(self.scores),
            f"Always the most frequent tag of each word: {guess}",
            self.by_label([row for row in self.records() if row["texts"] or row["precision"]]),
        ]
        if self.counts.spans is not None:
            parts.append(self._by_kind())
        parts += self.mistakes("Taken for another most often, the right tag first:")
        return "\n\n".join([*parts, *self._notes()])

    def _by_kind(self) -> str:
        assert self.counts.spans is not None
        rows: list[list[str | int | float]] = [
            [kind, *map(SHARE.number, (spans.precision, spans.recall, spans.f1)), spans.there]
            for kind, spans in sorted(self.counts.spans.items())
        ]
        return plain_table(("span", "precision, %", "recall, %", "F1, %", "spans"), rows)

    def _notes(self) -> Iterator[str]:
        cut = sum(sentence.parts > 1 for sentence in self.tagged)
        if cut:
            yield (
                f"{plural(cut, 'sentence is', 'sentences are')} longer than plan.context and "
                "read in parts."
            )
        if self.new:
            yield (
                f"{plural(self.new, 'word has', 'words have')} a tag that no training text has: "
                "counted as mistakes, and left out of the loss."
            )

    def details(self) -> dict[str, Any]:
        signature = (
            f"words:{self.counts.words}|unknown:{self.counts.unknown[1]}|tags:{len(self.labels)}"
            + ("|spans:conlleval" if self.counts.spans is not None else "")
        )
        spans = sorted((self.counts.spans or {}).items())
        return {
            "sentences": len(self.pairs),
            "scores": sign(self.scores, signature),
            "usual": self.usual.figures(),
            "labels": self.records(),
            "spans": {kind: vars(matches) for kind, matches in spans},
            **self.mistake_details(),
            **self.shown,
        }

    def outputs(self) -> Sequence[str]:
        return [sentence.as_text() for sentence in self.tagged]


class TaggingEvaluation(LabelEvaluation[TaggingReport]):
    """The evaluation of runs on tagged sentences."""

    one_of = "tagged words, or one of sentences and one of tags"
    wanted = "is no sentence", "a file of tagged words", "test.tsv"

    one_file = staticmethod(corpus_of_tags)

    def fitting(self, asked: EvaluationRequest, examples: ExampleSet) -> list[Pair]:
        """Return the examples that contain words."""
        return [pair for pair in examples.pairs if words_and_tags(pair, examples.name)[0]]

    def report(self, asked: EvaluationRequest, examples: ExampleSet) -> TaggingReport:
        run, pairs, tagger = asked.run, examples.pairs, Tagger(asked.run)
        tagged, seconds = clock(lambda: tagger([pair.source for pair in pairs]))
        tags = tagger.tags
        true = [pair.target.split() for pair in pairs]
        new = sorted({tag for own in true for tag in own} - tags.counts.keys())
        names = (*tags.labels.names, *new)
        value = {name: number for number, name in enumerate(names)}
        own = [value[tag] for line in true for tag in line]
        chosen = [number for guess in tagged for number in guess.values]
        scores = score_tags(tags, pairs, [guess.tags for guess in tagged])
        mistakes = list[Mistake]()
        of_right = _of_right_tags(pairs, tagged, tags)
        for pair, guess, line, log_probabilities in zip(pairs, tagged, true, of_right, strict=True):
            taken = guess.tags
            for place in np.flatnonzero(np.array(taken) != np.array(line)).tolist():
                mistakes.append(
                    Mistake(
                        pair.line,
                        _around(guess.words, place),
                        line[place],
                        taken[place],
                        guess.probabilities[place],
                        float(np.exp(log_probabilities[place])),
                    )
                )
        nll, of_new = _cost(of_right)
        shown = samples(run, _write_tags(pairs), [str(guess) for guess in tagged])
        return TaggingReport(
            *asked.about(examples.name, seconds), names, Confusion.of(own, chosen, len(names)),
            nll, surest(mistakes), pairs, tagged, scores, usual_scores(tags, pairs), of_new, shown,
            _words_of(run),
        )  # fmt: skip


def usual_scores(tags: Tags, pairs: Sequence[Pair]) -> TagScores:
    """The scores of always choosing the most frequent tag of each word in training, and for unknown
    words the most frequent tag of all."""
    return score_tags(tags, pairs, [tags.usual(pair.source.split()) for pair in pairs])


def score_tags(tags: Tags, pairs: Sequence[Pair], chosen: Sequence[Sequence[str]]) -> TagScores:
    """Score the tags that were chosen for the words of each pair. The training text, by ``tags``,
    says which words are known and whether the tags mark spans."""
    known = [[tags.knows(word) for word in pair.source.split()] for pair in pairs]
    true = [pair.target.split() for pair in pairs]
    return TagScores.of(true, chosen, known, has_spans(tags.counts))


def _words_of(run: Run) -> str:
    """The name of the run that tags and known words come from; empty for the run itself. A run that
    continues from another one (``--from``) keeps them."""
    name = ""
    for base in run.notes().get(BASES, []):
        if base.get("part") is not None:
            break
        name = base["name"]
    return name


def _of_right_tags(
    pairs: Sequence[Pair], tagged: Sequence[Tagged], tags: Tags
) -> list[LogProbabilities]:
    """log P of the right tag of each word; -inf for a tag that no training text has."""
    numbers = tags.numbers([pair.target for pair in pairs])
    return [
        np.where(np.array(own) < 0, -np.inf, result.log_probabilities[np.arange(len(own)), own])
        for result, own in zip(tagged, numbers, strict=True)
    ]


def _cost(of_right: Sequence[LogProbabilities]) -> tuple[float, int]:
    """The sum of -log P of all known tags, in nats, and the number of words with another tag."""
    every = np.concatenate(of_right)
    known = np.isfinite(every)
    return -float(every[known].sum()), int((~known).sum())


def _write_tags(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with the tags in the target as ``word_TAG``."""
    return [
        pair._replace(target=join_tags(pair.source.split(), pair.target.split())) for pair in pairs
    ]


def _around(words: Sequence[str], place: int) -> str:
    """A word in brackets, with some of the words around it."""
    begin, end = max(0, place - _AROUND), place + 1 + _AROUND
    shown = [*words[begin:place], f"[{words[place]}]", *words[place + 1 : end]]
    return " ".join(word[:40] for word in shown)


_SAMPLES = 5


class TaggedValidation(Validation[Sequence[Pieces]]):
    """Scores on dev: ``accuracy``, ``loss``, and ``f1`` if the tags have spans; some sentences are
    shown with the tags that the model chose."""

    without = "without words"

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Sequence[Pieces]]]:
        kept = [pair for pair in pairs if words_and_tags(pair, "dev")[0]]
        self._tagger = Tagger.over(self.reading_engine(), self.recipe, self.forms)
        self._words = [pair.source.split() for pair in kept]
        return kept, [*self._tagger.cut(self._words)]

    def __call__(self, update: int) -> Evaluation:
        tags, pairs = self._tagger.tags, self.pairs
        tagged = list(self._tagger.tag_parts(self._words, self.batches))
        nll, new = _cost(_of_right_tags(pairs, tagged, tags))
        counts = score_tags(tags, pairs, [result.tags for result in tagged])
        scores = counts.figures()
        kept = {name: value for name, value in scores.items() if name in ("accuracy", "f1")}
        if counts.words > new:  # else no tag of dev has a probability
            kept["loss"] = nll / (counts.words - new)
        shown = [(pairs[place], str(tagged[place])) for place in self.spread(_SAMPLES)]
        written = _write_tags([pair for pair, _ in shown])
        return Evaluation(kept, samples_of(written, [chosen for _, chosen in shown]))


_Statistics = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def compare(
    systems: Mapping[str, Sequence[Run]], source: Path | None, references: Sequence[Path]
) -> ComparedRuns:
    """Compare taggers on the same sentences by accuracy, and by F1 of spans if the tags have spans.

    ``source``: tagged words in the format of the first run's training files, or sentences whose
    tags are in ``references``. Errors: as ``LabelEvaluation.read_fitting``.
    """
    (first, *_), *_ = systems.values()
    files = [*([source] if source else []), *references]
    measured = TaggingEvaluation().read_fitting(EvaluationRequest(first, files))
    pairs = measured.pairs
    taggers = [[Tagger(run) for run in runs] for runs in systems.values()]
    tags = taggers[0][0].tags
    tagged = [[tagger([pair.source for pair in pairs]) for tagger in runs] for runs in taggers]
    counts = {"accuracy": _words}
    if has_spans(tags.counts):
        counts["f1"] = _spans
    signature = f"sentences:{{}}|tags:{tags.size}"
    by_score = {
        name: MeasuredSystem(
            [[_statistics(pairs, run, count) for run in runs] for runs in tagged],
            _shares, signature,
        )
        for name, count in counts.items()
    }  # fmt: skip
    outputs = [[str(sentence) for sentence in runs[0]] for runs in tagged]
    return ComparedRuns(
        measured.name, pairs, by_score, outputs, tuple(by_score), shown=_write_tags(pairs)
    )


def _words(true: Sequence[str], chosen: Sequence[str]) -> list[int]:
    right = sum(tag == choice for tag, choice in zip(true, chosen, strict=True))
    return [right, len(true)]


def _spans(true: Sequence[str], chosen: Sequence[str]) -> list[int]:
    there, guessed = set(spans_of(true)), set(spans_of(chosen))
    return [2 * len(there & guessed), len(there) + len(guessed)]


def _statistics(
    pairs: Sequence[Pair], lines: Sequence[Tagged], count: Callable[..., list[int]]
) -> _Statistics:
    """(N sentences, 2): numerators and denominators, which are summed and then divided."""
    rows = [count(pair.target.split(), line.tags) for pair, line in zip(pairs, lines, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 2)


def _shares(sums: _Statistics) -> _Statistics:
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)
