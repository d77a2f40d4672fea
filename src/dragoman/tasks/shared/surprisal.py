"""The surprisal of each word of a text for a language model: -log2 P, in bits, summed over the
tokens of the word.

A probable word costs few bits; one bit more means half the probability. The bits of a text divided
by its bytes are the bits per byte of ``dragoman evaluate``. They do not depend on the vocabulary if
the tokens restore the whole text. A vocabulary may prevent this in two ways: it may normalise its
input, and it may not know all characters. ``Length`` counts the bytes that are lost in each of
these ways.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from dragoman.base.errors import DragomanError, RunError
from dragoman.base.measure import perplexity
from dragoman.base.wording import decimals
from dragoman.data.store import Tokens
from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings
from dragoman.forms.subwords.sampling import SPACE
from dragoman.forms.subwords.text import Text
from dragoman.forms.text_form import TextForm
from dragoman.runs.recipe.sections import EvaluationSettings
from dragoman.runs.run import Run

if TYPE_CHECKING:
    from rich import text

END = "</s>"
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_STEPS = ((3.0, ""), (6.0, "yellow"), (10.0, "dark_orange"), (float("inf"), "bold red"))
"""The bits below which a word has each colour."""
LEGEND = "bits a word: below 3 plain, below 6 yellow, below 10 orange, from 10 on red"


class SurprisalWord(NamedTuple):
    """A word of a text, with the white space before it."""

    before: str
    """The spaces and line ends before the word."""
    text: str
    bits: float
    tokens: int = 0
    """The number of tokens of the word and the white space before it."""


@dataclass(frozen=True)
class Surprisal:
    """The surprisal of a text and its tokens."""

    tokens: tuple[str, ...]
    """The tokens as the vocabulary writes them; the last is the end symbol."""
    log_probabilities: tuple[float, ...]
    """The log probability of each token, in nats."""
    words: tuple[SurprisalWord, ...]
    """The words of the whole text; the last is ``END``, with the cost of the end."""

    @property
    def log_probability(self) -> float:
        """The log probability of the text, in nats."""
        return math.fsum(self.log_probabilities)

    @property
    def perplexity(self) -> float:
        """The perplexity of the text per token."""
        return perplexity(-self.log_probability / len(self.tokens))


class Scorer:
    """A trained language model, opened to score texts. Not thread-safe."""

    precision, level, description = "fp32", "", "fp32 on plain torch"
    """The fields of a predictor (``engine/predictor.py``)."""

    def __init__(self, run: Run, context: int, stride: int) -> None:
        """Open a run. ``context``, ``stride``: see ``search/forced_decoding.py``. Errors:
        ``RunError``, also for a run that reads a source."""
        if len(run.task.sides) > 1:
            raise RunError(f"{run.folder} is a {run.task.called}. Give its sources too")
        self.engine = Engine.open(run, EngineSettings(precision="fp32"))
        self._windows = context, stride

    def __call__(self, texts: Sequence[str]) -> Iterator[Surprisal]:
        """Yield the surprisal of each text, in order."""
        form = self.engine.written
        written = form.tokens(texts)
        scored = self.engine.score_windows(written, *self._windows)
        for tokens, costs in zip(written, scored, strict=True):
            words = (*words_of(form, tokens, costs[:-1]), _word(END.encode(), costs[-1:]))
            yield Surprisal((*form.names_of(tokens), END), tuple(costs), words)


def words_of(
    form: TextForm,
    tokens: Sequence[int],
    log_probabilities: Sequence[float],
    *,
    begins: bool = True,
) -> list[SurprisalWord]:
    """Split a text into words: a word begins at a token that starts with a space or line end. In a
    language without spaces, it begins at every token that begins a character.

    ``begins``: the tokens are the first of the text.
    """
    words: list[SurprisalWord] = []
    held, costs = b"", list[float]()
    written = map(_bytes_of, form.names_of(tokens))
    for part, cost in zip(written, log_probabilities, strict=True):
        if held.strip() and (part[:1].isspace() or not (form.spaced or _is_cut(held))):
            words.append(_word(held, costs))
            held, costs = b"", []
        held += part
        costs.append(cost)
    if costs:
        words.append(_word(held, costs))
    if begins and words and not form.vocabulary.settings.lossless:
        words[0] = words[0]._replace(before="")  # the first space is not in the text
    return words


def begin_of(form: TextForm, tokens: Sequence[int], word: int) -> tuple[int, int]:
    """Find the token with which a word of a text begins, and the first one that writes more than
    the space before it. Errors: ``IndexError`` if the text has fewer words."""
    words = words_of(form, tokens, [0.0] * len(tokens))
    first = sum(before.tokens for before in words[:word])
    own = form.names_of(tokens[first : first + words[word].tokens])
    spaces = 0
    while spaces < len(own) - 1 and _bytes_of(own[spaces]).isspace():
        spaces += 1
    return first, first + spaces


def _bytes_of(piece: str) -> bytes:
    """The bytes that a token writes."""
    if _BYTE.fullmatch(piece):
        return bytes([int(piece[3:5], 16)])
    return piece.replace(SPACE, " ").encode("utf-8", "surrogatepass")


def _word(held: bytes, costs: Sequence[float]) -> SurprisalWord:
    written = held.decode("utf-8", "ignore")  # Bytes that belong to no character are left out.
    text = written.lstrip()
    before = written[: len(written) - len(text)]
    return SurprisalWord(before, text, -math.fsum(costs) / math.log(2), len(costs))


def _is_cut(held: bytes) -> bool:
    try:
        held.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return True
    return False


_BITS_OF_A_BYTE = 8.0


@dataclass(frozen=True)
class Length:
    """The length of texts, in all units that scores are given in."""

    tokens: int = 0
    """The number of tokens, end symbols included."""
    bytes: int = 0
    """UTF-8 bytes of the texts as the vocabulary restores them, plus one for each end, as in a file
    with a text on each line."""
    given: int = 0
    """UTF-8 bytes of the texts as given: more than ``bytes`` if normalisation removes something."""
    unknown: int = 0
    """The number of bytes that unknown tokens replace. An unknown token does not say which
    characters it replaces, so each of these bytes adds 8 bits to the bits per byte."""

    @classmethod
    def of(cls, vocabulary: Text, text: str, tokens: Sequence[int] | Tokens) -> Self:
        """The length of one text. ``tokens`` have no special symbols."""
        known = vocabulary.text_as_read(text)
        length, unknown = _bytes(known), 0
        if vocabulary.unknown in tokens:
            rest = [int(token) for token in tokens if token != vocabulary.unknown]
            # The first token begins with a space that is not in the text.
            before = 0 if vocabulary.settings.lossless or not known else 1
            unknown = (
                length + before - sum(len(_bytes_of(piece)) for piece in vocabulary.pieces(rest))
            )
        return cls(len(tokens) + 1, length + 1, _bytes(text) + 1, unknown)

    def __add__(self, other: Length) -> Length:
        return Length(
            self.tokens + other.tokens,
            self.bytes + other.bytes,
            self.given + other.given,
            self.unknown + other.unknown,
        )

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
    """The window in which a run reads long texts, and the stride by which it moves on, both in
    tokens.

    Errors: ``DragomanError`` for changes to other settings.
    """
    for change in changes:
        if change.partition("=")[0] not in ("window", "stride"):
            raise DragomanError(
                f"{change}: {run.folder} is a language model and is measured without a search. "
                "Set only window and stride"
            )
    recipe = run.recipe.change([f"evaluation.{change}" for change in changes])
    return windows_in(recipe.evaluation, recipe.plan.context)


def windows_in(evaluation: EvaluationSettings, context: int) -> tuple[int, int]:
    """The window and stride of the settings, for a model trained with ``context`` tokens."""
    window = evaluation.window or context
    return window, evaluation.stride or max(1, window // 2)


def colour_words(words: Sequence[SurprisalWord], *, plain: bool) -> text.Text:
    """Return a text with each word in the colour of its surprisal; without colours, the bits
    follow the word: cat[7.3]."""
    from rich import text

    out = text.Text()
    for word in words:
        out.append(word.before)
        style = next(style for most, style in _STEPS if word.bits < most)
        out.append(f"{word.text}[{decimals(word.bits, 1)}]" if plain else word.text, style=style)
    return out
