"""What is measured of a tagger: while it trains, and of a finished run.

Of the latter: accuracy over all words, over those that training has read and over new ones, F1 of
spans where tags have them, which tag is taken for which, and the surest mistakes. The loss is -log
P of the right tag, in nats a word.
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
from dragoman.tasks.shared.evaluation import (
    ComparedRuns,
    EvaluationRequest,
    ExampleSet,
    samples,
    scores_of,
    signed,
    timed,
)
from dragoman.tasks.shared.examples import in_batches, reading_of
from dragoman.tasks.shared.label_report import (
    SHARE,
    LabelEvaluation,
    LabelReport,
    Mistake,
    surest,
)
from dragoman.tasks.shared.validation import TOKENS_AT_ONCE, Validation
from dragoman.tasks.tagging.form import Tags
from dragoman.tasks.tagging.metrics import TagScores, has_spans, spans_of
from dragoman.tasks.tagging.sizes import tagged_corpus
from dragoman.tasks.tagging.spec import TAGGING, words_and_tags
from dragoman.tasks.tagging.tagger import Tagged, Tagger, underscored
from dragoman.training.losses.loss import smoothed_cross_entropy
from dragoman.training.records import Evaluation, Sample

_AROUND = 4
"""Words that are shown before and behind a mistake."""


@dataclass(frozen=True)
class TaggingReport(LabelReport):
    """How a run tags some sentences. Its labels are all tags, those behind them that the sentences
    have and training had not; of a mistake the word is shown in brackets, between others."""

    one_label: ClassVar[str] = "tag"
    counted: ClassVar[str] = "words"
    quoted_length: ClassVar[int] = 1000

    pairs: Sequence[Pair]
    tagged: Sequence[Tagged]
    found: TagScores
    usual: TagScores
    """Of the most frequent tag of each word."""
    new: int
    """Words whose tag training had not."""
    shown: dict[str, Any]
    """Samples, for reports."""
    words_of: str
    """The run by whose training text words are known, where it is one that this was begun from."""

    @property
    def scores(self) -> dict[str, float]:
        """By name."""
        return self.found.figures() | {"loss": self.nll / max(self.found.words - self.new, 1)}

    def table(self) -> str:
        """Plain text."""
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
        return f" of {self.words_of}, which this run was begun from and has its tags and words of"

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
                f"{plural(cut, 'sentence is', 'sentences are')} longer than what is read at once "
                "(plan.context) and read in parts."
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
    """Measures runs on tagged sentences."""

    one_of = "tagged words, or one of sentences and one of tags"
    wanted = "is no sentence", "a file of tagged words", "test.tsv"

    def corpus(
        self, path: str, columns: str | None, keys: tuple[str, str] | None
    ) -> CorpusSettings:
        return tagged_corpus(path, columns, keys)

    def fitting(self, asked: EvaluationRequest, examples: ExampleSet) -> list[Pair]:
        """Those with words."""
        return [pair for pair in examples.pairs if words_and_tags(pair, examples.name)[0]]

    def report(self, asked: EvaluationRequest, examples: ExampleSet) -> TaggingReport:
        tagger = Tagger(asked.run)
        tagged, seconds = timed(lambda: tagger([pair.source for pair in examples.pairs]))
        return TaggingReport(
            *asked.about(examples.name, seconds),
            *_judged(asked.run, examples.pairs, tagged, tagger.tags),
        )


def usual_scores(tags: Tags, pairs: Sequence[Pair]) -> TagScores:
    """Of always answering the most frequent tag of each word in training, of an unknown word the
    most frequent tag of all."""
    words = [pair.source.split() for pair in pairs]
    return TagScores.of(
        [pair.target.split() for pair in pairs],
        [tags.usual(one) for one in words],
        [[tags.knows(word) for word in one] for one in words],
        has_spans(tags.counts),
    )


def _words_of(run: Run) -> str:
    """The name of the run that its tags and the words it knows come from; empty: its own text. One
    that goes on from all of another (``--from``) keeps them."""
    name = ""
    for base in run.notes().get(BASES, []):
        if base.get("part") is not None:
            break
        name = base["name"]
    return name


def _judged(run: Run, pairs: Sequence[Pair], tagged: Sequence[Tagged], tags: Tags) -> Any:
    """What a report holds of them, in its order."""
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
    shown = samples(run, _shown(pairs), [str(one) for one in tagged])
    return (
        names, Confusion.of(own, chosen, len(names)), nll, surest(mistakes),
        pairs, tagged, scores, usual_scores(tags, pairs), of_new, shown,
        _words_of(run),
    )  # fmt: skip


def _shown(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with each tag below its word."""
    return [
        pair._replace(target=underscored(pair.source.split(), pair.target.split()))
        for pair in pairs
    ]


def _around(words: Sequence[str], place: int) -> str:
    """A word in brackets, between some of those around it."""
    begin, end = max(0, place - _AROUND), place + 1 + _AROUND
    shown = [*words[begin:place], f"[{words[place]}]", *words[place + 1 : end]]
    return " ".join(word[:40] for word in shown)


_SAMPLES = 5


class TaggedValidation(Validation[TaggedBatch]):
    """``accuracy`` and ``loss``, and ``f1`` of spans where tags have them; some sentences are shown
    with the tags that were chosen. Of a long sentence the beginning is measured."""

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
            has_one = batch.tags >= 0  # others training had not: no tag is right
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
    """Runs that tag the same sentences, by accuracy, and by F1 of spans where tags have them.

    ``source``: tagged words in the format of those that the first run has learned from, or
    sentences beside tags (``references``). Errors: as ``LabelEvaluation.known``.
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
        measured.name, pairs, by_score, outputs, tuple(by_score), shown=_shown(pairs)
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
    """(N sentences, 2): what is summed before it is divided."""
    rows = [count(pair.target.split(), one.tags) for pair, one in zip(pairs, found, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 2)


def _shares(sums: _Statistics) -> _Statistics:
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)
