"""The masked language model task: reads a text with blanks and fills them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dragoman.base.measure import LOSS, PERPLEXITY, Measure, percent
from dragoman.base.task import Side
from dragoman.forms.form import Form
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.spec import OneText


@dataclass(frozen=True)
class MaskedSpec(OneText):
    """The specification of a task whose input is its target text with some tokens hidden."""

    sections: ClassVar[frozenset[str]] = frozenset({"masking"})
    fixed_words: ClassVar[bool] = True

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        return Forms(given["target"], given["target"])


MASKED = MaskedSpec(
    name="masked",
    called="masked language model",
    writes=False,
    counted="masked tokens",
    metrics={
        "loss": LOSS,
        "perplexity": PERPLEXITY,
        "accuracy": percent("accuracy", share=True),
    },
    finished={"pseudo_perplexity": Measure("pseudo-perplexity", "lower")},
    begins=(6_000, 0),
    verbs=(("fill", "'How it ___.'"),),
    hub_tag="fill-mask",
    limits=("It fills in what its training text makes likely, whether it is true or not.",),
    symbols=("<mask>",),
)
