"""Looking inside one translation: where every head looked, and what every step chose among.

Such requests run on the plain model in a thread of their own, where clients take turns, so a head
that is switched off or a word that is hidden for one of them is so for nobody else. What is too
much is refused before the work, and a look that nobody waits for ends at its next step. The last
looks are kept for a while, so that single heads and words of a long text can be asked for one by
one; one that has gone is made again from the request, which says everything.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.models.interface import Network
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.search.hypothesis import Hypothesis as Found
from dragoman.search.record import StepRecord
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.openapi import written
from dragoman.serving.http.refusals import bad_request, not_read
from dragoman.serving.look.schema import (
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
from dragoman.serving.turns import GivenUp, Turns
from dragoman.tasks.engine import Engine

MOST_OF_CLIENT = 8
"""Requests of one client that may wait for one model to be looked into."""
MOST_WAITING = 64
"""The same of all clients."""
MOST_KEPT = 256_000_000
"""Bytes of looks that are kept; the latest is kept whatever its size."""
MOST_WEIGHTS = 4_000_000
"""Attention weights in one answer: 11 MB of base64."""
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


Sizes = Callable[[int, int], int]
"""Source tokens, target tokens -> attention weights in the answer."""


class Looker:
    """Looks into one model. May be called by many; they take turns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.model = engine.network
        self._target = engine.target
        self._settings = engine.search_settings
        self._turns = Turns("look", of_client=MOST_OF_CLIENT, of_all=MOST_WAITING)
        self._kept: OrderedDict[str, LookRecord] = OrderedDict()

    def checked(self, request: LookRequest, longest: int) -> list[int]:
        """The tokens of what is looked at. Raises Refusal for what cannot be."""
        if request.text.strip() and not self._engine.source.reads:
            raise not_read()
        (passage,) = self._engine.cut([request.text], whole=True)
        if not passage.pieces:
            raise bad_request("There is no text to look at.")
        (ids,) = self._engine.source.values([request.text.strip()])
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

    async def look(self, request: LookRequest, ids: list[int], client: str) -> LookRecord:
        """What was seen of a text whose tokens are ``ids``. Raises Refusal, ``SearchError``."""
        wanted = request.attention if request.attention_within is None else ()

        def most(source: int, target: int) -> int:
            return max((self._weights(part, source, target) for part in wanted), default=0)

        return await self._turns.do_while_awaited(
            client, lambda given_up: self._seen(request, ids, given_up, most)
        )

    async def attention(self, request: AttentionRequest, ids: list[int], client: str) -> bytes:
        """Some of the attention of a look, as JSON. Raises Refusal, ``SearchError``."""
        self._check_head(request.part, request.layer, request.head or 0, "this model")
        layers, chosen = self.model.attentions_of(request.part), (request.part, request.layer)
        is_one = request.mean or request.head is not None
        share = 1 if is_one else layers[request.layer].heads

        def most(source: int, target: int) -> int:
            every = self._weights(request.part, source, target)
            return every * share // sum(one.heads for one in layers)

        def find(given_up: GivenUp) -> bytes:
            seen = self._seen(request, ids, given_up, most)
            heads = seen.attention[request.part][request.layer]
            if request.mean:
                off = {one.head for one in request.heads_off if (one.part, one.layer) == chosen}
                on = [head for head in range(len(heads)) if head not in off]
                heads = heads[on].float().sum(dim=0, keepdim=True) / max(len(on), 1)
            elif request.head is not None:
                heads = heads[request.head : request.head + 1]
            return written(weights_message(heads[None]))

        return await self._turns.do_while_awaited(client, find)

    async def word(self, request: WordRequest, ids: list[int], client: str) -> bytes:
        """What became of one word, as JSON. Raises Refusal, ``SearchError``."""
        beyond = bad_request(f"first and count: there are not so many {request.side} tokens.")
        if request.side == "source" and request.first + request.count > len(ids):
            raise beyond

        def most(source: int, target: int) -> int:
            if request.side == "source":
                return self._weights("encoder", source, target) * request.count // source
            cross = self._weights("cross", source, target) // target
            return max(cross, self._weights("decoder", source, target) // target) * request.count

        def find(given_up: GivenUp) -> bytes:
            seen = self._seen(request, ids, given_up, most)
            places = slice(request.first, request.first + request.count)
            stages = seen.stages[request.side]
            if request.first + request.count > len(next(iter(stages.values()))):
                raise beyond
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
            answer = WordAnswer.model_validate(
                {
                    "attention": {part: weights_message(rows) for part, rows in looking.items()},
                    "looked_at": {part: weights_message(rows) for part, rows in looked_at.items()},
                    "stages": [
                        Stage(name=name, sizes=[round(value, 4) for value in row])
                        for name, row in zip(stages, sizes.tolist(), strict=True)
                    ],
                    "vectors": weights_message(vectors[None]),
                }
            )
            return written(answer)

        return await self._turns.do_while_awaited(client, find)

    def close(self) -> None:
        self._turns.close()

    # ---- inside

    def _check_head(self, part: Part, layer: int, head: int, where: str) -> str:
        """What probes know the attention of a layer by."""
        layers = self.model.attentions_of(part)
        if layer >= len(layers) or head >= layers[layer].heads:
            heads = layers[0].heads if layers else 0
            raise bad_request(f"{where}: {part} has {len(layers)} layers of {heads} heads.")
        return layers[layer].name

    def _weights(self, part: Part, source: int, target: int) -> int:
        """How many weights an attention has, over all layers and heads."""
        looking = source if part == "encoder" else target
        looked_at = target if part == "decoder" else source
        return looking * looked_at * sum(one.heads for one in self.model.attentions_of(part))

    def _seen(
        self, request: LookRequest, ids: list[int], given_up: GivenUp, most: Sizes
    ) -> LookRecord:
        """The same look, if it is still known, or a new one.

        ``most``: the weights that the answer will hold, of so many tokens. Raises Refusal for too
        many: before the search, by what is known then, or at once after it.
        """
        wanted = {"text", "beam", "length_penalty", "max_length", "prefix_tokens", "heads_off"}
        key = request.model_dump_json(include={*wanted, "hidden", "compare"})
        seen = self._kept.pop(key, None) or self._look(request, ids, given_up, most)
        self._kept[key] = seen
        while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > MOST_KEPT:
            self._kept.popitem(last=False)
        return seen

    def _look(
        self, request: LookRequest, ids: list[int], given_up: GivenUp, most: Sizes
    ) -> LookRecord:
        check_size(most(len(ids), len(request.prefix_tokens) + 1))
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


def check_size(weights: int) -> None:
    """Raises Refusal for more weights than one answer may hold."""
    if weights > MOST_WEIGHTS:
        raise bad_request(
            f"These are {weights:,} weights; one answer holds {MOST_WEIGHTS:,}. Ask "
            "/v1/look for maps, and /v1/look/attention for single layers and heads."
        )


def weights_message(weights: Tensor) -> Weights:
    """(L, H, T, S) as a message. Raises Refusal for more than one answer may hold."""
    check_size(weights.numel())
    count, heads, looking, looked_at = weights.shape
    data = base64.b64encode(weights.half().contiguous().numpy().astype("<f2").tobytes()).decode()
    return Weights(shape=(count, heads, looking, looked_at), data=data)


def small_maps(weights: Tensor, most: int) -> Maps:
    """(L, H, T, S) with at most ``most`` rows and columns, the greatest weight of each block."""
    _, _, looking, looked_at = weights.shape
    size = min(looking, most), min(looked_at, most)
    one_by_one = weights.float().flatten(0, 1)[:, None]  # (LH, 1, T, S), where LH may be none
    small = F.adaptive_max_pool2d(one_by_one, size)
    data = (small * 255).round().clamp(0, 255).byte().numpy().tobytes()
    layers, heads = weights.shape[:2]
    return Maps(shape=(layers, heads, *size), data=base64.b64encode(data).decode())


def _taken(probe: Probe, part: str, model: Network, sizes: tuple[int, int]) -> Tensor:
    """(L, H, T, S) of one sentence in half precision."""
    source, target = sizes
    looking = source if part == "encoder" else target
    looked_at = target if part == "decoder" else source
    names = [attention.name for attention in model.attentions_of(part)]
    return probe.maps(names, looking, looked_at, torch.float16)


def _halved(stages: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: rows.half() for name, rows in stages.items()}
