"""The inspection of one model: requests become calls of an ``InspectionSession``, and its results
become JSON.

The plain model computes these requests, in a separate thread in which clients take turns. If a
request switches off a head or hides a word, other requests are not affected. A request that is too
large is refused before the work begins, and work for which no client waits any more ends at its
next step. The latest inspections are kept for a while, so that a client can request single heads
and words of a long text one by one. If an inspection was dropped, it is computed again: each
request contains everything that is needed for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from dragoman.base.errors import DragomanError, TooLongError
from dragoman.engine.attention import attention_of, open_cell
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.engine.session import (
    PARTS,
    Inspection,
    InspectionRequest,
    InspectionSession,
    Intervention,
)
from dragoman.models.interface import AttentionLayer, Part
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.messages import json_of
from dragoman.serving.http.refusals import Refusal, too_long
from dragoman.serving.look import schema
from dragoman.serving.look.answer import check_size, weights_message
from dragoman.serving.queue.fair_executor import FairExecutor

Asked = TypeVar("Asked", bound=schema.LookRequest)


@dataclass(frozen=True)
class Cut(Generic[Asked]):
    """A text that will be inspected, with its request."""

    sentences: list[str]
    """All sentences into which the text of the request was split."""
    request: Asked
    """The request. If it names a sentence, its text is now this sentence alone."""
    ids: list[int]
    """The tokens of the text of ``request``."""


MAX_KEPT = 256_000_000
"""The largest number of bytes of inspections that are kept. The latest inspection is kept whatever
its size."""
MAX_MEASURED = 60_000
"""The limit for measuring the effect of each head: the largest product of the numbers of heads and
tokens."""

OF_SOURCE: tuple[Part, ...] = ("encoder",)
"""The attentions in which source tokens attend."""
OF_TARGET: tuple[Part, ...] = ("decoder", "cross")
"""The attentions in which target tokens attend."""
OVER_SOURCE: tuple[Part, ...] = ("encoder", "cross")
"""The attentions in which source tokens are attended to."""

Sizes = Callable[[int, int], int]
"""A function from the numbers of source and target tokens to the number of attention weights in the
largest part of the answer."""


class Inspector:
    """Inspects one model. Call ``look``, ``attention``, ``word``, ``cell`` and ``heads`` only in a
    turn of the executor ``turns``."""

    def __init__(
        self, engine: Engine, predictor: Predictor[object] | None, turns: FairExecutor
    ) -> None:
        """``predictor``: what answers with the run, if it was given. ``turns``: the thread in which
        the work is done."""
        self._engine, self._predictor = engine, predictor
        self._target = engine.target
        self._session = InspectionSession(engine, predictor)
        self.model = self._session.model
        """The plain model that is inspected."""
        self.turns = turns
        self._kept: OrderedDict[str, Inspection] = OrderedDict()

    def over(self, engine: Engine) -> Inspector:
        """Return an inspector of the same model with the forms of another ``engine``. Both store
        their inspections together; these cannot be confused, because the tokens of their texts
        differ."""
        inspector = copy(self)
        inspector._engine, inspector._target = engine, engine.target
        inspector._session = InspectionSession(engine, self._predictor)
        return inspector

    # ---- which text is looked at, and whether the request is possible

    def cut(self, request: Asked, longest: int) -> Cut[Asked]:
        """Choose the text to inspect from the text of a request. Raises Refusal if there is
        none."""
        reads = self._engine.source.reads
        if request.text.strip() and (self._predictor is not None or not reads):
            if request.sentence:
                raise Refusal("text_is_whole")
            return self._cut_whole(request, longest) if reads else self._cut_alone(request, longest)
        (passage,) = self._engine.cut([request.text], whole=False)
        sentences = [piece.text for piece in passage.pieces]
        if not sentences:
            raise Refusal("nothing_to_look_at")
        if request.sentence is not None:
            if request.sentence >= len(sentences):
                raise Refusal(
                    "no_such_sentence", sentence=request.sentence, sentences=len(sentences)
                )
            changed = {"text": sentences[request.sentence], "sentence": None}
            request = request.model_copy(update=changed)
        (ids,) = self._engine.source.values([request.text.strip()])
        return Cut(sentences, self._check(request, ids, longest), ids)

    def _cut_whole(self, request: Asked, longest: int) -> Cut[Asked]:
        """Choose the text to inspect for a run that reads its text as a whole."""
        assert self._predictor is not None
        if self._engine.writes:
            longest = min(longest, self._engine.longest)
        elif request.prefix_tokens or request.given:
            raise Refusal("writes_nothing")
        try:
            ids = self._predictor.source_ids(request.text)
        except TooLongError as error:
            raise too_long(error, f"{error}.") from None
        except DragomanError as error:
            raise Refusal("bad_text", problem=str(error)) from None
        return Cut([request.text], self._check(request, ids, longest), ids)

    def _cut_alone(self, request: Asked, longest: int) -> Cut[Asked]:
        """Choose the text to inspect for a run without a source, such as a language model. The
        prefix of the request, or its text if it has no prefix, is treated as the output of the
        run."""
        (tokens,) = self._target.tokens([request.text])
        if (places := self.model.settings.longest) is not None:
            longest = min(longest, places - 1)  # the start symbol takes one place
        if len(tokens) > longest:
            raise _too_long(len(tokens), longest)
        changed: dict[str, Any] = {"text": "", "sentence": None, "given": tuple(tokens)}
        if request.prefix_tokens:
            length = max(len(tokens), len(request.prefix_tokens))
            changed |= {"given": (), "max_length": request.max_length or length}
        alone = request.model_copy(update=changed)
        (ids,) = self._engine.source.values([""])
        return Cut([request.text], self._check(alone, ids, longest), ids)

    def _check(self, request: Asked, ids: Sequence[int], longest: int) -> Asked:
        """Check a request against the tokens ``ids`` of its text, and return it. Raises Refusal if
        the request is impossible."""
        if len(ids) > longest:
            raise _too_long(len(ids), longest)
        if any(place >= len(ids) for place in request.hidden):
            raise Refusal("no_such_place", field="hidden", tokens=len(ids))
        size = self._target.size
        for name in ("prefix_tokens", "given", "compare"):
            if any(token >= size for token in getattr(request, name)):
                raise Refusal("no_such_token", field=name, vocabulary=size)
        if request.given and (request.prefix_tokens or self._target.eos in request.given):
            raise Refusal("two_outputs")
        self.under(request)  # refuses unknown heads
        return request

    def layer(self, part: Part, layer: int, head: int, where: str) -> AttentionLayer:
        """Return the attention layer that contains a head. Raises Refusal if the model has no such
        layer or head; ``where`` begins the message."""
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
        return layers[layer]

    def under(self, request: schema.LookRequest) -> Intervention:
        """Return the heads that a request switches off and the tokens that it hides. Raises Refusal
        for a head that the model does not have."""
        off = frozenset(
            (self.layer(head.part, head.layer, head.head, "heads_off").name, head.head)
            for head in request.heads_off
        )
        return Intervention(off, request.hidden)

    # ---- looking

    def look(self, request: schema.LookRequest, ids: list[int]) -> Inspection:
        """Inspect the model on the text whose tokens are ``ids``. Raises Refusal,
        ``SearchError``."""
        wanted = request.attention if request.attention_within is None else ()

        def most(source: int, target: int) -> int:
            return max((self._weights(part, source, target) for part in wanted), default=0)

        return self._look_up(request, ids, most)

    def attention(self, request: schema.AttentionRequest, ids: list[int]) -> bytes:
        """Return the attention weights of one layer or head, as JSON. Raises Refusal,
        ``SearchError``."""
        layer = self.layer(request.part, request.layer, request.head or 0, "this model")
        is_one = request.mean or request.head is not None
        share = 1 if is_one else layer.heads
        every = sum(attention.heads for attention in self.model.attentions_of(request.part))

        seen = self._look_up(
            request, ids, lambda s, t: self._weights(request.part, s, t) * share // every
        )
        heads = seen.attention[request.part][request.layer]
        if request.mean:
            off = self.under(request).heads_off
            on = [head for head in range(len(heads)) if (layer.name, head) not in off]
            heads = heads[on].float().sum(dim=0, keepdim=True) / max(len(on), 1)
        elif request.head is not None:
            heads = heads[request.head : request.head + 1]
        return json_of(weights_message(heads[None]))

    def word(self, request: schema.WordRequest, ids: list[int]) -> bytes:
        """Return the attention and the vectors of one word, as JSON. Raises Refusal,
        ``SearchError``."""
        beyond = Refusal("no_such_tokens", side=request.side)
        is_source = request.side == "source"
        places = slice(request.first, request.first + request.count)
        if is_source and places.stop > len(ids):
            raise beyond

        def most(source: int, target: int) -> int:
            if is_source:
                return self._weights("encoder", source, target) * request.count // source
            cross = self._weights("cross", source, target) // target
            return max(cross, self._weights("decoder", source, target) // target) * request.count

        seen = self._look_up(request, ids, most)
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
        answer = schema.WordAnswer(
            attention={part: weights_message(weights) for part, weights in rows.items()},
            looked_at={part: weights_message(weights) for part, weights in columns.items()},
            stages=[
                schema.Stage(name=name, sizes=[round(value, 4) for value in row])
                for name, row in zip(stages, sizes.tolist(), strict=True)
            ],
            vectors=weights_message(vectors[None]),
        )
        return json_of(answer)

    def cell(self, request: schema.CellRequest, ids: list[int]) -> bytes:
        """Return the computation of one attention weight, as JSON. Raises Refusal,
        ``SearchError``."""
        layer = self.layer(request.part, request.layer, request.head, "this model")
        if attention_of(self.model, layer) is None:
            raise Refusal("no_queries", family=self.model.settings.kind)

        seen = self._look_up(request, ids)
        rows, columns = seen.attention[request.part].shape[2:]
        if request.row >= rows or request.column >= columns:
            raise Refusal("no_such_cell", part=request.part, rows=rows, columns=columns)
        cell = open_cell(
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
        answer = schema.CellAnswer(
            query=_round(cell.query),
            key=_round(cell.key),
            value=_round(cell.value),
            product=round(cell.product, 4),
            scale=round(cell.scale, 6),
            weight=round(cell.weight, 6),
            adds=_round(cell.adds),
            adds_size=round(float(cell.adds.square().mean().sqrt()), 5),
            head_size=round(float(cell.head_adds.square().mean().sqrt()), 5),
        )
        return json_of(answer)

    def heads(self, request: schema.LookRequest, ids: list[int]) -> bytes:
        """Return the effect of each head on the output, as JSON. Raises Refusal,
        ``SearchError``."""
        count = sum(attention.heads for attention in self.model.attentions)

        tokens = self._look_up(request, ids).best.tokens
        if count * (len(ids) + len(tokens) + 1) > MAX_MEASURED:
            raise Refusal("too_long_for_heads", heads=count, source=len(ids), target=len(tokens))

        def measure(under: Intervention) -> float:
            return self._session.output_log_p(request.text, ids, tokens, under)

        under = self.under(request)
        whole = measure(under)
        without = self._session.without_each_head(measure, under)
        fallen = {
            part: [[round(whole - value, 5) for value in heads] for heads in without.get(part, ())]
            for part in PARTS
        }
        return json_of(schema.HeadsAnswer(log_probability=round(whole, 5), fallen=fallen))

    # ---- inside

    def _weights(self, part: Part, source: int, target: int) -> int:
        """Return the number of weights of an attention (encoder, decoder or cross) in all layers
        and heads."""
        looking = source if part == "encoder" else target
        looked_at = target if part == "decoder" else source
        return looking * looked_at * sum(layer.heads for layer in self.model.attentions_of(part))

    def _look_up(
        self, request: schema.LookRequest, ids: list[int], most: Sizes = lambda *_: 0
    ) -> Inspection:
        """Return the stored inspection for this request, or make a new one.

        ``most`` computes the number of weights in the answer from the numbers of tokens. Raises
        Refusal if there are too many: before the search if the numbers of tokens are known then,
        and right after it otherwise.
        """
        wanted = {"text", "beam", "length_penalty", "max_length", "prefix_tokens", "given"}
        key = request.model_dump_json(include={*wanted, "heads_off", "hidden", "compare"})
        key = f"{ids} {key}"  # the tokens tell the target language, too
        seen = self._kept.pop(key, None) or self._look(request, ids, most)
        self._kept[key] = seen
        while len(self._kept) > 1 and sum(kept.size for kept in self._kept.values()) > MAX_KEPT:
            self._kept.popitem(last=False)
        return seen

    def _look(self, request: schema.LookRequest, ids: list[int], most: Sizes) -> Inspection:
        under, tokens = self.under(request), request.compare
        wanted = InspectionRequest(
            request.text, ids, self._settings(request), under, request.prefix_tokens, request.given
        )
        seen = self._session.inspect(wanted, lambda s, t: check_size(most(s, t)))
        if not tokens:
            return seen
        if not self._engine.writes and len(tokens) != len(seen.best.tokens):
            raise Refusal("wrong_length", tokens=len(seen.best.tokens))
        return replace(seen, compared=self._session.output_log_p(request.text, ids, tokens, under))

    def _settings(self, request: schema.LookRequest) -> SearchSettings:
        """Return the settings of the search: those of the run, for a single output, with the
        changes of the request."""
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


def _round(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]


def _too_long(tokens: int, longest: int) -> Refusal:
    return Refusal(
        "too_many_tokens",
        f"The text has {tokens} tokens; {longest} can be looked at. Send a part of it.",
        tokens=tokens,
        most=longest,
    )
