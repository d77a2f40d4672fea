"""What reports show of runs that choose among labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dragoman.measure import percent
from dragoman.metrics.classification import Confusion
from dragoman.pictures.records import Heatmap, Table
from dragoman.recipe import Recipe
from dragoman.tasks.shared.confusions import drawn
from dragoman.tasks.shared.runtime import Runtime

if TYPE_CHECKING:
    from dragoman.data.store import TokenStore
    from dragoman.forms.sides import Forms

SHARE = percent("", share=True)


class LabelRuntime(Runtime):
    """A label is chosen for each text, or for each of its words."""

    one_label: ClassVar[str]
    """What one of its labels is called."""
    labelled: ClassVar[str]
    """What has them."""
    quoted: ClassVar[str] = "text"
    """What is shown of a mistake,"""
    quoted_length: ClassVar[int | None] = 100
    """and how many characters of it."""

    def cut_off(self, store: TokenStore, recipe: Recipe, forms: Forms) -> int:
        from dragoman.tasks.shared.examples import reading_of

        reading = reading_of(recipe, forms)
        return int((store.lengths["source"] > reading.longest - reading.symbols).sum())

    def test_files(self, recipe: Recipe) -> list[str]:
        learned = next(iter(recipe.data.train), None)
        if learned is not None and learned.names_files and learned.target is not None:
            return ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
        return ["test/" if learned is not None and learned.format == "folders" else "test.tsv"]

    def tables(self, scores: Mapping[str, Any]) -> list[Table]:
        return [*self.label_tables(scores), *self.mistake_tables(scores)]

    def label_tables(self, scores: Mapping[str, Any]) -> list[Table]:
        """How well each label is found, where that is known."""
        if not (labels := scores.get("labels", [])):
            return []
        title = f"{self.one_label.capitalize()} by {self.one_label}"
        header = (self.one_label, "precision", "recall", "F1", self.labelled)
        shares = ("precision", "recall", "f1")
        rows = [
            (one["label"], *(SHARE.written(one[name]) for name in shares), one["texts"])
            for one in labels
        ]
        return [Table(title, header, rows)]

    def mistake_tables(self, scores: Mapping[str, Any]) -> list[Table]:
        """The surest mistakes, where there are any."""
        if not (worst := scores.get("worst", [])):
            return []
        about = ("line", self.one_label, "taken for", "probability", f"of the {self.one_label}")
        rows = [
            (one["line"], one["true"], one["chosen"], SHARE.written(one["probability"]),
             SHARE.written(one["of_true"]), one["text"][: self.quoted_length])
            for one in worst
        ]  # fmt: skip
        return [Table("Surest mistakes", (*about, self.quoted), rows)]

    def heatmaps(self, scores: Mapping[str, Any]) -> list[Heatmap]:
        if not scores.get("confusion"):
            return []
        names = [one["label"] for one in scores["labels"]]
        title = (
            f"{self.one_label} by row, chosen by column: shares of each {self.one_label}'s "
            f"{self.labelled} of {scores.get('test', '')}"
        )
        picture = drawn(title, names, confusion_in(scores))
        return [] if picture is None else [picture]


def confusion_in(scores: Mapping[str, Any]) -> Confusion:
    """That of the last evaluation."""
    return Confusion(np.array(scores["confusion"], np.int64))
