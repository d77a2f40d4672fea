"""The requests and answers of ``/v1/look`` and the paths below it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor

from dragoman.engine.attention import OpenedCell
from dragoman.models.interface import Part
from dragoman.serving.http.messages import Message
from dragoman.serving.look.outputs import DetectedLanguage, Hypothesis

Side = Literal["source", "target"]
Place = Annotated[int, Field(ge=0)]

MAX_PIECES = 50
"""The most tokens of a word whose vectors are sent, also in ``web/src/look/look.ts``."""


class Head(Message):
    """One head of one attention."""

    part: Part
    layer: int = Field(ge=0)
    head: int = Field(ge=0)


class LookRequest(Message):
    """``POST /v1/look``: one sentence, translated as ``/v1/translate`` does, and read by the plain
    model while it is watched. With heads off or places hidden, the plain model translates it. Where
    nothing is read, as by language models, the text itself is what is looked at, as one. A run that
    fills in blanks, labels or parses reads its text as one."""

    text: str
    sentence: int | None = Field(default=None, ge=0)
    """Which sentence of the text, counted from 0 as /v1/translate cuts it; null: the text as one.
    """
    source: str = "auto"
    target: str | None = None
    run: str | None = None
    beam: int | None = Field(default=None, ge=1)
    length_penalty: float | None = Field(default=None, ge=0, le=10)
    max_length: int | None = Field(default=None, ge=1, le=1000)
    """The most tokens in the translation."""
    prefix_tokens: tuple[Place, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """How the translation must begin. Where nothing is read, it replaces the text, which
    the model then goes on with, to the length that it had."""
    given: tuple[Place, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """A whole output as token numbers, without its end symbol: look at it, and search for none."""
    heads_off: tuple[Head, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """Heads whose output is set to zero."""
    hidden: tuple[Place, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """Places of source tokens that no head may look at."""
    compare: tuple[Place, ...] = Field(default=(), max_length=1000, fail_fast=True)
    """Another translation as token numbers, without its end symbol: how probable is it?"""
    attention: tuple[Part, ...] = Field(
        default=("encoder", "decoder", "cross"), max_length=3, fail_fast=True
    )
    """Which attention to give whole; for long texts ask for single heads (/v1/look/attention)."""
    attention_within: int | None = Field(default=None, ge=0)
    """Leave attention out where it has more weights than this in all, in place of refusing."""
    maps: int = Field(default=0, ge=0, le=128)
    """Give a small map of every head with at most this many rows and columns. 0: none."""
    steps: bool = True
    """Give what every step of the search chose among."""
    choices: int = Field(default=0, ge=0, le=20)
    """How many of the most probable tokens to give at each place of the translation."""
    api_key: str | None = None


class AttentionRequest(LookRequest):
    """``POST /v1/look/attention``: some of the attention of a look; its other fields as there."""

    part: Part
    layer: int = Field(ge=0)
    head: int | None = Field(default=None, ge=0)
    """None: every head of the layer."""
    mean: bool = False
    """The mean of the layer's heads in place of each; those in ``heads_off`` take no part."""


class WordRequest(LookRequest):
    """``POST /v1/look/word``: all that became of one word; the other fields as in a look."""

    side: Side
    first: Place
    """Its first token. On the target side: the one that was chosen, the end symbol last."""
    count: int = Field(default=1, ge=1, le=MAX_PIECES)
    """How many tokens it has."""


class CellRequest(LookRequest):
    """``POST /v1/look/cell``: one weight of one head; the other fields as in a look."""

    part: Part
    layer: int = Field(ge=0)
    head: int = Field(ge=0)
    row: Place
    """The token that looks: in the decoder and across, the step that chose this one."""
    column: Place
    """The token that is looked at; in the decoder the start symbol is the first."""


class Weights(Message):
    """Attention weights of some layers and heads."""

    shape: tuple[int, int, int, int]
    """Layers, heads, those who look, what is looked at."""
    data: str
    """16-bit floats, little-endian, the last axis running fastest, in base64."""


class Maps(Message):
    """Attention weights of all heads, small: each cell has the greatest weight of its block."""

    shape: tuple[int, int, int, int]
    """Layers, heads, rows, columns."""
    data: str
    """Bytes, 255 for a weight of 1, in base64."""


class StepCandidate(Message):
    """A continuation that a step looked at."""

    parent: int
    """Which of those kept in the step before it continues."""
    id: int
    piece: str
    log_probability: float
    """Of the token alone."""
    total: float
    """Of the whole hypothesis."""
    outcome: str
    """kept: went on; ended: finished here; dropped: fell out of the beam."""


