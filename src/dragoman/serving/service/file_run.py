"""A run that reads pictures or recordings, whatever it says of them.

A file is opened, which tells how much it holds, and decoded, both in turns beside the event loop.
What holds much is decoded in a thread of its own, in as many places as it costs, so that small
files never wait for it.

The API tells what the run reads of a file as a picture, with the cells that can be hidden, and
where the run looked while it wrote.

Shapes: S rows of the encoder, N tokens that were written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.engine.engine import Engine
from dragoman.pictures.bitmaps import png_base64
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.messages import Message
from dragoman.serving.http.refusals import (
    Refusal,
    body_too_large,
    invalid_request,
    missing_field,
    too_many_pixels,
    too_much_sound,
    wrong_field,
)
from dragoman.serving.http.uploads import Upload, WithFiles, readable, too_many_files
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.cost import LOOKING, PIXELS_OF_A_PLACE, SECONDS_OF_A_PLACE
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.served_run import AskedRun, Asks
from dragoman.sources.shared.files import InMemory
from dragoman.sources.shared.rows_form import MOST_CELLS, Cells, Extent, Rows, RowsForm

MOST_LOOKED = 1_024
"""Rows that are read, and tokens that are written, of what is looked into: weights are kept of each
pair of them."""


class SeenFile(Message):
    """What a model reads of a file, drawn."""

    width: int
    height: int
    png: str
    """The picture in base64."""


class LookedToken(Message):
    """A token that was written."""

    text: str
    looked: list[float]
    """The share of the attention of the last layer that each row of the encoder gets."""


def drawn(form: RowsForm, rows: Rows) -> dict[str, Any]:
    """What is read, as the fields of a ``SeenFile``."""
    pixels = form.picture(rows)
    return {"width": pixels.shape[1], "height": pixels.shape[0], "png": png_base64(pixels)}


def looked(engine: Engine, rows: Rows, tokens: Sequence[int]) -> NDArray[np.float32] | None:
    """(N, S) the shares of the attention of the last layer, the mean of its heads, while each token
    was written; None of a model that attends to nothing, and of what is too long."""
    read = engine.network.memory_length(len(rows))
    if max(read, len(tokens)) > MOST_LOOKED or not engine.network.attentions_of("cross"):
        return None
    shares: NDArray[np.float32] = engine.attention.record(rows, tokens).cross[-1].mean(axis=0)
    return shares[: len(tokens)]


def looked_tokens(names: Sequence[str], shares: NDArray[np.float32] | None) -> list[LookedToken]:
    """Each token with its share of each row, as the API tells it."""
    each = [[]] * len(names) if shares is None else shares.tolist()
    return [LookedToken(text=name, looked=told(row)) for name, row in zip(names, each, strict=True)]


def told(shares: Sequence[float]) -> list[float]:
    """Shares with as many digits as a picture of them needs."""
    return [float(f"{share:.3g}") for share in shares]


class Grid(Message):
    """How what is seen is divided into cells that can be hidden: a picture into its patches, sound
    into stretches of time and four ranges of bands, the highest at the top."""

    rows: int
    columns: int


def grid_of(form: RowsForm, count: int) -> Grid | None:
    """The cells of a file of which so many rows are read; None where none could be hidden."""
    cells = form.cells(count)
    return None if cells is None else Grid(rows=cells.rows, columns=cells.columns)


def hidden_cells(told: str) -> tuple[int, ...]:
    """The numbers of cells, separated by commas. Raises Refusal 400."""
    parts = [part.strip() for part in told.split(",")] if told.strip() else []
    if len(parts) > MOST_CELLS or not all(
        part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts
    ):
        raise _bad_cells("numbers of cells, from 0, separated by commas, such as 3,7")
    return tuple(sorted({int(part) for part in parts}))


def without(form: RowsForm, rows: Rows, cells: Sequence[int], longest: int) -> Rows:
    """The rows, of which ``longest`` are read, with some cells hidden. Raises Refusal 400 for a
    cell that there is not."""
    if not cells:
        return rows
    grid = form.cells(min(len(rows), longest))
    if grid is None:
        raise _bad_cells("nothing: this run reads its files in no cells")
    if cells[-1] >= grid.count:
        raise _bad_cells(
            f"numbers from 0 to {grid.count - 1}, since this file has {grid.count} cells"
        )
    return grid.without(rows, cells)


def row_of(cells: Cells, cell: int, rows: int) -> int:
    """Which of ``rows``, which a model makes of what it reads, stands for a cell. Raises Refusal
    400 for a cell that is not there, or that is behind what is read."""
    count = cells.count_read
    if cell >= count:
        raise _bad_cells(f"a number from 0 to {count - 1}, since {count} cells are read", "at")
    return cells.row_of(cell, rows)


def _bad_cells(wanted: str, field: str = "hidden") -> Refusal:
    return invalid_request(field, f"{field} takes {wanted}")


@dataclass(frozen=True)
class OpenedFile:
    """A file whose header was read."""

    file: InMemory
    extent: Extent


class SearchedFiles(Protocol):
    """A request whose files are searched for outputs."""

    beam: int | None
    seen: bool

    @property
    def uploads(self) -> list[Upload]: ...


class FileRun(AskedRun[Asks]):
    """A run that reads files and is served."""

    looked_into = False
    takes_files = True
    sent: ClassVar[type[WithFiles]]
    has_figures = False
    kinds: ClassVar[tuple[str, str]] = ("files", "large files")
    """What its work is called where it is too much: with files that hold little, and others."""

    def __init__(self, name: str, predictor: Asks, settings: ServeSettings) -> None:
        """Errors: ``DataError`` where what decodes its files is missing."""
        form = RowsForm.of(predictor.engine.source)
        form.check_library()
        super().__init__(name, predictor, settings)
        self.form, self.reads, self.reads_as = form, form.settings.raws, form.settings.takes
        self.opening, self._decoding = map(self.executor, self.kinds)
        """Where files are opened, and decoded where they hold little; and where others are."""

    @staticmethod
    def examples(run: Run) -> list[str]:
        """None: what it was measured on are files of the machine that it was trained on."""
        return []

    def search_settings(self, beam: int | None) -> SearchSettings:
        """How files are searched. Raises Refusal 400."""
        chosen = self.beam_search(beam, None).model_copy(update={"n_best": 1})
        self.check_search(chosen)
        return chosen

    async def searched(
        self, request: SearchedFiles, client: str, most: int | None = None
    ) -> tuple[list[OpenedFile], list[Rows], list[list[Hypothesis]]]:
        """The files of a request, their rows, of which each has ``most`` at most, and the n best of
        each. Raises Refusal 400."""
        self.check_files(request.uploads, self.settings.limits.items)
        if request.seen and len(request.uploads) > 1:
            raise wrong_field("seen", "it is told of one picture: send one at a time")
        settings = self.search_settings(request.beam)
        files = await self.opening.all(client, self.opened(request.uploads))
        rows = await self.decoded(files, client, most)
        wanted = [
            self.engine.request(values, settings, raw=one.file.called)
            for one, values in zip(files, rows, strict=True)
        ]
        self.check_searches(wanted)
        if request.seen:  # it costs as much again to tell where the run looked
            count = len(rows[0]) + wanted[0].limit
            much = f"{count:,} rows and tokens"
            self.check_cost(count * LOOKING, "look", much, "Leave seen out.")
        return files, rows, await self.queue.search(wanted, client)

    def check_files(self, uploads: Sequence[Upload], most: int) -> None:
        """Raises Refusal 400 for no file, and for too many."""
        if not uploads:
            raise missing_field("file")
        if len(uploads) > most:
            raise too_many_files(len(uploads), most)

    def opened(
        self, uploads: Sequence[Upload], most_bytes: int | None = None
    ) -> Iterator[OpenedFile]:
        """Each file with how much it holds. Raises Refusal 400 for one that cannot be read, and as
        soon as they hold too much together, or have more than ``most_bytes``."""
        limits = self.settings.limits
        most = most_bytes or limits.upload_bytes
        seconds, pixels, count = 0.0, 0, 0
        for upload in uploads:
            file = upload.read()
            count += len(file.data)
            if count > most:
                raise body_too_large(most)
            with readable(file):
                extent = self.form.extent(file)
            seconds += extent.seconds
            pixels += extent.pixels
            if seconds > limits.sound_seconds:
                raise too_much_sound(seconds, limits.sound_seconds)
            if pixels > limits.pixels:
                raise too_many_pixels(pixels, limits.pixels)
            yield OpenedFile(file, extent)

    def most_rows(self, longest: int) -> int:
        """Of one file, of which ``longest`` are read."""
        return self.form.settings.most_rows(longest, self.settings.limits.sound_seconds)

    def for_size(self, seconds: float, pixels: int = 0) -> tuple[FairExecutor, int]:
        """Where so much is decoded, and how many places that takes."""
        places = 1 + int(seconds // SECONDS_OF_A_PLACE) + pixels // PIXELS_OF_A_PLACE
        return self.opening if places == 1 else self._decoding, places

    async def decoded(
        self, files: Sequence[OpenedFile], client: str, most: int | None = None
    ) -> list[Rows]:
        """The rows of some files. Raises Refusal 400 for one that cannot be read, or has more than
        ``most``."""

        def rows() -> Iterator[Rows | None]:
            for one in files:
                with readable(one.file):
                    yield from self.form.in_turns(one.file, most)

        extents = [one.extent for one in files]
        seconds = sum(one.seconds for one in extents)
        executor, places = self.for_size(seconds, sum(one.pixels for one in extents))
        found = await executor.all(client, rows(), places)
        return [one for one in found if one is not None]
