"""Figures of a model that labels pictures: the patches that it looked at, how it reads them, and
its learned positions.

Shapes: a picture has P patches, R from top to bottom and C from left to right, and each patch is F
numbers. The model has T rows: one for each patch, and before these one for a class token if the
model has one. D is the width of the model; L is the number of its layers, H the number of heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.insight.figures.captions import Parts
from dragoman.insight.subject import Subject
from dragoman.models.catalogue.classifier import Classifier
from dragoman.models.encoding import Encoder
from dragoman.models.interface import Network
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.pictures.figure import DataTable, Panel, Words
from dragoman.pictures.matrix import MatrixPicture
from dragoman.pictures.panels import HeadGrid
from dragoman.sources.picture.form import PicturesForm

Array = NDArray[np.float64]

_SIDE = 280.0
"""The pixels of the longer side of a picture."""
_LAYERS, _LABELS = 2, 10
"""The most layers and the most labels that are drawn."""


def rollout_figure(subject: Subject) -> Parts:
    """Draw a picture, and how much each of its patches contributed to the label according to
    attention rollout (``rollout``)."""
    record, form = subject.attention, PicturesForm.of(subject.run.source)
    down, across = form.settings.grid
    values = np.asarray(subject.predictor.source_values(subject.sentence))
    light = form.picture(values).mean(axis=-1) / 255  # (H, W)
    looked = np.zeros((down, across))
    looked.flat[: len(values)] = rollout(record.encoder, len(values))  # the rest is not read
    patch = form.settings.patch
    seen = light * np.kron(looked / looked.max(), np.ones((patch, patch)))
    pixel = _SIDE / max(light.shape)
    side = (pixel * patch, pixel * patch)
    by_row, by_column = ([str(place + 1) for place in range(count)] for count in (down, across))
    rows = [(r + 1, c + 1, float(looked[r, c])) for r, c in np.ndindex(down, across)]
    most = max(rows, key=lambda row: row[2])
    label, share = subject.output.text.rsplit("  ", 1)
    yield MatrixPicture("What was read", light, cell=(pixel, pixel), reach=1.0)
    yield MatrixPicture("Attention rollout", looked, by_row, by_column, cell=side)
    yield MatrixPicture("The picture, by rollout", seen, cell=(pixel, pixel), reach=1.0)
    yield DataTable(("row", "column", "share"), rows)
    yield Words(
        f"{subject.sentence}: {label}, {100 * float(share):.1f} %. The patch with the "
        f"largest share is in row {most[0]}, column {most[1]}: {100 * most[2]:.1f} % (all "
        f"alike: {100 / looked.size:.1f} %).",
        f"{subject.sentence}: {label}, {100 * float(share):.1f}%. 비중이 가장 큰 패치는 "
        f"{most[0]}행 {most[1]}열이며 {100 * most[2]:.1f}%입니다(모두 같다면 "
        f"{100 / looked.size:.1f}%).",
    )


def rollout(weights: NDArray[np.floating], patches: int) -> Array:
    """Return (P,): how much each of the ``patches`` contributed to the label, by attention rollout
    (Abnar and Zuidema, 2020). ``weights`` (L, H, T, T) are the attention of one picture. The matrix
    of a layer is half the mean of its heads plus half the identity, for the residual connection.
    The matrices of all layers are multiplied. The result sums to 1."""
    size = weights.shape[-1]
    # From the last layer down only one row is needed: T x T numbers per layer.
    shares: Array = np.eye(1, size)[0] if size > patches else np.full(size, 1 / size)
    for layer in weights[::-1].mean(axis=1, dtype=np.float64):
        shares = (shares @ layer + shares) / 2
    shares = shares[size - patches :]
    contributions: Array = shares / shares.sum()
    return contributions


def reading_figure(subject: Subject) -> Parts:
    """Draw a picture on its way through the model: its patches, their rows, the rows after each
    layer, and the labels."""
    form, model = PicturesForm.of(subject.run.source), subject.predictor.plain
    values = np.asarray(subject.predictor.source_values(subject.sentence))
    labeller: Any = subject.predictor  # only a model that labels pictures has patches
    ranked = labeller(subject.sentence).ranked
    panels, stages = reading(model, labeller.reading.texts([values]), form, values, ranked)
    numbers, width = stages[0][2], stages[1][2]
    patch, ranked = form.settings.patch, ranked[:_LABELS]
    yield from panels
    yield DataTable(("stage", "rows", "numbers of a row"), stages)
    yield DataTable(("label", "probability"), ranked, "labels")
    yield Words(
        f"{subject.sentence}: {len(values)} patches of {patch} x {patch} pixels. The "
        f"{numbers} numbers of each become {width}. The label: "
        f"{ranked[0][0]}, {100 * ranked[0][1]:.1f} %.",
        f"{subject.sentence}: {patch} x {patch} 픽셀 패치 {len(values)}개. 패치의 수 "
        f"{numbers}개가 {width}개가 됩니다. 레이블: "
        f"{ranked[0][0]}, {100 * ranked[0][1]:.1f}%.",
    )


def reading(
    model: Network,
    read: Sequences,
    form: PicturesForm,
    values: NDArray[np.uint8],
    ranked: Sequence[tuple[str, float]],
) -> tuple[list[Panel], list[tuple[str, int, int]]]:
    """Return panels that show how a picture passes through the model, and for each stage its name,
    its number of rows and the numbers per row. ``values`` (P, F): the patches; ``read``: the same
    patches in the form in which the model takes them; ``form``: the sizes of pictures and patches;
    ``ranked``: the labels of the picture and their probabilities, the most probable label first."""
    pixels = form.picture(values).mean(axis=-1) / 255  # (H, W)
    down, across = form.settings.grid
    patch, channels = form.settings.patch, form.settings.channels
    grid = pixels.reshape(down, patch, across, patch)
    apart = np.full((down, patch + 1, across, patch + 1), np.nan)
    apart[:, :patch, :, :patch] = grid
    cut = apart.reshape(down * (patch + 1), across * (patch + 1))[:-1, :-1]
    pixel = _SIDE / max(cut.shape)
    stages = _stages(model, read)
    in_rows = values.astype(np.float64).reshape(len(values), -1, channels).mean(axis=-1) / 255
    bare = [""] * len(cut), [""] * cut.shape[1]
    panels: list[Panel] = [
        MatrixPicture("Its patches", cut, *bare, cell=(pixel, pixel), reach=1.0),
        _of_rows("Patches as rows", in_rows, 1.0),
        *(_of_rows(name, rows) for name, rows in stages),
        MatrixPicture(
            "The labels",
            np.array([[share] for _, share in ranked[:_LABELS]]),
            [name for name, _ in ranked[:_LABELS]],
            ["probability"],
            reach=1.0,
        ),
    ]
    sizes = [
        ("patches", len(values), patch * patch * channels),
        *((name.lower(), *rows.shape) for name, rows in stages),
    ]
    return panels, sizes


def _of_rows(name: str, rows: Array, reach: float | None = None) -> MatrixPicture:
    """Return a panel of the matrix ``rows`` (T, D), drawn in a fixed size. ``reach``: the number
    that is drawn darkest; by default, the largest magnitude."""
    cell = (_SIDE / rows.shape[1], _SIDE / len(rows))
    return MatrixPicture(name, rows, [""] * len(rows), cell=cell, reach=reach)


def _stages(model: Network, read: Sequences) -> list[tuple[str, Array]]:
    """Return the name and the rows (T, D) of each stage: the input of the first layer, and the
    output of each layer, or only of the first and the last if there are more than two."""

    class EmbeddedPatches(Probe):
        def take_embedded(self, rows: Tensor) -> Tensor:
            stages.append(("Rows, with their places", rows.double().numpy()))
            return rows

    stages: list[tuple[str, Array]] = []
    with torch.inference_mode(), EmbeddedPatches() as probe:
        model.encode(read)
    layers = [rows.double().numpy() for rows in probe.activations.values()]
    every = list(enumerate(layers, 1))
    shown = every if len(every) <= _LAYERS else [every[0], every[-1]]
    return stages + [(f"After layer {number}", rows) for number, rows in shown]


def places_figure(subject: Subject) -> Parts:
    """Draw, for each patch, the cosine of its learned position with that of every other patch."""
    form, model = PicturesForm.of(subject.run.source), subject.predictor.plain
    assert isinstance(model, Classifier) and isinstance(model.body, Encoder)
    table = model.body.source_positions.table
    assert table is not None
    down, across = form.settings.grid
    first = int(model.body.settings.class_token)
    rows = table.detach().double().numpy()[first : first + down * across]
    cosines = likeness(rows)
    near, far = _near_and_far(cosines, down, across)
    title = "Cosine of each patch's position with all others, at its place in the picture"
    grid = cosines.reshape(down, across, down, across)
    yield HeadGrid(title, grid, "row", "column")
    yield DataTable(
        ("row", "column", "other row", "other column", "cosine"),
        [
            (r + 1, c + 1, other // across + 1, other % across + 1, float(cosines[place, other]))
            for place, (r, c) in enumerate(product(range(down), range(across)))
            for other in range(down * across)
        ],
    )
    yield Words(
        f"Mean cosine: {near:+.2f} of patches side by side, {far:+.2f} of those that share "
        "neither row nor column.",
        f"평균 코사인: 맞닿은 패치 {near:+.2f}, 행과 열이 모두 다른 패치 {far:+.2f}.",
    )


def likeness(rows: Array) -> Array:
    """Return (P, P): the cosine of each of the ``rows`` (P, D) with every other."""
    scaled = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines: Array = scaled @ scaled.T
    return cosines


def _near_and_far(cosines: Array, down: int, across: int) -> tuple[float, float]:
    """Return the mean of the ``cosines`` (P, P) of patches that share a side, and of patches in
    different rows and columns. ``down`` and ``across``: the rows and columns of patches in the
    picture."""
    row, column = np.divmod(np.arange(down * across), across)
    by_row, by_column = (np.abs(numbers[:, None] - numbers) for numbers in (row, column))
    touch, apart = by_row + by_column == 1, (by_row > 0) & (by_column > 0)
    return tuple(  # type: ignore[return-value]
        float(cosines[mask].mean()) if mask.any() else float("nan") for mask in (touch, apart)
    )
