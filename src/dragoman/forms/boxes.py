"""Boxes in a picture, and their form, which a detector writes.

Boxes are in pixels from the upper left corner, as in COCO. The boxes of a picture are kept on one
line of JSON, after its size::

    {"size": [64, 64], "boxes": [["3", 10, 5, 20, 19]]}

A box is its label, left, top, width and height. Its area may follow, if it is not the product of
both, and 1 for a crowd: a region of several objects, from which nothing is learned.

As symbols (Chen et al., 2022, *Pix2seq*, section 2.1), a box is five: top, left, bottom, right
and its label. A coordinate is one of ``bins`` + 1 places from one edge of the part of a picture
that is read to the other, with the same symbols down and across. The last symbol is the class of
no object: it is learned, and never written.

Every output has the same number of boxes, so that none is missed by an early end: a model is not
asked whether there is another box, but how sure it is of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.base.errors import DataError, RunError
from dragoman.base.reading import read_json
from dragoman.base.settings import Settings
from dragoman.forms.form import SPECIAL, Booleans, Rules, Symbols, WrittenForm
from dragoman.forms.labels import LONGEST, MOST
from dragoman.forms.subwords.sampling import SPACE

PER_BOX = 5
"""The number of symbols of a box."""
_NOTHING = "<nothing>"

BoxKind = Literal["tokens", "set"]


class Box(NamedTuple):
    """A rectangle with a label, in pixels."""

    label: str
    left: float
    top: float
    width: float
    height: float
    area: float = 0.0
    """The area of the object in it, from which COCO tells small from large; 0: that of the box."""
    crowd: bool = False

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """Its left, top, right and bottom edge."""
        return self.left, self.top, self.left + self.width, self.top + self.height

    @property
    def size(self) -> float:
        """The area, as COCO counts it."""
        return self.area or self.width * self.height

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


@dataclass(frozen=True)
class Scene:
    """A picture's size and the boxes in it."""

    width: float
    height: float
    boxes: tuple[Box, ...]

    @property
    def single(self) -> tuple[Box, ...]:
        """The boxes that are no crowds."""
        return tuple(box for box in self.boxes if not box.crowd)

    def __str__(self) -> str:
        about = {"size": [_short(self.width), _short(self.height)]}
        return json.dumps(
            about | {"boxes": [_fields(box) for box in self.boxes]}, ensure_ascii=False
        )


def scene_of(raw: str) -> Scene:
    """Read a scene from its ``str``. Errors: ``DataError`` for another text."""
    try:
        about = json.loads(raw)
        width, height = about["size"]
        boxes = tuple(map(_box, about["boxes"]))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError(f"this text is not the boxes of a picture: {raw[:60]!r}") from error
    return Scene(width, height, boxes)


def _box(fields: list[Any]) -> Box:
    label, left, top, width, height, *rest = fields
    area, crowd = [*rest, 0, 0][:2]
    sides = float(left), float(top), float(width), float(height)
    return Box(str(label), *sides, float(area), bool(crowd))


def _fields(box: Box) -> list[object]:
    shown = [box.label, *(_short(number) for number in box[1:5])]
    if box.area or box.crowd:
        shown.append(_short(box.area))
    return [*shown, 1] if box.crowd else shown


def _short(number: float) -> float:
    """Return a whole number without its point, others to a hundredth of a pixel."""
    return int(number) if number == int(number) else round(number, 2)


class BoxSettings(Settings):
    """The way in which boxes are found and represented as symbols (task detection)."""

    kind: BoxKind = "tokens"
    """tokens: the decoder writes one box after the other, symbol by symbol (Pix2Seq); set: it finds
    all boxes at once, each by a learned query that looks at all others (DETR)."""
    bins: int = Field(64, ge=2, le=4_096)
    """The number of equal steps into which the height and the width of a picture are divided.
    Coordinates are rounded to a step; one step per pixel that the model reads loses nothing."""
    most: int = Field(10, ge=1, le=400)
    """The number of boxes that are written for each picture; boxes with a low probability are not
    shown. In training, the sequence is filled up with boxes of no object. A picture with more boxes
    is refused. For kind = set, the number of queries."""
    jitter: float = Field(0.1, ge=0, le=1)
    """The greatest distance of a box of no object from a true box, as a share of its sides. Half of
    these boxes are near a true box, the others anywhere. For kind = tokens only."""


