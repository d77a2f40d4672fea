"""A session examines one model: its output for a text with or without an intervention, the
probability of that output, and every attention weight and hidden row of its computation.
``dragoman look``, the figures and the server use sessions.

The output is the one that the server would return: the engine searches for it on its fast path, and
the network then reads it (force decoding). If rounding on the fast path leads to another output
than the network alone would write, the network's own output is reported too. An intervention
affects only the network, which then runs the search itself.

The model is never changed: a probe (``nn/probes.py``) is open while the network computes. Long work
begins each of its parts with ``begin_part`` (below).

Shapes: L layers, H heads, S source tokens, T target tokens, P rows, D model width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.forms.form import Rules, Values
from dragoman.models.interface import Network, Part, writing
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.search.hypothesis import Hypothesis, StepRecord, hypothesis_of
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings

CHOICES = 20
"""The number of most probable tokens that are kept for each place."""
_ROWS_AT_ONCE = 64
PARTS: tuple[Part, ...] = get_args(Part)

Fits = Callable[[int, int], None]
"""A callback that gets the numbers of source and target tokens, and may end the work by raising."""


@dataclass(frozen=True)
class Intervention:
    """The changes to a model's computation."""

    heads_off: frozenset[tuple[str, int]] = frozenset()
    """The heads whose output is set to zero, as (attention, head), like those of ``Probe``."""
    hidden: tuple[int, ...] = ()
    """The positions of the source that no attention may attend to. The other tokens keep their
    positions."""

    def probe(self, *, record: bool = False) -> Probe:
        """Return a probe that intervenes while it is open."""
        return Probe(heads_off=self.heads_off, hidden=self.hidden, record=record)

    def without(self, attention: str, head: int) -> Intervention:
        """Return this intervention with one more head switched off."""
        return replace(self, heads_off=self.heads_off | {(attention, head)})


@dataclass(frozen=True)
class InspectionRequest:
    """A text and how to inspect it."""

    text: str
    ids: list[int]
    """The source tokens with the end symbol."""
    settings: SearchSettings
    under: Intervention = Intervention()
    prefix: Sequence[int] = ()
    """The first tokens of the output, if they are given."""
    given: Sequence[int] = ()
    """The whole output, without its end symbol, if it is given instead of searched for."""


@dataclass(frozen=True)
class OwnOutput:
    """The output of the network alone, where it differs from the served output."""

    text: str
    place: int
    """The first place, counted from 0, at which the two outputs differ."""

    @classmethod
    def of(cls, served: Sequence[int], own: Sequence[int], text: str) -> OwnOutput:
        """Compare the served tokens with the network's ``own``, which differ from them. ``text`` is
        the text of ``own``."""
        pairs = enumerate(zip(served, own, strict=False))
        shorter = min(len(served), len(own))
        return cls(text, next((place for place, (a, b) in pairs if a != b), shorter))


@dataclass(frozen=True)
class Inspection:
    """The result of inspecting one text."""

    source_ids: list[int]
    best: Hypothesis
    """The output with its probability, or the tokens or label that were predicted."""
    text: str
    """The output as people read it."""
    target: list[str]
    """The written tokens as displayed, with the end symbol last; empty if nothing was written."""
    settings: SearchSettings
    attention: dict[Part, Tensor]
    """The attention weights by part, (L, H, queries, keys), in half precision."""
    source_stages: dict[str, Tensor]
    """The rows (P, D) of each stage of the source by name, in half precision, in the order of
    computing."""
    target_stages: dict[str, Tensor]
    steps: list[StepRecord]
    choices: tuple[Tensor, Tensor]
    """(T, k) the probabilities of the most probable tokens at each place, and (T, k) their ids. A
    token that is not allowed has probability 0."""
    own: OwnOutput | None = None
    """The output of the network alone, where it differs from ``best``; None for a given output or
    under an intervention."""
    compared: float | None = None
    """The log-probability of another output, if one was given."""

    @property
    def size(self) -> int:
        """The approximate size of the record in bytes."""
        stages = (*self.source_stages.values(), *self.target_stages.values())
        return sum(2 * tensor.numel() for tensor in (*self.attention.values(), *stages))


