"""Figures of a model that labels pictures: where it looked, and what it has learned of places.

Shapes: P patches of a picture, R of them from top to bottom and C from left to right; T rows of the
model, P or, with a class token before them, P + 1.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from dragoman.forms.rows.pictures_form import PicturesForm
from dragoman.insight.figures.captions import Drawn
from dragoman.insight.subject import Subject
from dragoman.models.catalogue.classifier import Classifier
from dragoman.models.encoder import Encoder
from dragoman.pictures.figure import DataTable, Words
from dragoman.pictures.matrix import MatrixPicture
from dragoman.pictures.panels import Cells, HeadGrid

Array = NDArray[np.float64]

_SIDE = 280.0
"""Pixels of the longer side of a picture."""


def rollout_figure(subject: Subject) -> Drawn:
    """A picture, and how much each of its patches has to do with its label by attention alone."""
    record, form = subject.attention, subject.run.source
    assert isinstance(form, PicturesForm)
    down, across = form.settings.grid
    values = np.asarray(subject.predictor.source_values(subject.sentence))
    light = form.picture(values).mean(axis=-1) / 255  # (H, W)
    looked = np.zeros((down, across))
    looked.flat[: len(values)] = rollout(record.encoder, len(values))  # the rest is not read
    patch = form.settings.patch
    seen = light * np.kron(looked / looked.max(), np.ones((patch, patch)))
    pixel = _SIDE / max(light.shape)
    side = (pixel * patch, pixel * patch)
    by_row, by_column = ([str(one + 1) for one in range(count)] for count in (down, across))
    shares = MatrixPicture("Attention rollout", looked, by_row, by_column, cell=side)
    rows = [(r + 1, c + 1, float(looked[r, c])) for r, c in np.ndindex(down, across)]
    most = max(rows, key=lambda row: row[2])
    label, share = subject.output.text.rsplit("  ", 1)
    return Drawn(
        [
            Cells(MatrixPicture("What was read", light, cell=(pixel, pixel), reach=1.0)),
            Cells(shares),
            Cells(MatrixPicture("The picture, by rollout", seen, cell=(pixel, pixel), reach=1.0)),
        ],
        [DataTable("", ("row", "column", "share"), rows)],
        run=subject.name,
        notes=[
            Words(
                f"{subject.sentence}: {label}, {100 * float(share):.1f} %. The patch with the "
                f"largest share is in row {most[0]}, column {most[1]}: {100 * most[2]:.1f} % (all "
                f"alike: {100 / looked.size:.1f} %).",
                f"{subject.sentence}: {label}, {100 * float(share):.1f}%. 비중이 가장 큰 패치는 "
                f"{most[0]}행 {most[1]}열이며 {100 * most[2]:.1f}%입니다(모두 같다면 "
                f"{100 / looked.size:.1f}%).",
            )
        ],
    )


def rollout(weights: NDArray[np.floating], patches: int) -> Array:
    """(L, H, T, T) of one picture -> (P,) how much of what says the label comes from each patch,
    which sums to 1 (Abnar and Zuidema, 2020): of each layer the mean of its heads, half of it and
    half of the residual, one layer times the next."""
    size = weights.shape[-1]
    through = np.eye(size)
    for layer in weights.astype(np.float64).mean(axis=1):
        through = (layer + np.eye(size)) / 2 @ through
    shares: Array = through[0] if size > patches else through.mean(axis=0)
    shares = shares[size - patches :]
    found: Array = shares / shares.sum()
    return found


def places_figure(subject: Subject) -> Drawn:
    """The cosine of the learned position of each patch with that of every other."""
    form, model = subject.run.source, subject.predictor.plain
    assert isinstance(form, PicturesForm) and isinstance(model, Classifier)
    assert isinstance(model.body, Encoder)
    table = model.body.source_positions.table
    assert table is not None
    down, across = form.settings.grid
    first = int(model.body.settings.class_token)
    rows = table.detach().double().numpy()[first : first + down * across]
    cosines = likeness(rows)
    near, far = _near_and_far(cosines, down, across)
    told = [
        (r + 1, c + 1, other // across + 1, other % across + 1, float(cosines[place, other]))
        for place, (r, c) in enumerate(product(range(down), range(across)))
        for other in range(down * across)
    ]
    title = "Cosine of each patch's position with all others, where it lies in the picture"
    grid = cosines.reshape(down, across, down, across)
    return Drawn(
        [HeadGrid(title, grid, "row", "column")],
        [DataTable("", ("row", "column", "other row", "other column", "cosine"), told)],
        run=subject.name,
        notes=[
            Words(
                f"Mean cosine: {near:+.2f} of patches side by side, {far:+.2f} of those that share "
                "neither row nor column.",
                f"평균 코사인: 맞닿은 패치 {near:+.2f}, 행과 열이 모두 다른 패치 {far:+.2f}.",
            )
        ],
    )


def likeness(rows: Array) -> Array:
    """(P, D) -> (P, P) cosines."""
    scaled = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found: Array = scaled @ scaled.T
    return found


def _near_and_far(cosines: Array, down: int, across: int) -> tuple[float, float]:
    """The mean of patches that touch along a side, and of those in other rows and columns."""
    row, column = np.divmod(np.arange(down * across), across)
    by_row, by_column = (np.abs(one[:, None] - one) for one in (row, column))
    touch, apart = by_row + by_column == 1, (by_row > 0) & (by_column > 0)
    return tuple(  # type: ignore[return-value]
        float(cosines[one].mean()) if one.any() else float("nan") for one in (touch, apart)
    )
