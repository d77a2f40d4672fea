"""A catalogue of all figures: for each, its name, its function, what it needs from a run, and its
sliders. ``write_book`` writes all figures into one folder. Their texts are in ``captions.toml``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from dragoman.base.errors import DragomanError
from dragoman.base.wording import shorten
from dragoman.demo.corpus import NOTICE
from dragoman.insight.figures import (
    attention,
    costs,
    decoding,
    head,
    patches,
    positions,
    recordings,
    run,
    training,
)
from dragoman.insight.figures.captions import Parts, captions, check_name, with_caption
from dragoman.insight.subject import (
    Need,
    Subject,
    has_learned_positions,
    lacking,
    transformer_of,
)
from dragoman.models.interface import Network
from dragoman.pictures.figure import Figure, Words, book_html, why_no_png, write_figure
from dragoman.pictures.records import KINDS


@dataclass(frozen=True)
class Slider:
    """A number that a reader of a figure can change."""

    name: str
    """The argument, of the function that makes the figure, that the slider sets."""
    title: Words
    values: Sequence[float]
    """The possible values of the slider, in order."""
    start: float
    zero: Words | None = None
    """The meaning of the value 0, if it is not a number but a choice such as "mean"."""

    @property
    def is_whole(self) -> bool:
        """True if all values are whole numbers."""
        return all(value == int(value) for value in self.values)


_DIMENSIONS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
_LENGTHS = (4, 8, 16, 20, 32, 48, 64, 96, 128)
_DIMENSION = Words("dimensions", "차원")
_LENGTH = Words("length", "길이")
_LAYER = Words("layer", "층")
_HEAD = Words("head", "헤드")
MEAN = Words("mean", "평균")
LEAST_SURE = Words("the least sure", "가장 망설이는 헤드")

_SMALL = Slider("dimension", _DIMENSION, _DIMENSIONS[:7], 8)
_LARGE = Slider("dimension", _DIMENSION, _DIMENSIONS, 512)

Sliders = tuple[Slider, ...]

OF_INDEX: Sliders = (_SMALL, Slider("length", _LENGTH, _LENGTHS, 16))
OF_NORMALISED: Sliders = (_SMALL, Slider("length", _LENGTH, _LENGTHS, 20))
OF_WAVES: Sliders = (_LARGE, Slider("length", _LENGTH, _LENGTHS, 128))
OF_IDENTITY: Sliders = (_LARGE,)
OF_SCHEDULE: Sliders = (
    Slider("dimension", Words("d_model", "d_model"), (64, 128, 256, 512, 1024), 512),
    Slider("warmup", Words("warm-up", "웜업"), (500, 1000, 2000, 4000, 8000, 16000), 4000),
)
OF_SMOOTHING: Sliders = (
    Slider("epsilon", Words("ε", "ε"), tuple(i / 20 for i in range(1, 11)), 0.1),
    Slider("vocabulary", Words("vocabulary", "어휘"), (4, 6, 8, 10, 12, 16, 20), 10),
)
OF_TEMPERATURE: Sliders = (
    Slider("temperature", Words("temperature", "온도"), tuple(i / 10 for i in range(1, 31)), 0.5),
)
OF_PENALTY: Sliders = (Slider("penalty", Words("α", "α"), tuple(i / 20 for i in range(41)), 0.6),)

# ---- sliders that depend on a run


def of_part(
    part: str, zero: Words | None = None, *, last: bool = False
) -> Callable[[Network], Sliders]:
    """Return a function that makes two sliders for a model: one for the layer and one for the head
    of its attention ``part`` (encoder, decoder or cross). ``zero``: the meaning of head 0, such as
    "mean"; if None, heads count from 1. ``last``: True if the slider of the layer starts at the
    last layer, not at the first."""

    def make_sliders(model: Network) -> Sliders:
        count = len(model.attentions_of(part))
        layers = Slider("layer", _LAYER, tuple(range(1, count + 1)), count if last else 1)
        return layers, *of_head(part, zero)(model)

    return make_sliders


def of_head(part: str, zero: Words | None = None) -> Callable[[Network], Sliders]:
    """Return a function that makes the slider of a model that selects a head of its attention
    ``part``, such as "encoder". ``zero``: the meaning of head 0, such as "mean"; if None, heads
    count from 1."""

    def make_sliders(model: Network) -> Sliders:
        most = max((layer.heads for layer in model.attentions_of(part)), default=0)
        first = 0 if zero else 1
        return (Slider("head", _HEAD, tuple(range(first, most + 1)), first, zero),)

    return make_sliders


def of_cuts(model: Network) -> Sliders:
    """Return a slider for the number of heads into which the matrices of a Transformer are cut:
    those of 1, 2, 4, 8 and 16 that divide its widths. Return no slider if the model's own number of
    heads is not among these."""
    sizes = transformer_of(model).settings
    heads = sizes.attention.num_heads
    width = heads * (sizes.attention.key_width or sizes.model_dim // heads)
    cuts = tuple(n for n in (1, 2, 4, 8, 16) if width % n == 0 and sizes.model_dim % n == 0)
    return (Slider("heads", Words("heads", "헤드 수"), cuts, heads),) if heads in cuts else ()


Group = Literal["positions", "attention", "training", "run"]
"""The topic of a figure: encodings of positions; attention; costs, training and search; or a
trained run."""
Sentence = Literal["first", "chosen"]
""""first": the sentence that is shown if the user gives none is that of ``Subject.open``. "chosen":
the figure itself chooses one that is short enough, or the most instructive."""


@dataclass(frozen=True)
class Entry:
    """The way in which a figure is made, and its requirements."""

    make: Callable[..., Parts]
    """The function that makes the figure from its sliders, by name; for a figure of a run, the
    subject comes first."""
    sliders: Sliders | Callable[[Network], Sliders] = ()
    """The sliders, or a function that makes them for a model."""
    needs: tuple[Need, ...] | None = None
    """The needs of the figure (``Need``); None for a figure that needs no run."""
    group: Group = field(default="run", kw_only=True)
    """The topic by which figures are grouped."""
    sentence: Sentence | None = field(default=None, kw_only=True)
    """The way in which the default sentence is chosen; None if the reader cannot give a
    sentence."""
    trains: bool = field(default=False, kw_only=True)
    """True if the figure trains a small model for a run without learned positions."""
    of_demo: bool = field(default=False, kw_only=True)
    """True if the run must have learned the embedded corpus."""


FIGURES: dict[str, Entry] = {
    "position-index": Entry(positions.index_figure, OF_INDEX, group="positions"),
    "position-normalised": Entry(positions.normalised_figure, OF_NORMALISED, group="positions"),
    "position-binary": Entry(positions.binary_figure, OF_WAVES, group="positions"),
    "position-sinusoidal": Entry(positions.sinusoidal_figure, OF_WAVES, group="positions"),
    "position-identity": Entry(positions.identity_figure, OF_IDENTITY, group="positions"),
    "scale": Entry(attention.scale_figure, group="attention"),
    "cost": Entry(costs.cost_figure, group="training"),
    "cost-length": Entry(costs.length_figure, group="training"),
    "schedule": Entry(training.schedule_figure, OF_SCHEDULE, group="training"),
    "label-smoothing": Entry(training.smoothing_figure, OF_SMOOTHING, group="training"),
    "position-learned": Entry(
        positions.learned_figure, needs=("inside",), trains=True, group="positions"
    ),
    "order": Entry(run.order_figure, needs=("inside",), group="positions"),
    "lookup": Entry(
        head.lookup_figure,
        of_head("cross", LEAST_SURE),
        ("inside",),
        group="attention",
        sentence="chosen",
    ),
    "four-steps": Entry(
        head.four_steps_figure,
        of_part("encoder"),
        ("inside",),
        group="attention",
        sentence="chosen",
    ),
    "mask": Entry(
        head.mask_figure, of_part("decoder"), ("inside",), group="attention", sentence="chosen"
    ),
    "heads": Entry(
        attention.heads_figure, of_cuts, ("inside",), group="attention", sentence="chosen"
    ),
    "temperature": Entry(
        decoding.temperature_figure,
        OF_TEMPERATURE,
        ("writes",),
        group="training",
        sentence="chosen",
    ),
    "length-penalty": Entry(
        decoding.length_penalty_figure,
        OF_PENALTY,
        ("writes",),
        group="training",
        sentence="chosen",
    ),
    "layers": Entry(training.layers_figure, needs=("inside",), group="training"),
    **{
        f"attention-{kind}": Entry(
            partial(attention.attention_figure, kind=kind),
            of_part(kind, MEAN, last=True),
            (kind,),
            sentence="first",
        )
        for kind in KINDS
    },
    "head-importance": Entry(run.importance_figure, needs=("writes",)),
    "alignment": Entry(run.alignment_figure, needs=("cross",), sentence="first"),
    "pronoun": Entry(run.pronoun_figure, needs=("encoder", "cross"), of_demo=True),
    "picture-reading": Entry(patches.reading_figure, needs=("patches",), sentence="first"),
    "picture-rollout": Entry(patches.rollout_figure, needs=("patches",), sentence="first"),
    "picture-positions": Entry(patches.places_figure, needs=("learned places",), group="positions"),
    "ctc-spikes": Entry(recordings.spikes_figure, needs=("spikes", "cross"), sentence="first"),
    "band-heads": Entry(recordings.band_heads_figure, needs=("bands",), sentence="first"),
    "timeline": Entry(costs.timeline_figure, needs=()),
}


def needs_run(name: str) -> bool:
    """Return True if a figure is made from a trained run."""
    return FIGURES[name].needs is not None


def missing(name: str, model: Network) -> Words | None:
    """Return the reason why the figure ``name`` cannot be made from ``model``, or None if it
    can."""
    return lacking(FIGURES[name].needs or (), model)


def make_figure(
    name: str, subject: Subject | None, values: Mapping[str, float] | None = None
) -> Figure:
    """Compute the figure ``name``. ``subject`` may be None for a figure that needs no run;
    ``values``: the values of its sliders, by name.

    Errors: ``DragomanError`` for an unknown name, or a run that cannot show the figure.
    """
    check_name(name)
    entry = FIGURES[name]
    if not needs_run(name):
        return with_caption(name, entry.make(**(values or {})), "")
    if subject is None:
        raise DragomanError(
            f"the figure {name} looks into a trained run. Set one with --run RUN, or create one "
            "with dragoman demo"
        )
    lacks = missing(name, subject.predictor.plain)
    if lacks is not None:
        raise DragomanError(lacks.english)
    shows_run = not entry.trains or has_learned_positions(subject.predictor.plain)
    parts = entry.make(subject, **(values or {}))
    return with_caption(name, parts, subject.name if shows_run else "")


def sliders_of(name: str, subject: Subject | None) -> Sliders:
    """Return the sliders of a figure that have more than one value. Return none if the figure
    cannot be made from ``subject``."""
    sliders = FIGURES[name].sliders
    if not callable(sliders):
        return sliders
    if subject is None or missing(name, subject.predictor.plain) is not None:
        return ()
    return tuple(slider for slider in sliders(subject.predictor.plain) if len(slider.values) > 1)


def validate(
    name: str, subject: Subject | None, values: Mapping[str, float]
) -> dict[str, int | float]:
    """Return ``values``, the values of sliders by name, as arguments of the function that makes the
    figure; whole numbers become integers.

    Errors: ``DragomanError`` for an unknown slider, or a value that it does not have.
    """
    known: dict[str, Slider] = {slider.name: slider for slider in sliders_of(name, subject)}
    arguments: dict[str, int | float] = {}
    for key, value in values.items():
        if key not in known:
            has = ", ".join(known) or "none"
            raise DragomanError(f"{name} has no slider {shorten(key, 100)!r}; it has: {has}")
        slider = known[key]
        if value not in slider.values:
            allowed = ", ".join(f"{choice:g}" for choice in slider.values)
            raise DragomanError(f"{key} of {name} must be one of {allowed}, not {value:g}")
        arguments[key] = int(value) if slider.is_whole else float(value)
    return arguments


_SYNTHETIC = Words(
    NOTICE + " Figures that look into a trained run use it.",
    "데모 말뭉치는 작은 문법으로 만든 합성 데이터입니다. 점수가 높다는 것은 프로그램이 제대로 "
    "작동한다는 뜻일 뿐, 실제 글에 대해서는 아무것도 말해 주지 않습니다. 학습된 모델을 "
    "사용하는 그림은 이 모델로 그렸습니다.",
)


def write_book(folder: Path, subject: Subject | None, say: Callable[[str], None]) -> Path:
    """Write every figure that can be made, and ``index.html``, into ``folder``; return the path of
    that page. ``say`` receives a line of text about each figure.

    PNG files need the extra ``plots`` and a font; without them, only SVG and CSV files are written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if why := why_no_png():
        say(f"No PNG files: {why}")
    figures: list[Figure] = []
    missing: list[tuple[str, str]] = []
    for name in captions():
        try:
            made = make_figure(name, subject)
        except DragomanError as error:
            missing.append((name, str(error)))
            say(f"{name} is left out: {error}")
            continue
        figures.append(made)
        write_figure(folder, made)
        say(f"{name}: {made.title.english}")
    about = [_SYNTHETIC] if subject is not None and subject.is_demo else []
    page = folder / "index.html"
    page.write_text(book_html(figures, about=about, missing=missing, png=not why), encoding="utf-8")
    return page
