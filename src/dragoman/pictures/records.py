"""The records that pictures are drawn from: words, numbers and arrays, nothing that can compute.

Whoever looks inside a model (a task, an experiment, the server) fills these in; every picture and
page takes them and nothing else. Shapes: S source tokens, T target tokens, L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dragoman.base.measure import BLEU, Measure
from dragoman.forms.tree import Tree
from dragoman.pictures.explorer import attention_html
from dragoman.pictures.labels import SPACE, WORD_START, is_symbol, labels

Weights = NDArray[np.floating]

AttentionKind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[AttentionKind, ...] = get_args(AttentionKind)


@dataclass(frozen=True)
class Heatmap:
    """One matrix of weights from 0 to 1: how much each row looks at each column."""

    rows: Sequence[str]
    """The R labels of the rows."""
    columns: Sequence[str]
    """C labels of what is looked at."""
    weights: Weights
    """(R, C), the weights to show."""
    title: str = ""

    def __post_init__(self) -> None:
        assert self.weights.shape == (len(self.rows), len(self.columns)), (
            "labels and weights differ"
        )


@dataclass(frozen=True)
class Hops:
    """The way from one target word to what decides it, through one source word.

    For the demo: from *es* or *sie* to *it* (cross-attention), from *it* to what it stands for
    (the encoder's self-attention).
    """

    source: Sequence[str]
    """The S words of the source."""
    target: Sequence[str]
    """The T words of the target."""
    word: int
    """Which target word is asked about."""
    through: int
    """Which source word the second hop starts from."""
    first: Weights
    """(S,), where the target word looked: one row of a cross-attention."""
    second: Weights
    """(S,), where source word ``through`` looked: one row of an encoder's self-attention."""
    first_from: str = ""
    """Which attention the first hop was read from, e.g. "cross-attention, layer 3, head 2"."""
    second_from: str = ""

    def __post_init__(self) -> None:
        assert self.first.shape == self.second.shape == (len(self.source),), "one weight per word"


@dataclass(frozen=True)
class AttentionRecord:
    """Every attention weight of one translation.

    Row t of ``decoder`` and ``cross`` belongs to the step that chose ``target[t]``; the columns of
    ``decoder`` are what that step had read: the start symbol, then ``target`` up to t.
    """

    source: Sequence[str]
    """S words, or pieces with their ``▁``; the end symbol included where the model read one."""
    target: Sequence[str]
    """T words or pieces that were chosen, the end symbol included."""
    encoder: Weights
    """(L, H, S, S), the weights of self-attention."""
    decoder: Weights
    """(L', H, T, T), the weights of self-attention."""
    cross: Weights
    """(L', H, T, S), the weights over the source."""
    begin: str = "<s>"
    """The text of the start symbol."""

    def __post_init__(self) -> None:
        s, t = len(self.source), len(self.target)
        assert self.encoder.shape[2:] == (s, s), "encoder weights are (L, H, S, S)"
        assert self.decoder.shape[2:] == (t, t), "decoder weights are (L, H, T, T)"
        assert self.cross.shape[2:] == (t, s), "cross weights are (L, H, T, S)"

    def _repr_html_(self) -> str:
        """The view in a notebook: every layer and head, to look around in."""
        return attention_html(self)

    def weights(self, kind: AttentionKind) -> Weights:
        """(L, H, rows, columns) of one of them; no layers where the model has no such attention."""
        return {"encoder": self.encoder, "decoder": self.decoder, "cross": self.cross}[kind]

    @property
    def kinds(self) -> list[AttentionKind]:
        """The attentions that the model has."""
        return [kind for kind in KINDS if len(self.weights(kind))]

    def heatmap(
        self,
        kind: AttentionKind,
        layer: int,
        head: int | None = None,
        *,
        off: Collection[int] = (),
    ) -> Heatmap:
        """One head of one layer, or the mean over the layer's heads but those that are ``off``;
        zeros if all are."""
        every = self.weights(kind)
        looking = self.source if kind == "encoder" else self.target
        looked_at = (self.begin, *self.target)[:-1] if kind == "decoder" else self.source
        on = [number for number in range(every.shape[1]) if number not in off]
        mean = every[layer, on].sum(axis=0) / max(len(on), 1)
        weights = mean if head is None else every[layer, head]
        which = "mean of the heads" if head is None else f"head {head + 1}"
        if off:
            are_off = f"{', '.join(str(number + 1) for number in sorted(off))} off"
            which += f", {are_off}" if head is None else ", off" if head in off else ""
        name = "cross-attention" if kind == "cross" else kind
        return Heatmap(
            labels(looking), labels(looked_at), weights, f"{name}, layer {layer + 1}, {which}"
        )


@dataclass(frozen=True)
class Series:
    """One line of a chart. Points may be any number; drawing thins them and keeps the extremes."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Chart:
    """A chart of some lines over one axis."""

    title: str
    series: Sequence[Series]
    x_label: str = "update"
    y_label: str = ""
    log_y: bool = False
    log_x: bool = False
    from_zero: bool = False
    """For speeds and sizes: what is drawn twice as high is twice as much."""
    marked_x: float | None = None
    """A place to point out, e.g. the update of the best checkpoint."""
    marked_as: str = ""
    points: bool = False
    """Each point by itself: they are no course of anything."""

    @property
    def is_counted(self) -> bool:
        """True if the axis below counts, updates or positions: nothing is between two of them."""
        return all(float(x).is_integer() for line in self.series for x in line.x)


@dataclass(frozen=True)
class ShownScore:
    """One figure of merit on one test set."""

    name: str
    value: float
    test: str = ""
    """Which sentences, e.g. "test_2016_flickr, 1,000 sentences"."""
    signature: str = ""
    """sacreBLEU's signature: without it a BLEU cannot be compared."""
    measure: Measure = BLEU
    """The name of the score and how it is written."""


@dataclass(frozen=True)
class TreePair:
    """A reference tree and a parse of the same words."""

    reference: Tree
    parse: Tree
    missed: Collection[int]
    """Brackets of the reference that the parse does not have, by their places in
    ``Tree.brackets()``."""
    wrong: Collection[int]
    """Brackets of the parse that the reference does not have."""
    no_tag: str = ""
    """A tag that is not drawn."""

    @property
    def is_exact(self) -> bool:
        """True if all brackets are the same."""
        return not self.missed and not self.wrong


@dataclass(frozen=True)
class ShownSample:
    """A sentence the model never saw, what a person wrote, what the model wrote."""

    source: str
    hypothesis: str
    reference: str = ""
    trees: TreePair | None = None
    """Reference and hypothesis, where they are trees that can be drawn."""


@dataclass(frozen=True)
class Table:
    """A few rows of words and numbers, e.g. the cleaning report. Rows are as long as the header."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str | int | float]]
    note: str = ""


@dataclass(frozen=True)
class RunSummary:
    """All that the report page and the model card say about a run."""

    name: str
    languages: tuple[str, ...]
    """The languages of the source, if there is one, and of the target, as the recipe names them."""
    hub_tag: str = "translation"
    """The tag of its task on model hubs."""
    notice: str = ""
    """Said first and plainly, e.g. that the corpus is synthetic."""
    facts: Sequence[tuple[str, str]] = ()
    """Name and value: parameters, updates, time, which weights these are."""
    scores: Sequence[ShownScore] = ()
    samples: Sequence[ShownSample] = ()
    undrawn: int = 0
    """Samples that are left out next to drawn trees: theirs are too long to be recorded whole."""
    charts: Sequence[Chart] = ()
    hops: Sequence[Hops] = ()
    attention: Sequence[AttentionRecord] = ()
    measured: Sequence[Table] = ()
    """The parts of the scores: label by label, the worst mistakes."""
    confusions: Sequence[Heatmap] = ()
    """Which label was chosen for which: label by row, choice by column."""
    data: Sequence[Table] = ()
    """Corpora with sizes and hashes, the cleaning report, length statistics."""
    recipe: str = ""
    """The text of the recipe in TOML."""
    machine: Sequence[tuple[str, str]] = ()
    limits: Sequence[str] = ()
    """The warnings about what the model cannot do."""
    made_by: str = "dragoman"
    """The name and version of the program."""

    @property
    def direction(self) -> str:
        """Its languages in a line; "" where none is known."""
        known = any(language != "und" for language in self.languages)
        return " → ".join(self.languages) if known else ""

    @property
    def title(self) -> str:
        """The run's name and its languages."""
        return f"{self.name}: {self.direction}" if self.direction else self.name


def words(pieces: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Join pieces into words -> the words, and for each piece the number of its word."""
    names: list[str] = []
    word_of: list[int] = []
    joinable = False
    for piece in pieces:
        if joinable and not piece.startswith(WORD_START) and not is_symbol(piece):
            names[-1] += piece
        else:
            names.append(piece.removeprefix(WORD_START))
        joinable = not is_symbol(piece)
        word_of.append(len(names) - 1)
    return tuple(name or SPACE for name in names), tuple(word_of)


def by_word(weights: Weights, word_of_row: Sequence[int], word_of_column: Sequence[int]) -> Weights:
    """(..., R, C) of pieces -> (..., R', C') of words.

    A word is looked at by as much as its pieces together, and looks as its pieces do on average,
    so rows that sum to one still do.
    """
    rows = np.eye(max(word_of_row, default=-1) + 1, dtype=weights.dtype)[list(word_of_row)]
    columns = np.eye(max(word_of_column, default=-1) + 1, dtype=weights.dtype)[list(word_of_column)]
    mean_of_rows = rows / rows.sum(axis=0, keepdims=True)  # (R, R')
    return np.asarray(mean_of_rows.T @ weights @ columns, dtype=weights.dtype)


def merged_to_words(record: AttentionRecord) -> AttentionRecord:
    """The record of subword pieces (with their ``▁``) as one of words.

    A word that the model was cut off in keeps its last piece apart, so that a step still has read
    exactly the words before it.
    """
    source, source_word_of = words(record.source)
    if not record.target:
        encoder = by_word(record.encoder, source_word_of, source_word_of)
        cross = record.cross[..., : len(source)]  # of no rows
        return AttentionRecord(source, (), encoder, record.decoder, cross, record.begin)
    target, target_word_of = words(record.target[:-1])
    target = (*target, record.target[-1].removeprefix(WORD_START) or SPACE)
    chosen = (*target_word_of, len(target) - 1)
    read = (0, *(word + 1 for word in target_word_of))  # the start symbol, then what was chosen
    return AttentionRecord(
        source,
        target,
        by_word(record.encoder, source_word_of, source_word_of),
        by_word(record.decoder, chosen, read),
        by_word(record.cross, chosen, source_word_of),
        record.begin,
    )
