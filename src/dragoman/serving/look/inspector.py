"""Looking inside one model at work: requests turned into what its session does, records into JSON.

Such requests run on the plain model in a thread of their own, where clients take turns, so a head
that is switched off or a word that is hidden for one of them is so for nobody else. What is too
much is refused before the work, and a look that nobody waits for ends at its next step. The last
looks are kept for a while, so that single heads and words of a long text can be asked for one by
one; one that has gone is made again from the request, which says everything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

import torch

from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.insight.head import attention_of, open_cell
from dragoman.insight.session import (
    PARTS,
    Inspection,
    InspectionRequest,
    InspectionSession,
    Intervention,
)
from dragoman.models.interface import Part
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.messages import written
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.answer import check_size, weights_message
from dragoman.serving.look.checks import LookChecks
from dragoman.serving.look.schema import (
    AttentionRequest,
    CellAnswer,
    CellRequest,
    HeadsAnswer,
    LookRequest,
    Stage,
    WordAnswer,
    WordRequest,
)
from dragoman.serving.queue.fair_executor import FairExecutor

MAX_KEPT = 256_000_000
"""Bytes of looks that are kept; the latest is kept whatever its size."""
MAX_MEASURED = 60_000
"""Heads times tokens that are gone through to see what each head is good for."""

OF_SOURCE: tuple[Part, ...] = ("encoder",)
OF_TARGET: tuple[Part, ...] = ("decoder", "cross")
"""By which attention tokens of a side look."""
OVER_SOURCE: tuple[Part, ...] = ("encoder", "cross")
"""By which attention source tokens are looked at."""

Sizes = Callable[[int, int], int]
"""Source tokens, target tokens -> attention weights in the answer."""


class Inspector(LookChecks):
    """Looks into one model, in a turn of ``turns``."""

    def __init__(
        self, engine: Engine, predictor: Predictor[object] | None, turns: FairExecutor
    ) -> None:
        """``predictor``: who reads a text as one, where it is not cut into sentences. ``turns``:
        where that is done."""
        self._session = InspectionSession(engine, predictor)
        super().__init__(engine, predictor, self._session.model)
        self.turns = turns
        self._kept: OrderedDict[str, Inspection] = OrderedDict()

    # ---- looking

    def look(self, request: LookRequest, ids: list[int]) -> Inspection:
        """What was seen of a text whose tokens are ``ids``. Raises Refusal, ``SearchError``."""
        wanted = request.attention if request.attention_within is None else ()

        def most(source: int, target: int) -> int:
            return max((self._weights(part, source, target) for part in wanted), default=0)

        return self._seen(request, ids, most)

    def attention(self, request: AttentionRequest, ids: list[int]) -> bytes:
        """Some of the attention of a look, as JSON. Raises Refusal, ``SearchError``."""
        layer = self.layer(request.part, request.layer, request.head or 0, "this model")
        is_one = request.mean or request.head is not None
        share = 1 if is_one else layer.heads
        every = sum(one.heads for one in self.model.attentions_of(request.part))

        seen = self._seen(
            request, ids, lambda s, t: self._weights(request.part, s, t) * share // every
        )
        heads = seen.attention[request.part][request.layer]
        if request.mean:
            off = self.under(request).heads_off
            on = [head for head in range(len(heads)) if (layer.name, head) not in off]
            heads = heads[on].float().sum(dim=0, keepdim=True) / max(len(on), 1)
        elif request.head is not None:
            heads = heads[request.head : request.head + 1]
        return written(weights_message(heads[None]))

    def word(self, request: WordRequest, ids: list[int]) -> bytes:
        """What became of one word, as JSON. Raises Refusal, ``SearchError``."""
        beyond = Refusal(
            "no_such_tokens",
            f"first and count: there are not so many {request.side} tokens.",
            side=request.side,
        )
        is_source = request.side == "source"
        places = slice(request.first, request.first + request.count)
        if is_source and places.stop > len(ids):
            raise beyond

        def most(source: int, target: int) -> int:
            if is_source:
                return self._weights("encoder", source, target) * request.count // source
            cross = self._weights("cross", source, target) // target
            return max(cross, self._weights("decoder", source, target) // target) * request.count

        seen = self._seen(request, ids, most)
        stages = seen.source_stages if is_source else seen.target_stages
        if places.stop > len(next(iter(stages.values()), ())):
            raise beyond
        of_side = OF_SOURCE if is_source else OF_TARGET
        rows = {part: seen.attention[part][:, :, places] for part in of_side}
        columns = {
            part: seen.attention[part][:, :, :, places].transpose(2, 3)
            for part in (OVER_SOURCE if is_source else ())
        }
        vectors = torch.stack([stage[places] for stage in stages.values()])
        sizes = vectors.float().square().mean(dim=-1).sqrt()
        answer = WordAnswer(
            attention={part: weights_message(one) for part, one in rows.items()},
            looked_at={part: weights_message(one) for part, one in columns.items()},
            stages=[
                Stage(name=name, sizes=[round(value, 4) for value in row])
                for name, row in zip(stages, sizes.tolist(), strict=True)
            ],
            vectors=weights_message(vectors[None]),
        )
        return written(answer)

    def cell(self, request: CellRequest, ids: list[int]) -> bytes:
        """One weight opened, as JSON. Raises Refusal, ``SearchError``."""
        layer = self.layer(request.part, request.layer, request.head, "this model")
        if attention_of(self.model, layer) is None:
            raise Refusal(
                "no_queries",
                "Queries, keys and values are read from the attention of a Transformer; this run "
                f"is a {self.model.settings.kind} model.",
                family=self.model.settings.kind,
            )

        seen = self._seen(request, ids)
        rows, columns = seen.attention[request.part].shape[2:]
        if request.row >= rows or request.column >= columns:
            raise Refusal(
                "no_such_cell",
                f"row and column: {request.part} has {rows} by {columns} tokens.",
                part=request.part,
                rows=rows,
                columns=columns,
            )
        found = open_cell(
            self.model,
            layer,
            request.head,
            request.row,
            request.column,
            torch.tensor(ids),
            torch.tensor([self._target.bos, *seen.best.tokens]),
            heads_off=self.under(request).heads_off,
            hidden=request.hidden,
        )
        return written(CellAnswer.of(found))

    def heads(self, request: LookRequest, ids: list[int]) -> bytes:
        """What each head is good for, as JSON. Raises Refusal, ``SearchError``."""
        count = sum(one.heads for one in self.model.attentions)

        tokens = self._seen(request, ids).best.tokens
        if count * (len(ids) + len(tokens) + 1) > MAX_MEASURED:
            raise Refusal(
                "too_long_for_heads",
                f"{count} heads over {len(ids)} and {len(tokens)} tokens are too much to "
                "switch off one by one; ask of a shorter sentence.",
                heads=count,
                source=len(ids),
                target=len(tokens),
            )

        def believed(under: Intervention) -> float:
            return self._session.believed(request.text, ids, tokens, under)

        under = self.under(request)
        whole = believed(under)
        without = self._session.without_each_head(believed, under)
        fallen = {
            part: [[round(whole - one, 5) for one in heads] for heads in without.get(part, ())]
            for part in PARTS
        }
        return written(HeadsAnswer(log_probability=round(whole, 5), fallen=fallen))

    # ---- inside

    def _weights(self, part: Part, source: int, target: int) -> int:
        """How many weights an attention has, over all layers and heads."""
        looking = source if part == "encoder" else target
        looked_at = target if part == "decoder" else source
        return looking * looked_at * sum(one.heads for one in self.model.attentions_of(part))

    def _seen(self, request: LookRequest, ids: list[int], most: Sizes = lambda *_: 0) -> Inspection:
        """The same look, if it is still known, or a new one.

        ``most``: the weights that the answer will hold, of so many tokens. Raises Refusal for too
        many: before the search, by what is known then, or at once after it.
        """
        wanted = {"text", "beam", "length_penalty", "max_length", "prefix_tokens", "given"}
        key = request.model_dump_json(include={*wanted, "heads_off", "hidden", "compare"})
        seen = self._kept.pop(key, None) or self._look(request, ids, most)
        self._kept[key] = seen
        while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > MAX_KEPT:
            self._kept.popitem(last=False)
        return seen

    def _look(self, request: LookRequest, ids: list[int], most: Sizes) -> Inspection:
        under, tokens = self.under(request), request.compare
        wanted = InspectionRequest(
            request.text, ids, self._settings(request), under, request.prefix_tokens, request.given
        )
        seen = self._session.inspect(wanted, lambda s, t: check_size(most(s, t)))
        if not tokens:
            return seen
        if not self._engine.writes and len(tokens) != len(seen.best.tokens):
            raise Refusal(
                "wrong_length",
                f"compare: what is said of this text has {len(seen.best.tokens)} tokens.",
                tokens=len(seen.best.tokens),
            )
        return replace(seen, compared=self._session.believed(request.text, ids, tokens, under))

    def _settings(self, request: LookRequest) -> SearchSettings:
        """How is searched: for one output, as the run does but for what the request says."""
        known = self._engine.search_settings
        if not self._engine.writes:
            return known
        asked = request.model_dump(
            include={"beam", "length_penalty", "max_length"}, exclude_none=True
        )
        if "max_length" in asked:
            asked["min_length"] = min(known.min_length, asked["max_length"])
        return known.model_copy(
            update={**asked, "n_best": 1, "sampling": None, "alternatives": False}
        )
