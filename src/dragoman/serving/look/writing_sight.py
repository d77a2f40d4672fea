"""A model that writes, watched while it searches, and while it reads what it has found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.engine.engine import Engine
from dragoman.forms.rules import Rules
from dragoman.models.interface import Writing, writing
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.search.hypothesis import Hypothesis as Found
from dragoman.search.record import StepRecord
from dragoman.search.request import Request
from dragoman.serving.look.packed import check_size
from dragoman.serving.look.schema import LookRequest, Part, Side
from dragoman.serving.look.sight import LookRecord, Sight, Sizes, halved
from dragoman.serving.turns import GivenUp

CHOICES = 20
"""Most probable tokens that are kept of each place."""
_ROWS_AT_ONCE = 64


class WritingSight(Sight):
    """What translates, goes on with a text, or parses."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._model = writing(engine.network)
        self._target = engine.target
        self._settings = engine.search_settings

    @property
    def model(self) -> Writing:
        return self._model

    def look(
        self, request: LookRequest, ids: list[int], given_up: GivenUp, most: Sizes
    ) -> LookRecord:
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
        prefix = request.given or request.prefix_tokens
        wanted = self._engine.request(ids, settings, prefix, steps, raw=request.text)
        if wanted.rules is not None:
            wanted.check(target.eos)

        def watched(*, record: bool) -> Probe:
            return Probe(heads_off=off, hidden=request.hidden, record=record)

        with torch.inference_mode():
            with watched(record=False):
                if request.given:
                    (found,) = self._engine.over(self.model).score([ids], [request.given])
                else:
                    found = self._searched(wanted, given_up)
            check_size(most(len(ids), len(found.tokens) + 1))
            given = torch.tensor([target.bos, *found.tokens])
            with watched(record=True) as reading:
                memory = self.model.encode(Sequences.of([source]))
            sizes = len(source), len(given)
            attention: dict[Part, Tensor] = {"encoder": self.taken(reading, "encoder", *sizes)}
            given_up.check()
            with watched(record=True) as deciding:
                hidden = self.model.decode(Sequences.of([given]), memory)
            attention["decoder"] = self.taken(deciding, "decoder", *sizes)
            attention["cross"] = self.taken(deciding, "cross", *sizes)
            stages: dict[Side, dict[str, Tensor]] = {
                "source": halved(self.model.embedded(source, "source") | reading.activations),
                "target": halved(self.model.embedded(given, "target") | deciding.activations),
            }
            choices = self._choices(hidden, found.tokens, wanted.rules)
            compared = None
            if request.compare:
                with watched(record=False):
                    other = torch.tensor([target.bos, *request.compare])
                    rows = self.model.decode(Sequences.of([other]), memory)
                    compared = self._log_probability(rows, [*request.compare, target.eos])
        return LookRecord(
            source_ids=ids,
            best=found,
            text=target.raw_for(request.text, found.tokens),
            target=target.shown_for(request.text, [*found.tokens, target.eos]),
            settings=settings,
            attention=attention,
            stages=stages,
            steps=steps,
            choices=choices,
            compared=compared,
        )

    def _searched(self, request: Request, given_up: GivenUp) -> Found:
        """The best of a search, which ends early if nobody waits for it any more."""
        scheduler = self._engine.over(self.model).scheduler()
        scheduler.submit(request)
        while True:
            given_up.check()
            for _, hypotheses in scheduler.advance():
                return hypotheses[0]

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
        given = torch.tensor([self._target.bos, *tokens])
        with torch.inference_mode():
            with Probe(heads_off=off, hidden=request.hidden, record=False):
                memory = self.model.encode(Sequences.of([torch.tensor(ids)]))
                rows = self.model.decode(Sequences.of([given]), memory)
            return self._log_probability(rows, [*tokens, self._target.eos])


def _allowed(rules: Rules, tokens: Sequence[int], places: Sequence[int]) -> Tensor:
    """(len(places), V), True for what may stand at a place of an output."""
    given = np.array([tokens], np.int32)
    return torch.from_numpy(np.concatenate([rules.allowed(given[:, :place]) for place in places]))
