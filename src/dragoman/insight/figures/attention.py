"""Figures of attention (paper §3.2.3): every layer and head of encoder, decoder and cross."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dragoman.insight.figures.captions import Drawn
from dragoman.insight.figures.subject import Subject
from dragoman.pictures.figure import Cell, DataTable, Panel, Words
from dragoman.pictures.panels import HeadGrid, WordWeights
from dragoman.pictures.records import AttentionKind, AttentionRecord
from dragoman.pictures.words import in_words


def encoder_figure(subject: Subject, *, layer: int = 0, head: int = 0) -> Drawn:
    """Encoder self-attention, every layer and head."""
    return _attention_figure(subject, "encoder", layer, head)


def decoder_figure(subject: Subject, *, layer: int = 0, head: int = 0) -> Drawn:
    """Decoder self-attention, every layer and head."""
    return _attention_figure(subject, "decoder", layer, head)


def cross_figure(subject: Subject, *, layer: int = 0, head: int = 0) -> Drawn:
    """Cross-attention, every layer and head."""
    return _attention_figure(subject, "cross", layer, head)


def _attention_figure(subject: Subject, kind: AttentionKind, layer: int, head: int) -> Drawn:
    """Layer and head of the large picture count from 1; 0 is the last, and the mean."""
    record = in_words(subject.attention)
    shown = subject.output.text
    if subject.predictor.reads:
        shown = f"{subject.sentence} → {shown}"
    return Drawn(
        attention_panels(record, kind, layer - 1, head - 1 if head else None),
        [attention_table(record, kind)],
        run=subject.name,
        notes=[Words(shown, shown)],
    )


def attention_panels(
    record: AttentionRecord, kind: AttentionKind, layer: int = -1, head: int | None = None
) -> list[Panel]:
    """All heads small; one of them, or the mean of a layer's heads, large."""
    weights = {"encoder": record.encoder, "decoder": record.decoder, "cross": record.cross}[kind]
    names = {
        "encoder": "Encoder self-attention",
        "decoder": "Decoder self-attention",
        "cross": "Cross-attention",
    }
    title = f"{names[kind]}, every layer and head"
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
    """Every weight of every layer and head, layers and heads from 1."""
    rows: list[tuple[Cell, ...]] = []
    weights = {"encoder": record.encoder, "decoder": record.decoder, "cross": record.cross}[kind]
    for layer, head in np.ndindex(*weights.shape[:2]):
        shown = record.heatmap(kind, layer, head)
        for i, j in np.ndindex(*shown.weights.shape):
            rows.append(
                (layer + 1, head + 1, i, shown.rows[i], j, shown.columns[j],
                 float(shown.weights[i, j]))
            )  # fmt: skip
    header = ("layer", "head", "row", "looking", "column", "looked at", "weight")
    return DataTable("", header, rows)
