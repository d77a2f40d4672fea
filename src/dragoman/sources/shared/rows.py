"""The base classes of the settings of a source of any kind, and of the form of a source that is
rows of numbers.

The settings are the section ``source`` of a recipe. Those of text are empty, because its other
settings belong to its vocabulary. Those of a source that is rows of numbers also describe the
model's front end, which makes rows of the model's width from the source's rows.

In the form of rows, a raw example names a file, whose content becomes rows (T, F). They have no end
symbol, and no model writes them.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from dragoman.base.errors import DataError
from dragoman.base.settings import Settings
from dragoman.base.task import Task
from dragoman.forms.form import Form, Passage, Piece, Values
from dragoman.sources.shared.files import File

Rows = npt.NDArray[Any]
"""(T, F) in the form's own type."""

MOST_ROWS = 1_000_000
"""The most rows of a source: nearly three hours of sound in frames of 10 ms."""
_VERSION = 1
"""The version of the computation; stores of another version are made again."""
AnyTask = TypeVar("AnyTask", bound=Task)


class SourceSettings(Settings):
    """The kind of input that the model reads."""

    kind: str
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""

    @classmethod
    def of(cls, source: SourceSettings | None) -> Self:
        """Return ``source`` itself, which must be of this class, for callers that need its own
        attributes."""
        assert isinstance(source, cls)
        return source

    sections: ClassVar[frozenset[str]] = frozenset({"source"})
    """The sections that the source adds to a written recipe."""
    units: ClassVar[str] = "rows"
    """The units in which the input is counted."""
    raws: ClassVar[str] = "files"
    """The name of its raw examples, in the plural."""
    to_measure: ClassVar[str] = (
        "{noun} with the right answers, in a folder or a list as for training: dragoman "
        "evaluate {run} test.tsv"
    )
    """The advice for measuring a run, with ``noun`` and ``run``."""
    listed_as: ClassVar[str | None] = None
    """The format of a corpus that lists its files in named columns, or None."""
    without_groups: ClassVar[str] = ""
    """The warning for a corpus without groups."""
    varied_by: ClassVar[frozenset[str]] = frozenset()
    """The settings that vary its examples in training, or make more of them."""
    allows_ctc: ClassVar[bool] = False
    """True if its rows follow the output from begin to end, as CTC requires."""
    drawn_for: ClassVar[frozenset[bool]] = frozenset()
    """The models of files that have figures: True for those that write, False for others."""

    @property
    def shortens(self) -> int:
        """The number of source rows that the front end turns into one."""
        return 1

    @property
    def patches(self) -> int:
        """The number of patches of an example; 0 if it has none."""
        return 0

    @property
    def has_bands(self) -> bool:
        """True if the numbers of a row are bands of a spectrum."""
        return False

    @property
    def way(self) -> str:
        """The source and how it is read, for messages."""
        return self.units

    def of_task(self, task: AnyTask) -> AnyTask:
        """Return the task with this source."""
        return task

    def holds(self, with_texts: bool) -> str:
        """Return the content of a list of examples (``CorpusSettings.holds``). ``with_texts``: a
        file of texts is given with it."""
        return "text"

    def size_told(self, tokens: str) -> str:
        """Return the size of the input for reports; ``tokens`` describes a vocabulary."""
        return tokens

    @abstractmethod
    def check_corpus(self, name: str, holds: str, *, names_files: bool) -> None:
        """Raise ``ValueError`` for a corpus that this source cannot be read from. ``holds``: as
        in ``CorpusSettings``."""

    def tells(self, source: str, target: str) -> bool:
        """Return True if the source determines each word of its text in the language ``target``;
        ``source`` is its own language."""
        return False


class TextSource(SourceSettings):
    """Text, as tokens of a vocabulary."""

    kind: Literal["text"] = "text"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""

    sections: ClassVar[frozenset[str]] = frozenset()
    units: ClassVar[str] = "tokens"
    raws: ClassVar[str] = "texts"
    to_measure: ClassVar[str] = "two files: dragoman evaluate {run} test.source test.reference"

    def check_corpus(self, name: str, holds: str, *, names_files: bool) -> None:
        if names_files:
            raise ValueError(
                f"{name} names files, but the model reads text. Set source.kind to frames "
                "(recordings), picture or line"
            )


