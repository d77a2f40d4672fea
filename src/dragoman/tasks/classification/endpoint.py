"""Served runs that label texts, and served runs that label files, with their endpoint
``/v1/classify``.

A picture or recording is processed in three steps, in turns outside the event loop: it is opened,
decoded into rows, and read by the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.wording import plural
from dragoman.insight.figures.patches import reading, rollout
from dragoman.models.settings import EncoderSettings
from dragoman.serving.http.limits import EXPLAINING, READING, SEEING
from dragoman.serving.http.messages import Message, Texts
from dragoman.serving.http.refusals import Refusal, check_total, invalid_request
from dragoman.serving.http.uploads import Upload, WithFiles
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.file_run import (
    FileRun,
    Grid,
    OpenedFile,
    SeenFile,
    grid_of,
    parse_cells,
    png_of,
    row_of,
    without,
)
from dragoman.serving.service.served_run import AskedRun, ServedRun, sentences_of
from dragoman.serving.service.service import Service
from dragoman.sources.picture.form import PicturesForm
from dragoman.sources.shared.rows import MOST_CELLS, Rows
from dragoman.tasks.classification.labeller import ClassifiedText, Labeller
from dragoman.tasks.classification.reasons import reasons

_MOST_READ = 256
"""The most patches of a picture whose way through the model is drawn, since rows are large."""


class ClassifyRequest(WithFiles):
    """A request to classify texts or files: `POST /v1/classify`."""

    text: Texts | None = None
    """The text to classify, or a list of texts. For a run that reads text."""
    run: str | None = None
    """The name of the run. Default: the first run that classifies such input."""
    top: int | None = Field(default=None, ge=1)
    """The number of labels to return for each text or file, the most probable first. Default: all
    labels."""
    why: bool = False
    """Return two measures of the influence of each word on the most probable label. For texts."""
    seen: bool = False
    """Return the input of the model for each file, as a picture."""
    heads: bool = False
    """Return the attention of each head of each layer. For one file; needs `seen`."""
    at: int | None = Field(default=None, ge=0, le=9999)
    """The number of the cell whose attention is returned by `heads`, counted as in `hidden`. For
    sound, it is the attention of the position in the middle of the cell's stretch of time. Default:
    the class token, from which the label is computed; without one, the mean over all positions."""
    reading: bool = False
    """Return the steps from the patches to the labels. For one picture; needs `seen`."""
    hidden: str = ""
    """The cells of the input to hide from the model, separated by commas, such as `3,7`. They are
    counted from 0, row by row; `grid` in the answer has their number."""


class Label(Message):
    """A label of the run and its probability."""

    name: str
    """The name of the label, as in the training data."""
    probability: float
    """The probability of the label, from 0 to 1."""


class LabelledWord(Message):
    """A word of a text and its influence on the label. If you join `before` and `text` of every
    word in order, you get the text up to the end of its last word."""

    before: str
    """The white space before the word."""
    text: str
    """The word without the white space around it."""
    gradient: float | None = None
    """Gradient times input, in nats. A positive value is evidence for the label. Absent if the word
    was not read."""
    attention: float | None = None
    """The share of the last layer's attention, from 0 to 1. Absent if the word was not read, or if
    the model has no attention."""


class LabelledText(Message):
    """The labels of one text, with their probabilities."""

    label: str
    """The label with the highest probability."""
    probability: float
    """The probability of `label`, from 0 to 1."""
    labels: list[Label]
    """The labels of the run, the most probable first."""
    cut: bool
    """True if the text was too long to be read to its end."""
    words: list[LabelledWord] | None = None
    """The words of the text. Present only if `why` was set."""


class Rollout(Message):
    """The contribution of each part of the input to the label, as estimated by attention rollout
    (Abnar and Zuidema, 2020). The parts are the patches of a picture, or the rows of sound that the
    layers read."""

    rows: int
    """The number of rows of parts; 1 for sound."""
    columns: int
    """The number of columns of parts."""
    shares: list[float]
    """The contribution of each part, row by row. All contributions sum to 1."""


class Seen(SeenFile):
    """A file as the model reads it: the scaled picture, or the spectrum of the sound with time from
    left to right and low frequencies at the bottom."""

    rollout: Rollout | None = None
    """The contribution of each part to the label, by attention rollout. Absent for pictures of more
    than 1,024 patches, for sound of more than 1,024 rows after the convolutions, and for models
    without attention."""
    grid: Grid | None = None
    """The grid of cells that can be hidden. Absent for pictures that are not cut into patches, and
    for pictures that are cut into more than 1,024."""
    heads: list[list[list[float]]] | None = None
    """For each layer and head, the share of its attention that each part of `rollout` receives from
    the cell `at`. Default: from the class token; if there is none, the mean over all positions.
    Present only if `heads` was set."""
    reading: list[dict[str, Any]] | None = None
    """The steps from the picture to the labels, as `panels` of `/v1/figures`: the patches, their
    rows, the output of the layers, and the labels. Present only if `reading` was set, for at most
    256 patches."""


class LabelledFile(Message):
    """The labels of one file, with their probabilities."""

    name: str
    """The name of the uploaded file. For base64, `file`, or `file[0]` and so on for a list."""
    label: str
    """The label with the highest probability."""
    probability: float
    """The probability of `label`, from 0 to 1."""
    labels: list[Label]
    """The labels of the run, the most probable first."""
    cut: bool
    """True if the file was too long to be read to its end."""
    size: float
    """The duration of the sound in seconds, or the number of pixels of the picture."""
    seen: Seen | None = None
    """The input of the model. Present only if `seen` was set."""


class ClassifyAnswer(Message):
    """The labels of the texts or files."""

    run: str
    """The name of the run that classified."""
    longest: int
    """The maximum length that the run reads: tokens of a text, including one special symbol, or
    frames or patches of a file."""
    texts: list[LabelledText] | None = None
    """The labels of each text, in the order of the request. Present only for runs that read
    text."""
    files: list[LabelledFile] | None = None
    """The labels of each file, in the order of the request. Present only for runs that read
    files."""


TOKENS_AT_ONCE = 1024
"""Tokens that are read in one turn, or one text: the longest that other requests wait."""
MAX_LABELS = 20_000
"""The most labels in one answer, those of all texts together."""

_WORD = re.compile(r"\S+")


class ServedClassifier(AskedRun[Labeller]):
    """A run that labels texts, served over HTTP."""

    task, does, path = "classification", "labels texts", "/v1/classify"
    trained = "dragoman train my.tsv --task classification"
    sent, gives = ClassifyRequest, ClassifyAnswer
    opens, work = Labeller, "classify"
    has_figures = False

    examples = staticmethod(sentences_of)

    def check(self, texts: Sequence[str], request: ClassifyRequest) -> None:
        """Refuse too many labels for one answer, and too high a cost. Raises Refusal 400."""
        count = len(texts)
        check_labels(count, "texts", len(self.predictor.labels.names), request.top)
        if request.why:
            tokens = sum(min(len(text), self.predictor.longest) for text in texts)
            self.check_cost(
                tokens * EXPLAINING,
                "reasons",
                f"the words of {plural(count, 'text')}, {tokens:,} tokens at most",
                "Send fewer or shorter texts at once, or leave why out.",
            )

    def label(
        self, texts: Sequence[str], request: ClassifyRequest
    ) -> Iterator[tuple[int, LabelledText]]:
        """Yield each text with its number, as it is labelled, one turn at a time."""
        for number, classified in self.predictor.parts(texts, TOKENS_AT_ONCE):
            labelled = LabelledText(
                label=classified.label,
                probability=round(classified.probability, 6),
                labels=labels_told(classified, request.top),
                cut=classified.cut,
                words=self._words(classified.text) if request.why else None,
            )
            yield number, labelled

    def _words(self, text: str) -> list[LabelledWord]:
        known = {}
        if text.split():
            known = {word.number: word for word in reasons(self.predictor, text).words}
        words, end = [], 0
        for number, match in enumerate(_WORD.finditer(text)):
            word = known.get(number)
            gradient = attention = None
            if word is not None:
                # Rounded to significant digits: if a label is certain, all gradients are small.
                gradient, attention = float(f"{word.gradient:.5g}"), word.attention
            words.append(
                LabelledWord(
                    before=text[end : match.start()],
                    text=match[0],
                    gradient=gradient,
                    attention=None if attention is None else round(attention, 5),
                )
            )
            end = match.end()
        return words


def check_labels(count: int, noun: str, every: int, top: int | None) -> None:
    """Refuse a request whose answer would have too many labels. Raises Refusal 400."""
    check_total(
        "too_many_labels",
        (every if top is None else min(top, every), "label"),
        (count, "texts"),
        MAX_LABELS,
        f"Ask for fewer of each (top), or send fewer {noun}.",
        noun,
    )


def labels_told(classified: ClassifiedText, top: int | None) -> list[Label]:
    """The labels of a text or file in the form of the API."""
    return [
        Label(name=name, probability=round(probability, 6))
        for name, probability in classified.ranked[:top]
    ]


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
            raise Refusal("missing_field", field="file" if run.takes_files else "text")
        return run
    if has_files:
        return catalogue.of(ServedFileClassifier, named)
    if request.text is None:
        raise Refusal("missing_field", field="text")
    return catalogue.of(ServedClassifier, named)
