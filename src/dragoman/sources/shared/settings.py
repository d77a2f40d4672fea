"""The settings that all sources share, which form the section ``source`` of a recipe; and those
of text, whose other settings belong to its vocabulary.

The settings of a source that is no text also describe the model's front end, which makes rows of
the model's width from the source's rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

from dragoman.base.settings import Settings
from dragoman.base.task import Task

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