class FrontEndKind(NamedTuple):
    """The front end that reads rows: its name, and its sizes as ``models/front_ends.py`` has
    them."""

    name: Literal["frames", "patches", "stem"]
    sizes: Mapping[str, Any]


class RowsSource(SourceSettings):
    """A source whose examples are rows of numbers."""

    noun_of_row: ClassVar[str] = "row"
    """The name of a row in messages."""
    draws: ClassVar[bool] = False
    """True if the program can draw its files from their texts."""
    hub_tags: ClassVar[Mapping[bool, str]] = {True: "image-to-text", False: "image-classification"}
    """The tags on model hubs for a model that writes, and for one that labels."""
    of_front_end: ClassVar[frozenset[str]] = frozenset()
    """The settings that only affect the model's front end, not the rows."""

    @property
    @abstractmethod
    def row_width(self) -> int:
        """F, the number of values in a row."""

    @property
    @abstractmethod
    def front_end(self) -> FrontEndKind:
        """The front end of a model that reads these rows."""

    @property
    @abstractmethod
    def takes(self) -> Mapping[str, int]:
        """The properties of files as a server reports them: the sample rate (rate), or the
        pixels and colours of a picture (height, width, channels)."""

    @property
    def way(self) -> str:
        ways = self.model_dump(exclude={"kind", *self.of_front_end}).items()
        return f"{self.units} ({', '.join(f'{key} = {value}' for key, value in ways)})"

    def of_task(self, task: AnyTask) -> AnyTask:
        return replace(
            task,
            texts=tuple(side for side in task.texts if side != "source"),
            noun=self.raws,
            counted=task.counted if task.writes else self.raws,
            verbs=tuple((verb, "FILES") for verb, _ in task.verbs),
            hub_tag=self.hub_tags[task.writes],
        )

    def holds(self, with_texts: bool) -> str:
        return "drawn" if self.draws and with_texts else "files"

    def size_told(self, tokens: str) -> str:
        return f"{self.row_width} numbers a {self.noun_of_row}"

    def check_corpus(self, name: str, holds: str, *, names_files: bool) -> None:
        if holds == "drawn" and not self.draws:
            raise ValueError(
                f'{name} contains text to be drawn line by line, but source.kind = "{self.kind}" '
                'does not read pictures of lines: set source.kind = "line"'
            )
        if not names_files:
            raise ValueError(
                f'{name} contains texts, but source.kind = "{self.kind}" reads files: set format '
                "= folders or idx, or holds = files for a list of files"
            )

    def most_rows(self, longest: int, seconds: float) -> int:
        """Return the most rows of one file to read, if a model reads ``longest`` and a header
        allows ``seconds``."""
        return longest


@dataclass(frozen=True)
class Extent:
    """The amount of data in a file, from its header."""

    seconds: float = 0.0
    """The length of a sound in seconds."""
    height: int = 0
    """The height of a picture in pixels, in the camera's orientation."""
    width: int = 0

    @property
    def pixels(self) -> int:
        return self.height * self.width


MOST_CELLS = 1_024
"""The most cells of a file."""


@dataclass(frozen=True)
class Cells(ABC):
    """The parts of a file that can be hidden, in a grid, numbered row by row from the top. A
    hidden cell gets the mean of its surroundings (Zeiler and Fergus, 2014, section 4.2), so this
    works for every kind of model; the change in the output shows the effect of the cell."""

    rows: int
    columns: int
    read: int
    """The number of rows of the form that the model reads."""

    @property
    def count(self) -> int:
        """The number of cells of the whole file."""
        return self.rows * self.columns

    @property
    def count_read(self) -> int:
        """The number of cells that the model reads."""
        return self.count

    @abstractmethod
    def without(self, values: Rows, hidden: Sequence[int]) -> Rows:
        """Return a copy of the rows of the file with some cells hidden."""

    @abstractmethod
    def row_of(self, cell: int, rows: int) -> int:
        """Return which of the model's ``rows`` corresponds to a cell."""

    @abstractmethod
    def spread(self, rows: int) -> tuple[int, int]:
        """Return the grid in which this many rows of a model are displayed: from top to bottom,
        and from left to right."""


