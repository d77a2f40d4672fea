"""What the settings of all sources share. They stand in the section ``source`` of a recipe.

The settings of a source that is no text also describe the model's front end, which makes rows of
the model's width of the source's rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Self

from dragoman.settings import Settings

if TYPE_CHECKING:
    from dragoman.sources.shared.front_end import FrontEnd


class SourceSettings(Settings):
    """What is read."""

    kind: str
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""

    @classmethod
    def of(cls, source: SourceSettings) -> Self:
        """``source`` itself, which is known to be of this class: for whoever needs more of it than
        each source has."""
        assert isinstance(source, cls)
        return source

    is_text: ClassVar[bool] = False
    units: ClassVar[str] = "rows"
    """What is counted of it."""


class RowsSource(SourceSettings):
    """Rows of numbers."""

    noun_of_row: ClassVar[str] = "row"
    """What one of its rows is called."""
    raws: ClassVar[str] = "files"
    """What its examples are called, several of them."""
    hub_tags: ClassVar[Mapping[bool, str]] = {}
    """What model hubs call a model that writes, and one that labels."""
    of_front_end: ClassVar[frozenset[str]] = frozenset()
    """The settings of the model's front end alone: rows are the same whatever they are."""

    @property
    @abstractmethod
    def row_width(self) -> int:
        """F, the numbers of a row."""

    @abstractmethod
    def front_end(self, width: int) -> FrontEnd:
        """What makes rows of a model's width of its rows, with fresh weights from torch's
        generator."""

    @property
    def shortens(self) -> int:
        """How many rows the front end makes one of."""
        return 1
