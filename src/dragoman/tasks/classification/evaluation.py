"""Evaluation of a model that labels texts, during training and of a finished run.

``metrics/classification.py`` defines accuracy and macro F1; the loss is -log P of the right label,
in nats per text. A text is read up to ``plan.context`` tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dragoman.base.errors import DataError
from dragoman.base.reading import readable
from dragoman.base.wording import plural, shorten
from dragoman.data.files.columns import is_tabbed, labelled_corpus
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Pair, Values
from dragoman.forms.labels import Labels, plain
from dragoman.metrics.classification import Confusion, accuracies, macro_f1s, statistics_of
from dragoman.metrics.significance import MeasuredSystem
from dragoman.pictures.labels import plain_table
from dragoman.runs.run import Run
from dragoman.tasks.classification.labeller import ClassifiedText, Labeller
from dragoman.tasks.shared.evaluation import EvaluationRequest, ExampleSet, clock, sign
from dragoman.tasks.shared.label_report import (
    LabelEvaluation,
    LabelReport,
    Mistake,
    surest,
)
from dragoman.tasks.shared.runtime import ComparedRuns
from dragoman.tasks.shared.validation import TOKENS_AT_ONCE, Validation
from dragoman.training.records import Evaluation, Sample

_SAMPLES = 5
_MAX_SHOWN = 30
"""The most labels of a table of confusions in a terminal."""


class ClassificationValidation(Validation[Values]):
    """Scores on dev: ``macro_f1``, ``accuracy`` and ``loss``; and some texts with the labels that
    the model chose for them."""

    without = "without tokens, or of a label that the training text does not have"

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Values]]:
        labels = self.forms.labels
        texts = self.forms.source.encode([pair.source for pair in pairs])
        kept = [
            (pair, text)
            for pair, text in zip(pairs, texts, strict=True)
            if len(text) and labels.value(pair.target) is not None
        ]
        return [pair for pair, _ in kept], [text for _, text in kept]

    def __call__(self, update: int) -> Evaluation:
        labeller = Labeller.over(self.reading_engine(), self.recipe, self.forms)
        names = [pair.source for pair in self.pairs]
        by_number = dict(labeller.parts(names, TOKENS_AT_ONCE, self.batches))
        labelled = [by_number[number] for number in range(len(names))]
        confusion, nll, _ = _judge(self.pairs, labelled, labeller.labels)
        shown = [(self.pairs[place], labelled[place].label) for place in self.spread(_SAMPLES)]
        samples = tuple(Sample(pair.source, plain(pair.target), label) for pair, label in shown)
        return Evaluation(confusion.scores | {"loss": nll / max(confusion.texts, 1)}, samples)


@dataclass(frozen=True)
class ClassificationReport(LabelReport):
    """The result of a run on some texts."""

    one_label: ClassVar[str] = "label"
    quoted_length: ClassVar[int] = 100

    cut: int
    """The number of texts that are longer than the model reads."""
    longest: int
    left_out: int
    """The number of texts whose label did not occur in training; they are not scored."""
    noun: str = "text"
    """The name of one example: text, recording, picture."""
    unit: str = "tokens"
    """The units that the model reads."""

    @property
    def counted(self) -> str:
        return f"{self.noun}s"

    @property
    def scores(self) -> dict[str, float]:
        return self.confusion.scores | {"loss": self.nll / max(self.confusion.texts, 1)}

    def table(self) -> str:
        """Return the whole report as plain text."""
        texts = self.confusion.texts
        labels = plural(len(self.labels), "label")
        read = f"{plural(texts, self.noun)}, {labels}; {self.seconds:.1f} s"
        parts = [
            f"{self.head}\n{read}",
            self.score_lines(self.scores),
            self.by_label(self.records()),
        ]
        if len(self.labels) <= _MAX_SHOWN:
            parts.append(f"Label by row, chosen by column:\n{self._confusions()}")
        parts += self.mistakes("Taken for another most often:")
        return "\n\n".join([*parts, *self._notes()])

    def _confusions(self) -> str:
        """The confusion matrix; columns are numbered if names would be too wide."""
        short = max(map(len, self.labels)) <= 8
        heads = list(self.labels) if short else [f"({k})" for k in range(1, len(self.labels) + 1)]
        rows: list[list[str | int | float]] = [
            [name if short else f"{name} {head}", *row]
            for name, head, row in zip(
                self.labels, heads, self.confusion.counts.tolist(), strict=True
            )
        ]
        return plain_table(("", *heads), rows)

    def _notes(self) -> Iterator[str]:
        if self.cut:
            yield (
                f"{plural(self.cut, f'{self.noun} is', f'{self.noun}s are')} longer than the "
                f"{self.longest:,} {self.unit} that are read (plan.context): the rest was not read."
            )
        if self.left_out:
            yield (
                f"{plural(self.left_out, f'{self.noun} has', f'{self.noun}s have')} a label that "
                f"no training {self.noun} has: not counted, as only a wrong label could have been "
                "chosen."
            )

    def details(self) -> dict[str, Any]:
        texts = self.confusion.texts
        signature = (
            f"texts:{texts}|labels:{len(self.labels)}|read:{self.longest}|left-out:{self.left_out}"
        )
        return {
            "sentences": texts,
            "scores": sign(self.scores, signature),
            "labels": self.records(),
            **self.mistake_details(),
        }


class ClassificationEvaluation(LabelEvaluation[ClassificationReport]):
    """The evaluation of runs on labelled texts."""

    one_of = "labelled texts, or one of texts and one of labels"
    wanted = "is no text", "a file of labelled texts", "test.tsv"

    one_file = staticmethod(labelled_corpus)

    def usual(self, path: str) -> CorpusSettings:
        return CorpusSettings(source=path, format="tsv") if is_tabbed(path) else super().usual(path)

    def fitting(self, asked: EvaluationRequest, examples: ExampleSet) -> list[Pair]:
        """The examples whose labels the run knows. Examples with other labels are left out of the
        recipe's test set; in files that the user gives, such a label is an error
        (``DataError``)."""
        labels = asked.run.forms.labels
        if asked.files:
            _require_known(examples.pairs, labels, examples.name)
        return [pair for pair in examples.pairs if labels.value(pair.target) is not None]

    def report(self, asked: EvaluationRequest, examples: ExampleSet) -> ClassificationReport:
        run, pairs = asked.run, examples.pairs
        labels, labeller = run.forms.labels, Labeller(run)
        labelled, seconds = clock(lambda: labeller([pair.source for pair in pairs]))
        return ClassificationReport(
            *asked.about(examples.name, seconds), labels.names,
            *_judge(pairs, labelled, labels), sum(text.cut for text in labelled), labeller.longest,
            examples.left_out, run.task.noun.removesuffix("s"), run.recipe.source.units,
        )  # fmt: skip


def _judge(
    pairs: Sequence[Pair], labelled: Sequence[ClassifiedText], labels: Labels
) -> tuple[Confusion, float, tuple[Mistake, ...]]:
    """The confusions, the sum of -log P of the right labels in nats, and the mistakes with the
    highest probability."""
    true, chosen, mistakes, nll = list[int](), list[int](), list[Mistake](), 0.0
    for pair, text in zip(pairs, labelled, strict=True):
        right = labels.value(pair.target)
        assert right is not None
        taken = int(text.probabilities.argmax())
        nll -= float(text.log_probabilities[right])
        true.append(right)
        chosen.append(taken)
        if taken != right:
            sure, of_true = float(text.probabilities[taken]), float(text.probabilities[right])
            names = labels.names[right], labels.names[taken]
            mistakes.append(Mistake(pair.line, pair.source, *names, sure, of_true))
    return Confusion.of(true, chosen, labels.size), nll, surest(mistakes)


def _require_known(pairs: Iterable[Pair], labels: Labels, name: str) -> None:
    """Errors: ``DataError``, which names the first line whose label did not occur in training."""
    for pair in pairs:
        if labels.value(pair.target) is None:
            raise DataError(
                f"{name}, line {pair.line}: no training text has the label "
                f"{shorten(readable(plain(pair.target)), 60)!r}; labels are {labels.summary()}"
            )


def compare_labels(
    systems: Mapping[str, Sequence[Run]], source: Path | None, references: Sequence[Path]
) -> ComparedRuns:
    """Compare runs on the same texts by accuracy and macro F1. Systems may know different labels,
    as long as all know those of the texts.

    ``source``: labelled texts in the format of the first run's training files, or texts whose
    labels are in ``references``. Errors: as ``LabelEvaluation.read_fitting``.
    """
    (first, *_), *_ = systems.values()
    files = [*([source] if source else []), *references]
    measured = ClassificationEvaluation().read_fitting(EvaluationRequest(first, files))
    texts = [pair.source for pair in measured.pairs]
    labellers = [[Labeller(run) for run in runs] for runs in systems.values()]
    names = sorted({name for runs in labellers for reader in runs for name in reader.labels.names})
    value = {name: number for number, name in enumerate(names)}
    true = [value[plain(pair.target)] for pair in measured.pairs]
    chosen = [[[text.label for text in labeller(texts)] for labeller in runs] for runs in labellers]
    statistics = [
        [statistics_of(true, [value[label] for label in labels], len(names)) for labels in runs]
        for runs in chosen
    ]
    signature = f"texts:{{}}|labels:{len(names)}"
    by_score = {
        "accuracy": MeasuredSystem(statistics, accuracies, signature),
        "macro_f1": MeasuredSystem(statistics, macro_f1s, signature),
    }
    outputs = [runs[0] for runs in chosen]
    return ComparedRuns(measured.name, measured.pairs, by_score, outputs, tuple(by_score))
