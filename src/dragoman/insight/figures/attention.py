"""Figures of attention (paper §3.2.3): every layer and head of encoder, decoder and cross."""

from __future__ import annotations

from dragoman.insight.figures.captions import Drawn
from dragoman.insight.panels import attention_panels, attention_table
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import Words
from dragoman.pictures.records import AttentionKind
from dragoman.pictures.words import merged_to_words


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
    record = merged_to_words(subject.attention)
    shown = subject.output.text
    if subject.predictor.reads:
        shown = f"{subject.sentence} → {shown}"
    return Drawn(
        attention_panels(record, kind, layer - 1, head - 1 if head else None),
        [attention_table(record, kind)],
        run=subject.name,
        notes=[Words(shown, shown)],
    )
