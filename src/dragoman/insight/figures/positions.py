"""Figures of positions (paper §3.5): four encodings (the index, the normalised index, the index in
binary, and sines), the identity PE(i) · PE(i + Δ) = Σ cos(ω_k Δ), and learned positions."""

from __future__ import annotations

import time

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.base.wording import power
from dragoman.insight.figures.captions import Parts
from dragoman.insight.panels import matrix_table
from dragoman.insight.subject import Subject, has_learned_positions, transformer_of
from dragoman.models.transformer.model import Transformer
from dragoman.nn.embedding import binary, index, normalised, sinusoidal
from dragoman.pictures.figure import DataTable, Panel, Words
from dragoman.pictures.matrix import MatrixPicture
from dragoman.pictures.panels import LinePanel
from dragoman.pictures.records import Series

Array = NDArray[np.float64]
WIDTH = 512
PLACES = 128


def similarity(table: Array) -> Array:
    """Return (P, P): the dot product of each row of ``table`` (P, D) with every row. ``table``: P
    positions in D dimensions."""
    return table @ table.T


def _array(table: torch.Tensor) -> Array:
    return table.double().numpy()


def _alike(values: Array) -> DataTable:
    """Return the similarities of all positions as a table of (position, other, value)."""
    cells = [(int(r), int(c), float(values[r, c])) for r, c in np.ndindex(*values.shape)]
    return DataTable(("position", "other", "value"), cells, "similarity")


def _wide(values: Array) -> DataTable:
    """Return an encoding as a table with a row for each position and a column for each
    dimension."""
    return matrix_table("", values, range(len(values)), "position")


def _encoding(title: str, table: Array, width: float) -> Panel:
    """Return a panel of the encoding ``table`` (length, dimension) with cells of ``width``
    pixels."""
    cell = width, 300 / len(table)
    return MatrixPicture(title, table, cell=cell, down="position", across="dimension")


def _map(values: Array, title: str = "Similarity, dot product") -> Panel:
    side = 300 / len(values)
    return MatrixPicture(title, values, cell=(side, side), down="position", across="position")


def index_figure(*, dimension: int = 8, length: int = 16) -> Parts:
    """Draw the encoding whose dimensions all hold the position itself."""
    table = _array(index(torch.arange(length), dimension))
    title = "Encoding: PE(pos) = pos in every dimension"
    yield MatrixPicture(
        title,
        table,
        down="position",
        across="dimension",
        cell=(min(34, 272 / dimension), min(19, 300 / length)),
    )
    yield _map(similarity(table))
    yield _wide(table)
    yield _alike(similarity(table))


