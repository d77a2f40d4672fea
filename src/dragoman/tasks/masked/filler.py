"""The predictor of a masked model, which fills the blanks of a text.

A blank is ``___``, three underscores or more. It stands for one token, or for ``pieces`` tokens of
one word, which a beam finds from left to right. The candidates of a blank depend on the text around
it, while other blanks are open. If a text has several blanks, the surest is filled first and the
others are computed again. If a text exceeds the model's context, the tokens nearest to a blank are
read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError, DragomanError, LengthUnit, RunError, TooLongError
from dragoman.base.reading import readable
from dragoman.base.wording import shorten
from dragoman.engine.predictor import ReadingPredictor
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.search.hypothesis import Hypothesis, hypothesis_of

BEST = 5
"""The default number of candidates of a blank."""

MAX_PIECES = 8
MAX_TOKENS = 1_024
"""The most tokens of a text with blanks and its end symbol, unless the context is longer."""
BLANK = re.compile("_{3,}")
_SHOWN = 60
"""The most characters of a text that a message quotes."""
_SPACE = "▁"

_Ids = tuple[int, ...]
_Scored = tuple[_Ids, float]
"""The tokens of a blank, and their log P."""

Scores = npt.NDArray[np.float32]
"""The log probability of every token at one place, (V,)."""


class NoTokenFitsError(DragomanError):
    """No token of the vocabulary fits into a blank."""


@dataclass(frozen=True)
class BlankCandidate:
    """A candidate for a blank of the text."""

    text: str
    probability: float
    """The probability given the text around it, among all tokens of the vocabulary; for several
    tokens the product, each given those before it."""
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Filled:
    """A text whose blanks are filled. ``str(filled)`` is the filled text."""

    text: str
    blanks: tuple[tuple[BlankCandidate, ...], ...]
    """The candidates of each blank while the others are open, the most probable first."""
    chosen: tuple[BlankCandidate, ...]
    """The candidate that fills each blank of ``text``."""
    score: float
    """The sum of log P of the chosen candidates, in nats, each given those chosen before."""

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens that fill all blanks."""
        return tuple(token for candidate in self.chosen for token in candidate.ids)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Blank:
    places: tuple[int, ...]
    """The places of its tokens in the text."""
    begins_word: bool
    """True if its first token includes the space before it; no other token does."""


@dataclass(frozen=True)
class _Text:
    values: tuple[int, ...]
    """The tokens with ``<mask>`` in the blanks, and the end symbol."""
    blanks: tuple[_Blank, ...]
    around: tuple[str, ...]
    """The texts before, between and after the blanks."""


