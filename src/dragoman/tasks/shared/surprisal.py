"""How much each word of a text surprises a language model: -log2 P, in bits, summed over the tokens
that the word is written with.

What a model expects costs little; a bit more is half as likely. The bits of a text over its bytes
are what ``dragoman evaluate`` calls bits per byte. Over the bytes they do not depend on the
vocabulary, if the tokens give the whole text back. Two things are in the way: a vocabulary may
normalise what it reads, and may not know all characters. Both are counted here (``Length``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from dragoman.base.errors import DragomanError, RunError
from dragoman.base.measure import perplexity
from dragoman.data.store import Tokens
from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings
from dragoman.forms.subwords.sampling import SPACE
from dragoman.forms.subwords.text import Text
from dragoman.forms.text_form import TextForm
from dragoman.recipe.sections import EvaluationSettings
from dragoman.runs.run import Run

END = "</s>"
_BYTE = re.compile("<0x[0-9A-F]{2}>")


class SurprisalWord(NamedTuple):
    """A piece of a text between spaces, with what stands before it."""

    before: str
    """Spaces and line ends."""
    text: str
    bits: float
    tokens: int = 0
    """Tokens that write both."""


@dataclass(frozen=True)
class Surprisal:
    """What a model thinks of one text."""

    tokens: tuple[str, ...]
    """As the vocabulary writes them; the end symbol last."""
    log_probabilities: tuple[float, ...]
    """log P of each token, in nats."""
    words: tuple[SurprisalWord, ...]
    """The whole text; what its end costs is that of ``END``, which is the last."""

    @property
    def log_probability(self) -> float:
        """log P of the text, in nats."""
        return math.fsum(self.log_probabilities)

    @property
    def perplexity(self) -> float:
        """The perplexity per token."""
        return perplexity(-self.log_probability / len(self.tokens))


class Scorer:
    """A trained language model, ready to read. Not for several threads at once."""

    precision, level, description = "fp32", "", "fp32 on plain torch"
    """As those of a predictor (``engine/predictor.py``)."""

    def __init__(self, run: Run, context: int, stride: int) -> None:
        """``context``, ``stride``: see ``search/forced_decoding.py``. Errors: ``RunError``, also
        for a run that translates."""
        if len(run.task.sides) > 1:
            raise RunError(f"{run.folder} is a {run.task.called}: give its sources, too")
        self.engine = Engine.open(run, EngineSettings(precision="fp32"))
        self._windows = context, stride

    def __call__(self, texts: Sequence[str]) -> Iterator[Surprisal]:
        """Each text, in order."""
        form = self.engine.written
        written = form.tokens(texts)
        scored = self.engine.score_windows(written, *self._windows)
        for tokens, costs in zip(written, scored, strict=True):
            words = (*words_of(form, tokens, costs[:-1]), _word(END.encode(), costs[-1:]))
            yield Surprisal((*form.shown(tokens), END), tuple(costs), words)


def words_of(
    form: TextForm,
    tokens: Sequence[int],
    log_probabilities: Sequence[float],
    *,
    begins: bool = True,
) -> list[SurprisalWord]:
    """The words of a text: one begins at a token that writes a space or a line end first. In a
    language that is written without spaces, every token is one that does not share a character.

    ``begins``: the tokens are the first of the text.
    """
    found: list[SurprisalWord] = []
    held, costs = b"", list[float]()
    written = map(_written, form.shown(tokens))
    for part, cost in zip(written, log_probabilities, strict=True):
        if held.strip() and (part[:1].isspace() or not (form.spaced or _is_cut(held))):
            found.append(_word(held, costs))
            held, costs = b"", []
        held += part
        costs.append(cost)
    if costs:
        found.append(_word(held, costs))
    if begins and found and not form.vocabulary.settings.lossless:
        found[0] = found[0]._replace(before="")  # a space stands before the first token
    return found


def begin_of(form: TextForm, tokens: Sequence[int], word: int) -> tuple[int, int]:
    """The token with which a word of a text begins, and the first that writes more than the space
    before it. Errors: ``IndexError`` if it has not so many words."""
    words = words_of(form, tokens, [0.0] * len(tokens))
    first = sum(one.tokens for one in words[:word])
    own = form.shown(tokens[first : first + words[word].tokens])
    spaces = 0
    while spaces < len(own) - 1 and _written(own[spaces]).isspace():
        spaces += 1
    return first, first + spaces


def _written(piece: str) -> bytes:
    """What a token writes."""
    if _BYTE.fullmatch(piece):
        return bytes([int(piece[3:5], 16)])
    return piece.replace(SPACE, " ").encode("utf-8", "surrogatepass")


def _word(held: bytes, costs: Sequence[float]) -> SurprisalWord:
    written = held.decode("utf-8", "ignore")  # bytes that are part of no character are left out
    text = written.lstrip()
    before = written[: len(written) - len(text)]
    return SurprisalWord(before, text, -math.fsum(costs) / math.log(2), len(costs))


def _is_cut(held: bytes) -> bool:
    """Whether it ends within a character."""
    try:
        held.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return True
    return False


_BITS_OF_A_BYTE = 8.0


@dataclass(frozen=True)
class Length:
    """How long texts are, in all units that a model's scores are given by."""

    tokens: int = 0
    """Tokens, end symbols counted."""
    bytes: int = 0
    """UTF-8 bytes of the texts as the vocabulary knows them, and one for the end of each, as in a
    file with a text on each line."""
    given: int = 0
    """UTF-8 bytes of the texts as they are given: more than ``bytes`` where normalisation loses
    something."""
    unknown: int = 0
    """Bytes that stand behind unknown tokens. An unknown token does not say which characters it
    is, so in bits per byte each of them costs 8 bits more."""

    @classmethod
    def of(cls, vocabulary: Text, text: str, tokens: Sequence[int] | Tokens) -> Self:
        """The length of one text. ``tokens``: without special symbols."""
        known = vocabulary.known_as(text)
        length, unknown = _bytes(known), 0
        if vocabulary.unknown in tokens:
            rest = [int(token) for token in tokens if token != vocabulary.unknown]
            # The space that stands before a text among its tokens is none of its bytes.
            before = 0 if vocabulary.settings.lossless or not known else 1
            unknown = (
                length + before - sum(len(_written(piece)) for piece in vocabulary.pieces(rest))
            )
        return cls(len(tokens) + 1, length + 1, _bytes(text) + 1, unknown)

    @classmethod
    def sum(cls, lengths: Iterable[Length]) -> Length:
        """The length of many texts together."""
        total = Length()
        for one in lengths:
            total = Length(
                total.tokens + one.tokens,
                total.bytes + one.bytes,
                total.given + one.given,
                total.unknown + one.unknown,
            )
        return total

    def scores(self, nll: float) -> dict[str, float]:
        """The scores of texts of this length. ``nll``: their -log P in nats."""
        bits = nll / math.log(2) + _BITS_OF_A_BYTE * self.unknown
        return {
            "perplexity": perplexity(nll / max(self.tokens, 1)),
            "bits_per_byte": bits / max(self.bytes, 1),
        }


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def windows_of(run: Run, changes: Sequence[str] = ()) -> tuple[int, int]:
    """The tokens of a window in which a run reads long texts, and by how many it moves on.

    Errors: ``DragomanError`` for changes of anything else.
    """
    for change in changes:
        if change.partition("=")[0] not in ("window", "stride"):
            raise DragomanError(
                f"{change}: {run.folder} is a language model and is measured without a search; "
                "window and stride can be set"
            )
    recipe = run.recipe.change([f"evaluation.{change}" for change in changes])
    return windows_in(recipe.evaluation, recipe.plan.context)


def windows_in(evaluation: EvaluationSettings, context: int) -> tuple[int, int]:
    """Window and stride as the settings have them, for a model that learned from ``context``."""
    window = evaluation.window or context
    return window, evaluation.stride or max(1, window // 2)
