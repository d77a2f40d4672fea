"""The settings of pictures as a source: their patches, and the model's front end for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from dragoman.sources.shared.settings import FrontEndKind, RowsSource


class PictureSource(RowsSource):
    """Pictures of one size, cut into square patches, row by row."""

    kind: Literal["picture"] = "picture"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""
    height: int = Field(28, ge=1, le=4_096)
    """The height of a picture, in pixels."""
    width: int = Field(28, ge=1, le=4_096)
    """The width of a picture, in pixels."""
    channels: Literal[1, 3] = 1
    """The number of colour channels: 1 for grey, 3 for colour."""
    patch: int = Field(4, ge=1, le=1_024)
    """The side length of a patch, in pixels."""
    stem: Literal["linear", "convolutions"] = "linear"
    """The conversion of a patch into a row of the model. linear: one linear map of its pixels
    (Vision Transformer); convolutions: one 3 x 3 convolution for each factor of two in the side
    length of the patch, which also sees pixels above and to the left of it (Xiao et al., 2021).
    Such a model learns faster."""
    stem_channels: int = Field(32, ge=1, le=1_024)
    """The number of channels of these convolutions."""

    of_front_end: ClassVar[frozenset[str]] = frozenset({"stem", "stem_channels"})
    units: ClassVar[str] = "patches"
    noun_of_row: ClassVar[str] = "patch"
    raws: ClassVar[str] = "pictures"
    varied_by: ClassVar[frozenset[str]] = frozenset({"picture_augment"})
    drawn_for: ClassVar[frozenset[bool]] = frozenset({False})

    @property
    def row_width(self) -> int:
        return self.patch * self.patch * self.channels

    @property
    def takes(self) -> Mapping[str, int]:
        return {"height": self.height, "width": self.width, "channels": self.channels}

    @property
    def patches(self) -> int:
        down, across = self.grid
        return down * across

    @property
    def grid(self) -> tuple[int, int]:
        """The number of patches from top to bottom, and from left to right."""
        return self.height // self.patch, self.width // self.patch

    @property
    def front_end(self) -> FrontEndKind:
        if self.stem == "linear":
            return FrontEndKind("patches", {"row_width": self.row_width, "across": self.grid[1]})
        sizes = {"side": self.patch, "colours": self.channels, "channels": self.stem_channels}
        return FrontEndKind("stem", {"grid": self.grid, **sizes})

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.height % self.patch or self.width % self.patch:
            raise ValueError(
                f"a picture of {self.height} x {self.width} pixels cannot be cut into patches of "
                f"{self.patch} x {self.patch}. Set patch to a number that divides both"
            )
        if self.stem == "convolutions" and self.patch not in (2, 4, 8, 16, 32):
            raise ValueError(
                'stem = "convolutions" works only with patches of 2, 4, 8, 16 or 32 pixels, not '
                f"{self.patch}. Set patch"
            )
        return self
