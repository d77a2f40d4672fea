"""Which text is looked at, and whether that can be done as a request says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dragoman.base.errors import DragomanError, TooLongError
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.insight.session import Intervention
from dragoman.models.interface import AttentionLayer, Network, Part
from dragoman.serving.http.refusals import Refusal, too_long
from dragoman.serving.look.schema import LookRequest

Asked = TypeVar("Asked", bound=LookRequest)


@dataclass(frozen=True)
class Cut(Generic[Asked]):
    """A text that is to be looked at."""

    sentences: list[str]
    """All of them."""
    request: Asked
    """Its text is what is looked at: one sentence, or all as one."""
    ids: list[int]
    """The tokens of that."""


class LookChecks:
    """Of one model."""

    def __init__(self, engine: Engine, predictor: Predictor[object] | None, model: Network) -> None:
        """``predictor``: who reads a text as one, where it is not cut into sentences; ``model``:
        what is looked into."""
        self._engine = engine
        self._predictor = predictor
        self._target = engine.target
        self.model = model

    def cut(self, request: Asked, longest: int) -> Cut[Asked]:
        """What is looked at of a text. Raises Refusal for what cannot be."""
        reads = self._engine.source.reads
        if request.text.strip() and (self._predictor is not None or not reads):
            if request.sentence:
                raise Refusal("text_is_whole", "sentence: this run looks at its text as one.")
            return self._cut_whole(request, longest) if reads else self._cut_alone(request, longest)
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

    def _cut_whole(self, request: Asked, longest: int) -> Cut[Asked]:
        """Where a text is read as one."""
        assert self._predictor is not None
        if self._engine.writes:
            longest = min(longest, self._engine.longest)
        elif request.prefix_tokens or request.given:
            raise Refusal(
                "writes_nothing", "This run writes nothing: leave prefix_tokens and given out."
            )
        try:
            ids = self._predictor.source_ids(request.text)
        except TooLongError as error:
            raise too_long(error, f"{error}.") from None
        except DragomanError as error:
            raise Refusal("bad_text", f"{error}.", problem=str(error)) from None
        return Cut([request.text], self._checked(request, ids, longest), ids)

    def _cut_alone(self, request: Asked, longest: int) -> Cut[Asked]:
        """Where nothing is read: the text itself, or what else it begins with."""
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
        self.under(request)
        return request

    def layer(self, part: Part, layer: int, head: int, where: str) -> AttentionLayer:
        """An attention that has such a head. Raises Refusal."""
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

    def under(self, request: LookRequest) -> Intervention:
        """Its heads that are off and its tokens that are hidden. Raises Refusal."""
        off = frozenset(
            (self.layer(one.part, one.layer, one.head, "heads_off").name, one.head)
            for one in request.heads_off
        )
        return Intervention(off, request.hidden)


def _too_long(tokens: int, longest: int) -> Refusal:
    return Refusal(
        "too_many_tokens",
        f"The text has {tokens} tokens; {longest} can be looked at. Take a part of it.",
        tokens=tokens,
        most=longest,
    )
