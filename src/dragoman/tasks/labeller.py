"""The predictor of a run that labels: texts in, labels and their probabilities out.

It has no search, and so no ``Engine``: all labels of a text are scored at once, by the model as it
is, in fp32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from dragoman.data.labelled import Reading
from dragoman.errors import RunError
from dragoman.models.interface import Network
from dragoman.tasks.examples import reading_of
from dragoman.tasks.run import Run

_TOKENS_AT_ONCE = 8192

Probabilities = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """One text. ``str(labelled)`` is its most probable label."""

    text: str
    names: tuple[str, ...]
    """All labels there are."""
    log_probabilities: Probabilities
    """(K,) of each of them, in nats."""
    cut: bool
    """Whether the text is longer than what was read of it."""

    @property
    def probabilities(self) -> Probabilities:
        """(K,)"""
        return np.exp(self.log_probabilities)

    @property
    def label(self) -> str:
        """The most probable one."""
        return self.names[int(self.log_probabilities.argmax())]

    @property
    def probability(self) -> float:
        """Of that."""
        return float(self.probabilities.max())

    @property
    def ranked(self) -> list[tuple[str, float]]:
        """Every label and its probability, the most probable first."""
        order = np.argsort(-self.log_probabilities, kind="stable")
        return [(self.names[k], float(self.probabilities[k])) for k in order]

    def __str__(self) -> str:
        return self.label


class Labeller:
    """A trained model, ready to label. Not for several threads at once."""

    def __init__(self, run: Run) -> None:
        """Errors: ``RunError``, also for a run that does something else."""
        if not run.task.labels:
            raise RunError(
                f"{run.folder} is a {run.task.name}, which does not label: "
                f"dragoman {run.task.verbs[0][0]} {run.folder}"
            )
        self.run = run
        self.network: Network = run.model()
        self.labels = run.forms.labels
        self.reading = reading_of(run.recipe, run.forms)

    @property
    def longest(self) -> int:
        """Tokens that are read of a text, a symbol before or behind it counted."""
        return self.reading.longest

    def __call__(self, texts: Iterable[str]) -> list[Labelled]:
        """Each text with the probabilities of all labels. One without tokens has those of a text
        in which nothing stands."""
        given = list(texts)
        tokens = [np.array(one, np.int32) for one in self.run.source.tokens(given)]
        found: list[Labelled | None] = [None] * len(given)
        order = sorted(range(len(given)), key=lambda number: len(tokens[number]))
        lengths = [len(tokens[number]) for number in order]
        for part in in_batches(lengths, self.reading, _TOKENS_AT_ONCE):
            numbers = [order[place] for place in part]
            read = self.reading.texts([tokens[number] for number in numbers])
            with torch.inference_mode():
                logits = self.network.project(self.network.encode(read).rows).double()  # (B, K)
                every = torch.log_softmax(logits, dim=-1).numpy()
            for number, log_probabilities in zip(numbers, every, strict=True):
                is_cut = len(tokens[number]) > self.longest - 1
                found[number] = Labelled(
                    given[number], self.labels.names, log_probabilities, is_cut
                )
        return [one for one in found if one is not None]


def in_batches(lengths: Sequence[int], reading: Reading, tokens: int) -> Iterator[list[int]]:
    """The places of ``lengths`` in runs of about so many tokens that are read, one at least."""
    part: list[int] = []
    size = 0
    for place, length in enumerate(lengths):
        read = reading.length(length) + 1
        if part and size + read > tokens:
            yield part
            part, size = [], 0
        part.append(place)
        size += read
    if part:
        yield part
