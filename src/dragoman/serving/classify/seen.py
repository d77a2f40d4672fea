"""What a run that labels sees of a file: a picture of it, and where it looked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.forms.rows.rows_form import Rows, RowsForm
from dragoman.forms.rows.settings import PictureSource
from dragoman.insight.figures.patches import rollout
from dragoman.pictures.bitmaps.pixels import png_base64
from dragoman.serving.classify.schema import Rollout, Seen
from dragoman.serving.service.cells import MOST_PATCHES, grid_of
from dragoman.tasks.classification.labeller import Labeller


def seen(labeller: Labeller, form: RowsForm, rows: Rows, *, heads: bool) -> Seen:
    """A picture of what is read; ``heads``: with where each head looks."""
    read = rows[: labeller.longest]
    pixels = form.picture(read)
    png = png_base64(pixels)
    looked, of_heads = _attention(labeller, form, rows, heads=heads)
    return Seen(
        width=pixels.shape[1], height=pixels.shape[0], png=png, rollout=looked,
        grid=grid_of(form, len(read)), heads=of_heads,
    )  # fmt: skip


def _attention(
    labeller: Labeller, form: RowsForm, rows: Rows, *, heads: bool
) -> tuple[Rollout | None, list[list[list[float]]] | None]:
    source = form.settings
    if not isinstance(source, PictureSource) or source.patches > MOST_PATCHES:
        return None, None
    down, across = source.grid
    read = rows[: labeller.longest]
    weights = labeller.engine.attention.record(read, ()).encoder  # (L, H, T, T)
    shares = np.zeros(down * across)  # the rest is not read
    shares[: len(read)] = rollout(weights, len(read))
    looked = Rollout(rows=down, columns=across, shares=_told(shares))
    if not heads:
        return looked, None
    # Of the class token, or where there is none, of all patches: what the label is read from.
    has_token = weights.shape[-1] > len(read)
    of_each = weights[..., 0, :] if has_token else weights.mean(axis=-2)  # (L, H, T)
    padded = np.zeros((*of_each.shape[:2], down * across))
    padded[..., : len(read)] = of_each[..., -len(read) :]
    return looked, [[_told(head) for head in layer] for layer in padded]


def _told(shares: Sequence[float] | np.ndarray) -> list[float]:
    return [float(f"{share:.4g}") for share in shares]
