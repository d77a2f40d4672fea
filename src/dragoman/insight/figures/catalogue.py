"""Every figure by its name: how it is made, what it needs of a run, and what a reader may change.

Its words stand in ``captions.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from dragoman.errors import DragomanError
from dragoman.insight.figures import (
    attention,
    bands,
    costs,
    decoding,
    head,
    heads,
    patches,
    positions,
    run,
    scale,
    sliders,
    spikes,
    timeline,
    training,
)
from dragoman.insight.figures.captions import Drawn, captions, check_name
from dragoman.insight.figures.sliders import LEAST_SURE, MEAN, Slider, Sliders, of_head, of_part
from dragoman.insight.needs import BANDS, INSIDE, LEARNED_PLACES, PATCHES, SPIKES, WRITES, lacking
from dragoman.insight.subject import Subject
from dragoman.models.interface import Network
from dragoman.pictures.figure import Figure, Words

Group = Literal["positions", "attention", "training", "run"]
"""What a figure is about: ways to tell positions; attention; costs, training and search; or a
trained run."""
Sentence = Literal["first", "chosen"]
"""The first of those that the run was measured on; or one that the figure chooses: short enough, or
the one that shows most."""


@dataclass(frozen=True)
class Entry:
    """One figure."""

    make: Callable[..., Drawn]
    """Of what its sliders say, by their names; of a run, the subject first."""
    sliders: Sliders | Callable[[Network], Sliders] = ()
    """Those of layers and heads need to know the model."""
    group: Group = field(default="run", kw_only=True)
    """What it is about."""
    trains: bool = field(default=False, kw_only=True)
    """Whether a small model is trained for it where the run has no learned positions."""
    of_demo: bool = field(default=False, kw_only=True)
    """Whether the run must have learned the embedded corpus."""


@dataclass(frozen=True)
class OfRun(Entry):
    """One that looks into a trained run."""

    needs: tuple[str, ...] = ()
    """What the model must have for it: see ``insight/needs.py``."""
    sentence: Sentence | None = field(default=None, kw_only=True)
    """Which sentence it shows, where a reader may give another."""


FIGURES: dict[str, Entry] = {
    "position-index": Entry(positions.index_figure, sliders.OF_INDEX, group="positions"),
    "position-normalised": Entry(
        positions.normalised_figure, sliders.OF_NORMALISED, group="positions"
    ),
    "position-binary": Entry(positions.binary_figure, sliders.OF_WAVES, group="positions"),
    "position-sinusoidal": Entry(positions.sinusoidal_figure, sliders.OF_WAVES, group="positions"),
    "position-identity": Entry(positions.identity_figure, sliders.OF_IDENTITY, group="positions"),
    "scale": Entry(scale.scale_figure, group="attention"),
    "cost": Entry(costs.cost_figure, group="training"),
    "cost-length": Entry(costs.length_figure, group="training"),
    "schedule": Entry(training.schedule_figure, sliders.OF_SCHEDULE, group="training"),
    "label-smoothing": Entry(training.smoothing_figure, sliders.OF_SMOOTHING, group="training"),
    "position-learned": OfRun(
        positions.learned_figure, needs=(INSIDE,), trains=True, group="positions"
    ),
    "order": OfRun(run.order_figure, needs=(INSIDE,), group="positions"),
    "lookup": OfRun(
        head.lookup_figure,
        of_head("cross", LEAST_SURE),
        (INSIDE,),
        group="attention",
        sentence="chosen",
    ),
    "four-steps": OfRun(
        head.four_steps_figure, of_part("encoder"), (INSIDE,), group="attention", sentence="chosen"
    ),
    "mask": OfRun(
        head.mask_figure, of_part("decoder"), (INSIDE,), group="attention", sentence="chosen"
    ),
    "heads": OfRun(
        heads.heads_figure, sliders.of_cuts, (INSIDE,), group="attention", sentence="chosen"
    ),
    "temperature": OfRun(
        decoding.temperature_figure,
        sliders.OF_TEMPERATURE,
        (WRITES,),
        group="training",
        sentence="chosen",
    ),
    "length-penalty": OfRun(
        decoding.length_penalty_figure,
        sliders.OF_PENALTY,
        (WRITES,),
        group="training",
        sentence="chosen",
    ),
    "layers": OfRun(training.layers_figure, needs=(INSIDE,), group="training"),
    "attention-encoder": OfRun(
        attention.encoder_figure,
        of_part("encoder", MEAN, last=True),
        ("encoder",),
        sentence="first",
    ),
    "attention-decoder": OfRun(
        attention.decoder_figure,
        of_part("decoder", MEAN, last=True),
        ("decoder",),
        sentence="first",
    ),
    "attention-cross": OfRun(
        attention.cross_figure, of_part("cross", MEAN, last=True), ("cross",), sentence="first"
    ),
    "head-importance": OfRun(run.importance_figure, needs=(WRITES,)),
    "alignment": OfRun(run.alignment_figure, needs=("cross",), sentence="first"),
    "pronoun": OfRun(run.pronoun_figure, needs=("encoder", "cross"), of_demo=True),
    "picture-reading": OfRun(patches.reading_figure, needs=(PATCHES,), sentence="first"),
    "picture-rollout": OfRun(patches.rollout_figure, needs=(PATCHES,), sentence="first"),
    "picture-positions": OfRun(patches.places_figure, needs=(LEARNED_PLACES,), group="positions"),
    "ctc-spikes": OfRun(spikes.spikes_figure, needs=(SPIKES, "cross"), sentence="first"),
    "band-heads": OfRun(bands.band_heads_figure, needs=(BANDS,), sentence="first"),
    "timeline": OfRun(timeline.timeline_figure),
}


def needs_run(name: str) -> bool:
    """Whether a figure looks into a trained run."""
    return isinstance(FIGURES[name], OfRun)


def sentence_of(name: str) -> Sentence | None:
    """Which sentence a figure shows, where a reader may give another."""
    entry = FIGURES[name]
    return entry.sentence if isinstance(entry, OfRun) else None


def missing(name: str, model: Network) -> Words | None:
    """What ``model`` lacks for a figure, if anything."""
    entry = FIGURES[name]
    return lacking(entry.needs, model) if isinstance(entry, OfRun) else None


def make_figure(
    name: str, subject: Subject | None, values: Mapping[str, float] | None = None
) -> Figure:
    """Compute one figure. ``subject`` may be None for those that need no run; ``values`` are what
    its sliders say.

    Errors: ``DragomanError`` for a name that is none, or a run that cannot show it.
    """
    check_name(name)
    entry = FIGURES[name]
    if not isinstance(entry, OfRun):
        return entry.make(**(values or {})).named(name)
    if subject is None:
        raise DragomanError(
            f"the figure {name} looks into a trained run; make one with dragoman demo, or name "
            "yours: --run RUN"
        )
    lacks = missing(name, subject.predictor.plain)
    if lacks is not None:
        raise DragomanError(lacks.english)
    return entry.make(subject, **(values or {})).named(name)


def sliders_of(name: str, subject: Subject | None) -> Sliders:
    """The sliders of a figure. Where there is one layer, there is nothing to choose."""
    found = FIGURES[name].sliders
    if not callable(found):
        return found
    if subject is None or missing(name, subject.predictor.plain) is not None:
        return ()
    return tuple(slider for slider in found(subject.predictor.plain) if len(slider.values) > 1)


def checked(
    name: str, subject: Subject | None, values: Mapping[str, float]
) -> dict[str, int | float]:
    """What the figure is to be made with: whole numbers whole.

    Errors: ``DragomanError`` for a slider that the figure has not, or a value that it cannot have.
    """
    known: dict[str, Slider] = {slider.name: slider for slider in sliders_of(name, subject)}
    found: dict[str, int | float] = {}
    for key, value in values.items():
        if key not in known:
            has = ", ".join(known) or "none"
            raise DragomanError(f"{name} has no slider {key!r}; it has: {has}")
        slider = known[key]
        if value not in slider.values:
            allowed = ", ".join(f"{one:g}" for one in slider.values)
            raise DragomanError(f"{key} of {name} is one of {allowed}; given: {value:g}")
        found[key] = int(value) if slider.is_whole else float(value)
    return found


def every_figure(subject: Subject | None) -> Iterator[tuple[str, Figure | None, str]]:
    """All figures in the order of the book: name, the figure or None, and why there is none."""
    for name in captions():
        try:
            yield name, make_figure(name, subject), ""
        except DragomanError as error:
            yield name, None, str(error)
