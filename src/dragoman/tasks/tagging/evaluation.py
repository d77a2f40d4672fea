"""Evaluation of a tagger, during training and of a finished run.

A finished run gets accuracy over all words, over known words (those in the training text) and over
unknown ones, F1 of spans if the tags have spans, the most frequent confusions, and the mistakes
with the highest probability. The loss is -log P of the right tag, in nats per word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dragoman.base.wording import plural
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.labelled import TaggedBatch, WordCutter, tagged_batch
from dragoman.forms.form import Pair
from dragoman.metrics.classification import Confusion
from dragoman.metrics.significance import MeasuredSystem
from dragoman.pictures.labels import plain_table
from dragoman.runs.lineage import BASES
from dragoman.runs.run import Run
from dragoman.tasks.shared.evaluation import EvaluationRequest, samples, scores_of, signed, timed
from dragoman.tasks.shared.evaluation_examples import ExampleSet
from dragoman.tasks.shared.examples import in_batches, reading_of
from dragoman.tasks.shared.label_report import (
    SHARE,
    LabelEvaluation,
    LabelReport,
    Mistake,
    surest,
)
from dragoman.tasks.shared.runtime import ComparedRuns
from dragoman.tasks.shared.validation import TOKENS_AT_ONCE, Validation
from dragoman.tasks.tagging.form import Tags
from dragoman.tasks.tagging.metrics import TagScores, has_spans, spans_of
from dragoman.tasks.tagging.sizes import tagged_corpus
from dragoman.tasks.tagging.spec import TAGGING, words_and_tags
from dragoman.tasks.tagging.tagger import Tagged, Tagger, underscored
from dragoman.training.losses.loss import smoothed_cross_entropy
from dragoman.training.records import Evaluation, Sample

_AROUND = 4
"""The number of words that are shown before and after a mistake."""


@dataclass(frozen=True)
class TaggingReport(LabelReport):
    """The result of a run on some sentences. Its labels are all tags, followed by tags that only
    these sentences have; a mistake is shown as the word in brackets, with the words around it."""

    one_label: ClassVar[str] = "tag"
    counted: ClassVar[str] = "words"
    quoted_length: ClassVar[int] = 1000

    pairs: Sequence[Pair]
    tagged: Sequence[Tagged]
    found: TagScores
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
        return self.found.figures() | {"loss": self.nll / max(self.found.words - self.new, 1)}

    def table(self) -> str:
        """Return the whole report as plain text."""
        read = (
            f"{plural(len(self.pairs), 'sentence')}, {plural(self.found.words, 'word')}, "
            f"{self.found.unknown[1]:,} of them not in the training text{self._whose_text()}; "
            f"{self.seconds:.1f} s"
        )
        figures = self.usual.figures()
        guess = ", ".join(
            f"{TAGGING.measure(name).called} {TAGGING.measure(name).written(value)}"
            for name, value in figures.items()
            if name in ("accuracy", "f1")
        )
        parts = [
            f"{self.head}\n{read}",
            scores_of(TAGGING, self.scores),
            f"Always the most frequent tag of each word: {guess}",
            self.by_label([one for one in self.records() if one["texts"] or one["precision"]]),
        ]
        if self.found.spans is not None:
            parts.append(self._by_kind())
        parts += self.mistakes("Taken for another most often, the right tag first:")
        return "\n\n".join([*parts, *self._notes()])

    def _whose_text(self) -> str:
        if not self.words_of:
            return ""
        return f" of {self.words_of}, from which this run was trained"

    def _by_kind(self) -> str:
        assert self.found.spans is not None
        rows: list[list[str | int | float]] = [
            [kind, *map(SHARE.number, (one.precision, one.recall, one.f1)), one.there]
            for kind, one in self.found.spans.by_kind()
        ]
        return plain_table(("span", "precision, %", "recall, %", "F1, %", "spans"), rows)

    def _notes(self) -> Iterator[str]:
        cut = sum(one.parts > 1 for one in self.tagged)
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
            f"words:{self.found.words}|unknown:{self.found.unknown[1]}|tags:{len(self.labels)}"
            + ("|spans:conlleval" if self.found.spans is not None else "")
        )
        spans = self.found.spans
        return {
            "sentences": len(self.pairs),
            "scores": signed(self.scores, signature),
            "usual": self.usual.figures(),
            "labels": self.records(),
            "spans": {} if spans is None else {kind: vars(one) for kind, one in spans.by_kind()},
            **self.mistake_details(),
            **self.shown,
        }

    def outputs(self) -> Sequence[str]:
        return [one.written() for one in self.tagged]


class TaggingEvaluation(LabelEvaluation[TaggingReport]):
    """The evaluation of runs on tagged sentences."""

    one_of = "tagged words, or one of sentences and one of tags"
    wanted = "is no sentence", "a file of tagged words", "test.tsv"

    def corpus(
        self, path: str, columns: str | None, keys: tuple[str, str] | None
    ) -> CorpusSettings:
        return tagged_corpus(path, columns, keys)

    def fitting(self, asked: EvaluationRequest, examples: ExampleSet) -> list[Pair]:
        """Return the examples that contain words."""
        return [pair for pair in examples.pairs if words_and_tags(pair, examples.name)[0]]

    def report(self, asked: EvaluationRequest, examples: ExampleSet) -> TaggingReport:
        tagger = Tagger(asked.run)
        tagged, seconds = timed(lambda: tagger([pair.source for pair in examples.pairs]))
        return TaggingReport(
            *asked.about(examples.name, seconds),
            *_score(asked.run, examples.pairs, tagged, tagger.tags),
        )


def usual_scores(tags: Tags, pairs: Sequence[Pair]) -> TagScores:
    """The scores of always choosing the most frequent tag of each word in training, and for unknown
    words the most frequent tag of all."""
    words = [pair.source.split() for pair in pairs]
    return TagScores.of(
        [pair.target.split() for pair in pairs],
        [tags.usual(one) for one in words],
        [[tags.knows(word) for word in one] for one in words],
        has_spans(tags.counts),
    )


def _words_of(run: Run) -> str:
    """The name of the run that tags and known words come from; empty for the run itself. A run that
    continues from another one (``--from``) keeps them."""
    name = ""
    for base in run.notes().get(BASES, []):
        if base.get("part") is not None:
            break
        name = base["name"]
    return name


def _score(run: Run, pairs: Sequence[Pair], tagged: Sequence[Tagged], tags: Tags) -> Any:
    """The fields of a ``TaggingReport`` after the first ones, in their order."""
    spans = has_spans(tags.counts)
    true = [pair.target.split() for pair in pairs]
    new = sorted({tag for own in true for tag in own} - tags.counts.keys())
    names = (*tags.labels.names, *new)
    value = {name: number for number, name in enumerate(names)}
    own = [value[tag] for line in true for tag in line]
    chosen = [number for one in tagged for number in one.values]
    known = [[tags.knows(word) for word in one.words] for one in tagged]
    scores = TagScores.of(true, [one.tags for one in tagged], known, spans)
    nll, of_new, mistakes = 0.0, 0, list[Mistake]()
    for pair, one, line in zip(pairs, tagged, true, strict=True):
        numbers = np.array([value[tag] for tag in line])
        taken, has_one = np.array(one.values), numbers < tags.size
        of_new += int((~has_one).sum())
        rows = np.arange(len(line))
        own_scores = np.full(len(line), -np.inf)
        own_scores[has_one] = one.log_probabilities[rows[has_one], numbers[has_one]]
        nll -= float(own_scores[has_one].sum())
        for place in np.flatnonzero(taken != numbers).tolist():
            mistakes.append(
                Mistake(
                    pair.line,
                    _around(one.words, place),
                    line[place],
                    names[taken[place]],
                    one.probabilities[place],
                    float(np.exp(own_scores[place])),
                )
            )
    shown = samples(run, _write_tags(pairs), [str(one) for one in tagged])
    return (
        names, Confusion.of(own, chosen, len(names)), nll, surest(mistakes),
        pairs, tagged, scores, usual_scores(tags, pairs), of_new, shown,
        _words_of(run),
    )  # fmt: skip


def _write_tags(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with the tags in the target as ``word_TAG``."""
    return [
        pair._replace(target=underscored(pair.source.split(), pair.target.split()))
        for pair in pairs
    ]


