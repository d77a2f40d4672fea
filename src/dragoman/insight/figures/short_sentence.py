"""What figures of opened heads share: a sentence that is short enough to show every number of."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.insight.head import Array, OpenedAttention, open_attention
from dragoman.insight.subject import Subject
from dragoman.models.interface import Part
from dragoman.pictures.figure import DataTable, Panel, Words
from dragoman.pictures.matrix import MatrixPicture

_READABLE = 14
"""Tokens of a sentence that a figure chooses: every number can be read in its cell."""
_MAX_TOKENS = 24
"""Tokens of a sentence that somebody asked for: cells grow smaller, and point out their numbers."""


def open_short(subject: Subject, part: Part, layer: int) -> OpenedAttention:
    """One attention of a sentence that is short enough to show every number of."""
    source = _short(subject)
    target = subject.predictor.shown(source).ids[: _most(subject) - 1]
    return open_attention(subject.predictor, part, layer, source, target)


def shortened(subject: Subject) -> list[Words]:
    """A note where the figure shows less than the sentence that somebody asked for."""
    shown = _short(subject)
    if not subject.is_given or shown == subject.sentence:
        return []
    count = len(subject.predictor.source_ids(subject.sentence))
    return [
        Words(
            f"The sentence has {count} tokens; this figure shows {_MAX_TOKENS}, so it shows the "
            f"beginning: “{shown}”",
            f"문장의 토큰은 {count}개이고 이 그림은 {_MAX_TOKENS}개까지 보여 주므로 앞부분만 "
            f"그렸습니다: “{shown}”",
        )
    ]


def _most(subject: Subject) -> int:
    return _MAX_TOKENS if subject.is_given else _READABLE


def _short(subject: Subject) -> str:
    """The sentence; where it is too long, its beginning if somebody asked for it, else the demo's
    short sentence, the longest of the run's samples that fits, or the beginning."""

    def fits(sentence: str) -> bool:
        return len(subject.predictor.source_ids(sentence)) <= _most(subject)

    if fits(subject.sentence):
        return subject.sentence
    if not subject.is_given:
        if subject.is_demo:
            return "The small man eats the dinosaur."
        fitting = [source for source, _ in subject.pairs if source.strip() and fits(source)]
        if fitting:
            return max(fitting, key=len)
    words = subject.sentence.split()
    while len(words) > 1 and not fits(" ".join(words)):
        words.pop()
    begins = " ".join(words)
    while len(begins) > 1 and not fits(begins):  # a script without spaces
        begins = begins[:-1]
    return begins


def cell_size(count: int) -> tuple[float, float]:
    """Width and height of a cell of a square matrix of so many words."""
    return (38.0, 24.0) if count <= _READABLE else (max(8.0, 500 / count), max(8.0, 400 / count))


def strip(
    title: str, values: Array, rows: Sequence[str], width: float = 7.0, height: float = 24
) -> Panel:
    """A matrix (T, D), a row for each word; cells of ``width`` and ``height``."""
    cell = width, height
    return MatrixPicture(title, values, rows=rows, cell=cell, across="dimension")


def matrix_table(name: str, values: Array, rows: list[str]) -> DataTable:
    """The numbers of a matrix (T, D), a row for each word."""
    header = ("word", *(f"dimension {d}" for d in range(values.shape[1])))
    return DataTable(name, header, [(rows[i], *map(float, row)) for i, row in enumerate(values)])
