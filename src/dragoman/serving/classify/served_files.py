"""A run that labels pictures or recordings and is served.

A file goes through three hands: it is opened, which tells how much it holds; decoded into rows; and
read by the model. Each is done in turns beside the event loop. What holds much is decoded in a
thread of its own, in as many places as it costs, so that small files never wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.forms.rows.in_memory import InMemory
from dragoman.forms.rows.rows_form import Rows, RowsForm
from dragoman.forms.rows.settings import FramesSource, LineSource, PictureSource
from dragoman.plural import plural
from dragoman.runs.run import Run
from dragoman.serving.classify.schema import ClassifyRequest, LabelledFile, Seen
from dragoman.serving.classify.seen import seen
from dragoman.serving.classify.served_classifier import (
    TOKENS_AT_ONCE,
    check_labels,
    labels_told,
)
from dragoman.serving.http.refusals import (
    Refusal,
    body_too_large,
    invalid_request,
    too_many_pixels,
    too_much_sound,
)
from dragoman.serving.http.uploads import Upload, readable, too_many_files
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.cost import (
    PIXELS_OF_A_PLACE,
    READING,
    SECONDS_OF_A_PLACE,
    SEEING,
)
from dragoman.serving.service.cells import hidden_cells, without
from dragoman.serving.service.pictures import LINE
from dragoman.serving.service.served_run import ServedRun
from dragoman.tasks.classification.labeller import ClassifiedText, Labeller


@dataclass(frozen=True)
class Opened:
    """A file whose header was read."""

    file: InMemory
    size: float
    """Seconds of sound, or pixels."""


class ServedFileClassifier(ServedRun):
    """A run that labels files and is served."""

    task, path, trained = "classification", "/v1/classify", "dragoman train FOLDER"
    does = "labels pictures or recordings"
    takes_files = True

    def __init__(self, name: str, labeller: Labeller, settings: ServeSettings) -> None:
        form = labeller.run.source
        assert isinstance(form, RowsForm)
        form.check_library()
        super().__init__(name, labeller.engine, settings, labeller.run, looked_into=False)
        self.form = form
        self.labeller = labeller
        self.is_sound = isinstance(form.settings, FramesSource)
        self.has_figures = isinstance(form.settings, PictureSource)
        self.opening = self.executor("files")
        """Where files are opened, and decoded where they hold little."""
        self.decoding = self.executor("large files")
        """Where others are decoded."""
        self.labelling = self.executor("classify")
        """Where files are labelled."""

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedFileClassifier:
        """Errors: ``RunError``, and ``DataError`` where what decodes its files is missing."""
        return cls(name, Labeller(run, settings), settings)

    @property
    def reads(self) -> str:
        return self.form.settings.raws

    @staticmethod
    def examples(run: Run) -> list[str]:
        """None: what it was measured on are files of the machine that it was trained on."""
        return []

    def check(self, uploads: Sequence[Upload], request: ClassifyRequest) -> None:
        """Raises Refusal 400 for what needs no file to be read."""
        limits, count = self.settings.limits, len(uploads)
        if count > limits.items:
            raise too_many_files(count, limits.items)
        if request.why:
            raise Refusal(
                "no_words_in_files",
                "why goes by the words of a text, and a file has none: leave it out.",
            )
        for field, is_asked in (("heads", request.heads), ("reading", request.reading)):
            if is_asked and not request.seen:
                raise invalid_request(field, f"{field} goes with what is seen: set seen too")
            if is_asked and count > 1:  # each file has layers x rows x … of numbers
                raise invalid_request(field, f"{field} is told of one file: send one at a time")
        if request.at is not None and not request.heads:
            raise invalid_request("at", "at goes with heads: set heads too")
        if request.reading and not isinstance(self.form.settings, PictureSource):
            told = "it is told of pictures that are cut into patches alone"
            raise invalid_request("reading", told)
        hidden_cells(request.hidden)
        check_labels(count, self.reads, len(self.labeller.labels.names), request.top)

    def opened(self, uploads: Sequence[Upload]) -> Iterator[Opened]:
        """Each file with how much it holds. Raises Refusal 400 for one that cannot be read, and as
        soon as they hold too much together."""
        total, count = 0.0, 0
        for upload in uploads:
            file = upload.read()
            count += len(file.data)
            if count > self.settings.limits.upload_bytes:
                raise body_too_large(self.settings.limits.upload_bytes)
            with readable(file):
                size = self.form.work_of(file)
            total += size
            self._check_total(total)
            yield Opened(file, size)

    def _check_total(self, total: float) -> None:
        limits = self.settings.limits
        if self.is_sound and total > limits.sound_seconds:
            raise too_much_sound(total, limits.sound_seconds)
        if not self.is_sound and total > limits.pixels:
            raise too_many_pixels(int(total), limits.pixels)

    def places(self, total: float) -> int:
        """How many places the decoding of so much takes."""
        return 1 + int(total // (SECONDS_OF_A_PLACE if self.is_sound else PIXELS_OF_A_PLACE))

    async def decoded(self, opened: Sequence[Opened], client: str) -> list[Rows]:
        """The rows of some files."""
        places = self.places(sum(one.size for one in opened))
        executor = self.opening if places == 1 else self.decoding
        found = await executor.all_in(client, places, self._decoded(opened))
        return [rows for rows in found if rows is not None]

    def _decoded(self, opened: Sequence[Opened]) -> Iterator[Rows | None]:
        for one in opened:
            with readable(one.file):
                yield from self.form.in_turns(one.file, self._most_rows)

    @property
    def _most_rows(self) -> int:
        """Of one file: those of the seconds that are allowed, which a header may have belied."""
        settings = self.form.settings
        if isinstance(settings, LineSource):  # what is behind the longest is not looked at
            return max(LINE, self.labeller.longest)
        if not isinstance(settings, FramesSource):
            return self.labeller.longest
        return 1 + int(self.settings.limits.sound_seconds * 1000 / settings.hop_ms)

    def check_rows(self, rows: Sequence[Rows], request: ClassifyRequest) -> None:
        """Raises Refusal 400 for what costs too much to be read: once, or several times where what
        is seen is asked for."""
        count = sum(min(len(one), self.labeller.longest) for one in rows) * (
            1 + SEEING * request.seen + request.heads + request.reading
        )
        noun = self.form.settings.noun_of_row
        self.check_cost(
            count * READING,
            "files",
            f"{plural(len(rows), 'file')}, of which {count:,} rows ({noun}) are read",
            "Send fewer files at once.",
        )

    def label(
        self, opened: Sequence[Opened], rows: Sequence[Rows], request: ClassifyRequest
    ) -> Iterator[tuple[int, LabelledFile]]:
        """Each file with its number, as they come: a turn's worth is read at once."""
        names = [one.file.called for one in opened]
        cells = hidden_cells(request.hidden)
        read = [without(self.form, one, cells, self.labeller.longest) for one in rows]
        for number, found in self.labeller.parts(names, TOKENS_AT_ONCE, read):
            shown = None
            if request.seen:
                shown = seen(self.labeller, self.form, read[number], found.ranked, request)
            yield number, _told(found, opened[number].size, request.top, shown)


def _told(found: ClassifiedText, size: float, top: int | None, shown: Seen | None) -> LabelledFile:
    return LabelledFile(
        name=found.text,
        label=found.label,
        probability=round(found.probability, 6),
        labels=labels_told(found, top),
        cut=found.cut,
        size=round(size, 3),
        seen=shown,
    )
