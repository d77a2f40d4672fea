"""The base class of served runs that read pictures or recordings, whatever they return.

First a file is opened to read its size, and then it is decoded, both in turns outside the event
loop. Large files are decoded in a separate thread, where they occupy more places the larger they
are, so that small files never wait for them.

On request, the API returns the input of the run as a picture, the grid of cells that can be hidden,
and the attention of the run to the input for each token of its output.

Shapes: S rows of the encoder, N tokens of the output.
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
from dragoman.serving.http.limits import LOOKING, PIXELS_OF_A_PLACE, SECONDS_OF_A_PLACE
from dragoman.serving.http.messages import Message
from dragoman.serving.http.refusals import Refusal, invalid_request, too_much_sound, wrong_field
from dragoman.serving.http.uploads import Upload, WithFiles, readable
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.served_run import AskedRun, Asks
from dragoman.sources.shared.files import InMemory
from dragoman.sources.shared.rows import MOST_CELLS, Cells, Extent, Rows, RowsForm

MOST_LOOKED = 1_024
"""The largest numbers of input rows and of output tokens for which the attention is returned: a
weight is kept for each pair of them."""


class SeenFile(Message):
    """The input of the model, drawn as a picture."""

    width: int
    """The width of the picture in pixels."""
    height: int
    """The height of the picture in pixels."""
    png: str
    """The picture as a PNG file in base64."""


class LookedToken(Message):
    """A token of the output and its attention."""

    text: str
    """The token as the vocabulary writes it."""
    looked: list[float]
    """The share of the last layer's attention that each row of the encoder received, from 0 to 1.
    Empty for a file or output of more than 1,024 rows or tokens, and for a model without
    cross-attention."""


def png_of(form: RowsForm, rows: Rows) -> dict[str, Any]:
    """Return the fields of a ``SeenFile`` for the rows of a file."""
    pixels = form.picture(rows)
    return {"width": pixels.shape[1], "height": pixels.shape[0], "png": png_base64(pixels)}


def attention(engine: Engine, rows: Rows, tokens: Sequence[int]) -> NDArray[np.float32] | None:
    """Return (N, S), the attention of each output token to the rows of the encoder: the mean over
    the heads of the last layer. Returns None for a model without cross-attention, and if the file
    or the output is too long."""
    read = engine.network.memory_length(len(rows))
    if max(read, len(tokens)) > MOST_LOOKED or not engine.network.attentions_of("cross"):
        return None
    shares: NDArray[np.float32] = engine.attention.record(rows, tokens).cross[-1].mean(axis=0)
    return shares[: len(tokens)]


def token_messages(names: Sequence[str], shares: NDArray[np.float32] | None) -> list[LookedToken]:
    """Return a message for each token, with its attention to each row."""
    each = [[]] * len(names) if shares is None else shares.tolist()
    return [LookedToken(text=name, looked=trim(row)) for name, row in zip(names, each, strict=True)]


def trim(shares: Sequence[float]) -> list[float]:
    """Round shares to three digits, which are enough to draw them."""
    return [float(f"{share:.3g}") for share in shares]


class Grid(Message):
    """The cells into which the input is divided, so that they can be hidden. For a picture, the
    patches. For sound, stretches of time in four ranges of bands, the highest in the first row."""

    rows: int
    """The number of rows of cells."""
    columns: int
    """The number of columns of cells."""


def grid_of(form: RowsForm, count: int) -> Grid | None:
    """Return the grid of cells of a file with ``count`` rows, or None if no cell can be hidden."""
    cells = form.cells(count)
    return None if cells is None else Grid(rows=cells.rows, columns=cells.columns)


def parse_cells(text: str) -> tuple[int, ...]:
    """Parse numbers of cells that are separated by commas. Raises Refusal 400 if the text is
    something else."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if len(parts) > MOST_CELLS or not all(
        part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts
    ):
        raise _bad_cells("numbers of cells, from 0, separated by commas, such as 3,7")
    return tuple(sorted({int(part) for part in parts}))


def without(form: RowsForm, rows: Rows, cells: Sequence[int], longest: int) -> Rows:
    """Return the rows with some cells hidden. ``longest``: the number of rows that the model reads.
    Raises Refusal 400 for a cell that does not exist."""
    if not cells:
        return rows
    grid = form.cells(min(len(rows), longest))
    if grid is None:
        raise _bad_cells("nothing, because this run does not read its files in cells")
    if cells[-1] >= grid.count:
        raise _bad_cells(
            f"numbers from 0 to {grid.count - 1}, since this file has {grid.count} cells"
        )
    return grid.without(rows, cells)


def row_of(cells: Cells, cell: int, rows: int) -> int:
    """Return the number of the model's row that belongs to a cell; the model has ``rows`` rows.
    Raises Refusal 400 for a cell that does not exist or that the model does not read."""
    count = cells.count_read
    if cell >= count:
        raise _bad_cells(f"a number from 0 to {count - 1}, since {count} cells are read", "at")
    return cells.row_of(cell, rows)


def _bad_cells(wanted: str, field: str = "hidden") -> Refusal:
    return invalid_request(field, f"{field} takes {wanted}")


@dataclass(frozen=True)
class OpenedFile:
    """A file of a request, with the size that its header states."""

    file: InMemory
    extent: Extent


