"""The settings of lines of text in pictures as a source, and of the program that draws them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings import Settings
from dragoman.sources.shared.settings import FrontEndKind, RowsSource


class DrawingSettings(Settings):
    """The drawing of texts of a corpus with ``holds = "drawn"``. Each text is drawn the same way
    each time; the properties that vary from text to text are drawn at random, between these
    limits."""

    fonts: tuple[str, ...] = ("",)
    """The fonts, as files (.ttf, .otf) or as names that the system knows. An empty name stands for
    the font that comes with Pillow, which has Latin letters alone."""
    smallest: float = Field(0.6, ge=0.2, le=1)
    """The smallest size of the letters, as a share of ``source.height``."""
    largest: float = Field(0.85, ge=0.2, le=1)
    """The largest size of the letters."""
    slant: float = Field(0.2, ge=0, le=1)
    """The largest slant, to the right or to the left, as a share of the height."""
    blur: float = Field(0.5, ge=0, le=10)
    """The largest radius of a Gaussian blur, in pixels."""
    speckle: float = Field(0.0, ge=0, le=0.5)
    """The largest share of pixels that become black or white."""
    seed: int = Field(1, ge=0, lt=2**63)
    """The seed of what is drawn at random."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.fonts:
            raise ValueError('fonts is empty. Set fonts = [""] for Pillow\'s own font')
        if self.smallest > self.largest:
            raise ValueError("largest is smaller than smallest. Set both")
        return self


LINE = 4_096
"""At least this many columns of a line are read, even if the training had shorter ones."""


class LineSource(RowsSource):
    """Pictures of one line of text, as columns of pixels from left to right (Salesky et al., 2021,
    "Robust Open-Vocabulary Translation from Visual Text Representations")."""

    kind: Literal["line"] = "line"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""
    height: int = Field(24, ge=8, le=256)
    """The height to which a picture is scaled, in pixels. Its width follows."""
    subsample: Literal[2, 4, 8] = 8
    """The number of columns that are combined into one row of the model, by one convolution for
    each factor of two."""
    channels: int = Field(32, ge=1, le=1_024)
    """The number of channels of these convolutions."""
    drawing: DrawingSettings = DrawingSettings()

    units: ClassVar[str] = "columns"
    noun_of_row: ClassVar[str] = "column"
    raws: ClassVar[str] = "pictures"
    draws: ClassVar[bool] = True
    allows_ctc: ClassVar[bool] = True
    of_front_end: ClassVar[frozenset[str]] = frozenset({"subsample", "channels"})

    @property
    def row_width(self) -> int:
        return self.height

    def tells(self, source: str, target: str) -> bool:
        return source == target

    @property
    def takes(self) -> Mapping[str, int]:
        return {"height": self.height, "channels": 1}  # of any width

    def most_rows(self, longest: int, seconds: float) -> int:
        """Return at least ``LINE``; columns beyond the longest are ignored."""
        return max(LINE, longest)

    @property
    def shortens(self) -> int:
        return self.subsample

    @property
    def front_end(self) -> FrontEndKind:
        """The front end of frames, over columns of bytes from paper (0) to ink (255)."""
        sizes = {"channels": self.channels, "subsample": self.subsample, "scale": 2 / 255}
        return FrontEndKind("frames", {"row_width": self.height, **sizes})
