"""The forms of all sources that are rows of numbers, by the kind in a recipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.sources.frames.form import FramesForm
from dragoman.sources.line.form import LinesForm
from dragoman.sources.picture.form import PicturesForm
from dragoman.sources.shared.rows_form import RowsForm
from dragoman.sources.shared.settings import SourceSettings

FORMS: dict[str, Callable[[Any], RowsForm]] = {
    "frames": FramesForm,
    "picture": PicturesForm,
    "line": LinesForm,
}


def rows_form(source: SourceSettings) -> RowsForm | None:
    """The form of a source that is rows; None for text, which has a vocabulary."""
    made = FORMS.get(source.kind)
    return None if made is None else made(source)
