"""One model looked into: what it makes of a text as it is or under an intervention, how probable
that is, and every weight and row on the way. ``dragoman look``, the figures and the server use it.

The output is the one that is served: the engine searches for it by its fast path, and the network
itself then reads it (force decoding). Where rounding in that path has led to another output than
the network alone would have written, that one is told too. An intervention reaches the network
alone, which then searches.

Nothing of the model is changed: a probe is open while it computes (``nn/probes.py``), always on the
network itself. Long work begins each of its parts with ``begin_part`` (below).

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
"""Most probable tokens that are kept of each place."""
_ROWS_AT_ONCE = 64
PARTS: tuple[Part, ...] = get_args(Part)

Fits = Callable[[int, int], None]
"""Called with the numbers of source and target tokens; ends the work by raising."""


@dataclass(frozen=True)
class Intervention:
    """What is done to a model while it computes."""

    heads_off: frozenset[tuple[str, int]] = frozenset()
    """(attention, head) as ``Probe`` takes them: their output is set to zero."""
    hidden: tuple[int, ...] = ()
    """Positions of the source that no attention may look at; the tokens keep their places."""

    def probe(self, *, record: bool = False) -> Probe:
        """One that intervenes while it is open."""
        return Probe(heads_off=self.heads_off, hidden=self.hidden, record=record)

    def without(self, attention: str, head: int) -> Intervention:
        """The same, and one more head off."""
        return replace(self, heads_off=self.heads_off | {(attention, head)})


@dataclass(frozen=True)
class InspectionRequest:
    """What is to be inspected."""

    text: str
    ids: list[int]
    """Its source tokens, with what ends them."""
    settings: SearchSettings
    under: Intervention = Intervention()
    prefix: Sequence[int] = ()
    """How the output begins."""
    given: Sequence[int] = ()
    """The whole output, without its end symbol: none is searched for."""


@dataclass(frozen=True)
class OwnOutput:
    """What the network alone writes, where that is not what is served."""

    text: str
    place: int
    """The first token, counted from 0, at which the served output differs from it."""

    @classmethod
    def of(cls, served: Sequence[int], own: Sequence[int], text: str) -> OwnOutput:
        """``text`` is that of ``own``, the network's tokens, which differ from those served."""
        pairs = enumerate(zip(served, own, strict=False))
        shorter = min(len(served), len(own))
        return cls(text, next((place for place, (a, b) in pairs if a != b), shorter))


@dataclass(frozen=True)
class Inspection:
    """All that was seen of one text."""

    source_ids: list[int]
    best: Hypothesis
    """What was written; or what was said of the text, as tokens or a label, and how probable."""
    text: str
    """The same as people read it."""
    target: list[str]
    """Each token that was written as it is shown, the end symbol last; none where none was."""
    settings: SearchSettings
    attention: dict[Part, Tensor]
    """(L, H, T, S) in half precision."""
    source_stages: dict[str, Tensor]
    """Name -> (P, D) in half precision, in the order of computing."""
    target_stages: dict[str, Tensor]
    steps: list[StepRecord]
    choices: tuple[Tensor, Tensor]
    """(T, k) probabilities and token numbers; a token that may not stand there has none."""
    own: OwnOutput | None = None
    """What the network alone writes, where that is another output; unknown of one that is given or
    under an intervention."""
    compared: float | None = None
    """log P of another output, where one was asked for."""

    @property
    def size(self) -> int:
        """Bytes, nearly."""
        stages = (*self.source_stages.values(), *self.target_stages.values())
        return sum(2 * one.numel() for one in (*self.attention.values(), *stages))


