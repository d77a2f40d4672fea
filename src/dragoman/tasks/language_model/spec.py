"""The language model task: reads nothing and writes a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dragoman.base.measure import BITS_PER_BYTE, LOSS, PERPLEXITY
from dragoman.base.task import Side
from dragoman.forms.form import Form
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.families import OneText
from dragoman.tasks.language_model.form import NoSource


@dataclass(frozen=True)
class LanguageModelSpec(OneText):
    """The specification of a task with only a target text."""

    sections: ClassVar[frozenset[str]] = frozenset({"search"})

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        target = given["target"]
        return Forms(NoSource(target.eos, longest), target)


LANGUAGE_MODEL = LanguageModelSpec(
    name="language-model",
    called="language model",
    reads=False,
    writes=True,
    counted="target tokens",
    metrics={"loss": LOSS, "perplexity": PERPLEXITY, "bits_per_byte": BITS_PER_BYTE},
    compared="bits_per_byte",
    begins=(4_000, 0),
    verbs=(("write", "'How it begins'"),),
    hub_tag="text-generation",
    limits=("It writes what its training text makes likely, whether it is true or not.",),
)
