"""The interface of a form: one kind of sequence, between people and a model.

Raw examples (lines of text, names of files) become *values* (tokens, or rows of numbers), and
symbols of a model's output become raw again. A form knows its special symbols, how a long input
is cut, how long an output may become for an input of its kind, and how its values are displayed.

A ``Passage`` is one raw input, cut into pieces that a model reads at once, and joined again. The
text between pieces (spaces, newlines, the bullets and numbers of a list) is kept unchanged.

A form that a model writes and never reads has symbols of its own, such as those of trees and
boxes.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dragoman.base.atomic import write_text
from dragoman.base.errors import DataError
from dragoman.forms.subwords.text import Text

Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Piece:
    """A part of a text that is translated at once."""

    text: str
    """The piece as it is in the text."""
    behind: str
    """The text after the piece, which is kept: spaces, newlines, the marker of the next list
    item."""
    values: tuple[int, ...] | npt.NDArray[Any]
    """The tokens with the end symbol; or the rows, (T, F)."""


@dataclass(frozen=True)
class Passage:
    """One text. Its translation is ``before``, then the translation and ``behind`` of each
    piece."""

    before: str
    pieces: tuple[Piece, ...]
    spoken: bool = False
    """True for a recording: a space separates two texts, and silence has no text."""

    @property
    def is_bare(self) -> bool:
        """True for one piece with nothing around it."""
        return not self.before and len(self.pieces) == 1 and not self.pieces[0].behind

    @property
    def unread(self) -> Passage:
        """The passage without the values of its pieces, which takes little memory."""
        return replace(self, pieces=tuple(replace(piece, values=()) for piece in self.pieces))

    def join(self, translations: Sequence[str]) -> str:
        """Return the text with translations, in their order, instead of the pieces."""
        if self.spoken:
            return " ".join(filter(None, map(str.strip, translations)))
        joined = [self.before]
        for piece, translation in zip(self.pieces, translations, strict=True):
            joined += (translation, piece.behind)
        return "".join(joined)


class Pair(NamedTuple):
    """One example of a corpus: a sentence and its translation or its tree. The source of a
    single text is empty; in a corpus of files, it is the path of a file."""

    line: int
    """The line in the file, from 1."""
    source: str
    target: str
    whole: str = ""
    """The name of the text that a section belongs to, equal for all of its sections and for
    copies of it."""
    group: str = ""
    """The group that stays on one side of a split: a speaker or a document, or a hash of the
    file."""


class Rules(ABC):
    """The rules that the output of one search must obey, whatever the model prefers.

    A form whose outputs have a shape (a tree over these words) gives such rules for each source.
    Before every token of every hypothesis, a search gets the tokens that may follow. Rules
    depend only on the tokens so far, so a beam may reorder, drop and repeat hypotheses.

    Shapes: N hypotheses of one search, all of L tokens, V vocabulary.
    """

    longest: int
    """The most tokens of an output without the end symbol. Every allowed output is complete by
    then."""

    @abstractmethod
    def allows(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        """Return (N, V) flags for hypotheses ``tokens`` (N, L) that were allowed so far: True
        for the tokens that may follow, always at least one."""


_CHARACTERS = 1000
"""The characters of a text that are read per token; no token has as many."""

Values = npt.NDArray[Any]
"""(length,) int32 tokens, or (length, F) rows of the form's own type."""


