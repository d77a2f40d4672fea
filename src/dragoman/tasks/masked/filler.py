"""The predictor of a masked model: a text with blanks in, what may stand there out.

A blank is ``___``, three underscores or more. It stands for one token, or for ``pieces`` tokens of
one word, found by a beam from left to right. The candidates of a blank are given the text around
it, other blanks open. Of several, the surest is filled first and the others are computed again.
Of a text that is longer than what the model reads at once, the tokens nearest to a blank are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError, DragomanError, LengthUnit, RunError, TooLongError
from dragoman.base.reading import readable
from dragoman.base.wording import shortened
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.engine.settings import EngineSettings
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis, hypothesis_of

BEST = 5
"""Candidates of a blank, unless it is said how many."""

MAX_PIECES = 8
MAX_TOKENS = 1_024
"""Tokens of a text with blanks, the end symbol counted: no fewer than the model reads at once."""
BLANK = re.compile("_{3,}")
_SHOWN = 60
"""Characters of a text in a message."""
_SPACE = "▁"

_Ids = tuple[int, ...]
_Scored = tuple[_Ids, float]
"""Tokens of a blank, and log P of them."""

Scores = npt.NDArray[np.float32]
"""(V,) log P of every token at one place."""


class NoTokenFitsError(DragomanError):
    """There is a blank in which no token of the vocabulary can stand."""


@dataclass(frozen=True)
class BlankCandidate:
    """What may stand in a blank."""

    text: str
    probability: float
    """P(it | the text around it), among all tokens of the vocabulary; of several tokens their
    product, each given those before it."""
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Filled:
    """A text whose blanks are filled. ``str(filled)`` is it."""

    text: str
    blanks: tuple[tuple[BlankCandidate, ...], ...]
    """Of each blank, while the others are open: its candidates, the likeliest first."""
    chosen: tuple[BlankCandidate, ...]
    """What stands in each blank of ``text``."""
    score: float
    """The sum of log P of what was chosen, in nats, each given what was chosen before."""

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens that were chosen, of all blanks."""
        return tuple(token for one in self.chosen for token in one.ids)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Blank:
    places: tuple[int, ...]
    """Of its tokens."""
    begins_word: bool
    """Whether its first token begins with the space that stands before it; else none does."""


@dataclass(frozen=True)
class _Text:
    values: tuple[int, ...]
    """The tokens, ``<mask>`` in the blanks, the end symbol behind."""
    blanks: tuple[_Blank, ...]
    around: tuple[str, ...]
    """The text before, between and behind the blanks."""


