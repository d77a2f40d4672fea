"""Panels and tables that show what was measured for each head, and the names by which the parts of
a model are shown. ``dragoman look`` and the figures use both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dragoman.engine.alignment_head import AlignmentScores
from dragoman.insight.experiments import Importance
from dragoman.models.interface import AttentionLayer
from dragoman.models.transformer.model import Sublayer
from dragoman.pictures.figure import Cell, DataTable, Panel, Words
from dragoman.pictures.matrix import Array, MatrixPicture
from dragoman.pictures.panels import HeadGrid, WordWeights
from dragoman.pictures.records import AttentionKind, AttentionRecord


def attention_panels(
    record: AttentionRecord, kind: AttentionKind, layer: int = -1, head: int | None = None
) -> list[Panel]:
    """Return two panels of one kind of attention: a grid of small pictures of every head, and a
    large picture of one layer. ``layer`` counts from 0, or from the end if negative. ``head``: the
    head that is drawn large, from 0; None: the mean of the layer's heads."""
    weights = record.weights(kind)
    title = f"{PART_WORDS[kind].english.capitalize()}, every layer and head"
    large = record.heatmap(kind, layer % len(weights), head)
    sides = {
        "encoder": "rows look, columns are looked at",
        "decoder": "rows: words chosen, columns: words read",
        "cross": "rows: words chosen, columns: the source",
    }[kind]
    return [
        HeadGrid(title, np.asarray(weights, dtype=np.float64)),
        WordWeights(replace(large, title=f"{large.title}; {sides}")),
    ]


def attention_table(record: AttentionRecord, kind: AttentionKind) -> DataTable:
    """Return a table with a row for every weight of one kind of attention. Layers and heads count
    from 1."""
    rows: list[tuple[Cell, ...]] = []
    weights = record.weights(kind)
    for layer, head in np.ndindex(*weights.shape[:2]):
        shown = record.heatmap(kind, layer, head)
        for i, j in np.ndindex(*shown.weights.shape):
            rows.append(
                (layer + 1, head + 1, i, shown.rows[i], j, shown.columns[j],
                 float(shown.weights[i, j]))
            )  # fmt: skip
    header = ("layer", "head", "row", "looking", "column", "looked at", "weight")
    return DataTable(header, rows)


def matrix_table(name: str, values: Array, rows: Sequence[Cell], of: str = "word") -> DataTable:
    """Return a table of the matrix ``values`` (T, D), with a row for each word. ``rows``: the T
    words; ``of``: what a row stands for, if not a word."""
    header = (of, *(f"dimension {d}" for d in range(values.shape[1])))
    return DataTable(header, [(rows[i], *map(float, row)) for i, row in enumerate(values)], name)


def importance_panels(importance: Importance) -> list[Panel]:
    """Return one panel for each kind of attention: a matrix (layers, heads) of how much the loss
    grows without each head. All panels use the same scale."""
    reach = max(float(np.abs(importance.growth(kind)).max()) for kind in importance.without) or 1.0
    return [
        MatrixPicture(
            PART_WORDS[kind].english.capitalize(),
            importance.growth(kind),
            rows=[f"layer {i + 1}" for i in range(len(losses))],
            columns=[f"head {i + 1}" for i in range(losses.shape[1])],
            cell=(54, 30),
            reach=reach,
            across="growth of the loss, nats per token",
        )
        for kind, losses in importance.without.items()
    ]


def importance_table(importance: Importance) -> DataTable:
    """Return a table of the loss without each head, the largest first. Layers and heads count from
    1."""
    rows: list[tuple[Cell, ...]] = [
        (kind, layer + 1, head + 1, importance.whole + growth, growth)
        for kind, layer, head, growth in importance.ranking()
    ]
    return DataTable(("attention", "layer", "head", "loss without it", "growth"), rows)


def aer_panels(scores: AlignmentScores) -> list[Panel]:
    """Return two panels with the alignment error rate (AER) of every head and, in the last column,
    of the mean of each layer's heads. The first panel is for the attention of the step that chooses
    a word; the second is for that of the next step, whose input is this word."""
    panels: list[Panel] = []
    for when, table in scores.heads.items():
        columns = [*(f"head {i + 1}" for i in range(table.shape[1] - 1)), "mean"]
        rows = [f"layer {i + 1}" for i in range(len(table))]
        title = f"AER, the step {when} the word"
        matrix = MatrixPicture(
            title, table, rows, columns, cell=(54, 28), reach=1.0, is_least_deep=True
        )
        panels.append(matrix)
    return panels


def aer_table(scores: AlignmentScores) -> DataTable:
    """Return a table of the alignment error rate (AER) of every head at both steps (see
    ``aer_panels``). Layers and heads count from 1; head 0 is the mean of a layer's heads."""
    rows: list[tuple[Cell, ...]] = []
    for when, table in scores.heads.items():
        for layer, head in np.ndindex(*table.shape):
            number = 0 if head == table.shape[1] - 1 else head + 1
            rows.append((when, layer + 1, number, float(table[layer, head])))
    return DataTable(("step", "layer", "head", "AER"), rows, "aer")


_SIDES = {"encoder": "인코더", "decoder": "디코더"}
_KINDS = {
    "self-attention": "셀프 어텐션",
    "cross-attention": "교차 어텐션",
    "feed-forward": "피드포워드",
}
PART_WORDS: dict[str, Words] = {
    "encoder": Words("encoder self-attention", "인코더 셀프 어텐션"),
    "decoder": Words("decoder self-attention", "디코더 셀프 어텐션"),
    "cross": Words("cross-attention", "교차 어텐션"),
}


def attention_words(attention: AttentionLayer) -> Words:
    """Return the English and Korean name of an attention layer, such as "decoder layer 2,
    cross-attention". Layers count from 1."""
    side = "encoder" if attention.part == "encoder" else "decoder"
    kind = "cross-attention" if attention.part == "cross" else "self-attention"
    return _words(side, attention.layer, kind)


def sublayer_words(sublayer: Sublayer) -> Words:
    """Return the English and Korean name of a sub-layer, such as "encoder layer 1, feed-forward".
    Layers count from 1."""
    return _words(sublayer.side, sublayer.layer, sublayer.kind)


def _words(side: str, layer: int, kind: str) -> Words:
    return Words(
        f"{side} layer {layer + 1}, {kind}", f"{_SIDES[side]} {layer + 1}층 {_KINDS[kind]}"
    )
