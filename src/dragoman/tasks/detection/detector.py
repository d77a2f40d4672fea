"""The predictor of boxes: a picture in, what is in it and where out.

    detector = dragoman.Detector(dragoman.Run.open("runs/scenes"))
    for found in detector("a.png"):
        print(found.label, found.score, found.box)

A search writes ``boxes.most`` boxes of each picture. How sure the model is of one is the
probability that it gives its label, beside all other labels and nothing (Chen et al., 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dragoman.boxes import Box
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import WritingPredictor
from dragoman.engine.settings import EngineSettings
from dragoman.engine.streaming import parts
from dragoman.errors import DataError
from dragoman.forms.box_form import BoxForm
from dragoman.forms.box_symbols import PER_BOX
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.sources.picture.form import is_place
from dragoman.sources.picture.picture_file import picture_size
from dragoman.sources.shared.zipped import file_of

THRESHOLD = 0.5
"""The least score of a box that is shown, unless somebody asks for another."""
MOST_PATCHES = 100_000
_TOGETHER = 256
"""Pictures that are searched at once."""


@dataclass(frozen=True)
class Detection:
    """One box. ``str(detection)`` is its label."""

    label: str
    score: float
    """The probability of the label, from 0 to 1."""
    box: Box
    """Where it is, in pixels of the picture as it was given."""

    def to_dict(self) -> dict[str, Any]:
        """As the pipelines of transformers answer."""
        edges = (self.box.left, self.box.top, self.box.right, self.box.bottom)
        box = dict(zip(("xmin", "ymin", "xmax", "ymax"), map(round, edges), strict=True))
        return {"score": round(self.score, 4), "label": self.label, "box": box}

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class DetectedPicture:
    """One picture and all boxes that were written of it, the surest first."""

    picture: str
    width: int
    height: int
    detections: tuple[Detection, ...]
    ids: tuple[int, ...]
    """The symbols that were written."""
    score: float
    """Their log-probability, in nats."""
    order: tuple[int, ...] = ()
    """Of each of ``detections``, how many boxes were written before it."""

    def above(self, threshold: float) -> list[Detection]:
        """Those whose score is not lower."""
        return [one for one in self.detections if one.score >= threshold]

    @property
    def text(self) -> str:
        """The boxes that are shown, on one line."""
        return "; ".join(map(described, self.above(THRESHOLD))) or "nothing"


class Detector(WritingPredictor):
    """A trained detector, ready to look. Not for several threads at once."""

    asked_of: ClassVar[tuple[str, str]] = ("detection", "which finds no boxes")
    usual: ClassVar[EngineSettings] = EngineSettings(longest=MOST_PATCHES)

    def __call__(
        self, picture: str | Path, *, threshold: float = THRESHOLD, beam: int | None = None
    ) -> list[Detection]:
        """The boxes of one picture whose score is ``threshold`` or higher, the surest first.
        Errors: ``DataError`` for a file that cannot be used."""
        from dragoman.engine.search_settings import with_beams

        settings = with_beams(self.engine.search_settings, beam, None)
        (found,) = self.stream([str(picture)], settings)
        return found.above(threshold)

    def stream(
        self, pictures: Iterable[str], settings: SearchSettings | None = None
    ) -> Iterator[DetectedPicture]:
        """Each picture with its boxes, in their order."""
        for part in parts(iter(pictures), _TOGETHER):
            yield from detect_all(self.engine, part, settings)

    # ---- looking

    @property
    def no_inside(self) -> str | None:
        if self.engine.network.attentions:
            return None
        return (
            "finds boxes as a set, each by a query that is no symbol, and there is nothing to look "
            "into: look into a run with boxes.kind = tokens"
        )

    def shown(self, text: str, prefix: str = "") -> DetectedPicture:
        """Its boxes. Errors: ``DataError`` for a prefix."""
        if prefix:
            raise DataError("boxes are given no beginning: leave the prefix out")
        (found,) = self.stream([text])
        return found


def detect_all(
    engine: Engine, pictures: Sequence[str], settings: SearchSettings | None = None
) -> list[DetectedPicture]:
    """The boxes of some pictures. Errors: ``DataError`` for a file that cannot be used."""
    sizes = [size_of(picture, engine) for picture in pictures]
    values = engine.source.read(pictures)
    chosen = (settings or engine.search_settings).model_copy(update={"n_best": 1})
    asked = (
        engine.request(rows, chosen, raw=picture)
        for rows, picture in zip(values, pictures, strict=True)
    )
    return [
        detected(engine, picture, size, best)
        for picture, size, (best, *_) in zip(pictures, sizes, engine.search(asked), strict=True)
    ]


def size_of(picture: str, engine: Engine) -> tuple[int, int]:
    """Height and width of a picture as its camera was held; those that are read of a place in an
    IDX file, which must have them."""
    if is_place(picture):
        return BoxForm.of(engine.target).symbols.read
    return picture_size(file_of(picture))


def described(one: Detection) -> str:
    """A box as people read it: three 0.98 at 10,5 to 30,24."""
    box = one.box
    return (
        f"{one.label} {one.score:.2f} at {box.left:.0f},{box.top:.0f} to "
        f"{box.right:.0f},{box.bottom:.0f}"
    )


def detected(
    engine: Engine, picture: str, size: tuple[int, int], best: Hypothesis
) -> DetectedPicture:
    """What a search has written of a picture; ``size``: its height and width as it was given."""
    height, width = size
    boxes = BoxForm.of(engine.target).symbols.decode(best.tokens, width, height)
    of_labels = best.token_log_probabilities[PER_BOX - 1 : len(best.tokens) : PER_BOX]
    found = [
        Detection(box.label, math.exp(sure), box)
        for box, sure in zip(boxes, of_labels, strict=True)
    ]
    order = sorted(range(len(found)), key=lambda number: -found[number].score)
    return DetectedPicture(
        picture, width, height, tuple(found[number] for number in order),
        best.tokens, best.log_probability, tuple(order),
    )  # fmt: skip
