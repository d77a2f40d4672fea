"""The form of pictures: a raw example is the path of a file, or a place in an IDX file,
``train-images-idx3-ubyte.gz#17`` (counted from 0), or in a ZIP file, ``photos.zip#cat/1.png``.
Its rows are square patches, from left to right and from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.base.errors import DataError
from dragoman.sources.picture.idx import Bytes, is_place, picture_at
from dragoman.sources.picture.picture_file import library, picture_size, pixels_of
from dragoman.sources.picture.settings import PictureSource
from dragoman.sources.shared.files import File, file_of
from dragoman.sources.shared.rows_form import MOST_CELLS, Cells, Extent, Rows, RowsForm, check_count

_TOGETHER = 64 << 20
"""The most bytes of pictures that are encoded together."""


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
