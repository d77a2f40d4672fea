"""What a run that labels sees of a file: a picture of it, and where it looked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.forms.rows.pictures_form import PicturesForm
from dragoman.forms.rows.rows_form import Rows, RowsForm
from dragoman.forms.rows.settings import FramesSource, PictureSource
from dragoman.insight.figures.patches import reading, rollout
from dragoman.models.settings import EncoderSettings
from dragoman.serving.classify.schema import ClassifyRequest, Rollout, Seen
from dragoman.serving.service.cells import MOST_PATCHES, grid_of, row_of
from dragoman.serving.service.seen import drawn
from dragoman.tasks.classification.labeller import Labeller

_MOST_READ = 256
"""Patches of a picture whose way through the model is drawn: its rows are sent as numbers."""


def seen(
    labeller: Labeller,
    form: RowsForm,
    rows: Rows,
    ranked: Sequence[tuple[str, float]],
    asked: ClassifyRequest,
) -> Seen:
    """A picture of what is read, and what else is asked of it. ``ranked``: its labels, the most
    probable first. Raises Refusal 400 for a cell that is not there."""
    read = rows[: labeller.longest]
    looked = of_heads = panels = None
    attended = _attended(labeller, form, read)
    if attended is not None:
        weights, places = attended
        source = form.settings
        shape = source.grid if isinstance(source, PictureSource) else (1, places)
        shares = _told(_filled(rollout(weights, places), shape))
        looked = Rollout(rows=shape[0], columns=shape[1], shares=shares)
        if asked.heads:
            begin = weights.shape[-1] - places  # behind the class token, if there is one
            if asked.at is not None:
                given = weights[..., begin + row_of(form, asked.at, len(read), places), :]
            else:
                given = weights[..., 0, :] if begin else weights.mean(axis=-2)  # (L, H, T)
            each = _filled(given[..., begin:], shape)
            of_heads = [[_told(head) for head in layer] for layer in each]
        if asked.reading and isinstance(form, PicturesForm) and places <= _MOST_READ:
            way, _ = reading(labeller, form, read, ranked)
            panels = [panel.to_dict() for panel in way]
    width, height, png = drawn(form, read)
    return Seen(
        width=width, height=height, png=png, rollout=looked,
        grid=grid_of(form, len(read)), heads=of_heads, reading=panels,
    )  # fmt: skip


def _attended(
    labeller: Labeller, form: RowsForm, read: Rows
) -> tuple[NDArray[np.float32], int] | None:
    """(L, H, T, T) attention weights of the encoder, and how many of the T rows are parts of the
    file; None where nothing attends, or where they are more than a picture shows."""
    source, model = form.settings, labeller.run.recipe.model
    if isinstance(source, FramesSource):
        is_shown = len(read) <= MOST_PATCHES * source.subsample
    else:
        is_shown = isinstance(source, PictureSource) and source.patches <= MOST_PATCHES
    if not is_shown:
        return None
    weights = labeller.engine.attention.record(read, ()).encoder
    if not len(weights):
        return None
    has_token = isinstance(model, EncoderSettings) and model.class_token
    return weights, weights.shape[-1] - has_token


def _filled(shares: NDArray[np.floating], shape: tuple[int, int]) -> NDArray[np.floating]:
    """(…, P) shares of the parts that are read -> of all; the rest has none."""
    missing = shape[0] * shape[1] - shares.shape[-1]
    return np.pad(shares, [(0, 0)] * (shares.ndim - 1) + [(0, missing)])


def _told(shares: NDArray[np.floating]) -> list[float]:
    return [float(f"{share:.4g}") for share in shares]
