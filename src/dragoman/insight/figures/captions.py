"""What every figure is called and what it shows: ``captions.toml``, English and Korean."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from dragoman.base.errors import DragomanError
from dragoman.pictures.figure import DataTable, Figure, Panel, Words


@dataclass(frozen=True)
class Caption:
    """The words of one figure."""

    title: Words
    text: Words
    source: Words
    """Section and equation of the paper."""
    encoding: Words | None
    """What the encoding of positions that it shows is called beside the others; None of other
    figures."""


@cache
def captions() -> dict[str, Caption]:
    """Name of a figure -> its words, in the order of the book."""
    content = resources.files("dragoman.insight.figures").joinpath("captions.toml")
    read = tomllib.loads(content.read_text(encoding="utf-8"))
    return {
        name: Caption(
            Words(one["title"]["en"], one["title"]["ko"]),
            Words(*(" ".join(one["caption"][language].split()) for language in ("en", "ko"))),
            Words(one["source"]["en"], one["source"]["ko"]),
            Words(one["encoding"]["en"], one["encoding"]["ko"]) if "encoding" in one else None,
        )
        for name, one in read.items()
    }


def check_name(name: str) -> None:
    """Errors: ``DragomanError`` with the nearest names for one that is not there."""
    if name not in captions():
        near = difflib.get_close_matches(name, captions(), n=3, cutoff=0.4)
        hint = f"; perhaps {', '.join(near)}" if near else ""
        raise DragomanError(f"there is no figure {name!r}{hint}. All: dragoman figure --list")


@dataclass(frozen=True)
class Drawn:
    """A figure without its words."""

    panels: Sequence[Panel]
    data: Sequence[DataTable]
    notes: Sequence[Words] = ()
    looks: bool = True
    """Whether it looks into the run that it was made of, if of any."""

    def named(self, name: str, run: str = "") -> Figure:
        """With the words that belong to a name. ``run``: what it was made of."""
        words = captions()[name]
        return Figure(
            name, words.title, words.text, words.source,
            self.panels, self.data, run if self.looks else "", self.notes,
        )  # fmt: skip
