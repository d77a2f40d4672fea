"""The settings of all kinds of sources; their forms are in ``file_examples.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.base.settings import one_of
from dragoman.sources.frames.settings import FramesSource
from dragoman.sources.line.settings import LineSource
from dragoman.sources.picture.settings import PictureSource
from dragoman.sources.shared.settings import SourceSettings, TextSource

SOURCES: dict[str, type[SourceSettings]] = {
    "text": TextSource,
    "frames": FramesSource,
    "picture": PictureSource,
    "line": LineSource,
}
"""The settings of each kind of source, by its name in a recipe."""

if TYPE_CHECKING:
    AnySource = SourceSettings
else:
    problem = f"no such kind of source. Use one of {', '.join(SOURCES)}"
    AnySource = one_of(SOURCES, "text", problem)
"""The type of a field with a source of any kind, which ``kind`` selects."""
