"""What is seen of one model while it translates under a watch, with heads off and words hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from dragoman.models.interface import Network, writing
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.search.hypothesis import Hypothesis as Found
from dragoman.search.record import StepRecord
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.refusals import bad_request
from dragoman.serving.look.packed import check_size
from dragoman.serving.look.schema import LookRequest, Part, Side
from dragoman.serving.turns import GivenUp
from dragoman.tasks.engine import Engine

CHOICES = 20
"""Most probable tokens that are kept of each place."""
_ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class LookRecord:
    """All that was seen in one translation."""

    source_ids: list[int]
    best: Found
    settings: SearchSettings
    attention: dict[Part, Tensor]
    """(L, H, T, S) in half precision."""
    stages: dict[Side, dict[str, Tensor]]
    """Name -> (P, D) in half precision, in the order of computing."""
    steps: list[StepRecord]
    choices: tuple[Tensor, Tensor]
    """(T, k) probabilities and token numbers."""
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


class Sight:
    """One model that is watched. Called by one at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.model = writing(engine.network)
        self._target = engine.target
        self._settings = engine.search_settings

    def look(
        self, request: LookRequest, ids: list[int], given_up: GivenUp, most: Sizes
    ) -> LookRecord:
        """All there is to see. Raises Refusal, ``SearchError``."""
        check_size(most(len(ids), len(request.given or request.prefix_tokens) + 1))
        source, target = torch.tensor(ids), self._target
        asked = request.model_dump(
            include={"beam", "length_penalty", "max_length"}, exclude_none=True
        )
        if "max_length" in asked:
            asked["min_length"] = min(self._settings.min_length, asked["max_length"])
        settings = self._settings.model_copy(
            update={**asked, "n_best": 1, "sampling": None, "alternatives": False}
        )
        steps: list[StepRecord] = []
        off = self.off(request)

        def watched(*, record: bool) -> Probe:
            return Probe(heads_off=off, hidden=request.hidden, record=record)

        with torch.inference_mode():
            with watched(record=False):
                if request.given:
                    (found,) = self._engine.over(self.model).score([ids], [request.given])
                else:
                    wanted = self._engine.request(ids, settings, request.prefix_tokens, steps)
                    found = self._searched(wanted, given_up)
            check_size(most(len(ids), len(found.tokens) + 1))
            given = torch.tensor([target.bos, *found.tokens])
            with watched(record=True) as reading:
                memory = self.model.encode(Sequences.of([source]))
            sizes = len(source), len(given)
            attention = {"encoder": _taken(reading, "encoder", self.model, sizes)}
            given_up.check()
            with watched(record=True) as writing:
                hidden = self.model.decode(Sequences.of([given]), memory)
            for part in ("decoder", "cross"):
                attention[part] = _taken(writing, part, self.model, sizes)
            stages = {
                "source": _halved(self.model.embedded(source, "source") | reading.activations),
                "target": _halved(self.model.embedded(given, "target") | writing.activations),
            }
            choices = self._choices(hidden)
            compared = None
            if request.compare:
                with watched(record=False):
                    other = torch.tensor([target.bos, *request.compare])
                    rows = self.model.decode(Sequences.of([other]), memory)
                    compared = self._log_probability(rows, [*request.compare, target.eos])
        return LookRecord(ids, found, settings, attention, stages, steps, choices, compared)  # type: ignore[arg-type]

    def _searched(self, request: Request, given_up: GivenUp) -> Found:
        """The best of a search, which ends early if nobody waits for it any more."""
        scheduler = self._engine.over(self.model).scheduler()
        scheduler.submit(request)
        while True:
            given_up.check()
            for _, hypotheses in scheduler.advance():
                return hypotheses[0]

    def _choices(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        parts = [
            self.model.project(rows).float().softmax(dim=-1).topk(min(CHOICES, self._target.size))
            for rows in hidden.split(_ROWS_AT_ONCE)
        ]
        return torch.cat([part.values for part in parts]), torch.cat(
            [part.indices for part in parts]
        )

    def _log_probability(self, hidden: Tensor, chosen: Sequence[int]) -> float:
        ids = torch.tensor(chosen)[:, None]
        total = 0.0
        for rows, wanted in zip(hidden.split(_ROWS_AT_ONCE), ids.split(_ROWS_AT_ONCE), strict=True):
            total += float(self.model.project(rows).float().log_softmax(-1).gather(1, wanted).sum())
        return total

    def believed(
        self,
        request: LookRequest,
        ids: Sequence[int],
        tokens: Sequence[int],
        off: Sequence[tuple[str, int]],
    ) -> float:
        """log P of a translation with some heads off."""
        given = torch.tensor([self._target.bos, *tokens])
        with torch.inference_mode():
            with Probe(heads_off=off, hidden=request.hidden, record=False):
                memory = self.model.encode(Sequences.of([torch.tensor(ids)]))
                rows = self.model.decode(Sequences.of([given]), memory)
            return self._log_probability(rows, [*tokens, self._target.eos])

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
            raise bad_request(f"{where}: {part} has {len(layers)} layers of {heads} heads.")
        return layers[layer].name


def _taken(probe: Probe, part: str, model: Network, sizes: tuple[int, int]) -> Tensor:
    """(L, H, T, S) of one sentence in half precision."""
    source, target = sizes
    looking = source if part == "encoder" else target
    looked_at = target if part == "decoder" else source
    names = [attention.name for attention in model.attentions_of(part)]
    return probe.maps(names, looking, looked_at, torch.float16)


def _halved(stages: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: rows.half() for name, rows in stages.items()}