class InspectionSession:
    """The session of one model. Only one thread at a time may use a session."""

    def __init__(self, engine: Engine, predictor: Predictor[object] | None = None) -> None:
        """``predictor`` reads a text in the manner of its task; it is required for a model that
        writes nothing."""
        self.model: Network = engine.network
        self._engine, self._target, self._predictor = engine, engine.target, predictor

    def inspect(self, wanted: InspectionRequest, fits: Fits = lambda *_: None) -> Inspection:
        """Inspect a text. ``fits`` is called with the sizes known before the search and, for a
        model that writes, again after it. Errors: ``SearchError``; ``DragomanError`` for a text
        that the predictor rejects."""
        if self._engine.writes:
            return self._inspect_writing(wanted, fits)
        return self._inspect_reading(wanted, fits)

    def output_log_p(
        self, text: str, ids: Sequence[int] | Values, tokens: Sequence[int], under: Intervention
    ) -> float:
        """Return log P of an output in nats, including its end symbol; for a model that writes
        nothing, log P of its prediction ``tokens`` about the text."""
        begin_part()
        if not self._engine.writes:
            assert self._predictor is not None, "what writes nothing is read by its predictor"
            with under.probe():
                (scored,) = self._predictor.score_ids([text], [tokens])
            return math.fsum(scored.token_log_probabilities)
        hidden = teacher_forced(self.model, [ids], [[self._target.bos, *tokens]], under.probe())
        chosen = torch.tensor([*tokens, self._target.eos])[:, None]
        total = 0.0
        with torch.inference_mode():
            for rows, wanted in zip(
                *(x.split(_ROWS_AT_ONCE) for x in (hidden, chosen)), strict=True
            ):
                scores = self.model.project(rows).float().log_softmax(-1)
                total += float(scores.gather(1, wanted).sum())
        return total

    def without_each_head(
        self, score: Callable[[Intervention], float], under: Intervention = Intervention()
    ) -> dict[str, list[list[float]]]:
        """Call ``score`` with each head switched off in turn. Return the scores by part, then by
        layer and head."""
        scores: dict[str, list[list[float]]] = {}
        for layer in self.model.attentions:
            of_heads = [score(under.without(layer.name, head)) for head in range(layer.heads)]
            scores.setdefault(layer.part, []).append(of_heads)
        return scores

    # ---- inside

    def _inspect_writing(self, wanted: InspectionRequest, fits: Fits) -> Inspection:
        """Inspect a model that writes: record its search, and how it reads the output."""
        ids, given, prefix = wanted.ids, wanted.given, wanted.given or wanted.prefix
        fits(len(ids), len(prefix) + 1)
        target, model, steps = self._target, writing(self.model), list[StepRecord]()
        search = self._engine.request(ids, wanted.settings, prefix, steps, raw=wanted.text)
        plain, own = self._engine.over(model), None
        if search.rules is not None:
            search.check(target.eos)
        # Inference mode is not used, because a fast path keeps tensors for its next search.
        with wanted.under.probe():
            if given:
                (best,) = plain.score([ids], [given])
            elif wanted.under != Intervention():
                best = _search(plain, search)
            else:
                served = _search(self._engine, search)
                best = alone = _search(plain, replace(search, record=None))
                if served.tokens != alone.tokens:
                    best = self._score(ids, served, wanted.settings)
                    text = target.raw_for(wanted.text, alone.tokens)
                    own = OwnOutput.of(served.tokens, alone.tokens, text)
        with torch.inference_mode():
            fits(len(ids), len(best.tokens) + 1)
            source, read = torch.tensor(ids), torch.tensor([target.bos, *best.tokens])
            # The encoder's weights are halved before the decoder makes more.
            with wanted.under.probe(record=True) as reading:
                memory = model.encode(Sequences.of([source]))
            encoder = self._half(reading, "encoder", source, read)
            begin_part()
            with wanted.under.probe(record=True) as deciding:
                hidden = model.decode(Sequences.of([read]), memory)
            decoder, cross = (
                self._half(deciding, part, source, read) for part in ("decoder", "cross")
            )
            choices = self._choices(hidden, best.tokens, search.rules)
            stages = model.input_terms(source, "source") | reading.activations
            target_stages = model.input_terms(read, "target") | deciding.activations
        return Inspection(
            source_ids=ids,
            best=best,
            text=target.raw_for(wanted.text, best.tokens),
            target=target.names_beside(wanted.text, [*best.tokens, target.eos]),
            settings=wanted.settings,
            attention={"encoder": encoder, "decoder": decoder, "cross": cross},
            source_stages=_halve(stages),
            target_stages=_halve(target_stages),
            steps=steps,
            choices=choices,
            own=own,
        )

    def _inspect_reading(self, wanted: InspectionRequest, fits: Fits) -> Inspection:
        """Inspect a model that fills in blanks or labels: it reads a text and predicts something
        about it."""
        assert self._predictor is not None, "what writes nothing is read by its predictor"
        fits(len(wanted.ids), 1)
        with wanted.under.probe():
            said = self._predictor.own_output(wanted.text)
        begin_part()
        # Scoring reads the text once, with open blanks, so that reading is recorded.
        with wanted.under.probe(record=True) as reading:
            (best,) = self._predictor.score_ids([wanted.text], [said.ids])
        source = torch.tensor(wanted.ids)
        with torch.inference_mode():
            stages = self.model.input_terms(source, "source") | reading.activations
        return Inspection(
            source_ids=wanted.ids,
            best=best,
            text=said.text,
            target=[],
            settings=wanted.settings,
            attention={part: self._half(reading, part, source, source[:1]) for part in PARTS},
            source_stages=_halve(stages),
            target_stages={},
            steps=[],
            choices=(torch.zeros(0, 0), torch.zeros(0, 0, dtype=torch.int64)),
        )

    def _half(self, probe: Probe, part: str, source: Tensor, target: Tensor) -> Tensor:
        return self._engine.attention.maps(probe, part, len(source), len(target), torch.float16)

    def _score(self, ids: Sequence[int], output: Hypothesis, search: SearchSettings) -> Hypothesis:
        """Return an output with the probabilities that the network itself gives it."""
        (read,) = self._engine.score([ids], [output.tokens])
        costs = read.token_log_probabilities[: len(output.token_log_probabilities)]
        return hypothesis_of(output.tokens, costs, search, finished=output.finished)

    def _choices(
        self, hidden: Tensor, tokens: Sequence[int], rules: Rules | None
    ) -> tuple[Tensor, Tensor]:
        tops = []
        for first in range(0, len(hidden), _ROWS_AT_ONCE):
            rows = hidden[first : first + _ROWS_AT_ONCE]
            probabilities = self.model.project(rows).float().softmax(dim=-1)
            if rules is not None:
                places = range(first, first + len(rows))
                probabilities[~_allowed_tokens(rules, tokens, places)] = 0.0
            tops.append(probabilities.topk(min(CHOICES, self._target.size)))
        return torch.cat([top.values for top in tops]), torch.cat([top.indices for top in tops])


