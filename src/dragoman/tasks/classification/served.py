"""A served run that labels texts, and the messages of ``/v1/classify`` for texts and files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from dragoman.base.wording import plural
from dragoman.serving.http.limits import EXPLAINING
from dragoman.serving.http.messages import Message, Texts
from dragoman.serving.http.refusals import check_total
from dragoman.serving.http.uploads import WithFiles
from dragoman.serving.service.file_run import Grid, SeenFile
from dragoman.serving.service.served_run import AskedRun, sentences_of
from dragoman.tasks.classification.labeller import ClassifiedText, Labeller
from dragoman.tasks.classification.reasons import reasons


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
