"""The titles and captions of all figures, from ``captions.toml``, in English and Korean."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TypeAlias

from dragoman.base.errors import DragomanError
from dragoman.pictures.figure import DataTable, Figure, Panel, Words


@dataclass(frozen=True)
class Caption:
    """The title and the texts of one figure."""

    title: Words
    text: Words
    source: Words
    """The section and the equation of the paper."""
    encoding: Words | None
    """The name of the position encoding, for the four figures that show one encoding each; else
    None."""


@cache
def captions() -> dict[str, Caption]:
    """Return the captions by the name of the figure, in the order in which the documentation lists
    the figures."""
    content = resources.files("dragoman.insight.figures").joinpath("captions.toml")
    read = tomllib.loads(content.read_text(encoding="utf-8"))
    return {
        name: Caption(
            Words(item["title"]["en"], item["title"]["ko"]),
            Words(*(" ".join(item["caption"][language].split()) for language in ("en", "ko"))),
            Words(item["source"]["en"], item["source"]["ko"]),
            Words(item["encoding"]["en"], item["encoding"]["ko"]) if "encoding" in item else None,
        )
        for name, item in read.items()
    }


def check_name(name: str) -> None:
    """Raise ``DragomanError``, which suggests similar names, if there is no figure ``name``."""
    if name not in captions():
        near = difflib.get_close_matches(name, captions(), n=3, cutoff=0.4)
        hint = f"; perhaps {', '.join(near)}" if near else ""
        raise DragomanError(f"there is no figure {name!r}{hint}. All: dragoman figure --list")


Parts: TypeAlias = Iterator[Panel | DataTable | Words]
"""The pictures, the tables of numbers and the notes of a figure, each kind in order."""


def with_caption(name: str, parts: Parts, run: str) -> Figure:
    """Return the figure of some parts with the caption of ``name``. ``run``: the name of the run
    that it shows; "" if it shows none."""
    words, made = captions()[name], list(parts)
    return Figure(
        name, words.title, words.text, words.source,
        [part for part in made if not isinstance(part, DataTable | Words)],
        [part for part in made if isinstance(part, DataTable)],
        run,
        [part for part in made if isinstance(part, Words)],
    )  # fmt: skip
