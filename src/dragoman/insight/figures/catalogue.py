"""Every figure by its name: which need a trained run, and how each is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dragoman.errors import DragomanError
from dragoman.insight.figures import attention, costs, decoding, head, positions, run, training
from dragoman.insight.figures.captions import captions, check_name
from dragoman.insight.figures.subject import Subject
from dragoman.insight.needs import lacking
from dragoman.pictures.figure import Figure

PLAIN: dict[str, Callable[..., Figure]] = {
    "position-index": positions.index_figure,
    "position-normalised": positions.normalised_figure,
    "position-binary": positions.binary_figure,
    "position-sinusoidal": positions.sinusoidal_figure,
    "position-identity": positions.identity_figure,
    "scale": head.scale_figure,
    "cost": costs.cost_figure,
    "cost-length": costs.length_figure,
    "schedule": training.schedule_figure,
    "label-smoothing": training.smoothing_figure,
}
"""Figures that need nothing."""

OF_RUN: dict[str, Callable[..., Figure]] = {
    "position-learned": positions.learned_figure,
    "order": run.order_figure,
    "lookup": head.lookup_figure,
    "four-steps": head.four_steps_figure,
    "mask": head.mask_figure,
    "heads": head.heads_figure,
    "temperature": decoding.temperature_figure,
    "length-penalty": decoding.length_penalty_figure,
    "layers": training.layers_figure,
    "attention-encoder": attention.encoder_figure,
    "attention-decoder": attention.decoder_figure,
    "attention-cross": attention.cross_figure,
    "head-importance": run.importance_figure,
    "alignment": run.alignment_figure,
    "pronoun": run.pronoun_figure,
}
"""Figures that look into a trained run."""


def make_figure(
    name: str, subject: Subject | None, values: Mapping[str, float] | None = None
) -> Figure:
    """Compute one figure. ``subject`` may be None for those of ``PLAIN``; ``values`` are what its
    sliders say (``sliders.py``).

    Errors: ``DragomanError`` for a name that is none, or a run that cannot show it.
    """
    check_name(name)
    if name in PLAIN:
        return PLAIN[name](**(values or {}))
    if subject is None:
        raise DragomanError(
            f"the figure {name} looks into a trained run; make one with dragoman demo, or name "
            "yours: --run RUN"
        )
    missing = lacking(name, subject.predictor.plain)
    if missing is not None:
        raise DragomanError(missing.english)
    return OF_RUN[name](subject, **(values or {}))


def every_figure(subject: Subject | None) -> Iterator[tuple[str, Figure | None, str]]:
    """All figures in the order of the book: name, the figure or None, and why there is none."""
    for name in captions():
        try:
            yield name, make_figure(name, subject), ""
        except DragomanError as error:
            yield name, None, str(error)
