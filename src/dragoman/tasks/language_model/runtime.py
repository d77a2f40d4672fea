"""The specification and the runtime of language models: a model writes a text. The runtime has what
trains, evaluates and predicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dragoman.base.measure import BITS_PER_BYTE, LOSS, PERPLEXITY
from dragoman.base.task import Side
from dragoman.forms.form import Form, Pair, Passage, Piece
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import OneText, Spec
from dragoman.tasks.shared.progress_made import of_tokens
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime


class NoSource(Form):
    """Reads any input as the end symbol alone."""

    reads = False

    def __init__(self, eos: int, longest: int = 1000) -> None:
        """``eos`` is the end symbol's number in the target vocabulary, and is used here too.
        ``longest`` limits the tokens of an output that does not end by itself."""
        self.bos = self.eos = eos
        self.size = eos + 1
        self._longest = longest

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        return [[] for _ in raws]

    @property
    def fingerprint(self) -> str:
        return ""

    def save(self, path: Path) -> None:
        """Do nothing: this form has no file."""

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        return ["" for _ in outputs]

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        return [Passage("", (Piece("", "", (self.eos,)),)) for _ in raws]

    def longest_output(self, length: int, extra: int) -> int:
        """Return ``longest``, because the input does not limit the output."""
        return self._longest

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        return ["</s>" for _ in tokens]


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


class LanguageModelRuntime(Runtime):
    """The behaviour of a task that reads nothing and writes a text."""

    spec: ClassVar[Spec] = LANGUAGE_MODEL

    def builders(self) -> Builders:
        from dragoman.sizing.text_alone import TextsBuilder

        return (TextsBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.language_model.evaluation import (
            LanguageModelEvaluation,
            LanguageModelValidation,
        )
        from dragoman.tasks.language_model.writer import Writer
        from dragoman.tasks.shared.examples import TextWindows
        from dragoman.training.losses.objectives import next_token

        return Parts(
            TextWindows, next_token, LanguageModelValidation, LanguageModelEvaluation(), Writer
        )

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        from dragoman.tasks.shared.surprisal import Length

        vocabulary = forms.written.vocabulary
        texts = [pair.target for pair in pairs]
        written = vocabulary.encode(texts)
        if not (costs := of_tokens(written)):
            return {}
        both = zip(texts, written, strict=True)
        length = sum((Length.of(vocabulary, *pair) for pair in both), Length())
        return costs | length.scores(costs["loss"] * length.tokens)
