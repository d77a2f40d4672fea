"""Looking inside one translation: where every head looked, and what every step chose among.

Such requests run on the plain model, one after another in a thread of their own, so a head that is
switched off or a word that is hidden for one of them is so for nobody else. The last looks are
kept for a while, so that single heads and words of a long text can be asked for one by one; one
that has gone is made again from the request, which says everything.
"""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.forms.text import Text
from dragoman.models.interface import Network
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.search.hypothesis import Hypothesis as Found
from dragoman.search.offline import search
from dragoman.search.record import StepRecord
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving.look_schema import (
    AttentionRequest,
    LookRequest,
    Maps,
    Part,
    Side,
    Stage,
    Weights,
    WordAnswer,
    WordRequest,
)
from dragoman.serving.refusals import bad_request, slow_down

T = TypeVar("T")

MOST_WAITING = 8
"""Requests that may wait for one model to be looked into."""
MOST_KEPT = 256_000_000
"""Bytes of looks that are kept; the latest is kept whatever its size."""
MOST_WEIGHTS = 4_000_000
"""Attention weights in one answer: 11 MB of base64."""
CHOICES = 20
"""Most probable tokens that are kept of each place."""
_ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class Seen:
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


class Looker:
    """Looks into one model. May be called by many; they take turns."""

    def __init__(
        self,
        model: Network,
        vocabularies: tuple[Text, Text],
        search_settings: SearchSettings,
        prepare: Callable[[str], str] | None = None,
    ) -> None:
        """``prepare``: what is done to a text before it is cut into tokens."""
        self.model = model
        self._prepare = prepare
        self._source, self._target = vocabularies
        self._settings = search_settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="look")
        self._waiting = 0
        self._kept: OrderedDict[str, Seen] = OrderedDict()

    async def look(self, request: LookRequest, longest: int) -> Seen:
        """What was seen. Raises Refusal, ``SearchError``."""
        ids = self._checked(request, longest)
        return await self.in_turn(lambda: self._seen(request, ids))

    async def attention(self, request: AttentionRequest, longest: int) -> Weights:
        """Some of the attention of a look. Raises Refusal, ``SearchError``."""
        ids = self._checked(request, longest)
        self._check_head(request.part, request.layer, request.head or 0, "this model")

        def find() -> Weights:
            heads = self._seen(request, ids).attention[request.part][request.layer]
            if request.mean:
                heads = heads.float().mean(dim=0, keepdim=True)
            elif request.head is not None:
                heads = heads[request.head : request.head + 1]
            return packed(heads[None])

        return await self.in_turn(find)

    async def word(self, request: WordRequest, longest: int) -> WordAnswer:
        """What became of one word. Raises Refusal, ``SearchError``."""
        ids = self._checked(request, longest)

        def find() -> WordAnswer:
            seen = self._seen(request, ids)
            places = slice(request.first, request.first + request.count)
            stages = seen.stages[request.side]
            if request.first + request.count > len(next(iter(stages.values()))):
                raise bad_request(f"first and count: there are not so many {request.side} tokens.")
            attention, looked_at = seen.attention, {}
            if request.side == "source":
                looking = {"encoder": attention["encoder"][:, :, places]}
                looked_at = {
                    part: attention[part][:, :, :, places].transpose(2, 3)
                    for part in ("encoder", "cross")
                }
            else:
                looking = {part: attention[part][:, :, places] for part in ("decoder", "cross")}
            vectors = torch.stack([rows[places] for rows in stages.values()])
            sizes = vectors.float().square().mean(dim=-1).sqrt()
            return WordAnswer.model_validate(
                {
                    "attention": {part: packed(rows) for part, rows in looking.items()},
                    "looked_at": {part: packed(rows) for part, rows in looked_at.items()},
                    "stages": [
                        Stage(name=name, sizes=[round(value, 4) for value in row])
                        for name, row in zip(stages, sizes.tolist(), strict=True)
                    ],
                    "vectors": packed(vectors[None]),
                }
            )

        return await self.in_turn(find)

    async def in_turn(self, work: Callable[[], T]) -> T:
        """Do ``work`` in the thread of those who look. Raises Refusal 429 if too many wait."""
        if self._waiting >= MOST_WAITING:
            raise slow_down("Others are looking into this model. Try again in a moment.", 2)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._thread.shutdown()

    # ---- inside

    def _checked(self, request: LookRequest, longest: int) -> list[int]:
        text = request.text.strip()
        text = text if self._prepare is None else self._prepare(text)
        ids = [*self._source.encode_lists([text])[0], self._source.eos]
        if len(ids) == 1:
            raise bad_request("There is no text to look at.")
        if len(ids) > longest:
            raise bad_request(
                f"The text has {len(ids)} tokens; {longest} can be looked at. Take a part of it."
            )
        if any(place >= len(ids) for place in request.hidden):
            raise bad_request(f"hidden: the text has {len(ids)} tokens, counted from 0.")
        size = self._target.size
        for name in ("prefix_tokens", "compare"):
            if any(token >= size for token in getattr(request, name)):
                raise bad_request(f"{name} must be below {size}.")
        for head in request.heads_off:
            self._check_head(head.part, head.layer, head.head, "heads_off")
        return ids

    def _check_head(self, part: Part, layer: int, head: int, where: str) -> str:
        """What probes know the attention of a layer by."""
        layers = self.model.attentions_of(part)
        if layer >= len(layers) or head >= layers[layer].heads:
            heads = layers[0].heads if layers else 0
            raise bad_request(f"{where}: {part} has {len(layers)} layers of {heads} heads.")
        return layers[layer].name

    def _seen(self, request: LookRequest, ids: list[int]) -> Seen:
        """The same look, if it is still known, or a new one."""
        wanted = {"text", "beam", "length_penalty", "max_length", "prefix_tokens", "heads_off"}
        key = request.model_dump_json(include={*wanted, "hidden", "compare"})
        seen = self._kept.pop(key, None) or self._look(request, ids)
        self._kept[key] = seen
        while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > MOST_KEPT:
            self._kept.popitem(last=False)
        return seen

    def _look(self, request: LookRequest, ids: list[int]) -> Seen:
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
        off = [
            (self._check_head(h.part, h.layer, h.head, "heads_off"), h.head)
            for h in request.heads_off
        ]

        def watched(*, record: bool) -> Probe:
            return Probe(heads_off=off, hidden=request.hidden, record=record)

        with torch.inference_mode():
            with watched(record=False):
                wanted = Request(source, settings, tuple(request.prefix_tokens), steps)
                (found,) = search(
                    self.model,
                    [wanted],
                    bos=target.bos,
                    eos=target.eos,
                    forbidden=target.forbidden,
                )
            given = torch.tensor([target.bos, *found[0].tokens])
            with watched(record=True) as reading:
                memory = self.model.encode(Sequences.of([source]))
            sizes = len(source), len(given)
            attention = {"encoder": _taken(reading, "encoder", self.model, sizes)}
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
        return Seen(ids, found[0], settings, attention, stages, steps, choices, compared)  # type: ignore[arg-type]

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


