"""What is seen of one model while it is at work under a watch, with heads off and words hidden."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from dragoman.models.interface import Network
from dragoman.nn.probes import Probe
from dragoman.search.hypothesis import Hypothesis as Found
from dragoman.search.record import StepRecord
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.schema import LookRequest, Part, Side
from dragoman.serving.turns import GivenUp


@dataclass(frozen=True)
class LookRecord:
    """All that was seen of one text."""

    source_ids: list[int]
    best: Found
    """What was written; or what was said of the text, as tokens or a label, and how probable."""
    text: str
    """The same as people read it."""
    target: list[str]
    """Each token that was written as it is shown, the end symbol last; none where none was."""
    settings: SearchSettings
    attention: dict[Part, Tensor]
    """(L, H, T, S) in half precision."""
    stages: dict[Side, dict[str, Tensor]]
    """Name -> (P, D) in half precision, in the order of computing."""
    steps: list[StepRecord]
    choices: tuple[Tensor, Tensor]
    """(T, k) probabilities and token numbers; a token that may not stand there has none."""
    compared: float | None

    @property
    def size(self) -> int:
        """Bytes, nearly."""
        stages = [rows for side in self.stages.values() for rows in side.values()]
        return sum(2 * one.numel() for one in (*self.attention.values(), *stages))


Asked = TypeVar("Asked", bound=LookRequest)


@dataclass(frozen=True)
class Cut(Generic[Asked]):
    """A text that is to be looked at."""

    sentences: list[str]
    """All of them."""
    request: Asked
    """Its text is what is looked at: one sentence, or all as one."""
    ids: list[int]
    """The tokens of that."""


Sizes = Callable[[int, int], int]
"""Source tokens, target tokens -> attention weights in the answer."""


class Sight(ABC):
    """One model that is watched. Called by one at a time."""

    @property
    @abstractmethod
    def model(self) -> Network:
        """It, on the plain path."""

    @abstractmethod
    def look(
        self, request: LookRequest, ids: list[int], given_up: GivenUp, most: Sizes
    ) -> LookRecord:
        """All there is to see. Raises Refusal, ``SearchError``."""

    @abstractmethod
    def believed(
        self,
        request: LookRequest,
        ids: Sequence[int],
        tokens: Sequence[int],
        off: Sequence[tuple[str, int]],
    ) -> float:
        """log P of what was written or said, with some heads off."""

    def off(self, request: LookRequest) -> list[tuple[str, int]]:
        """The heads that are off, as probes know them."""
        return [
            (self.check_head(one.part, one.layer, one.head, "heads_off"), one.head)
            for one in request.heads_off
        ]

    def check_head(self, part: Part, layer: int, head: int, where: str) -> str:
        """What probes know the attention of a layer by."""
        layers = self.model.attentions_of(part)
        if layer >= len(layers) or head >= layers[layer].heads:
            heads = layers[0].heads if layers else 0
            raise Refusal(
                "no_such_head",
                f"{where}: {part} has {len(layers)} layers of {heads} heads.",
                part=part,
                layers=len(layers),
                heads=heads,
            )
        return layers[layer].name

    def taken(self, probe: Probe, part: Part, source: int, target: int) -> Tensor:
        """(L, H, T, S) of one text in half precision, out of what a probe has recorded."""
        looking = source if part == "encoder" else target
        looked_at = target if part == "decoder" else source
        names = [attention.name for attention in self.model.attentions_of(part)]
        return probe.maps(names, looking, looked_at, torch.float16)


def halved(stages: dict[str, Tensor]) -> dict[str, Tensor]:
    """In half precision."""
    return {name: rows.half() for name, rows in stages.items()}