def _search(engine: Engine, request: Request) -> Hypothesis:
    """Run one search as long work, each step of which is a part. Return its best hypothesis."""
    scheduler = engine.scheduler()
    scheduler.submit(request)
    while True:
        begin_part()
        for _, hypotheses in scheduler.advance():
            return hypotheses[0]


def teacher_forced(
    model: Network,
    sources: Sequence[Sequence[int] | Values],
    targets: Sequence[Sequence[int]],
    probe: Probe | None = None,
) -> Tensor:
    """Return the decoder's hidden rows (P, D) for given outputs, each with its start symbol.
    ``probe`` is open meanwhile."""
    with torch.inference_mode(), probe or nullcontext():
        memory = model.encode(Sequences.of([torch.as_tensor(np.asarray(ids)) for ids in sources]))
        return writing(model).decode(Sequences.of([torch.tensor(ids) for ids in targets]), memory)


def _allowed_tokens(rules: Rules, tokens: Sequence[int], places: Sequence[int]) -> Tensor:
    """Return flags (len(places), V), True for the tokens that are allowed at each of ``places`` of
    an output."""
    given = np.array([tokens], np.int32)
    return torch.from_numpy(np.concatenate([rules.allows(given[:, :place]) for place in places]))


def _halve(stages: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: rows.half() for name, rows in stages.items()}


# ---- long work in parts


Check = Callable[[], None]
"""A callback that is called before each part of long work (a search, a reading, a loss with one
head off) and ends the work by raising. It belongs to the thread that set it, as a probe does. The
command line sets none."""
_check: ContextVar[Check | None] = ContextVar("check", default=None)


@contextmanager
def use_check(check: Check) -> Iterator[None]:
    """Begin each part of the work in this thread with ``check()`` while the context is open."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def begin_part() -> None:
    """Call the check of this thread, if one is set. The check may raise."""
    check = _check.get()
    if check is not None:
        check()