def normalised_figure(*, dimension: int = 8, length: int = 20) -> Parts:
    """Draw the encoding position / length at three lengths: a quarter, a half, and the whole of
    ``length``."""
    lengths = (max(length // 4, 1), max(length // 2, 2), length)
    values = np.full((len(lengths), max(lengths)), np.nan)
    for row, words in enumerate(lengths):
        places = torch.arange(words)
        values[row, :words] = _array(normalised(places, torch.full_like(places, words), 1))[:, 0]
    longest = np.repeat(values[2][:, None], dimension, axis=1)
    yield MatrixPicture(
        "Encoding: PE(pos) = pos / length, of three lengths",
        values,
        rows=[f"{words} words" for words in lengths],
        across="position",
        cell=(min(34.0, 680 / length), 26.0),
    )
    title = f"Similarity within {length} words, {dimension} dimensions"
    yield _map(similarity(longest), title)
    yield DataTable(
        ("length", "position", "value"),
        [
            (words, place, float(values[row, place]))
            for row, words in enumerate(lengths)
            for place in range(words)
        ],
    )
    yield _alike(similarity(longest))


def binary_figure(*, dimension: int = WIDTH, length: int = PLACES) -> Parts:
    """Draw each position as a binary number, once with 8 digits and once with ``dimension``
    digits."""
    small, large = (_array(binary(torch.arange(length), width)) for width in (8, dimension))
    flipped = np.abs(np.diff(small, axis=0)).sum(axis=1)
    yield _encoding("8 dimensions, lowest digit first", small, 13)
    yield _encoding(f"{dimension} dimensions", large, 358.4 / dimension)
    yield _map(similarity(large))
    yield _wide(small)
    yield _alike(similarity(large))
    yield DataTable(
        ("position", "digits that change to the next"),
        [(place, int(count)) for place, count in enumerate(flipped)],
        "flips",
    )


def sinusoidal_figure(*, dimension: int = WIDTH, length: int = PLACES) -> Parts:
    """Draw the sinusoidal encoding of the paper for ``length`` positions in ``dimension``
    dimensions."""
    table = _array(sinusoidal(torch.arange(length), dimension))
    places = list(range(length))
    waves = [
        Series(f"dimension {d}", places, table[:, d].tolist())
        for d in dict.fromkeys(
            2 * round(dimension * share / 2) for share in (0, 1 / 32, 1 / 8, 5 / 16)
        )
        if d < dimension
    ]
    title = f"Encoding, positions 0–{length - 1}, {dimension} dimensions"
    yield _encoding(title, table, 614.4 / dimension)
    yield _map(similarity(table))
    yield LinePanel("Some of the dimensions", waves, x_label="position", size=(760, 220))
    yield _wide(table)
    yield _alike(similarity(table))


def identity_figure(*, dimension: int = WIDTH) -> Parts:
    """Draw measured values of PE(i) · PE(i + Δ) for several i, next to Σ cos(ω_k Δ), which they
    equal according to the identity."""
    table = _array(sinusoidal(torch.arange(PLACES), dimension))
    frequencies = 10000.0 ** (-np.arange(0, dimension, 2) / dimension)
    starts, farthest = (0, 10, 30, 60), 61
    distances = np.arange(farthest)
    sums = np.cos(distances[:, None] * frequencies).sum(axis=1)  # Σ_k cos(ω_k Δ)
    products = np.stack([[table[i] @ table[i + d] for d in distances] for i in starts], axis=1)
    worst = float(np.abs(products - sums[:, None]).max())
    rows = [(int(d), float(sums[d]), *map(float, products[d])) for d in distances]
    x = distances.tolist()
    series = [Series("Σ cos(ω Δ)", x, sums.tolist())]
    series += [
        Series(f"from {start}", x, products[:, place].tolist())
        for place, start in enumerate(starts)
        if start in (0, 30, 60)
    ]
    yield LinePanel("PE(i) · PE(i + Δ)", series, x_label="distance Δ", size=(760, 300))
    yield DataTable(("distance", "sum of cosines", *(f"from {i}" for i in starts)), rows)
    yield Words(
        f"Largest difference between the two sides, over all that is drawn: {power(worst, 1)}.",
        f"그린 모든 점에서 두 변의 차이는 최대 {power(worst, 1)}입니다.",
    )


_UPDATES = 480
_LEARNED = (
    "name=learned-positions", "model.positions.kind=learned", "model.positions.maximum=64",
    "model.model_dim=64", "model.ffn_dim=128", "model.encoder_layers=1", "model.decoder_layers=1",
    f"training.updates={_UPDATES}", f"training.validate_every={_UPDATES}",
    "training.schedule.warmup=40", "training.schedule.peak=8e-3", "evaluation.dev_sentences=1",
    "search.max_length=40",
)  # fmt: skip
"""The settings of a model that is small enough to train for one figure. Sentences of the demo
corpus have about 20 tokens."""


def learned_figure(subject: Subject) -> Parts:
    """Draw the learned positions of a run. For a run without them, the figure trains a small model
    (``Subject.train``)."""
    if has_learned_positions(subject.transformer):
        table = _source_table(subject.transformer)
        yield Words(f"The table of the run {subject.name}.", f"{subject.name} 모델의 위치 임베딩.")
    else:
        assert subject.train is not None, "whoever may not train makes no such figure"
        begin = time.perf_counter()
        table = _source_table(transformer_of(subject.train(_LEARNED)))
        seconds = time.perf_counter() - begin
        yield Words(
            f"The run {subject.name} has fixed positions. For this figure a small model (one "
            f"layer, width 64) was trained with learned ones on the demo's sentences, {_UPDATES} "
            f"updates in {seconds:.0f} s; few sentences there are longer than 20 tokens.",
            f"{subject.name} 모델은 위치 인코딩이 고정되어 있습니다. 이 그림을 위해 작은 모델(1층, "
            f"64차원)을 데모 문장으로 위치 임베딩과 함께 {seconds:.0f}초 동안 학습했습니다"
            f"(업데이트 {_UPDATES}번). 데모 문장은 대개 20토큰을 넘지 않습니다.",
        )
    shown = table[:32]
    sizes = np.linalg.norm(shown, axis=1)
    cosines = similarity(shown / sizes[:, None])
    near, far = _likeness(cosines[:16, :16])
    yield MatrixPicture(
        "Encoding, positions 0–31", shown, cell=(6, 300 / 32), down="position", across="dimension"
    )
    yield _map(cosines, "Similarity, cosine")
    yield LinePanel(
        "Cosine with position 8",
        [Series("", list(range(len(cosines))), cosines[min(8, len(cosines) - 1)].tolist())],
        x_label="position",
        size=(420, 220),
    )
    yield _wide(shown)
    yield _alike(cosines)
    yield Words(
        f"Mean cosine among the first 16 positions: {near:+.2f} one or two apart, {far:+.2f} more "
        "than seven apart.",
        f"처음 16개 위치의 평균 코사인: 거리 1–2에서 {near:+.2f}, 거리 8 이상에서 {far:+.2f}.",
    )


def _source_table(model: Transformer) -> Array:
    table = model.source_positions.table
    assert table is not None
    return _array(table.detach())


def _likeness(cosines: Array) -> tuple[float, float]:
    """Return the mean of the ``cosines`` (P, P) of positions one or two apart, and of positions
    more than seven apart."""
    places = np.arange(len(cosines))
    distance = np.abs(places[:, None] - places)
    near, far = (distance >= 1) & (distance <= 2), distance > 7
    return float(cosines[near].mean()), float(cosines[far].mean())
