"""What figures of opened heads share: a sentence that is short enough to show every number of."""

from __future__ import annotations

from dragoman.insight.figures.subject import Subject
from dragoman.insight.head import Array, OpenedAttention, open_attention
from dragoman.models.interface import Part
from dragoman.pictures.figure import DataTable

_LONGEST = 14
"""Tokens of a sentence that can still be shown with every number."""


def open_short(subject: Subject, part: Part, layer: int) -> OpenedAttention:
    """One attention of a sentence that is short enough to show every number of."""
    source = subject.sentence
    if len(subject.predictor.source_ids(source)) > _LONGEST:
        source = _short(subject)
    target = subject.predictor.shown(source).ids[: _LONGEST - 1]
    return open_attention(subject.predictor, part, layer, source, target)


def _short(subject: Subject) -> str:
    """The demo's short sentence, else the shortest of the run's samples, else the first words."""
    if subject.is_demo:
        return "The small man eats the dinosaur."
    candidates = [source for source, _ in subject.pairs if source.strip()]
    fitting = [s for s in candidates if len(subject.predictor.source_ids(s)) <= _LONGEST]
    if fitting:
        return max(fitting, key=len)
    kept = subject.sentence.split()
    while len(kept) > 1 and len(subject.predictor.source_ids(" ".join(kept))) > _LONGEST:
        kept.pop()
    return " ".join(kept)


def cell_size(count: int) -> tuple[float, float]:
    """Width and height of a cell of a square matrix of so many words."""
    return (38.0, 24.0) if count <= _LONGEST else (max(8.0, 500 / count), max(8.0, 400 / count))


def matrix_table(name: str, values: Array, rows: list[str]) -> DataTable:
    """The numbers of a matrix (T, D), a row for each word."""
    header = ("word", *(f"dimension {d}" for d in range(values.shape[1])))
    return DataTable(name, header, [(rows[i], *map(float, row)) for i, row in enumerate(values)])
