"""A served run that labels pictures or recordings, and the endpoint of all runs that label.

A file is processed in three steps, in turns outside the event loop: it is opened, decoded into
rows, and read by the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.base.wording import plural
from dragoman.insight.figures.patches import reading, rollout
from dragoman.models.settings import EncoderSettings
from dragoman.serving.http.refusals import Refusal, invalid_request, missing_field
from dragoman.serving.http.uploads import Upload
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.cost import READING, SEEING
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.file_run import (
    FileRun,
    OpenedFile,
    grid_of,
    parse_cells,
    png_of,
    row_of,
    without,
)
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service
from dragoman.sources.picture.form import PicturesForm
from dragoman.sources.shared.rows import MOST_CELLS, Rows
from dragoman.tasks.classification.labeller import ClassifiedText, Labeller
from dragoman.tasks.classification.served import (
    TOKENS_AT_ONCE,
    ClassifyAnswer,
    ClassifyRequest,
    LabelledFile,
    Rollout,
    Seen,
    ServedClassifier,
    check_labels,
    labels_told,
)

_MOST_READ = 256
"""The most patches of a picture whose way through the model is drawn, since rows are large."""


class ServedFileClassifier(FileRun[Labeller]):
    """A run that labels files, served over HTTP."""

    task, path, trained = "classification", "/v1/classify", "dragoman train FOLDER"
    sent, gives = ClassifyRequest, ClassifyAnswer
    does, opens, work = "labels pictures or recordings", Labeller, "classify"

    def __init__(self, name: str, labeller: Labeller, settings: ServeSettings) -> None:
        super().__init__(name, labeller, settings)
        self.has_figures = self.run.task.writes in self.form.settings.drawn_for

    def check(self, uploads: Sequence[Upload], request: ClassifyRequest) -> None:
        """Check a request before any file is read. Raises Refusal 400."""
        self.check_files(uploads, self.settings.limits.items)
        count = len(uploads)
        if request.why:
            raise Refusal(
                "no_words_in_files", 'The parameter "why" works only with texts. Leave it out.'
            )
        for field, is_asked in (("heads", request.heads), ("reading", request.reading)):
            if is_asked and not request.seen:
                raise invalid_request(field, f"{field} needs seen. Set seen too")
            if is_asked and count > 1:  # the answer has layers x rows x … numbers for each file
                raise invalid_request(field, f"{field} needs a single file. Send one at a time")
        if request.at is not None and not request.heads:
            raise invalid_request("at", "at needs heads. Set heads too")
        if request.reading and not self.form.settings.patches:
            problem = "it works only with pictures that are cut into patches"
            raise invalid_request("reading", problem)
        parse_cells(request.hidden)
        check_labels(count, self.reads, len(self.predictor.labels.names), request.top)

    def check_rows(self, rows: Sequence[Rows], request: ClassifyRequest) -> None:
        """Refuse files that cost too much to read. A file is read several times if ``seen`` is set.
        Raises Refusal 400."""
        count = sum(min(len(file), self.predictor.longest) for file in rows) * (
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
        self, opened: Sequence[OpenedFile], rows: Sequence[Rows], request: ClassifyRequest
    ) -> Iterator[tuple[int, LabelledFile]]:
        """Yield each file with its number, as it is labelled, one turn at a time."""
        names = [entry.file.called for entry in opened]
        cells = parse_cells(request.hidden)
        read = [without(self.form, file, cells, self.predictor.longest) for file in rows]
        for number, classified in self.predictor.parts(names, TOKENS_AT_ONCE, read):
            extent = opened[number].extent
            labelled = LabelledFile(
                name=classified.text,
                label=classified.label,
                probability=round(classified.probability, 6),
                labels=labels_told(classified, request.top),
                cut=classified.cut,
                size=round(extent.seconds or extent.pixels, 3),
                seen=self._view(read[number], classified, request) if request.seen else None,
            )
            yield number, labelled

    def _view(self, rows: Rows, label: ClassifiedText, request: ClassifyRequest) -> Seen:
        """The picture that the model reads, and what else was requested. Raises Refusal 400 for a
        cell that does not exist."""
        labeller, form = self.predictor, self.form
        read = rows[: labeller.longest]
        looked = of_heads = panels = None
        cells = form.cells(len(read))
        attended = None if cells is None else self._record_attention(read)
        if cells is not None and attended is not None:
            weights, places = attended
            shape = cells.spread(places)
            shares = _digits(_pad(rollout(weights, places), shape))
            looked = Rollout(rows=shape[0], columns=shape[1], shares=shares)
            if request.heads:
                begin = weights.shape[-1] - places  # after the class token, if there is one
                if request.at is not None:
                    chosen = weights[..., begin + row_of(cells, request.at, places), :]
                else:
                    chosen = weights[..., 0, :] if begin else weights.mean(axis=-2)  # (L, H, T)
                each = _pad(chosen[..., begin:], shape)
                of_heads = [[_digits(head) for head in layer] for layer in each]
            if request.reading and places <= _MOST_READ:  # only pictures, see check
                taken = labeller.reading.texts([read])
                way, _ = reading(labeller.network, taken, PicturesForm.of(form), read, label.ranked)
                panels = [panel.to_dict() for panel in way]
        grid = grid_of(form, len(read))
        return Seen(**png_of(form, read), rollout=looked, grid=grid, heads=of_heads, reading=panels)

    def _record_attention(self, read: Rows) -> tuple[NDArray[np.float32], int] | None:
        """(L, H, T, T) attention weights of the encoder, and how many of the T rows are parts of
        the file. None if the model has no attention, or if there are too many rows for a picture.
        """
        model = self.run.recipe.model
        if len(read) > MOST_CELLS * self.form.settings.shortens:
            return None
        weights = self.engine.attention.record(read, ()).encoder
        if not len(weights):
            return None
        has_token = isinstance(model, EncoderSettings) and model.class_token
        return weights, weights.shape[-1] - has_token


def _pad(shares: NDArray[np.floating], shape: tuple[int, int]) -> NDArray[np.floating]:
    """Pad (…, P) shares of the parts that were read to all parts; the others get 0."""
    missing = shape[0] * shape[1] - shares.shape[-1]
    return np.pad(shares, [(0, 0)] * (shares.ndim - 1) + [(0, missing)])


def _digits(shares: NDArray[np.floating]) -> list[float]:
    return [float(f"{share:.4g}") for share in shares]


@asks(ServedClassifier, "Classify texts or files")
async def classify(service: Service, request: ClassifyRequest, client: str) -> ClassifyAnswer:
    """Returns the labels with their probabilities. With `why`, also the influence of each word on
    the most probable label, by gradient and by attention; the two measures often disagree, and
    neither is an explanation. Send pictures or recordings as `file`, in a form or in base64; with
    `seen`, the answer also has the input of the model."""
    run = _choose_run(service, request)
    if isinstance(run, ServedFileClassifier):
        run.check(request.uploads, request)
        opened = await run.opening.all(client, run.open_files(request.uploads))
        rows = await run.decode_files(opened, client, run.most_rows(run.predictor.longest))
        run.check_rows(rows, request)
        labelled = dict(await run.asking.all(client, run.label(opened, rows, request)))
        files = [labelled[number] for number in range(len(opened))]
        return ClassifyAnswer(run=run.name, longest=run.predictor.longest, files=files)
    assert isinstance(run, ServedClassifier) and request.text is not None
    inputs = service.check_texts(request.text, client)
    run.check(inputs, request)
    by_number = dict(await run.asking.all(client, run.label(inputs, request)))
    service.meters.count_characters(run.name, client, sum(map(len, inputs)))
    texts = [by_number[number] for number in range(len(inputs))]
    return ClassifyAnswer(run=run.name, longest=run.predictor.longest, texts=texts)


def _choose_run(service: Service, request: ClassifyRequest) -> ServedRun:
    """The named run, or the first one that reads such input. Raises Refusal 400 or 404."""
    has_files = bool(request.uploads)
    if request.text is not None and has_files:
        problem = "give either text or file, not both"
        raise Refusal("bad_field", f"Invalid request: {problem}", field="file", problem=problem)
    catalogue, named = service.catalogue, request.run
    if named and (run := catalogue.run_named(named)) and run.task == ServedClassifier.task:
        if has_files != run.takes_files and (has_files or request.text is not None):
            sent = "file" if run.takes_files else "text"
            raise Refusal(
                "other_source",
                f"{run.name} reads {run.reads}: send them as {sent}.",
                run=run.name,
                reads=run.reads,
            )
        if not has_files and request.text is None:
            raise missing_field("file" if run.takes_files else "text")
        return run
    if has_files:
        return catalogue.of(ServedFileClassifier, named)
    if request.text is None:
        raise missing_field("text")
    return catalogue.of(ServedClassifier, named)
