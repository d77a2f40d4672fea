"""Looking inside one model at work: where every head looked, and what every step chose among.

Such requests run on the plain model in a thread of their own, where clients take turns, so a head
that is switched off or a word that is hidden for one of them is so for nobody else. What is too
much is refused before the work, and a look that nobody waits for ends at its next step. The last
looks are kept for a while, so that single heads and words of a long text can be asked for one by
one; one that has gone is made again from the request, which says everything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, get_args

import torch

from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.errors import DragomanError, TooLongError
from dragoman.insight.cell import attention_of, open_cell
from dragoman.serving.http.openapi import written
from dragoman.serving.http.refusals import Refusal, too_long
from dragoman.serving.look.packed import weights_message
from dragoman.serving.look.reading_sight import ReadingSight
from dragoman.serving.look.schema import (
    AttentionRequest,
    CellAnswer,
    CellRequest,
    HeadsAnswer,
    LookRequest,
    Part,
    Stage,
    WordAnswer,
    WordRequest,
)
from dragoman.serving.look.sight import Asked, Cut, LookRecord, Sight, Sizes
from dragoman.serving.look.writing_sight import WritingSight
from dragoman.serving.turns import GivenUp, Turns

MOST_OF_CLIENT = 8
"""Requests of one client that may wait for one model to be looked into."""
MOST_WAITING = 64
"""The same of all clients."""
MOST_KEPT = 256_000_000
"""Bytes of looks that are kept; the latest is kept whatever its size."""
MOST_MEASURED = 60_000
"""Heads times tokens that are gone through to see what each head is good for."""


class Looker:
    """Looks into one model. May be called by many; they take turns."""

    def __init__(self, engine: Engine, predictor: Predictor | None = None) -> None:
        """``predictor``: who reads a text as one, where it is not cut into sentences."""
        self._engine = engine
        self._predictor = predictor
        self.model = engine.network
        self._target = engine.target
        self._sight: Sight
        if engine.writes:
            self._sight = WritingSight(engine)
        else:
            assert predictor is not None, "what writes nothing is read by its predictor"
            self._sight = ReadingSight(predictor)
        self._turns = Turns("look", of_client=MOST_OF_CLIENT, of_all=MOST_WAITING)
        self._kept: OrderedDict[str, LookRecord] = OrderedDict()

    def cut(self, request: Asked, longest: int) -> Cut[Asked]:
        """What is looked at of a text. Raises Refusal for what cannot be."""
        if not self._engine.source.reads and request.text.strip():
            return self._cut_alone(request, longest)
        if self._predictor is not None and request.text.strip():
            return self._cut_whole(request, longest, self._predictor)
        (passage,) = self._engine.cut([request.text], whole=False)
        sentences = [piece.text for piece in passage.pieces]
        if not sentences:
            raise Refusal("nothing_to_look_at", "There is no text to look at.")
        if request.sentence is not None:
            if request.sentence >= len(sentences):
                raise Refusal(
                    "no_such_sentence",
                    f"sentence: the text has {len(sentences)}, counted from 0; "
                    f"{request.sentence} was asked for.",
                    sentence=request.sentence,
                    sentences=len(sentences),
                )
            changed = {"text": sentences[request.sentence], "sentence": None}
            request = request.model_copy(update=changed)
        (ids,) = self._engine.source.values([request.text.strip()])
        return Cut(sentences, self._checked(request, ids, longest), ids)

    def _cut_whole(self, request: Asked, longest: int, predictor: Predictor) -> Cut[Asked]:
        """Where a text is read as one."""
        if request.sentence:
            raise Refusal("text_is_whole", "sentence: this run looks at its text as one.")
        if self._engine.writes:
            longest = min(longest, self._engine.longest)
        elif request.prefix_tokens or request.given:
            raise Refusal(
                "writes_nothing", "This run writes nothing: leave prefix_tokens and given out."
            )
        try:
            ids = predictor.source_ids(request.text)
        except TooLongError as error:
            raise too_long(error, f"{error}.") from None
        except DragomanError as error:
            raise Refusal("bad_text", f"{error}.", problem=str(error)) from None
        return Cut([request.text], self._checked(request, ids, longest), ids)

    def _cut_alone(self, request: Asked, longest: int) -> Cut[Asked]:
        """Where nothing is read: the text itself, or what else it begins with."""
        if request.sentence:
            raise Refusal("text_is_whole", "sentence: this run looks at its text as one.")
        (tokens,) = self._target.tokens([request.text])
        if (places := self.model.settings.longest) is not None:
            longest = min(longest, places - 1)  # the start symbol stands before them
        if len(tokens) > longest:
            raise _too_long(len(tokens), longest)
        changed: dict[str, Any] = {"text": "", "sentence": None, "given": tuple(tokens)}
        if request.prefix_tokens:
            length = max(len(tokens), len(request.prefix_tokens))
            changed |= {"given": (), "max_length": request.max_length or length}
        alone = request.model_copy(update=changed)
        (ids,) = self._engine.source.values([""])
        return Cut([request.text], self._checked(alone, ids, longest), ids)

    def _checked(self, request: Asked, ids: Sequence[int], longest: int) -> Asked:
        """The same. ``ids``: tokens of what is looked at. Raises Refusal for what cannot be."""
        if len(ids) > longest:
            raise _too_long(len(ids), longest)
        if any(place >= len(ids) for place in request.hidden):
            raise Refusal(
                "no_such_place",
                f"hidden: the text has {len(ids)} tokens, counted from 0.",
                field="hidden",
                tokens=len(ids),
            )
        size = self._target.size
        for name in ("prefix_tokens", "given", "compare"):
            if any(token >= size for token in getattr(request, name)):
                raise Refusal(
                    "no_such_token", f"{name} must be below {size}.", field=name, vocabulary=size
                )
        if request.given and (request.prefix_tokens or self._target.eos in request.given):
            raise Refusal(
                "two_outputs", "given is a whole output without its end: leave prefix_tokens out."
            )
        for head in request.heads_off:
            self._sight.check_head(head.part, head.layer, head.head, "heads_off")
        return request

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
        self._sight.check_head(request.part, request.layer, request.head or 0, "this model")
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
        beyond = Refusal(
            "no_such_tokens",
            f"first and count: there are not so many {request.side} tokens.",
            side=request.side,
        )
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
            if request.first + request.count > len(next(iter(stages.values()), ())):
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

    async def cell(self, request: CellRequest, ids: list[int], client: str) -> bytes:
        """One weight opened, as JSON. Raises Refusal, ``SearchError``."""
        model, chosen = self.model, (request.part, request.layer, request.head)
        self._sight.check_head(*chosen, "this model")
        layer = model.attentions_of(request.part)[request.layer]
        if attention_of(model, layer) is None:
            raise Refusal(
                "no_queries",
                "Queries, keys and values are read from the attention of a Transformer; this run "
                f"is a {model.settings.kind} model.",
                family=model.settings.kind,
            )

        def find(given_up: GivenUp) -> bytes:
            seen = self._seen(request, ids, given_up, lambda *_: 0)
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
                model,
                layer,
                request.head,
                request.row,
                request.column,
                torch.tensor(ids),
                torch.tensor([self._target.bos, *seen.best.tokens]),
                heads_off=self._sight.off(request),
                hidden=request.hidden,
            )
            return written(CellAnswer.of(found))

        return await self._turns.do_while_awaited(client, find)

    async def heads(self, request: LookRequest, ids: list[int], client: str) -> bytes:
        """What each head is good for, as JSON. Raises Refusal, ``SearchError``."""
        every = [(one, head) for one in self.model.attentions for head in range(one.heads)]

        def find(given_up: GivenUp) -> bytes:
            seen = self._seen(request, ids, given_up, lambda *_: 0)
            tokens = seen.best.tokens
            work = len(every) * (len(ids) + len(tokens) + 1)
            if work > MOST_MEASURED:
                raise Refusal(
                    "too_long_for_heads",
                    f"{len(every)} heads over {len(ids)} and {len(tokens)} tokens are too much to "
                    "switch off one by one; ask of a shorter sentence.",
                    heads=len(every),
                    source=len(ids),
                    target=len(tokens),
                )
            off = self._sight.off(request)
            whole = self._sight.believed(request, ids, tokens, off)
            fallen: dict[Part, list[list[float]]] = {part: [] for part in get_args(Part)}
            for one, head in every:
                given_up.check()
                without = self._sight.believed(request, ids, tokens, [*off, (one.name, head)])
                if head == 0:
                    fallen[one.part].append([])
                fallen[one.part][-1].append(round(whole - without, 5))
            return written(HeadsAnswer(log_probability=round(whole, 5), fallen=fallen))

        return await self._turns.do_while_awaited(client, find)

    def close(self) -> None:
        self._turns.close()

    # ---- inside

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
        wanted = {"text", "beam", "length_penalty", "max_length", "prefix_tokens", "given"}
        key = request.model_dump_json(include={*wanted, "heads_off", "hidden", "compare"})
        seen = self._kept.pop(key, None) or self._look(request, ids, given_up, most)
        self._kept[key] = seen
        while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > MOST_KEPT:
            self._kept.popitem(last=False)
        return seen

    def _look(
        self, request: LookRequest, ids: list[int], given_up: GivenUp, most: Sizes
    ) -> LookRecord:
        return self._sight.look(request, ids, given_up, most)


def _too_long(tokens: int, longest: int) -> Refusal:
    return Refusal(
        "too_many_tokens",
        f"The text has {tokens} tokens; {longest} can be looked at. Take a part of it.",
        tokens=tokens,
        most=longest,
    )