class InspectionSession:
    """One model that is looked into. Not for several threads at once."""

    def __init__(self, engine: Engine, predictor: Predictor[object] | None = None) -> None:
        """``predictor``: who reads a text as one; there must be one where nothing is written."""
        self.model: Network = engine.network
        self._engine, self._target, self._predictor = engine, engine.target, predictor

    def inspect(self, wanted: InspectionRequest, fits: Fits = lambda *_: None) -> Inspection:
        """All there is to see. ``fits`` is called before the search, by what is known then, and
        once more behind it. Errors: ``SearchError``; ``DragomanError`` for a text that is none."""
        if self._engine.writes:
            return self._written(wanted, fits)
        return self._read_only(wanted, fits)

    def believed(
        self, text: str, ids: Sequence[int] | Values, tokens: Sequence[int], under: Intervention
    ) -> float:
        """log P of an output in nats, its end symbol included; or of what is said of a text."""
        begin_part()
        if not self._engine.writes:
            assert self._predictor is not None, "what writes nothing is read by its predictor"
            with under.probe():
                (found,) = self._predictor.score_ids([text], [tokens])
            return math.fsum(found.token_log_probabilities)
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
        """What ``score`` gives with one head after the other off: part -> by layer and head."""
        found: dict[str, list[list[float]]] = {}
        for one in self.model.attentions:
            of_heads = [score(under.without(one.name, head)) for head in range(one.heads)]
            found.setdefault(one.part, []).append(of_heads)
        return found

    # ---- inside

    def _written(self, wanted: InspectionRequest, fits: Fits) -> Inspection:
        """What translates, goes on with a text, or parses: watched while it searches, and while it
        reads what it has found."""
        ids, given, prefix = wanted.ids, wanted.given, wanted.given or wanted.prefix
        fits(len(ids), len(prefix) + 1)
        target, model, steps = self._target, writing(self.model), list[StepRecord]()
        search = self._engine.request(ids, wanted.settings, prefix, steps, raw=wanted.text)
        plain, own = self._engine.over(model), None
        if search.rules is not None:
            search.check(target.eos)
        # Not in inference mode: what a fast path keeps for its next search must not be of it.
        with wanted.under.probe():
            if given:
                (found,) = plain.score([ids], [given])
            elif wanted.under != Intervention():
                found = _searched(plain, search)
            else:
                served = _searched(self._engine, search)
                found = alone = _searched(plain, replace(search, record=None))
                if served.tokens != alone.tokens:
                    found = self._believed(ids, served, wanted.settings.length_penalty)
                    text = target.raw_for(wanted.text, alone.tokens)
                    own = OwnOutput.of(served.tokens, alone.tokens, text)
        with torch.inference_mode():
            fits(len(ids), len(found.tokens) + 1)
            source, read = torch.tensor(ids), torch.tensor([target.bos, *found.tokens])
            # Weights are halved before the decoder makes more of them.
            with wanted.under.probe(record=True) as reading:
                memory = model.encode(Sequences.of([source]))
            encoder = self._half(reading, "encoder", source, read)
            begin_part()
            with wanted.under.probe(record=True) as deciding:
                hidden = model.decode(Sequences.of([read]), memory)
            decoder, cross = (
                self._half(deciding, part, source, read) for part in ("decoder", "cross")
            )
            choices = self._choices(hidden, found.tokens, search.rules)
            stages = model.embedded(source, "source") | reading.activations
            target_stages = model.embedded(read, "target") | deciding.activations
        return Inspection(
            source_ids=ids,
            best=found,
            text=target.raw_for(wanted.text, found.tokens),
            target=target.shown_for(wanted.text, [*found.tokens, target.eos]),
            settings=wanted.settings,
            attention={"encoder": encoder, "decoder": decoder, "cross": cross},
            source_stages=_halved(stages),
            target_stages=_halved(target_stages),
            steps=steps,
            choices=choices,
            own=own,
        )

    def _read_only(self, wanted: InspectionRequest, fits: Fits) -> Inspection:
        """What fills in blanks or labels: it reads a text, and says something of it."""
        assert self._predictor is not None, "what writes nothing is read by its predictor"
        fits(len(wanted.ids), 1)
        with wanted.under.probe():
            said = self._predictor.shown(wanted.text)
        begin_part()
        # Scoring reads the text once, its blanks open: that is what is watched.
        with wanted.under.probe(record=True) as reading:
            (best,) = self._predictor.score_ids([wanted.text], [said.ids])
        source = torch.tensor(wanted.ids)
        with torch.inference_mode():
            stages = self.model.embedded(source, "source") | reading.activations
        return Inspection(
            source_ids=wanted.ids,
            best=best,
            text=said.text,
            target=[],
            settings=wanted.settings,
            attention={part: self._half(reading, part, source, source[:1]) for part in PARTS},
            source_stages=_halved(stages),
            target_stages={},
            steps=[],
            choices=(torch.zeros(0, 0), torch.zeros(0, 0, dtype=torch.int64)),
        )

    def _half(self, probe: Probe, part: str, source: Tensor, target: Tensor) -> Tensor:
        return self._engine.attention.maps(probe, part, len(source), len(target), torch.float16)

    def _believed(self, ids: Sequence[int], found: Hypothesis, penalty: float) -> Hypothesis:
        """The same output with the probabilities that the network itself gives it."""
        (read,) = self._engine.score([ids], [found.tokens])
        costs = read.token_log_probabilities[: len(found.token_log_probabilities)]
        return hypothesis_of(found.tokens, costs, penalty, found.finished)

    def _choices(
        self, hidden: Tensor, tokens: Sequence[int], rules: Rules | None
    ) -> tuple[Tensor, Tensor]:
        found = []
        for first in range(0, len(hidden), _ROWS_AT_ONCE):
            rows = hidden[first : first + _ROWS_AT_ONCE]
            probabilities = self.model.project(rows).float().softmax(dim=-1)
            if rules is not None:
                places = range(first, first + len(rows))
                probabilities[~_allowed(rules, tokens, places)] = 0.0
            found.append(probabilities.topk(min(CHOICES, self._target.size)))
        return torch.cat([one.values for one in found]), torch.cat([one.indices for one in found])


def _searched(engine: Engine, request: Request) -> Hypothesis:
    """The best of a search, every step of which is a part of the work."""
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
    """The decoder's hidden rows (P, D) of outputs that are given, each with its start symbol;
    ``probe`` is open meanwhile."""
    with torch.inference_mode(), probe or nullcontext():
        memory = model.encode(Sequences.of([torch.as_tensor(np.asarray(one)) for one in sources]))
        return writing(model).decode(Sequences.of([torch.tensor(one) for one in targets]), memory)


def _allowed(rules: Rules, tokens: Sequence[int], places: Sequence[int]) -> Tensor:
    """(len(places), V), True for what may stand at a place of an output."""
    given = np.array([tokens], np.int32)
    return torch.from_numpy(np.concatenate([rules.allowed(given[:, :place]) for place in places]))


def _halved(stages: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: rows.half() for name, rows in stages.items()}


# ---- long work in parts


Check = Callable[[], None]
"""Called before each part of long work (a search, a reading, a loss with one head off); it ends the
work by raising. It belongs to the thread that set it, as a probe does. On the command line none is
set."""
_check: ContextVar[Check | None] = ContextVar("check", default=None)


@contextmanager
def ended_by(check: Check) -> Iterator[None]:
    """While open, each part of the work in this thread begins with ``check()``."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def begin_part() -> None:
    """Raises whatever the check does that is set here, if any."""
    check = _check.get()
    if check is not None:
        check()