class Read(NamedTuple):
    """The size at which pictures are read, in pixels."""

    height: int
    width: int


class _BoxFile(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    format: Literal[1] = 1
    labels: list[str] = Field(min_length=1, max_length=MOST)
    bins: int = Field(ge=2, le=4_096)
    most: int = Field(ge=1, le=400)
    height: int = Field(ge=1, le=4_096)
    width: int = Field(ge=1, le=4_096)
    kind: BoxKind = "tokens"


class BoxSymbols(Symbols):
    """The symbols of boxes, in one file ``target.json``.

    Ids: 0 to 2 as in a vocabulary of text, then the places, then the labels, then nothing.
    """

    def __init__(
        self,
        labels: Sequence[str],
        bins: int,
        most: int,
        read: Read,
        kind: BoxKind = "tokens",
    ) -> None:
        """``most`` and ``kind`` are described in ``BoxSettings``."""
        self.kind = kind
        self.labels = tuple(labels)
        self.bins = bins
        self.most = most
        self.read = read
        self.places = range(len(SPECIAL), len(SPECIAL) + bins + 1)
        self.classes = range(self.places.stop, self.places.stop + len(self.labels))
        self.nothing = self.classes.stop
        """The class of no object."""
        self.size = self.nothing + 1
        self._value = dict(zip(self.labels, self.classes, strict=True))

    @classmethod
    def learn(cls, scenes: Iterable[Scene], settings: BoxSettings, read: Read) -> Self:
        """Return the symbols for the boxes of some pictures. Errors: ``DataError`` for fewer
        than two labels, or too many."""
        labels: set[str] = set()
        for scene in scenes:
            labels.update(box.label for box in scene.single)
        if len(labels) < 2:
            which = f"one category, {labels.pop()!r}" if labels else "no box"
            raise DataError(
                f"the training pictures have {which}. Give pictures with at least two categories"
            )
        too_long = next((label for label in labels if len(label) > LONGEST), None)
        if len(labels) > MOST or too_long is not None:
            what = f"{len(labels):,} categories" if too_long is None else f"{too_long[:60]!r}"
            raise DataError(f"{what}: the limit is {MOST:,} categories of {LONGEST:,} characters")
        return cls(sorted(labels), settings.bins, settings.most, read, settings.kind)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the symbols. Errors: ``RunError`` if the file is missing or damaged."""
        try:
            content = _BoxFile.model_validate(read_json(path))
        except ValidationError as error:
            raise RunError(f"{path} is damaged: it does not contain the labels of boxes") from error
        if len(set(content.labels)) < len(content.labels):
            raise RunError(f"{path} is damaged: it contains a label of boxes twice")
        read = Read(content.height, content.width)
        return cls(content.labels, content.bins, content.most, read, content.kind)

    @property
    def _json(self) -> str:
        about = {"format": 1, "labels": list(self.labels), "bins": self.bins, "most": self.most}
        kind = {} if self.kind == "tokens" else {"kind": self.kind}  # older files have no kind
        return json.dumps(about | self.read._asdict() | kind, indent=1, ensure_ascii=False)

    def encode(self, scene: Scene) -> list[int]:
        """Return the symbols of all boxes but crowds, in their order; of boxes that are partly
        read, that part. Boxes that are not read, or have an unknown label, are left out."""
        return [
            symbol
            for box in scene.single
            if box.label in self._value and (places := self._places(box, scene)) is not None
            for symbol in (*places, self._value[box.label])
        ]

    def unknown_label(self, scene: Scene) -> str | None:
        """Return a label that was not learned, or None."""
        return next((box.label for box in scene.single if box.label not in self._value), None)

    def decode(self, tokens: Sequence[int], width: float, height: float) -> list[Box]:
        """Return the boxes of complete groups of five symbols, in a picture of that size; an
        incomplete group is left out."""
        across, down = self._window(width, height)
        boxes = []
        for at in range(0, len(tokens) - PER_BOX + 1, PER_BOX):
            *places, label = tokens[at : at + PER_BOX]
            if label not in self.classes or any(place not in self.places for place in places):
                continue
            top, left, bottom, right = ((place - self.places.start) / self.bins for place in places)
            x, y = (across.start + left * across.length, down.start + top * down.length)
            wide, high = (right - left) * across.length, (bottom - top) * down.length
            boxes.append(Box(self.labels[label - self.classes.start], x, y, wide, high))
        return boxes

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        """Return the name of each symbol for people."""
        names = [*SPECIAL, *map(str, range(self.bins + 1)), *self.labels, _NOTHING]
        return [names[token] for token in tokens]

    def _places(self, box: Box, scene: Scene) -> tuple[int, int, int, int] | None:
        across, down = self._window(scene.width, scene.height)
        sides = []
        for first, last, window in (
            (box.top, box.bottom, down), (box.left, box.right, across)
        ):  # fmt: skip
            begin, end = (
                min(max((edge - window.start) / window.length, 0.0), 1.0) for edge in (first, last)
            )
            if end <= begin:
                return None
            at, to = round(begin * self.bins), round(end * self.bins)
            if to <= at:  # thinner than a step
                at = min(at, self.bins - 1)
                to = at + 1
            sides.append((at + self.places.start, to + self.places.start))
        (top, bottom), (left, right) = sides
        return top, left, bottom, right

    def _window(self, width: float, height: float) -> tuple[_Window, _Window]:
        """Return the part of a picture's width and height that is read: the picture is scaled
        until it covers the size at which pictures are read, and cropped around its middle."""
        scale = max(self.read.width / width, self.read.height / height)
        wide, high = self.read.width / scale, self.read.height / scale
        return _Window((width - wide) / 2, wide), _Window((height - high) / 2, high)


class _Window(NamedTuple):
    start: float
    length: float


class BoxRules(Rules):
    """The rules of the boxes of one picture: complete groups of five, each box with an area."""

    def __init__(self, symbols: BoxSymbols, most: int | None = None) -> None:
        """``most``: the most symbols that the model can write, at least five; None: any number."""
        self._symbols = symbols
        boxes = symbols.most if most is None else min(symbols.most, most // PER_BOX)
        assert boxes > 0, "a box has room"
        self.longest = PER_BOX * boxes

    def allows(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        symbols, length = self._symbols, tokens.shape[1]
        flags = np.zeros((len(tokens), symbols.size), np.bool_)
        place, first, last = length % PER_BOX, symbols.places.start, symbols.places.stop
        if length >= self.longest:
            flags[:, symbols.eos] = True
        elif place < 2:  # top, left: leave room for an area
            flags[:, first : last - 1] = True
        elif place < 4:  # bottom, right: beyond the edge two symbols before
            edges = np.arange(symbols.size)[None]
            flags = (edges > tokens[:, -2:-1]) & (edges >= first) & (edges < last)
        else:
            flags[:, symbols.classes.start : symbols.classes.stop] = True
        return flags


class BoxForm(WrittenForm):
    """The form of places and labels."""

    symbols: BoxSymbols
    noun = "boxes"
    spaced = True

    def __init__(self, symbols: BoxSymbols) -> None:
        self.symbols, self.size = symbols, symbols.size
        self.forbidden = *WrittenForm.forbidden, symbols.nothing

    def tokens(self, raws: Sequence[str]) -> list[list[int]]:
        """Return the symbols of lines of boxes. Errors: ``DataError`` for a line without boxes."""
        return [self.symbols.encode(scene_of(raw)) for raw in raws]

    def raw(self, outputs: Sequence[Iterable[int]]) -> list[str]:
        """Return the boxes, in a picture of the size that is read."""
        height, width = self.symbols.read
        return [
            str(Scene(width, height, tuple(self.symbols.decode(list(tokens), width, height))))
            for tokens in outputs
        ]

    def names_of(self, tokens: Iterable[int]) -> list[str]:
        """Return the name of each symbol, as a word of its own."""
        return [SPACE + name for name in self.symbols.names_of(tokens)]

    def longest_output(self, length: int, extra: int) -> int:
        return PER_BOX * self.symbols.most

    def rules(self, raw: str, most: int | None = None) -> Rules:
        return BoxRules(self.symbols, most)
