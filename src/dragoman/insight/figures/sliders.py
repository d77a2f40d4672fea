"""Which numbers of a figure a reader may change, and how far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.insight.figures.subject import Subject
from dragoman.insight.needs import lacking
from dragoman.pictures.figure import Words


@dataclass(frozen=True)
class Slider:
    """One number of a figure."""

    name: str
    """The keyword of the function that makes the figure."""
    title: Words
    values: Sequence[float]
    """What it may be, in order."""
    start: float
    zero: Words | None = None
    """What 0 stands for, where it is no number."""

    @property
    def is_whole(self) -> bool:
        """Whether it counts something."""
        return all(value == int(value) for value in self.values)


_DIMENSIONS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
_LENGTHS = (4, 8, 16, 20, 32, 48, 64, 96, 128)
_DIMENSION = Words("dimensions", "차원")
_LENGTH = Words("length", "길이")
_LAYER = Words("layer", "층")
_HEAD = Words("head", "헤드")
_MEAN = Words("mean", "평균")
_LEAST_SURE = Words("the least sure", "가장 망설이는 헤드")


def _plain() -> dict[str, tuple[Slider, ...]]:
    small = Slider("dimension", _DIMENSION, _DIMENSIONS[:7], 8)
    large = Slider("dimension", _DIMENSION, _DIMENSIONS, 512)
    longest = Slider("length", _LENGTH, _LENGTHS, 128)
    return {
        "position-index": (small, Slider("length", _LENGTH, _LENGTHS, 16)),
        "position-normalised": (small, Slider("length", _LENGTH, _LENGTHS, 20)),
        "position-binary": (large, longest),
        "position-sinusoidal": (large, longest),
        "position-identity": (large,),
        "schedule": (
            Slider("dimension", Words("d_model", "d_model"), (64, 128, 256, 512, 1024), 512),
            Slider("warmup", Words("warm-up", "웜업"), (500, 1000, 2000, 4000, 8000, 16000), 4000),
        ),
        "label-smoothing": (
            Slider("epsilon", Words("ε", "ε"), tuple(i / 20 for i in range(1, 11)), 0.1),
            Slider("vocabulary", Words("vocabulary", "어휘"), (4, 6, 8, 10, 12, 16, 20), 10),
        ),
        "temperature": (
            Slider(
                "temperature",
                Words("temperature", "온도"),
                tuple(i / 10 for i in range(1, 31)),
                0.5,
            ),
        ),
        "length-penalty": (
            Slider("penalty", Words("α", "α"), tuple(i / 20 for i in range(41)), 0.6),
        ),
    }


PLAIN = _plain()


def sliders(name: str, subject: Subject | None) -> tuple[Slider, ...]:
    """The sliders of a figure; those of layers and heads need to know the run.

    Where there is one layer, there is nothing to choose."""
    if name in PLAIN or subject is None:
        return PLAIN.get(name, ())
    attentions_of = subject.predictor.plain.attentions_of

    def layer(part: str, *, last: bool = False) -> Slider:
        count = len(attentions_of(part))
        return Slider("layer", _LAYER, tuple(range(1, count + 1)), count if last else 1)

    def head(part: str, zero: Words | None = None) -> Slider:
        first, most = 0 if zero else 1, max((one.heads for one in attentions_of(part)), default=0)
        return Slider("head", _HEAD, tuple(range(first, most + 1)), first, zero)

    of_run: dict[str, tuple[Slider, ...]] = {
        "lookup": (head("cross", _LEAST_SURE),),
        "four-steps": (layer("encoder"), head("encoder")),
        "mask": (layer("decoder"), head("decoder")),
        "attention-encoder": (layer("encoder", last=True), head("encoder", _MEAN)),
        "attention-decoder": (layer("decoder", last=True), head("decoder", _MEAN)),
        "attention-cross": (layer("cross", last=True), head("cross", _MEAN)),
    }
    if name == "heads" and lacking(name, subject.predictor.plain) is None:
        sizes = subject.transformer.settings
        heads = sizes.attention.num_heads
        width = heads * (sizes.attention.key_width or sizes.model_dim // heads)
        cuts = tuple(n for n in (1, 2, 4, 8, 16) if width % n == 0 and sizes.model_dim % n == 0)
        if heads in cuts:
            of_run[name] = (Slider("heads", Words("heads", "헤드 수"), cuts, heads),)
    return tuple(slider for slider in of_run.get(name, ()) if len(slider.values) > 1)


def checked(
    name: str, subject: Subject | None, values: Mapping[str, float]
) -> dict[str, int | float]:
    """What the figure is to be made with: whole numbers whole.

    Errors: ``DragomanError`` for a slider that the figure has not, or a value that it cannot have.
    """
    known = {slider.name: slider for slider in sliders(name, subject)}
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
