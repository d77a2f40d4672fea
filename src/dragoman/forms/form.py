"""The contract of a form: a kind of sequence, between what people have and what a model reads.

Raw examples (lines of text, names of files) become *values* (tokens, or rows of numbers) and
symbols of a model's output become raw again. A form knows its special symbols, how a long input is
cut, how long an output may become for an input of its kind, and how its values are shown to a
person.

A form that a model writes and never reads has symbols of its own, as those of trees and boxes.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dragoman.base.atomic import write_text
from dragoman.base.errors import DataError
from dragoman.forms.passage import Passage
from dragoman.forms.subwords.text import Text

Booleans = npt.NDArray[np.bool_]


class Pair(NamedTuple):
    """One example as it stands in a corpus: a sentence and its translation or its tree. The source
    of a text that stands alone is empty; where a corpus names files, it is the path of one."""

    line: int
    """Line in the file, from 1."""
    source: str
    target: str
    whole: str = ""
    """Of a section of a text that stands alone: what names the text, the same for all of its
    sections and for copies of it."""
    group: str = ""
    """What stays on one side of a split together: a speaker, a document; of a file without one,
    what it holds."""


class Rules(ABC):
    """What the output of one search must obey, whatever the model would rather write.

    A form whose outputs have a shape (a tree over these words) gives such rules for each source. A
    search asks them, for every hypothesis and before every token, what may follow. They see the
    tokens so far and nothing else, so hypotheses may be reordered, dropped and repeated as a beam
    does.

    Shapes: N hypotheses of one search, all of L tokens, V vocabulary.
    """

    @property
    @abstractmethod
    def longest(self) -> int:
        """The most tokens of an output, the end symbol not counted. Whatever is chosen among what
        is allowed, an output is whole by then."""

    @abstractmethod
    def allowed(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        """(N, V), of hypotheses ``tokens`` (N, L) that were allowed so far: True for what may
        follow, always one token at least."""


_CHARACTERS = 1000
"""Of a text for each token that is read: no token writes so many."""

Values = npt.NDArray[Any]
"""(length,) int32 tokens, or (length, F) rows of the form's own type."""


