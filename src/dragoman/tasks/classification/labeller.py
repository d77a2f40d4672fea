"""The predictor of a run that labels: it reads texts and gives labels with their probabilities.

There is no search: the model scores all labels of a text at once, in fp32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from dragoman.base.errors import DragomanError
from dragoman.data.batches import in_batches
from dragoman.engine.predictor import NO_ENCODER, ReadingPredictor, Shown
from dragoman.forms.form import Values
from dragoman.forms.sides import Forms
from dragoman.models.interface import Network
from dragoman.runs.recipe.recipe import Recipe
from dragoman.search.hypothesis import Hypothesis, hypothesis_of
from dragoman.tasks.shared.examples import reading_of

_TOKENS_AT_ONCE = 8192

Probabilities = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ClassifiedText:
    """One labelled text. ``str(labelled)`` gives its most probable label."""

    text: str
    names: tuple[str, ...]
    """The names of all labels, in their order."""
    log_probabilities: Probabilities
    """(K,) log P of each label, in nats."""
    cut: bool
    """True if the text is longer than the model reads."""

    @property
    def probabilities(self) -> Probabilities:
        """(K,) the probability of each label."""
        return np.exp(self.log_probabilities)

    @property
    def label(self) -> str:
        """The label with the highest probability."""
        return self.names[int(self.log_probabilities.argmax())]

    @property
    def probability(self) -> float:
        """The probability of the most probable label."""
        return float(self.probabilities.max())

    @property
    def ranked(self) -> list[tuple[str, float]]:
        """Every label and its probability, the most probable first."""
        order = np.argsort(-self.log_probabilities, kind="stable")
        return [(self.names[k], float(self.probabilities[k])) for k in order]

    def __str__(self) -> str:
        return self.label


class Labeller(ReadingPredictor[ClassifiedText]):
    """A trained labeller. Do not use it from several threads at once."""

    asked_of: ClassVar[tuple[str, str]] = ("classification", "which does not label")

    def prepare(self, recipe: Recipe, forms: Forms) -> None:
        self.network: Network = self.engine.network
        self.labels = forms.labels
        self.reading = reading_of(recipe, forms)

    @property
    def longest(self) -> int:
        """The largest number of tokens that the model reads of a text, including one special
        symbol."""
        return self.reading.longest

    def beginning(self, text: str) -> str:
        """The beginning of a text, at least as long as what the model reads. Only this is
        tokenised."""
        return self.engine.source.beginning(text, self.longest)

    def each(self, given: Iterable[str]) -> Iterator[ClassifiedText]:
        """Label each text or file, in the given order, with the probabilities of all labels. A text
        without tokens is read as an empty one. All texts are read before the first result. Errors:
        ``DataError`` for a file that cannot be used."""
        texts = list(given)
        by_number = dict(self.parts(texts))
        yield from (by_number[number] for number in range(len(texts)))

    def parts(
        self,
        given: Sequence[str],
        together: int = _TOKENS_AT_ONCE,
        values: Sequence[Values] | None = None,
    ) -> Iterator[tuple[int, ClassifiedText]]:
        """Yield the number and the labels of each text as soon as it is read, the shortest texts
        first. ``together``: the most tokens that are read at once. ``values``: the tokens of the
        texts, if they are known; ``given`` is then used only to name the texts."""
        tokens = values
        if tokens is None:
            tokens = self.engine.source.encode([self.beginning(text) for text in given])
        order = sorted(range(len(given)), key=lambda number: len(tokens[number]))
        size = self.reading.size
        for numbers in in_batches(order, together, lambda number: size(len(tokens[number]))):
            read = self.reading.texts([tokens[number] for number in numbers])
            read = read.to(self.engine.device)
            with torch.inference_mode():
                logits = self.network.project(self.network.encode(read).rows).double()  # (B, K)
                every = torch.log_softmax(logits, dim=-1).cpu().numpy()
            for number, log_probabilities in zip(numbers, every, strict=True):
                is_cut = len(tokens[number]) > self.longest - self.reading.symbols
                yield (
                    number,
                    ClassifiedText(given[number], self.labels.names, log_probabilities, is_cut),
                )

    # ---- looking

    def own_output(self, text: str, prefix: str = "") -> Shown:
        """The label of a text, for figures. Errors: ``DragomanError`` for a prefix."""
        if prefix:
            raise DragomanError("labels cannot have a prefix. Leave it out")
        answer = self(text)
        value = int(answer.log_probabilities.argmax())
        line = f"{answer.label}  {answer.probability:.4f}"
        return Shown(line, (value,), float(answer.log_probabilities[value]))

    def source_ids(self, text: str) -> list[int]:
        """The ids that the model reads: the tokens of a text and one special symbol."""
        read: list[int] = self.source_values(text).tolist()
        return read

    def source_values(self, source: str) -> Values:
        (values,) = self.engine.source.encode([self.beginning(source)])
        read: Values = self.reading.texts([values]).values.numpy()
        return read

    def ids_to_show(self, text: str) -> list[int]:
        """The ids of a whole text; of a very long one, those of its beginning."""
        return self.engine.source.values([self.beginning(text)])[0]

    def score_ids(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Hypothesis]:
        """log P of a label for each text. ``targets``: the ids of the labels, one for each text."""
        return [
            hypothesis_of(target, [float(answer.log_probabilities[target[0]])], finished=False)
            for answer, target in zip(self(sources), targets, strict=True)
        ]

    @property
    def no_inside(self) -> str | None:
        hint = f"dragoman classify {self.run.folder} --explain shows the attention of each word"
        return f"{NO_ENCODER}: {hint}" if self.reading.before else None