def packed(weights: Tensor) -> Weights:
    """(L, H, T, S) as a message. Raises Refusal for more than one answer may hold."""
    if weights.numel() > MOST_WEIGHTS:
        raise bad_request(
            f"These are {weights.numel():,} weights; one answer holds {MOST_WEIGHTS:,}. Ask "
            "/v1/look for maps, and /v1/look/attention for single layers and heads."
        )
    count, heads, looking, looked_at = weights.shape
    data = base64.b64encode(weights.half().contiguous().numpy().astype("<f2").tobytes()).decode()
    return Weights(shape=(count, heads, looking, looked_at), data=data)


def small_maps(weights: Tensor, most: int) -> Maps:
    """(L, H, T, S) with at most ``most`` rows and columns, the greatest weight of each block."""
    _, _, looking, looked_at = weights.shape
    size = min(looking, most), min(looked_at, most)
    small = F.adaptive_max_pool2d(weights.float(), size)
    data = (small * 255).round().clamp(0, 255).byte().numpy().tobytes()
    layers, heads = weights.shape[:2]
    return Maps(shape=(layers, heads, *size), data=base64.b64encode(data).decode())


def _taken(probe: Probe, part: str, model: Network, sizes: tuple[int, int]) -> Tensor:
    """(L, H, T, S) of one sentence in half precision; what was recorded is let go on the way."""
    taken = [probe.attention.pop(one.name)[0].half() for one in model.attentions_of(part)]
    if taken:
        return torch.stack(taken)
    source, target = sizes
    looking = source if part == "encoder" else target
    return torch.zeros(0, 0, looking, target if part == "decoder" else source)


def _halved(stages: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: rows.half() for name, rows in stages.items()}
