"""A served run that labels texts, and the messages of ``/v1/classify`` for texts and files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from dragoman.base.wording import plural
from dragoman.serving.http.messages import Message, Texts
from dragoman.serving.http.refusals import check_total
from dragoman.serving.http.uploads import WithFiles
from dragoman.serving.queue.cost import EXPLAINING
from dragoman.serving.service.file_run import Grid, SeenFile
from dragoman.serving.service.served_run import AskedRun, sentences_of
from dragoman.tasks.classification.labeller import ClassifiedText, Labeller
from dragoman.tasks.classification.reasons import reasons


class ClassifyRequest(WithFiles):
    """``POST /v1/classify``: texts or files."""

    text: Texts | None = None
    """Text to label, or several, for a run that reads text."""
    run: str | None = None
    """Name of the run to use, where several label."""
    top: int | None = Field(default=None, ge=1)
    """How many labels to give for each, the most probable first. Default: all."""
    why: bool = False
    """Say what each word has to do with the most probable label, by two measures that differ."""
    seen: bool = False
    """Give what the model sees of each file, as a picture."""
    heads: bool = False
    """With `seen`, of one file: give where each head of each layer looks."""
    at: int | None = Field(default=None, ge=0, le=9999)
    """With `heads`: where they look from this cell, counted as those of `hidden`, in place of from
    what the label is read from. Of sound, from the middle of its stretch of time."""
    reading: bool = False
    """With `seen`, of one picture: give how the model reads it, from its patches to the labels."""
    hidden: str = ""
    """Cells of what is seen that are hidden from the model, counted from 0, row by row, separated
    by commas: `3,7`. `grid` says how many there are."""
    api_key: str | None = None


class Label(Message):
    """One of the labels that the run was trained on."""

    name: str
    probability: float


class LabelledWord(Message):
    """A word of a text. ``before`` and ``text`` of all words joined are the text."""

    before: str
    """Space in front."""
    text: str
    gradient: float | None
    """Gradient times input, in nats: above 0 where a little more of the word speaks for the label.
    Left out of what was not read."""
    attention: float | None
    """Share of what the rows of the last layer look at, 0 to 1. Left out of what was not read, and
    where the model has no attention."""


class LabelledText(Message):
    """What a run says of one text."""

    label: str
    """The most probable one."""
    probability: float
    labels: list[Label]
    """The most probable first."""
    cut: bool
    """Whether the text is longer than what was read of it."""
    words: list[LabelledWord] | None = None
    """Only where it was asked why."""


class Rollout(Message):
    """How much of what says the label comes from each patch of a picture, or from each row that the
    layers read of sound, by attention alone (Abnar and Zuidema, 2020)."""

    rows: int
    """Patches from top to bottom; 1 of sound."""
    columns: int
    shares: list[float]
    """Of each part, row by row; they sum to 1."""


class Seen(SeenFile):
    """What a model sees of a file: a picture at its size, or sound as the bands of its spectrum,
    time from left to right and low sounds at the bottom."""

    rollout: Rollout | None = None
    """Where the encoder attends; of pictures that are cut into at most 1,024 patches, and of sound
    of at most 1,024 rows behind the convolutions."""
    grid: Grid | None = None
    """Of sound, and of pictures that are cut into at most 1,024 patches."""
    heads: list[list[list[float]]] | None = None
    """Of each layer and head, the share of its attention that each part of `rollout` gets: from the
    cell `at`, or if none is given, from the class token, or where there is none, from all rows.
    Only where it was asked for."""
    reading: list[dict[str, Any]] | None = None
    """The picture on its way through the model, drawn as the `panels` of `/v1/figures` are: its
    patches, their rows, what layers make of them, and the labels. Only where it was asked for, of
    pictures of at most 256 patches."""


class LabelledFile(Message):
    """What a run says of one file."""

    name: str
    """What it was called; of base64 ``file``, or its place as ``file[0]``."""
    label: str
    """The most probable one."""
    probability: float
    labels: list[Label]
    """The most probable first."""
    cut: bool
    """Whether the file is longer than what was read of it."""
    size: float
    """Its seconds of sound, or its pixels."""
    seen: Seen | None = None
    """Only where it was asked for."""


class ClassifyAnswer(Message):
    """One for each text or file, in their order."""

    run: str
    longest: int
    """Tokens that are read of a text, one symbol counted; of a file, frames or patches."""
    texts: list[LabelledText] | None = None
    """Of a run that reads text."""
    files: list[LabelledFile] | None = None
    """Of a run that reads pictures or recordings."""


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
        for number, found in self.predictor.parts(texts, TOKENS_AT_ONCE):
            told = LabelledText(
                label=found.label,
                probability=round(found.probability, 6),
                labels=labels_told(found, request.top),
                cut=found.cut,
                words=self._words(found.text) if request.why else None,
            )
            yield number, told

    def _words(self, text: str) -> list[LabelledWord]:
        known = {}
        if text.split():
            known = {word.number: word for word in reasons(self.predictor, text).words}
        words, end = [], 0
        for number, found in enumerate(_WORD.finditer(text)):
            word = known.get(number)
            gradient = attention = None
            if word is not None:
                # Rounded to significant digits: if a label is certain, all gradients are small.
                gradient, attention = float(f"{word.gradient:.5g}"), word.attention
            words.append(
                LabelledWord(
                    before=text[end : found.start()],
                    text=found[0],
                    gradient=gradient,
                    attention=None if attention is None else round(attention, 5),
                )
            )
            end = found.end()
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


def labels_told(found: ClassifiedText, top: int | None) -> list[Label]:
    """The labels of a text or file in the form of the API."""
    return [
        Label(name=name, probability=round(probability, 6))
        for name, probability in found.ranked[:top]
    ]