class Filler(Predictor[Filled]):
    """A trained masked model, ready to fill in. Not for several threads at once."""

    def __init__(self, run: Run, settings: EngineSettings | None = None) -> None:
        """Errors: ``RunError``, also for a run of another task."""
        run.require_task("masked", "which fills no blanks")
        super().__init__(run, Engine.reading(run, settings or EngineSettings(precision="fp32")))
        vocabulary = run.target_text
        if vocabulary.mask is None:
            raise RunError(f"{run.folder}: its vocabulary has no <mask>; was it put there by hand?")
        self.context = run.recipe.plan.context
        """Tokens that the model reads at once, the end symbol counted."""
        self._vocabulary, self._mask = vocabulary, vocabulary.mask
        pieces = vocabulary.pieces(range(vocabulary.size))
        writes = vocabulary.ordinary & ~vocabulary.bytes
        space = np.array([piece.startswith(_SPACE) for piece in pieces])
        empty = np.array([not piece.strip(_SPACE) for piece in pieces])
        self._begins, self._goes_on, self._empty = writes & space, writes & ~space, empty

    def each(self, given: Iterable[str], best: int = BEST, pieces: int = 1) -> Iterator[Filled]:
        """Fill the blanks of each text. ``best``: candidates of each blank; ``pieces``: its tokens.

        Errors: ``DataError`` for a text without a blank, or longer than ``MAX_TOKENS`` tokens.
        """
        for text in given:
            *_, filled = self.parts(text, best, pieces)
            assert filled is not None, "what was asked for comes last"
            yield filled

    def parts(self, text: str, best: int = BEST, pieces: int = 1) -> Iterator[Filled | None]:
        """The same, step by step: None whenever the model has been asked, and the filled text
        last."""
        given = self._read(text, pieces, max(MAX_TOKENS, self.context))
        shown = shortened(readable(text), _SHOWN)
        if not given.blanks:
            raise DataError(f"{shown!r} has no blank: write ___ where a word is to be filled in")
        values = list(given.values)
        open_ones = dict(enumerate(given.blanks))
        first = found = yield from self._candidates(values, open_ones, best)
        if not all(first.values()):
            raise NoTokenFitsError(
                f"{shown!r}: no token of the vocabulary can stand in a blank there"
            )
        chosen: dict[int, BlankCandidate] = {}
        while open_ones:
            sure = max(open_ones, key=lambda number: found[number][0].probability)
            chosen[sure] = found[sure][0]
            for place, token in zip(open_ones.pop(sure).places, chosen[sure].ids, strict=True):
                values[place] = token
            if open_ones:
                found = yield from self._candidates(values, open_ones, 1)
        picked = tuple(chosen[number] for number in range(len(given.blanks)))
        yield Filled(
            _joined(given, [one.text for one in picked]),
            tuple(tuple(first[number]) for number in range(len(given.blanks))),
            picked,
            math.fsum(math.log(max(one.probability, 1e-300)) for one in picked),
        )

    def tokens_read(self, text: str, best: int = BEST, pieces: int = 1) -> int:
        """How many tokens the model reads to fill a text: all that are read each time that it is
        asked, and it is asked anew for each blank that is open. Errors: ``DragomanError``."""
        given = self._read(text, pieces, max(MAX_TOKENS, self.context))
        read, blanks = min(len(given.values), self.context), len(given.blanks)
        if pieces == 1:
            together = len(given.values) <= self.context
            return read * (blanks if together else blanks * (blanks + 1) // 2)
        first, later = (1 + (pieces - 1) * max(best, 2 * BEST) for best in (best, 1))
        return read * (blanks * first + blanks * (blanks - 1) // 2 * later)

    def shown(self, text: str, prefix: str = "") -> Filled:
        """The text with its blanks filled; as it is, where it has none. Errors: ``DragomanError``
        for a prefix."""
        if prefix:
            raise DragomanError("a text is filled in, not begun: leave the beginning out")
        if not BLANK.search(text):
            return Filled(text, (), (), 0.0)
        return self(text)

    def source_ids(self, text: str) -> list[int]:
        """What the model reads: tokens, ``<mask>`` in blanks, the end symbol behind."""
        return list(self._read(text, 1, self.context).values)

    def score_ids(
        self, sources: Sequence[str], targets: Sequence[Sequence[int]]
    ) -> list[Hypothesis]:
        """Tokens that are given for the blanks of texts, each while all others are open."""
        found = []
        for text, tokens in zip(sources, targets, strict=True):
            given = self._read(text, 1, self.context)
            places = [place for blank in given.blanks for place in blank.places]
            rows = self.engine.output_log_probabilities([given.values], [places])[0]
            scores = [float(row[token]) for row, token in zip(rows, tokens, strict=True)]
            found.append(hypothesis_of(tokens, scores, 0.0, finished=False))
        return found

    # ---- inside

    def _read(self, text: str, pieces: int, longest: int) -> _Text:
        """A text with blanks of ``pieces`` tokens, as tokens. Errors: ``DragomanError`` for one of
        more than ``longest``."""
        most = min(MAX_PIECES, self.context - 1)
        if not 1 <= pieces <= most:
            raise DragomanError(f"{pieces} tokens for a blank: it is 1 to {most}")
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
                # All spaces are one, and one stands before the text.
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
        """What is read of a text for some places that follow each other: as many tokens around them
        as the model reads, the end symbol behind; and the places there."""
        *tokens, end = values
        room = self.context - 1
        middle = (places[0] + places[-1] + 1) // 2
        begin = max(0, min(middle - room // 2, len(tokens) - room))
        return [*tokens[begin : begin + room], end], [place - begin for place in places]

    def _candidates(
        self, values: Sequence[int], blanks: Mapping[int, _Blank], best: int
    ) -> Generator[None, None, dict[int, list[BlankCandidate]]]:
        """The likeliest of some blanks while all of them are open, by their numbers. Yields when
        the model has been asked."""
        found = {}
        if all(len(blank.places) == 1 for blank in blanks.values()):
            places = [blank.places[0] for blank in blanks.values()]
            if len(values) <= self.context:
                (rows,) = self.engine.output_log_probabilities([values], [places])
            else:
                near, there = zip(*(self._near(values, [place]) for place in places), strict=True)
                rows = np.concatenate(self.engine.output_log_probabilities(near, there))
            yield
            for row, (number, blank) in zip(rows, blanks.items(), strict=True):
                grown = self._grown((), 0.0, self._allowed(row, blank, 0), best)
                found[number] = self._as_text(grown)
            return found
        for number, blank in blanks.items():
            found[number] = yield from self._beam(values, blank, best)
        return found

    def _beam(
        self, values: Sequence[int], blank: _Blank, best: int
    ) -> Generator[None, None, list[BlankCandidate]]:
        """The likeliest of one blank of several tokens, by a beam over them."""
        width = max(best, 2 * BEST)
        near, places = self._near(values, blank.places)
        beam: list[_Scored] = [((), 0.0)]
        for number, place in enumerate(places):
            tried = []
            for ids, _ in beam:
                one = list(near)
                for taken, token in zip(places, ids, strict=False):
                    one[taken] = token
                tried.append(one)
            rows = self.engine.output_log_probabilities(tried, [[place]] * len(tried))
            yield
            grown = []
            for (ids, score), row in zip(beam, rows, strict=True):
                grown += self._grown(ids, score, self._allowed(row[0], blank, number), width)
            beam = sorted(grown, key=lambda one: -one[1])[:width]
        return self._as_text(beam)[:best]

    def _grown(self, ids: _Ids, score: float, scores: Scores, width: int) -> list[_Scored]:
        """Some tokens with each of the likeliest next ones."""
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
        # A byte alone may be no character, and then spells nothing.
        return [one for one in every if one.text] or every

    def _allowed(self, scores: Scores, blank: _Blank, number: int) -> Scores:
        """-inf for what cannot stand at token ``number`` of a blank: a word begins only there."""
        allowed = self._begins if number == 0 and blank.begins_word else self._goes_on
        if len(blank.places) == 1:
            allowed = allowed & ~self._empty
        return np.where(allowed, scores, np.float32(-np.inf))


def _too_long(length: int, unit: LengthUnit, longest: int) -> TooLongError:
    return TooLongError(
        f"the text has {length:,} {unit}, and {longest - 1:,} tokens are read at most: take a part "
        "of it",
        length,
        unit,
        longest - 1,
    )


def _joined(given: _Text, filled: Sequence[str]) -> str:
    parts = [given.around[0]]
    for one, behind in zip(filled, given.around[1:], strict=True):
        parts += [one, behind]
    return "".join(parts)