class Form(ABC):
    """One side of a model: its input, or its output."""

    size: int
    """V, the number of different tokens."""
    bos: int = 0
    """The token that begins an output; 0, which is unused, if none does."""
    eos: int = 0
    """The token that ends a source and an output; 0, which is unused, if none does."""
    forbidden: tuple[int, ...] = ()
    """The tokens that no output may contain."""
    vocabulary: Text | None = None
    """The vocabulary of its tokens, if they are text."""
    before: tuple[int, ...] = ()
    """The tokens that a model reads before each source: the tag of the target language, if any."""
    reads = True
    """False for a side that does not exist, whose input is ignored."""
    language = "und"
    """The BCP 47 code of its language, if it has one."""
    spaced = True
    """True if spaces separate its words for people."""
    has_links = False
    """True if an output shows its links to the words of the source."""
    units = "tokens"
    """The name of its values in messages."""
    row_type = ""
    """numpy's name of the type in which rows are stored."""
    encoded_together = 4096
    """The number of examples that are encoded together for a store, which limits its memory."""

    @classmethod
    def of(cls, form: Form) -> Self:
        """Return ``form`` itself, which must be of this class, for callers that need its own
        attributes."""
        assert isinstance(form, cls)
        return form

    @property
    def width(self) -> int | None:
        """F, the number of values in a row, for a source of rows; None: values are tokens."""
        return None

    @property
    def end(self) -> int | None:
        """The token after a source, or None."""
        return self.eos

    def beginning(self, raw: str, values: int) -> str:
        """Return the part of a raw example that is read for its first ``values`` values: the
        whole example, unless it is far longer. Cutting a text into tokens takes some seventy
        bytes of memory per character, and a line may have a gigabyte."""
        return raw[: values * _CHARACTERS]

    def far_too_long(self, raw: str, values: int) -> bool:
        """Return True if a raw example's characters alone exceed ``values`` values."""
        return len(raw) > values * _CHARACTERS

    @abstractmethod
    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each raw example, without special symbols."""

    def encode(self, raws: Sequence[str]) -> list[Values]:
        """Return the values of each raw example without special symbols, as a store keeps them.
        Errors: ``DataError`` for a file that cannot be used, if raws name files."""
        return [np.array(self.with_tag(tokens), np.int32) for tokens in self.tokens(raws)]

    def with_tag(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens of a text with those that a model reads ``before`` it. A text without
        tokens stays empty."""
        return [*self.before, *tokens] if tokens else []

    def without_tag(self, values: Sequence[int] | Values) -> list[int]:
        """Return the tokens of the text among the ``values`` of a source."""
        return list(values[len(self.before) : -1])

    def read(self, raws: Sequence[str]) -> list[Values]:
        """Return what a model reads of each raw example: ``encode`` with the end symbol."""
        return [np.array(values, np.int64) for values in self.values(raws)]

    def arrays(self, given: Sequence[Sequence[int] | Values]) -> list[Values]:
        """Return the values of some inputs as arrays, which are parts of one array, because
        making an array takes longer than cutting one."""
        every = np.array([token for values in given for token in values], np.int64)
        ends = np.cumsum([len(values) for values in given])
        return np.split(every, ends[:-1]) if given else []

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash, in hex, of all that its tokens depend on; it identifies their stores."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write the learned part of the form to one file. Raises FileError if that fails."""

    @abstractmethod
    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        """Return each output as people read it; this undoes ``tokens``."""

    @abstractmethod
    def names_of(self, tokens: Iterable[int]) -> list[str]:
        """Return each token as it is displayed."""

    def row_labels(self, values: Sequence[int] | Values, count: int) -> list[str]:
        """Return labels of the ``count`` rows that the model made of a source's ``values``."""
        return self.names_of(values)

    def raw_for(self, source: str, tokens: Sequence[int]) -> str:
        """Return an output as people read it with its raw source."""
        return self.raw([tokens])[0]

    def names_beside(self, source: str, tokens: Sequence[int]) -> list[str]:
        """Return each token of an output as it is displayed with its raw source."""
        return self.names_of(tokens)

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        """Cut each raw input into pieces that are read at once, to be written in another form.

        ``longest``: the most values of a piece. ``whole``: parts that could be read separately
        stay together unless they are too long.
        """
        raise NotImplementedError("this kind of data can only be written by a model, not read")

    @abstractmethod
    def longest_output(self, length: int, extra: int) -> int:
        """Return the most tokens, without the end symbol, of an output for an input of
        ``length`` values, unless a search sets a limit. ``extra``: the tokens that it allows
        beyond that length."""

    def rules(self, raw: str, most: int | None = None) -> Rules | None:
        """Return the rules of an output for a raw source, or None. ``most``: the tokens that the
        model can write. Errors: ``DataError`` for a source that has no output."""
        return None

    def tokens_of_words(self, raws: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """Return the tokens of each raw example, without special symbols, and the number of each
        token's word, from 0. Words are separated by the spaces of the raw text.

        Each word is cut by itself, as in text in which no token crosses a space. A word that has
        no tokens is left without any.
        """
        lossless = self.vocabulary is not None and self.vocabulary.settings.lossless
        lines = [raw.split() for raw in raws]
        cut = iter(
            self.tokens(
                # Without the space, a lossless vocabulary would take a word for the end of the
                # previous one.
                [" " * (lossless and n > 0) + word for line in lines for n, word in enumerate(line)]
            )
        )
        examples = []
        for line in lines:
            words = [next(cut) for _ in line]
            numbers = [n for n, tokens in enumerate(words) for _ in tokens]
            examples.append(([token for tokens in words for token in tokens], numbers))
        return examples

    def check(self, raws: Iterable[str]) -> None:
        """Check that each raw example can be read. Errors: ``DataError`` for an unusable file."""
        return  # any text can be read

    def values(self, raws: Sequence[str]) -> list[list[int]]:
        """Return what a model reads of each raw example: its tokens and the end symbol."""
        return [[*self.with_tag(tokens), self.eos] for tokens in self.tokens(raws)]


SPECIAL = ("<unk>", "<s>", "</s>")
"""The written forms of symbols 0 to 2, as in a vocabulary of text."""


class Symbols(ABC):
    """The symbols of a form that is only written, with their numbers, in one file."""

    unknown, bos, eos = range(3)
    size: int
    """The number of symbols."""

    @property
    @abstractmethod
    def _json(self) -> str:
        """The content of the vocabulary's file."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the symbols and their settings."""
        return hashlib.sha256(self._json.encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write the symbols to one file. Raises FileError if that fails."""
        write_text(path, self._json + "\n")


class WrittenForm(Form):
    """A form that a model writes and never reads, defined by its symbols."""

    symbols: Symbols
    noun: str
    """The name of its outputs in messages, such as trees."""
    bos, eos = Symbols.bos, Symbols.eos
    forbidden: tuple[int, ...] = (Symbols.bos, Symbols.unknown)

    @property
    def fingerprint(self) -> str:
        return self.symbols.fingerprint

    def save(self, path: Path) -> None:
        self.symbols.save(path)

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        raise DataError(f"a model can only write {self.noun}, not read them")
