"""What is told of a finished run that chooses among labels: which it mistakes for which, and the
mistakes of which it was surest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dragoman.measure import percent
from dragoman.metrics.classification import Confusion
from dragoman.pictures.labels import plain_table
from dragoman.shortened import shortened
from dragoman.tasks.shared.confusions import MAX_DRAWN
from dragoman.tasks.shared.evaluation_report import EvaluationReport

SHARE = percent("", share=True)
_WORST = 10
_MAX_CONFUSED = 10
_KEPT = 1000
"""Characters of a text in scores.json."""


@dataclass(frozen=True)
class Mistake:
    """A text, or a word of one, for which another label than its own was chosen."""

    line: int
    text: str
    true: str
    chosen: str
    probability: float
    """The probability of the label that was chosen."""
    of_true: float
    """The probability of its own label; 0 of one that training had not."""

    def summary(self, longest: int) -> str:
        """One line, with so many characters of the text."""
        return (
            f"line {self.line}: {self.true}, taken for {self.chosen} "
            f"({SHARE.written(self.probability)} against {SHARE.written(self.of_true)}): "
            f"{shortened(self.text, longest)}"
        )


def surest(mistakes: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """Those of which the model was surest."""
    return tuple(sorted(mistakes, key=lambda one: (-one.probability, one.line))[:_WORST])


@dataclass(frozen=True)
class LabelReport(EvaluationReport):
    """How a run labels some texts, or the words of some."""

    one_label: ClassVar[str]
    """What one of its labels is called."""
    labelled: ClassVar[str]
    """What has them."""
    quoted_length: ClassVar[int]
    """Characters of a text in a list of mistakes."""

    labels: tuple[str, ...]
    confusion: Confusion
    nll: float
    """-log P of the right labels, in nats."""
    worst: tuple[Mistake, ...]

    @property
    def counted(self) -> str:
        """What is counted of each label, in a table."""
        return self.labelled

    def records(self) -> list[dict[str, Any]]:
        """A record for each label, as reports read it back."""
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
        """A row a label."""
        rows: list[list[str | int | float]] = [
            [
                one["label"],
                *(SHARE.number(one[name]) for name in ("precision", "recall", "f1")),
                one["texts"],
            ]
            for one in records
        ]
        header = (self.one_label, "precision, %", "recall, %", "F1, %", self.counted)
        return plain_table(header, rows)

    def mistakes(self, heading: str) -> list[str]:
        """Parts of a table: which labels are mistaken for others most often, under ``heading``, and
        the surest mistakes."""
        often = self.confusion.mistaken()[:_MAX_CONFUSED]
        confused = [f"  {self.labels[t]} for {self.labels[c]}: {n:,}" for t, c, n in often]
        worst = [f"  {mistake.summary(self.quoted_length)}" for mistake in self.worst]
        parts = ((heading, confused), ("Surest mistakes:", worst))
        return ["\n".join([title, *lines]) for title, lines in parts if lines]

    def mistake_details(self) -> dict[str, Any]:
        """As plain values for JSON."""
        # Of more labels nothing draws it, and the file would be larger than is read again.
        drawn = len(self.labels) <= MAX_DRAWN
        return {
            "confusion": self.confusion.counts.tolist() if drawn else [],
            "worst": [vars(mistake) | {"text": mistake.text[:_KEPT]} for mistake in self.worst],
        }