class Filler(ReadingPredictor[Filled]):
    """A trained masked model, opened to fill blanks. Not thread-safe."""

    asked_of: ClassVar[tuple[str, str]] = ("masked", "which fills no blanks")

    def prepare(self, recipe: Recipe, forms: Forms) -> None:
        vocabulary = forms.written.vocabulary
        if vocabulary.mask is None:
            problem = "its vocabulary has no <mask>, so it cannot fill blanks"
            raise RunError(f"{self.run.folder}: {problem}")
        self.context = recipe.plan.context
        """The number of tokens that the model reads at once, the end symbol included."""
        self._vocabulary, self._mask = vocabulary, vocabulary.mask
        pieces = vocabulary.pieces(range(vocabulary.size))
        writes = vocabulary.ordinary & ~vocabulary.bytes
        space = np.array([piece.startswith(_SPACE) for piece in pieces])
        empty = np.array([not piece.strip(_SPACE) for piece in pieces])
        self._begins, self._goes_on, self._empty = writes & space, writes & ~space, empty

    def each(self, given: Iterable[str], best: int = BEST, pieces: int = 1) -> Iterator[Filled]:
        """Fill the blanks of each text. ``best``: the number of candidates of each blank;
        ``pieces``: its number of tokens.

        Errors: ``DataError`` for a text without a blank, or longer than ``MAX_TOKENS`` tokens.
        """
        for text in given:
            *_, filled = self.parts(text, best, pieces)
            assert filled is not None, "what was asked for comes last"
            yield filled

    def parts(self, text: str, best: int = BEST, pieces: int = 1) -> Iterator[Filled | None]:
        """Fill the blanks of a text in steps: yields None after each step of the model, and the
        filled text last."""
        layout = self._tokenise(text, pieces, max(MAX_TOKENS, self.context))
        shown = shorten(readable(text), _SHOWN)
        if not layout.blanks:
            raise DataError(f"{shown!r} has no blank. Write ___ where a word is missing")
        values = list(layout.values)
        open_ones = dict(enumerate(layout.blanks))
        first = candidates = yield from self._candidates(values, open_ones, best)
        if not all(first.values()):
            raise NoTokenFitsError(f"{shown!r}: no token of the vocabulary fits a blank there")
        chosen: dict[int, BlankCandidate] = {}
        while open_ones:
            sure = max(open_ones, key=lambda number: candidates[number][0].probability)
            chosen[sure] = candidates[sure][0]
            for place, token in zip(open_ones.pop(sure).places, chosen[sure].ids, strict=True):
                values[place] = token
            if open_ones:
                candidates = yield from self._candidates(values, open_ones, 1)
        picked = tuple(chosen[number] for number in range(len(layout.blanks)))
        yield Filled(
            _join(layout, [candidate.text for candidate in picked]),
            tuple(tuple(first[number]) for number in range(len(layout.blanks))),
            picked,
            math.fsum(math.log(max(candidate.probability, 1e-300)) for candidate in picked),
        )

    def tokens_read(self, text: str, best: int = BEST, pieces: int = 1) -> int:
        """Count the tokens that the model reads to fill a text, summed over all steps: it reads the
        text again for each open blank. Errors: ``DragomanError``."""
        layout = self._tokenise(text, pieces, max(MAX_TOKENS, self.context))
        read, blanks = min(len(layout.values), self.context), len(layout.blanks)
        if pieces == 1:
            together = len(layout.values) <= self.context
            return read * (blanks if together else blanks * (blanks + 1) // 2)
        first, later = (1 + (pieces - 1) * max(best, 2 * BEST) for best in (best, 1))
        return read * (blanks * first + blanks * (blanks - 1) // 2 * later)

    def own_output(self, text: str, prefix: str = "") -> Filled:
        """Fill the blanks of the text; a text without blanks is returned as it is. Errors:
        ``DragomanError`` for a prefix."""
        if prefix:
            raise DragomanError("a masked model has no prefix. Put the beginning into the text")
        if not BLANK.search(text):
            return Filled(text, (), (), 0.0)
        return self(text)

    def source_ids(self, text: str) -> list[int]:
        """Return the model's input: tokens, ``<mask>`` in blanks, and the end symbol."""
        return list(self._tokenise(text, 1, self.context).values)

    def score_ids(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Hypothesis]:
        """Score given tokens in the blanks of texts, each while all other blanks are open."""
        hypotheses = []
        for text, tokens in zip(sources, targets, strict=True):
            layout = self._tokenise(text, 1, self.context)
            places = [place for blank in layout.blanks for place in blank.places]
            rows = self.engine.output_log_probabilities([layout.values], [places])[0]
            scores = [float(row[token]) for row, token in zip(rows, tokens, strict=True)]
            hypotheses.append(hypothesis_of(tokens, scores, finished=False))
        return hypotheses

    # ---- inside

    def _tokenise(self, text: str, pieces: int, longest: int) -> _Text:
        """Tokenise a text with blanks of ``pieces`` tokens. Errors: ``DragomanError`` for a text of
        more than ``longest`` tokens."""
        most = min(MAX_PIECES, self.context - 1)
        if not 1 <= pieces <= most:
            raise DragomanError(f"{pieces} tokens were requested for a blank. Use 1 to {most}")
        if self.engine.target.far_too_long(text, longest):
            raise _too_long(len(text), "characters", longest)
        vocabulary, settings = self._vocabulary, self._vocabulary.settings
        around = BLANK.split(text)
        tokens: list[int] = []
        blanks = []
        for number, part in enumerate(around):
            inside, ends = number > 0 and not part[:1].isspace(), part[-1:]
            begins_word = settings.kind != "char" and ends == " "
            if not settings.lossless and settings.kind != "char":
                # The vocabulary joins spaces, and puts one before the text.
                begins_word = ends.isspace() or (number == 0 and not part)
            if number + 1 < len(around) and begins_word and settings.lossless:
                part = part[:-1]
            if inside:
                tokens += vocabulary.encode_inside(part)
            elif part.strip() or settings.lossless:
                tokens += vocabulary.encode_lists([part])[0]
            if number + 1 < len(around):
                blanks.append(_Blank(tuple(range(len(tokens), len(tokens) + pieces)), begins_word))
                tokens += [self._mask] * pieces
        if len(tokens) >= longest:
            raise _too_long(len(tokens), "tokens", longest)
        return _Text((*tokens, self.engine.source.eos), tuple(blanks), tuple(around))

    def _near(self, values: Sequence[int], places: Sequence[int]) -> tuple[list[int], list[int]]:
        """Select the model's input for some adjacent places: the tokens around them within the
        context, with the end symbol; and the places in it."""
        *tokens, end = values
        room = self.context - 1
        middle = (places[0] + places[-1] + 1) // 2
        begin = max(0, min(middle - room // 2, len(tokens) - room))
        return [*tokens[begin : begin + room], end], [place - begin for place in places]

    def _candidates(
        self, values: Sequence[int], blanks: Mapping[int, _Blank], best: int
    ) -> Generator[None, None, dict[int, list[BlankCandidate]]]:
        """Find the candidates of open blanks, by their numbers. Yields after each step of the
        model."""
        candidates = {}
        if all(len(blank.places) == 1 for blank in blanks.values()):
            places = [blank.places[0] for blank in blanks.values()]
            if len(values) <= self.context:
                (rows,) = self.engine.output_log_probabilities([values], [places])
            else:
                near, there = zip(*(self._near(values, [place]) for place in places), strict=True)
                rows = np.concatenate(self.engine.output_log_probabilities(near, there))
            yield
            for row, (number, blank) in zip(rows, blanks.items(), strict=True):
                grown = self._extend((), 0.0, self._mask_unfit(row, blank, 0), best)
                candidates[number] = self._as_text(grown)
            return candidates
        for number, blank in blanks.items():
            candidates[number] = yield from self._beam(values, blank, best)
        return candidates

    def _beam(
        self, values: Sequence[int], blank: _Blank, best: int
    ) -> Generator[None, None, list[BlankCandidate]]:
        """Find the candidates of one blank of several tokens, by a beam."""
        width = max(best, 2 * BEST)
        near, places = self._near(values, blank.places)
        beam: list[_Scored] = [((), 0.0)]
        for number, place in enumerate(places):
            tried = []
            for ids, _ in beam:
                filled = list(near)
                for taken, token in zip(places, ids, strict=False):
                    filled[taken] = token
                tried.append(filled)
            rows = self.engine.output_log_probabilities(tried, [[place]] * len(tried))
            yield
            grown = []
            for (ids, score), row in zip(beam, rows, strict=True):
                grown += self._extend(ids, score, self._mask_unfit(row[0], blank, number), width)
            beam = sorted(grown, key=lambda scored: -scored[1])[:width]
        return self._as_text(beam)[:best]

    def _extend(self, ids: _Ids, score: float, scores: Scores, width: int) -> list[_Scored]:
        """Extend a candidate by each of the most probable next tokens."""
        return [
            ((*ids, token), score + float(scores[token]))
            for token in np.argsort(-scores, kind="stable")[:width].tolist()
            if np.isfinite(scores[token])
        ]

    def _as_text(self, beam: Sequence[_Scored]) -> list[BlankCandidate]:
        every = [
            BlankCandidate(self._vocabulary.decode(ids).strip(), math.exp(score), ids)
            for ids, score in beam
        ]
        # A single byte may be no character, and then decodes to nothing.
        return [candidate for candidate in every if candidate.text] or every

    def _mask_unfit(self, scores: Scores, blank: _Blank, number: int) -> Scores:
        """Set tokens that do not fit to -inf: only token 0 of a blank may begin a word."""
        allowed = self._begins if number == 0 and blank.begins_word else self._goes_on
        if len(blank.places) == 1:
            allowed = allowed & ~self._empty
        return np.where(allowed, scores, np.float32(-np.inf))


def _too_long(length: int, unit: LengthUnit, longest: int) -> TooLongError:
    return TooLongError(
        f"the text has {length:,} {unit}, and {longest - 1:,} tokens at most are read. Give a "
        "part of it",
        length,
        unit,
        longest - 1,
    )


def _join(layout: _Text, filled: Sequence[str]) -> str:
    parts = [layout.around[0]]
    for text, behind in zip(filled, layout.around[1:], strict=True):
        parts += [text, behind]
    return "".join(parts)
