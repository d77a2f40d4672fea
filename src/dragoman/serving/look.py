"""Looking inside one translation: where every head looked, and what every step chose among.

Such requests run on the plain model, one after another in a thread of their own, so a head that is
switched off or a word that is hidden for one of them is so for nobody else.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field

from dragoman.forms.text import Text
from dragoman.models.transformer import Transformer
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.search.hypothesis import Hypothesis as Found
from dragoman.search.offline import search
from dragoman.search.record import StepRecord
from dragoman.search.request import Request, SearchSettings
from dragoman.serving.refusals import bad_request, slow_down
from dragoman.serving.schema import DetectedLanguage, Hypothesis, Message

Part = Literal["encoder", "decoder", "cross"]

ATTENTION: dict[Part, tuple[str, str]] = {
    "encoder": ("encoder", "attention"),
    "decoder": ("decoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
}
"""Which stack has it, and what it is called there."""

MOST_WAITING = 8
"""Requests that may wait for one model to be looked into."""


class Head(Message):
    """One head of one attention."""

    part: Part
    layer: int = Field(ge=0)
    head: int = Field(ge=0)


class LookRequest(Message):
    """``POST /v1/look``: one sentence, translated by the plain model while it is watched."""

    text: str
    source: str = "auto"
    target: str | None = None
    run: str | None = None
    beam: int | None = Field(default=None, ge=1)
    prefix_tokens: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(), max_length=1000)
    """How the translation must begin."""
    heads_off: tuple[Head, ...] = Field(default=(), max_length=1000)
    """Heads whose output is set to zero."""
    hidden: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(), max_length=1000)
    """Places of source tokens that no head may look at."""
    attention: tuple[Part, ...] = ("encoder", "decoder", "cross")
    """Which attention to give."""
    steps: bool = True
    """Give what every step of the search chose among."""
    api_key: str | None = None


class Weights(Message):
    """Attention weights of all layers and heads."""

    shape: tuple[int, int, int, int]
    """Layers, heads, those who look, what is looked at."""
    data: str
    """16-bit floats, little-endian, the last axis running fastest, in base64."""


class Candidate(Message):
    """A continuation that a step looked at."""

    parent: int
    """Which of those kept in the step before it continues."""
    id: int
    piece: str
    log_probability: float
    """Of the token alone."""
    total: float
    """Of the whole hypothesis."""
    outcome: str
    """kept: went on; ended: finished here; dropped: fell out of the beam."""


class Step(Message):
    """One step of the search, its candidates best first."""

    place: int
    """The place in the translation that was filled, from 0."""
    candidates: list[Candidate]


class LookAnswer(Message):
    """What was seen. Row t of ``decoder`` and ``cross`` belongs to the step that chose token t."""

    run: str
    source: str
    target: str
    detected: DetectedLanguage | None = None
    source_tokens: list[str]
    """As the vocabulary writes them, the end symbol included."""
    target_tokens: list[str]
    """The same of the translation; with the end symbol, which the last row chose."""
    best: Hypothesis
    attention: dict[Part, Weights]
    steps: list[Step]


@dataclass(frozen=True)
class Seen:
    """What was found in one translation."""

    source_ids: list[int]
    best: Found
    attention: dict[Part, Weights]
    steps: list[StepRecord]


class Looker:
    """Looks into one model. ``look`` may be called by many; they take turns."""

    def __init__(
        self, model: Transformer, vocabularies: tuple[Text, Text], search_settings: SearchSettings
    ) -> None:
        self._model = model
        self._source, self._target = vocabularies
        self._settings = search_settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="look")
        self._waiting = 0

    async def look(self, request: LookRequest, longest: int) -> Seen:
        """What was seen. Raises Refusal, ``SearchError``."""
        ids = [*self._source.encode([request.text.strip()])[0].tolist(), self._source.eos]
        self._check(request, ids, longest)
        if self._waiting >= MOST_WAITING:
            raise slow_down("Others are looking into this model. Try again in a moment.", 2)
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, self._look, request, ids)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._thread.shutdown()

    def _check(self, request: LookRequest, ids: Sequence[int], longest: int) -> None:
        if len(ids) == 1:
            raise bad_request("There is no text to look at.")
        if len(ids) > longest:
            raise bad_request(
                f"The text has {len(ids)} tokens; {longest} are read at once. Look at a part of it."
            )
        if any(place >= len(ids) for place in request.hidden):
            raise bad_request(f"hidden: the text has {len(ids)} tokens, counted from 0.")
        if any(token >= self._target.size for token in request.prefix_tokens):
            raise bad_request(f"prefix_tokens must be below {self._target.size}.")
        settings = self._model.settings
        heads = settings.attention.num_heads
        for head in request.heads_off:
            layers = settings.encoder_layers if head.part == "encoder" else settings.decoder_layers
            if head.layer >= layers or head.head >= heads:
                raise bad_request(f"heads_off: {head.part} has {layers} layers of {heads} heads.")

    def _look(self, request: LookRequest, ids: list[int]) -> Seen:
        source, target = torch.tensor(ids), self._target
        changes = {} if request.beam is None else {"beam": request.beam, "n_best": 1}
        settings = self._settings.model_copy(update={**changes, "sampling": None})
        steps: list[StepRecord] = []
        wanted = Request(
            source, settings, tuple(request.prefix_tokens), steps if request.steps else None
        )
        off = [(_name(h.part, h.layer), h.head) for h in request.heads_off]
        with torch.inference_mode():
            with Probe(heads_off=off, hidden=request.hidden, record=False):
                (found,) = search(self._model, [wanted], bos=target.bos, eos=target.eos)
            attention: dict[Part, Weights] = {}
            if request.attention:
                with Probe(heads_off=off, hidden=request.hidden) as probe:
                    memory = self._model.encode(Sequences.of([source]))
                    given = torch.tensor([target.bos, *found[0].tokens])
                    self._model.decode(Sequences.of([given]), memory)
                attention = {part: self._weights(probe, part) for part in request.attention}
        return Seen(ids, found[0], attention, steps)

    def _weights(self, probe: Probe, part: Part) -> Weights:
        settings = self._model.settings
        layers = settings.encoder_layers if part == "encoder" else settings.decoder_layers
        every = torch.stack([probe.attention[_name(part, layer)][0] for layer in range(layers)])
        count, heads, looking, looked_at = every.shape
        data = base64.b64encode(every.half().contiguous().numpy().tobytes()).decode()
        return Weights(shape=(count, heads, looking, looked_at), data=data)


def _name(part: Part, layer: int) -> str:
    stack, attention = ATTENTION[part]
    return f"{stack}.{layer}.{attention}"