def _around(words: Sequence[str], place: int) -> str:
    """A word in brackets, with some of the words around it."""
    begin, end = max(0, place - _AROUND), place + 1 + _AROUND
    shown = [*words[begin:place], f"[{words[place]}]", *words[place + 1 : end]]
    return " ".join(word[:40] for word in shown)


_SAMPLES = 5


class TaggedValidation(Validation[TaggedBatch]):
    """Scores on dev: ``accuracy``, ``loss``, and ``f1`` if the tags have spans; some sentences are
    shown with the tags that the model chose. Only the beginning of a long sentence is measured."""

    without = "without words"

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[TaggedBatch]]:
        kept = [(pair, *words_and_tags(pair, "dev")) for pair in pairs if pair.source.split()]
        pieces = WordCutter(self.forms.source)([words for _, words, _ in kept])
        reading = reading_of(self.recipe, self.forms)
        sizes = [sum(map(len, one)) for one in pieces]
        order = sorted(range(len(kept)), key=sizes.__getitem__)
        values = Tags.of(self.forms.target).numbers([pair.target for pair, _, _ in kept])
        batches = []
        for part in in_batches([reading.size(sizes[place]) for place in order], TOKENS_AT_ONCE):
            numbers = [order[place] for place in part]
            read, own = [pieces[n] for n in numbers], [values[n] for n in numbers]
            batches.append(tagged_batch(read, own, reading))
        return [kept[number][0] for number in order], batches

    def __call__(self, update: int) -> Evaluation:
        form = Tags.of(self.forms.target)
        total, known, chosen = 0.0, 0, list[list[str]]()
        for batch in self.batches:
            batch = batch.to(self.device)
            rows = self.model.encode(batch.read.source).rows
            logits = self.model.project(batch.read.windows(rows))  # (W, K)
            has_one = batch.tags >= 0  # the training text lacks the others: no tag is right
            total += float(smoothed_cross_entropy(logits[has_one], batch.tags[has_one], 0.0)[1])
            known += int(has_one.sum())
            names = iter(form.shown(logits.argmax(dim=-1).tolist()))
            chosen += [list(islice(names, count)) for count in batch.read.counts]
        words = [pair.source.split() for pair in self.pairs]
        true = [
            pair.target.split()[: len(found)]
            for pair, found in zip(self.pairs, chosen, strict=True)
        ]
        scores = TagScores.of(
            true, chosen, [[True] * len(one) for one in true], has_spans(form.counts)
        ).figures()
        samples = tuple(
            Sample(
                self.pairs[one].source,
                underscored(words[one][: len(true[one])], true[one]),
                underscored(words[one][: len(true[one])], chosen[one]),
            )
            for one in self.spread(_SAMPLES)
        )
        kept: dict[str, float] = {
            name: scores[name] for name in ("accuracy", "f1") if name in scores
        }
        if known:  # else no tag of dev has a probability
            kept["loss"] = total / known
        return Evaluation(kept, samples)


