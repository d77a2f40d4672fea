"""The evaluation of runs that choose among labels, and its results as a table, in the report and as
a picture: which labels are confused, and the surest mistakes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from dragoman.base.errors import DragomanError
from dragoman.base.measure import SHARE
from dragoman.base.wording import shorten
from dragoman.data.files.columns import file_at, is_tabbed
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.metrics.classification import Confusion
from dragoman.pictures.labels import plain_table
from dragoman.pictures.records import Heatmap
from dragoman.runs.evaluation_set import own_test_set
from dragoman.tasks.shared.evaluation import (
    EvaluationReport,
    EvaluationRequest,
    ExampleSet,
    PairsEvaluation,
)

_WORST = 10
_MAX_CONFUSED = 10
_KEPT = 1000
"""The most characters of a text in scores.json."""


@dataclass(frozen=True)
class Mistake:
    """A text or word for which a wrong label was chosen."""

    line: int
    text: str
    true: str
    chosen: str
    probability: float
    """The probability of the chosen label."""
    of_true: float
    """The probability of the true label; 0 if it did not occur in training."""

    def summary(self, longest: int) -> str:
        """Describe the mistake in one line, with at most ``longest`` characters of the text."""
        return (
            f"line {self.line}: {self.true}, taken for {self.chosen} "
            f"({SHARE.text(self.probability)} against {SHARE.text(self.of_true)}): "
            f"{shorten(self.text, longest)}"
        )


def surest(mistakes: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """The mistakes with the highest probability."""
    return tuple(sorted(mistakes, key=lambda case: (-case.probability, case.line))[:_WORST])


@dataclass(frozen=True)
class LabelReport(EvaluationReport):
    """The scores of a run that labels texts or words."""

    one_label: ClassVar[str]
    """The name of one label: a tag, a label."""
    quoted_length: ClassVar[int]
    """The most characters of a text in a list of mistakes."""

    labels: tuple[str, ...]
    confusion: Confusion
    nll: float
    """The negative log probability of the true labels, in nats."""
    worst: tuple[Mistake, ...]

    @property
    @abstractmethod
    def counted(self) -> str:
        """The heading of the column that counts the examples of each label."""

    def records(self) -> list[dict[str, Any]]:
        """Make a record for each label; reports read it back."""
        confusion = self.confusion
        return [
            {
                "label": name,
                "texts": int(confusion.support[k]),
                "precision": float(confusion.precision[k]),
                "recall": float(confusion.recall[k]),
                "f1": float(confusion.f1[k]),
            }
            for k, name in enumerate(self.labels)
        ]

    def by_label(self, records: Sequence[dict[str, Any]]) -> str:
        """Format a table with a row for each label."""
        rows: list[list[str | int | float]] = [
            [
                record["label"],
                *(SHARE.number(record[name]) for name in ("precision", "recall", "f1")),
                record["texts"],
            ]
            for record in records
        ]
        header = (self.one_label, "precision, %", "recall, %", "F1, %", self.counted)
        return plain_table(header, rows)

    def mistakes(self, heading: str) -> list[str]:
        """Format the most frequent confusions, under ``heading``, and the surest mistakes."""
        often = self.confusion.mistaken()[:_MAX_CONFUSED]
        confused = [f"  {self.labels[t]} for {self.labels[c]}: {n:,}" for t, c, n in often]
        worst = [f"  {mistake.summary(self.quoted_length)}" for mistake in self.worst]
        parts = ((heading, confused), ("Surest mistakes:", worst))
        return ["\n".join([title, *lines]) for title, lines in parts if lines]

    def mistake_details(self) -> dict[str, Any]:
        """The confusion matrix and the surest mistakes, as plain values for JSON."""
        # With more labels it is never drawn, and the file would be too large to be read again.
        drawn = len(self.labels) <= MAX_DRAWN
        return {
            "confusion": self.confusion.counts.tolist() if drawn else [],
            "worst": [vars(mistake) | {"text": mistake.text[:_KEPT]} for mistake in self.worst],
        }


MAX_DRAWN = 60
"""The most labels of a confusion matrix that is drawn."""


def draw_confusion(title: str, labels: Sequence[str], confusion: Confusion) -> Heatmap | None:
    """Draw a confusion matrix, as shares of each label's texts; None if there are too many
    labels."""
    if len(labels) > MAX_DRAWN:
        return None
    counts, support = confusion.counts, confusion.support
    rows = [f"{name} ({count:,})" for name, count in zip(labels, support, strict=True)]
    return Heatmap(rows, labels, counts / np.maximum(support, 1)[:, None], title)


def confusion_in(scores: Mapping[str, Any]) -> Confusion:
    """The confusion matrix of the last evaluation."""
    return Confusion(np.array(scores["confusion"], np.int64))


_NO_GROUPS = dict.fromkeys(("group_column", "group_key", "group_pattern"))
"""The settings of groups are removed: an evaluation set is not split."""


Report = TypeVar("Report", bound=LabelReport)


class LabelEvaluation(PairsEvaluation[Report]):
    """Evaluates runs that choose among labels: on a file like the training files, on a file of
    texts with one of labels, or on the recipe's test set."""

    one_file: ClassVar[Callable[..., CorpusSettings]]
    """Makes the settings to read one file whose sides are named by columns or keys."""

    def usual(self, path: str) -> CorpusSettings:
        """The settings to read one file that is unlike the training files."""
        return self.one_file(path, None, None)

    def read(self, asked: EvaluationRequest) -> ExampleSet:
        run, files = asked.run, asked.files
        if len(files) > 2:
            raise DragomanError(
                f"a {run.task.called} is measured on one file of {self.one_of}. Leave {files[2]} "
                "out"
            )
        placed = file_at(files, asked.columns, asked.keys, self.one_file)
        if not files:
            return ExampleSet(*own_test_set(run))
        source, *labels = map(str, files)
        if labels:
            corpus = CorpusSettings(source=source, target=labels[0])
        elif placed is not None:
            corpus = placed
        else:
            learned = [corpus for corpus in run.recipe.data.train if corpus.target is None]
            if not learned and run.task.reads_files:
                raise DragomanError(
                    f"{source} has no labels: also give the file of its labels, as for the "
                    f"training data {run.recipe.data.train[0].name}"
                )
            if not is_tabbed(source):  # records are not read as columns
                learned = [corpus for corpus in learned if not is_tabbed(corpus.source)]
            like = learned[0] if learned else self.usual(source)
            corpus = like.model_copy(update={"source": source, "weight": 1.0, **_NO_GROUPS})
        return ExampleSet(list(read_pairs(corpus)), files[0].name)
