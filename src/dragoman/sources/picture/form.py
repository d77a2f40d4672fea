"""Pictures as a source: the settings, and the form. A raw example is the path of a file, or a place
in an IDX file, ``train-images-idx3-ubyte.gz#17`` (counted from 0), or in a ZIP file,
``photos.zip#cat/1.png``. Its rows are square patches, from left to right and from top to bottom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from dragoman.base.errors import DataError
from dragoman.sources.picture.idx import Bytes, is_place, picture_at
from dragoman.sources.picture.picture_file import library, picture_size, pixels_of
from dragoman.sources.shared.files import File, file_of
from dragoman.sources.shared.rows import (
    MOST_CELLS,
    Cells,
    Extent,
    FrontEndKind,
    Rows,
    RowsForm,
    RowsSource,
    check_count,
)

_TOGETHER = 64 << 20
"""The most bytes of pictures that are encoded together."""


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


@dataclass(frozen=True)
class PatchCells(Cells):
    """The cells of a picture are its patches."""

    channels: int

    @property
    def count_read(self) -> int:
        return min(self.count, self.read)

    def without(self, values: Rows, hidden: Sequence[int]) -> Rows:
        copy = values.copy()
        by_channel = values.reshape(-1, self.channels).mean(axis=0).round()
        shown = [cell for cell in hidden if cell < self.read]
        copy[shown] = np.tile(by_channel, values.shape[1] // self.channels)
        return copy

    def row_of(self, cell: int, rows: int) -> int:
        return cell

    def spread(self, rows: int) -> tuple[int, int]:
        return self.rows, self.columns


class PictureFilesForm(RowsForm):
    """A form whose raw examples are files of pictures, and whose rows are bytes."""

    row_type = "uint8"

    def check_library(self) -> None:
        library()

    def extent(self, file: File) -> Extent:
        return Extent(0.0, *picture_size(file))


class PicturesForm(PictureFilesForm):
    """The form of patches of pictures."""

    settings: PictureSource

    def __init__(self, settings: PictureSource) -> None:
        self.settings = settings
        size = settings.height * settings.width * settings.channels
        self.encoded_together = max(1, min(4096, _TOGETHER // size))

    def rows(self, raw: str) -> Rows:
        settings = self.settings
        check_count(raw, settings.patches, "patches")
        if not is_place(raw):
            library()
            pixels = pixels_of(file_of(raw), settings.height, settings.width, settings.channels)
            return patches_of(pixels, settings.patch)
        pixels = picture_at(raw)
        wanted = (settings.height, settings.width, settings.channels)
        if pixels.shape != wanted:
            is_, are = (" x ".join(map(str, shape)) for shape in (pixels.shape, wanted))
            raise DataError(
                f"{raw} is {is_} (height, width, channels), but the model reads {are} "
                "(source.height, source.width, source.channels)"
            )
        return patches_of(pixels, settings.patch)

    def in_turns(self, file: File, most: int | None = None) -> Iterator[Rows | None]:
        settings = self.settings
        check_count(str(file), settings.patches, "patches", most)
        pixels = pixels_of(file, settings.height, settings.width, settings.channels)
        yield patches_of(pixels, settings.patch)

    def picture(self, rows: Rows) -> Bytes:
        """Return the picture at the size that is read."""
        settings = self.settings
        return pixels_from(rows, settings.height, settings.width, settings.patch)

    def cells(self, read: int) -> PatchCells | None:
        if self.settings.patches > MOST_CELLS:
            return None
        return PatchCells(*self.settings.grid, read, self.settings.channels)

    def row_labels(self, values: Sequence[int] | Rows, count: int) -> list[str]:
        """Return row and column of each patch, from 1, as words, preceded by ``class`` if the
        model has a class token."""
        across = self.settings.grid[1]
        patches = [f"▁{n // across + 1},{n % across + 1}" for n in range(len(values))]
        return ["▁class"] * (count - len(values)) + patches


def patches_of(pixels: Bytes, patch: int) -> Bytes:
    """Cut (H, W, C) into (H / p x W / p, p x p x C)."""
    height, width, channels = pixels.shape
    grid = pixels.reshape(height // patch, patch, width // patch, patch, channels)
    return np.ascontiguousarray(grid.swapaxes(1, 2)).reshape(-1, patch * patch * channels)


def pixels_from(patches: Bytes, height: int, width: int, patch: int) -> Bytes:
    """Undo ``patches_of``; missing patches at the end are black."""
    across, down = width // patch, height // patch
    channels = patches.shape[1] // (patch * patch)
    whole = np.zeros((across * down, patches.shape[1]), np.uint8)
    whole[: len(patches)] = patches
    grid = whole.reshape(down, across, patch, patch, channels)
    return grid.swapaxes(1, 2).reshape(height, width, channels)