class RowsForm(Form):
    """The form of rows of numbers, which are read and never written."""

    spaced = False
    units = "rows"
    settings: RowsSource
    encoded_together = 8

    @property
    def width(self) -> int:
        return self.settings.row_width

    @abstractmethod
    def rows(self, raw: str) -> Rows:
        """Return the (T, F) rows of one file. Errors: ``DataError`` for an unusable file."""

    @abstractmethod
    def check_library(self) -> None:
        """Raise ``DataError`` if the library that decodes files is not installed."""

    @abstractmethod
    def extent(self, file: File) -> Extent:
        """Return how much there is to decode in a file. Errors: ``DataError`` for a file that
        cannot be used."""

    @abstractmethod
    def in_turns(self, file: File, most: int | None = None) -> Iterator[Rows | None]:
        """Yield None after each step of reading a file, and finally its rows. Errors:
        ``DataError`` as ``rows``, also for more rows than ``most``."""

    @abstractmethod
    def picture(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """Return (H, W, C) pixels that show what the model reads."""

    def cells(self, read: int) -> Cells | None:
        """Return the cells of a file with this many read rows; None if none can be hidden."""
        return None

    def beginning(self, raw: str, values: int) -> str:
        """Return the whole raw example, which is the name of a file."""
        return raw

    def far_too_long(self, raw: str, values: int) -> bool:
        return False

    def arrays(self, given: Sequence[Sequence[int] | Values]) -> list[Values]:
        return [np.asarray(rows) for rows in given]

    def encode(self, raws: Sequence[str]) -> list[Rows]:
        return [self.rows(raw) for raw in raws]

    def read(self, raws: Sequence[str]) -> list[Rows]:
        return self.encode(raws)

    def check(self, raws: Iterable[str]) -> None:
        for raw in raws:
            self.rows(raw)

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the settings that rows depend on."""
        key = f"{_VERSION} {self.settings.model_dump_json(exclude=set(self.settings.of_front_end))}"
        return hashlib.sha256(key.encode()).hexdigest()

    def save(self, path: Path) -> None:
        """The recipe contains everything, so nothing is saved."""

    def cut(self, raws: Sequence[str], into: Form, *, longest: int, whole: bool) -> list[Passage]:
        return [Passage("", (Piece(raw, "", self.rows(raw)),)) for raw in raws]

    def longest_output(self, length: int, extra: int) -> int:
        """Return the number of rows in the model, plus ``extra``."""
        return -(-length // self.settings.shortens) + extra

    # ---- methods that only tokens need

    size = 0

    @property
    def end(self) -> None:
        return None

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        raise NotImplementedError("rows are not tokens")

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        raise NotImplementedError("rows are not written")

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        raise NotImplementedError("rows are not tokens")


def input_of(source: Form) -> int | RowsSource:
    """Return the input that a model for this source is made for: the number of tokens, or the
    settings of rows."""
    return source.settings if isinstance(source, RowsForm) else source.size


def check_count(raw: str, rows: int, noun: str, most: int | None = None) -> None:
    """Raise ``DataError`` for a source of more rows than ``MOST_ROWS``, or than ``most``."""
    most = MOST_ROWS if most is None else most
    if rows > most:
        raise DataError(f"{raw} has {rows:,} {noun}; at most {most:,} are allowed. Split it")


def low(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float16]:
    """Return rows as they are stored: in half of the memory, to three digits."""
    limit = np.finfo(np.float16).max
    return np.clip(rows, -limit, limit).astype(np.float16)