class SearchedFiles(Protocol):
    """A request whose files are inputs of a search."""

    beam: int | None
    seen: bool

    @property
    def uploads(self) -> list[Upload]: ...


class FileRun(AskedRun[Asks]):
    """A served run that reads files."""

    looked_into = False
    takes_files = True
    sent: ClassVar[type[WithFiles]]
    has_figures = False
    kinds: ClassVar[tuple[str, str]] = ("files", "large files")
    """The names of its two threads in refusals: the one for small files, and the one for large
    files."""

    def __init__(self, name: str, predictor: Asks, settings: ServeSettings) -> None:
        """Make the served run. Errors: ``DataError`` if the library that decodes its files is
        missing."""
        form = RowsForm.of(predictor.engine.source)
        form.check_library()
        super().__init__(name, predictor, settings)
        self.form, self.reads, self.reads_as = form, form.settings.raws, form.settings.takes
        self.opening, self._decoding = map(self.executor, self.kinds)
        """The thread in which files are opened and small files decoded, and the thread for large
        files."""

    @staticmethod
    def examples(run: Run) -> list[str]:
        """Return the name of the file that the run keeps as an example, if it has one."""
        path = run.example()
        return [] if path is None else [path.name]

    def search_settings(self, beam: int | None) -> SearchSettings:
        """Return the settings of the search, for one output. Raises Refusal 400 if ``beam`` is too
        large."""
        chosen = self.beam_search(beam, None).model_copy(update={"n_best": 1})
        self.check_search(chosen)
        return chosen

    async def search_files(
        self, request: SearchedFiles, client: str, most: int | None = None
    ) -> tuple[list[OpenedFile], list[Rows], list[list[Hypothesis]]]:
        """Open, decode and search the files of a request. Returns the files, the rows of each, and
        the n-best list of each. ``most``: the largest number of rows of a file. Raises Refusal
        400."""
        self.check_files(request.uploads, self.settings.limits.items)
        if request.seen and len(request.uploads) > 1:
            raise wrong_field("seen", "true works with only one picture. Send one at a time")
        settings = self.search_settings(request.beam)
        files = await self.opening.all(client, self.open_files(request.uploads))
        rows = await self.decode_files(files, client, most)
        wanted = [
            self.engine.request(values, settings, raw=opened.file.called)
            for opened, values in zip(files, rows, strict=True)
        ]
        self.check_searches(wanted)
        if request.seen:  # to say where the run looked costs as much again
            count = len(rows[0]) + wanted[0].limit
            much = f"{count:,} rows and tokens"
            self.check_cost(count * LOOKING, "look", much, "Leave seen out.")
        return files, rows, await self.queue.search(wanted, client)

    def check_files(self, uploads: Sequence[Upload], most: int) -> None:
        """Check the number of files. Raises Refusal 400 if there is none, and if there are too
        many."""
        if not uploads:
            raise Refusal("missing_field", field="file")
        if len(uploads) > most:
            raise Refusal("too_many_files", files=len(uploads), most=most)

    def open_files(
        self, uploads: Sequence[Upload], most_bytes: int | None = None
    ) -> Iterator[OpenedFile]:
        """Open each file and read its size. Raises Refusal 400 for a file that cannot be read, and
        as soon as the files are too large together, or have more than ``most_bytes``."""
        limits = self.settings.limits
        most = most_bytes or limits.upload_bytes
        seconds, pixels, count = 0.0, 0, 0
        for upload in uploads:
            file = upload.read()
            count += len(file.data)
            if count > most:
                raise Refusal("body_too_large", most=most)
            with readable(file):
                extent = self.form.extent(file)
            seconds += extent.seconds
            pixels += extent.pixels
            if seconds > limits.sound_seconds:
                raise too_much_sound(seconds, limits.sound_seconds)
            if pixels > limits.pixels:
                raise Refusal("too_many_pixels", pixels=pixels, most=limits.pixels)
            yield OpenedFile(file, extent)

    def most_rows(self, longest: int) -> int:
        """Return how many rows one file may have, if the model reads ``longest`` rows at once."""
        return self.form.settings.most_rows(longest, self.settings.limits.sound_seconds)

    def for_size(self, seconds: float, pixels: int = 0) -> tuple[FairExecutor, int]:
        """Return the thread that decodes files with this duration and number of pixels, and the
        number of places that they occupy there."""
        places = 1 + int(seconds // SECONDS_OF_A_PLACE) + pixels // PIXELS_OF_A_PLACE
        return self.opening if places == 1 else self._decoding, places

    async def decode_files(
        self, files: Sequence[OpenedFile], client: str, most: int | None = None
    ) -> list[Rows]:
        """Decode files, and return the rows of each. Raises Refusal 400 for a file that cannot be
        read, or that has more than ``most`` rows."""

        def rows() -> Iterator[Rows | None]:
            for opened in files:
                with readable(opened.file):
                    yield from self.form.in_turns(opened.file, most)

        extents = [opened.extent for opened in files]
        seconds = sum(extent.seconds for extent in extents)
        executor, places = self.for_size(seconds, sum(extent.pixels for extent in extents))
        parts = await executor.all(client, rows(), places)
        return [part for part in parts if part is not None]
