"""Which numbers of a figure a reader may change, and how far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.insight.needs import transformer_of
from dragoman.models.interface import Network
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

# ---- of a run


def of_part(
    part: str, zero: Words | None = None, *, last: bool = False
) -> Callable[[Network], Sliders]:
    """Layer and head of one kind of attention. ``zero``: what head 0 stands for, if there is one;
    ``last``: whether it begins with the last layer."""

    def made(model: Network) -> Sliders:
        count = len(model.attentions_of(part))
        layers = Slider("layer", _LAYER, tuple(range(1, count + 1)), count if last else 1)
        return layers, *of_head(part, zero)(model)

    return made


def of_head(part: str, zero: Words | None = None) -> Callable[[Network], Sliders]:
    """Head alone."""

    def made(model: Network) -> Sliders:
        most = max((one.heads for one in model.attentions_of(part)), default=0)
        first = 0 if zero else 1
        return (Slider("head", _HEAD, tuple(range(first, most + 1)), first, zero),)

    return made


def of_cuts(model: Network) -> Sliders:
    """Into how many heads a Transformer's width may be cut."""
    sizes = transformer_of(model).settings
    heads = sizes.attention.num_heads
    width = heads * (sizes.attention.key_width or sizes.model_dim // heads)
    cuts = tuple(n for n in (1, 2, 4, 8, 16) if width % n == 0 and sizes.model_dim % n == 0)
    return (Slider("heads", Words("heads", "헤드 수"), cuts, heads),) if heads in cuts else ()
