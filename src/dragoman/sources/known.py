"""The settings of all kinds of sources; their forms are in ``file_examples.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Tag

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


def _kind_of(given: Any) -> Any:
    kind = given.get("kind", "text") if isinstance(given, dict) else getattr(given, "kind", "")
    return kind if isinstance(kind, str) else ""


if TYPE_CHECKING:
    AnySource = SourceSettings
else:
    AnySource = Annotated[
        Annotated[TextSource, Tag("text")]
        | Annotated[FramesSource, Tag("frames")]
        | Annotated[PictureSource, Tag("picture")]
        | Annotated[LineSource, Tag("line")],
        Discriminator(
            _kind_of,
            custom_error_type="unknown_kind",
            custom_error_message=f"no such kind of source. Use one of {', '.join(SOURCES)}",
        ),
    ]
"""The type of a field with a source of any kind, which ``kind`` selects."""