class Step(Message):
    """One step of the search, its candidates best first."""

    place: int
    """The place in the translation that was filled, from 0."""
    candidates: list[StepCandidate]


class Choice(Message):
    """A token that could stand at a place of the translation."""

    id: int
    piece: str
    probability: float
    """Given the source and all that stands before."""


class ModelInfo(Message):
    """Sizes of the model, by the paper's names; null for what its kind has not."""

    kind: str
    """As a recipe's model.kind names it."""
    attentions: dict[Part, list[int]]
    """The heads of each layer that has attention."""
    model_dim: int
    ffn_dim: int | None = None
    heads: int | None = None
    key_width: int | None = None
    channels: int | None = None
    kernel_width: int | None = None
    encoder_layers: int
    decoder_layers: int
    source_vocabulary: int
    target_vocabulary: int
    norm: str | None = None
    parameters: int


class OwnAnswer(Message):
    """What the plain model alone writes, where its way here, which rounds numbers to be fast, has
    led to another output."""

    text: str
    place: int
    """The first target token, counted from 0, at which the output that was looked at differs."""


class LookAnswer(Message):
    """What was seen. Row t of ``decoder`` and ``cross`` belongs to the step that chose token t;
    the columns of ``decoder`` are what that step had read, the start symbol first. Where nothing is
    written there are no target tokens, and ``best`` is what the run said of the text."""

    run: str
    source: str
    target: str
    detected: DetectedLanguage | None = None
    sentences: list[str]
    """What the text is when it is cut into sentences; one of them was looked into, or all as one.
    """
    beam: int
    """How wide was searched."""
    length_penalty: float
    source_tokens: list[str]
    """As the vocabulary writes them, the end symbol included."""
    source_ids: list[int]
    source_words: list[int]
    """Which word each source token belongs to, from 0."""
    target_tokens: list[str]
    """The same of the translation; with the end symbol, which the last row chose."""
    target_words: list[int]
    best: Hypothesis
    own: OwnAnswer | None = None
    compared: float | None = None
    """log P of ``compare`` as the model sees it here, in nats, its end symbol included."""
    model: ModelInfo
    attention: dict[Part, Weights]
    maps: dict[Part, Maps] = Field(default_factory=dict)
    choices: list[list[Choice]] = Field(default_factory=list)
    """For each target token the most probable ones, best first."""
    steps: list[Step]


class Stage(Message):
    """A row of numbers on its way through the model."""

    name: str
    """embedding, position, sum, encoder.0 …, decoder.0 …"""
    sizes: list[float]
    """Root mean square of each token's row."""


class WordAnswer(Message):
    """What became of one word, in every layer and head."""

    attention: dict[Part, Weights]
    """Its rows alone: where it looked. A source word looks in the encoder, a target word in the
    decoder and across."""
    looked_at: dict[Part, Weights]
    """Its columns alone, as rows: who looked at it."""
    stages: list[Stage]
    vectors: Weights
    """Shape (1, stages, tokens, model width): the rows themselves."""


class CellAnswer(Message):
    """One weight: softmax(q · k x scale) over the keys; weight x v W^O is what it adds."""

    query: list[float]
    key: list[float]
    value: list[float]
    product: float
    """q · k."""
    scale: float
    """1 / √d_k."""
    weight: float
    adds: list[float]
    """What this one look adds to the row of the token that looks, as wide as the model."""
    adds_size: float
    """Its root mean square."""
    head_size: float
    """The same of what all looks of this head add to that row."""

    @classmethod
    def of(cls, cell: OpenedCell) -> CellAnswer:
        return cls(
            query=_rounded(cell.query),
            key=_rounded(cell.key),
            value=_rounded(cell.value),
            product=round(cell.product, 4),
            scale=round(cell.scale, 6),
            weight=round(cell.weight, 6),
            adds=_rounded(cell.adds),
            adds_size=round(float(cell.adds.square().mean().sqrt()), 5),
            head_size=round(float(cell.head_adds.square().mean().sqrt()), 5),
        )


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]


class HeadsAnswer(Message):
    """What each head is good for in this translation."""

    log_probability: float
    """Of the translation, in nats, its end symbol included."""
    fallen: dict[Part, list[list[float]]]
    """By layer and head: by how much that falls with the output of the head set to zero."""
