"""A model that writes nothing, watched: it reads a text, and says something of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from dragoman.engine.predictor import Predictor
from dragoman.models.interface import Network
from dragoman.nn.probes import Probe
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.packed import check_size
from dragoman.serving.look.schema import LookRequest
from dragoman.serving.look.sight import LookRecord, Sight, Sizes, halved
from dragoman.serving.turns import GivenUp


class ReadingSight(Sight):
    """What fills in blanks or labels. What it says is what its predictor shows of a text."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    @property
    def model(self) -> Network:
        return self._predictor.plain

    def look(
        self, request: LookRequest, ids: list[int], given_up: GivenUp, most: Sizes
    ) -> LookRecord:
        check_size(most(len(ids), 1))
        source, off = torch.tensor(ids), self.off(request)
        with Probe(heads_off=off, hidden=request.hidden, record=False):
            said = self._predictor.shown(request.text)
            if request.compare and len(request.compare) != len(said.ids):
                raise Refusal(
                    "wrong_length",
                    f"compare: what is said of this text has {len(said.ids)} tokens.",
                    tokens=len(said.ids),
                )
        given_up.check()
        # Scoring reads the text once, its blanks open: that is what is watched.
        with Probe(heads_off=off, hidden=request.hidden) as reading:
            (best,) = self._predictor.score_ids([request.text], [said.ids])
        compared = self.believed(request, ids, request.compare, off) if request.compare else None
        with torch.inference_mode():
            stages = self.model.embedded(source, "source") | reading.activations
        return LookRecord(
            source_ids=ids,
            best=best,
            text=said.text,
            target=[],
            settings=self._predictor.engine.search_settings,
            attention={
                part: self.taken(reading, part, len(ids), 1)
                for part in ("encoder", "decoder", "cross")
            },
            stages={"source": halved(stages), "target": {}},
            steps=[],
            choices=(torch.zeros(0, 0), torch.zeros(0, 0, dtype=torch.int64)),
            compared=compared,
        )

    def believed(
        self,
        request: LookRequest,
        ids: Sequence[int],
        tokens: Sequence[int],
        off: Sequence[tuple[str, int]],
    ) -> float:
        with Probe(heads_off=off, hidden=request.hidden, record=False):
            (found,) = self._predictor.score_ids([request.text], [tokens])
        return math.fsum(found.token_log_probabilities)