_Statistics = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def compared(
    systems: Mapping[str, Sequence[Run]], source: Path | None, references: Sequence[Path]
) -> ComparedRuns:
    """Compare taggers on the same sentences by accuracy, and by F1 of spans if the tags have spans.

    ``source``: tagged words in the format of the first run's training files, or sentences whose
    tags are in ``references``. Errors: as ``LabelEvaluation.known``.
    """
    (first, *_), *_ = systems.values()
    files = [*([source] if source else []), *references]
    measured = TaggingEvaluation().known(EvaluationRequest(first, files))
    pairs = measured.pairs
    taggers = [[Tagger(run) for run in runs] for runs in systems.values()]
    tags = taggers[0][0].tags
    found = [[tagger([pair.source for pair in pairs]) for tagger in runs] for runs in taggers]
    counts = {"accuracy": _words}
    if has_spans(tags.counts):
        counts["f1"] = _spans
    signature = f"sentences:{{}}|tags:{tags.size}"
    by_score = {
        name: MeasuredSystem(
            [[_statistics(pairs, run, count) for run in runs] for runs in found],
            _shares, signature,
        )
        for name, count in counts.items()
    }  # fmt: skip
    outputs = [[str(one) for one in runs[0]] for runs in found]
    return ComparedRuns(
        measured.name, pairs, by_score, outputs, tuple(by_score), shown=_write_tags(pairs)
    )


def _words(true: Sequence[str], chosen: Sequence[str]) -> list[int]:
    right = sum(one == other for one, other in zip(true, chosen, strict=True))
    return [right, len(true)]


def _spans(true: Sequence[str], chosen: Sequence[str]) -> list[int]:
    there, found = set(spans_of(true)), set(spans_of(chosen))
    return [2 * len(there & found), len(there) + len(found)]


def _statistics(
    pairs: Sequence[Pair], found: Sequence[Tagged], count: Callable[..., list[int]]
) -> _Statistics:
    """(N sentences, 2): numerators and denominators, which are summed and then divided."""
    rows = [count(pair.target.split(), one.tags) for pair, one in zip(pairs, found, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 2)


def _shares(sums: _Statistics) -> _Statistics:
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)