class Form(ABC):
    """One side of a model: what it reads, or what it writes."""

    vocabulary: Text | None = None
    """Of its tokens, where they are text."""
    reads = True
    """Whether what is given is read; a side that is not there passes over it."""
    language = "und"
    """BCP 47 code of its language, where it has one."""
    spaced = True
    """Whether spaces stand between the words that people read of it."""
    has_links = False
    """Whether an output itself tells with which words of its source it goes."""
    units = "tokens"
    """What its values are called."""
    row_type = ""
    """numpy's name of the type in which rows are kept."""
    encoded_together = 4096
    """Examples that are encoded at once while a store is made: bounds its memory."""

    @classmethod
    def of(cls, form: Form) -> Self:
        """``form`` itself, which is known to be of this class: for whoever needs more of it than
        each form has."""
        assert isinstance(form, cls)
        return form

    @property
    def width(self) -> int | None:
        """F, the numbers of a row, of a source that is rows; None: values are tokens."""
        return None

    @property
    @abstractmethod
    def size(self) -> int:
        """V, the number of different tokens."""

    @property
    def bos(self) -> int:
        """The token with which an output begins; 0, which nothing looks at, where none does."""
        return 0

    @property
    def eos(self) -> int:
        """The token with which a source and an output end; 0, as ``bos``, where none does."""
        return 0

    @property
    def end(self) -> int | None:
        """The token behind a source; None: nothing stands there."""
        return self.eos

    @property
    def forbidden(self) -> tuple[int, ...]:
        """Tokens that no output may hold."""
        return ()

    def beginning(self, raw: str, values: int) -> str:
        """What is looked at of a raw example for its first ``values`` values; all of it, if it is
        not far longer. To cut a text into tokens takes some seventy bytes of memory for each of its
        characters, and a line may have a gigabyte."""
        return raw[: values * _CHARACTERS]

    def far_too_long(self, raw: str, values: int) -> bool:
        """Whether a raw example has more than so many values by its characters alone."""
        return len(raw) > values * _CHARACTERS

    @abstractmethod
    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """The tokens of each raw example, without special symbols."""

    def encode(self, raws: Sequence[str]) -> list[Values]:
        """The values of each raw example without special symbols: what a store keeps. Errors:
        ``DataError`` for a file that cannot be used, where raws name files."""
        return [np.array(tokens, np.int32) for tokens in self.tokens(raws)]

    def read(self, raws: Sequence[str]) -> list[Values]:
        """What a model reads of each raw example: ``encode`` with the end symbol behind."""
        return [np.array(values, np.int64) for values in self.values(raws)]

    def arrays(self, given: Sequence[Sequence[int] | Values]) -> list[Values]:
        """The values of some inputs, each as an array: parts of one, since to make one takes longer
        than to cut one."""
        every = np.array([token for values in given for token in values], np.int64)
        ends = np.cumsum([len(values) for values in given])
        return np.split(every, ends[:-1]) if given else []

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What all its tokens depend on, in hex: stores of them are found again by it."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write what was learned of it to one file. Raises FileError if that fails."""

    @abstractmethod
    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        """What people read of each output: ``tokens`` undone."""

    @abstractmethod
    def shown(self, tokens: Iterable[int]) -> list[str]:
        """Each token as it is shown to a person."""

    def row_labels(self, values: Sequence[int] | Values, count: int) -> list[str]:
        """How a source that was read is shown to a person, for each of the ``count`` rows that the
        model made of its ``values``."""
        return self.shown(values)

    def raw_for(self, source: str, tokens: Sequence[int]) -> str:
        """What people read of an output beside the raw source that it is for."""
        return self.raw([tokens])[0]

    def shown_for(self, source: str, tokens: Sequence[int]) -> list[str]:
        """Each of its tokens as it is shown there."""
        return self.shown(tokens)

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        """Each raw input in pieces that are read at once, to be written in another form.

        ``longest``: values of a piece. ``whole``: what could be read apart stays together unless
        it is too long.
        """
        raise NotImplementedError("this form is written, and not read")

    @abstractmethod
    def longest_output(self, length: int, extra: int) -> int:
        """The most tokens, the end symbol not counted, of an output for ``length`` values that are
        read, unless a search says otherwise. ``extra``: what it grants beyond that length."""

    def rules(self, raw: str, most: int | None = None) -> Rules | None:
        """What an output for a raw source must obey; None: nothing. ``most``: the tokens that the
        model can write. Errors: ``DataError`` for a source that there is no output for."""
        return None

    def tokens_of_words(self, raws: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """The tokens of each raw example, without special symbols, and for each the number of its
        word, from 0. Words are what stands between spaces, as it is given.

        Each word is cut by itself, as text is where no token goes across a space. A word of which
        nothing can be written has no tokens.
        """
        lossless = self.vocabulary is not None and self.vocabulary.settings.lossless
        lines = [raw.split() for raw in raws]
        cut = iter(
            self.tokens(
                # Without it a lossless vocabulary would take a word for the end of the one before.
                [" " * (lossless and n > 0) + word for line in lines for n, word in enumerate(line)]
            )
        )
        found = []
        for line in lines:
            words = [next(cut) for _ in line]
            numbers = [n for n, tokens in enumerate(words) for _ in tokens]
            found.append(([token for tokens in words for token in tokens], numbers))
        return found

    def check(self, raws: Iterable[str]) -> None:
        """Whether each raw example can be read. Errors: ``DataError`` for a file that cannot be
        used."""
        return  # a text can

    def values(self, raws: Sequence[str]) -> list[list[int]]:
        """What a model reads of each raw example: its tokens, the end symbol behind."""
        return [[*tokens, self.eos] for tokens in self.tokens(raws)]


SPECIAL = ("<unk>", "<s>", "</s>")
"""How symbols 0 to 2 are written, as in a vocabulary of text."""


class Symbols(ABC):
    """The symbols of such a form, as they are numbered and kept in one file."""

    unknown, bos, eos = range(3)

    @property
    @abstractmethod
    def size(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def _json(self) -> str:
        """What the file holds."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of all of it."""
        return hashlib.sha256(self._json.encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write them to one file. Raises FileError if that fails."""
        write_text(path, self._json + "\n")


class WrittenForm(Form):
    """What its symbols tell of it."""

    symbols: Symbols
    noun: str
    """What they are, for messages: trees."""

    @property
    def size(self) -> int:
        return self.symbols.size

    @property
    def bos(self) -> int:
        return self.symbols.bos

    @property
    def eos(self) -> int:
        return self.symbols.eos

    @property
    def forbidden(self) -> tuple[int, ...]:
        return self.symbols.bos, self.symbols.unknown

    @property
    def fingerprint(self) -> str:
        return self.symbols.fingerprint

    def save(self, path: Path) -> None:
        self.symbols.save(path)

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        raise DataError(f"{self.noun} are written, not read")
