"""The settings of text as a source."""

from __future__ import annotations

from typing import ClassVar, Literal

from dragoman.sources.shared.settings import SourceSettings


class TextSource(SourceSettings):
    """Text, as tokens of a vocabulary."""

    kind: Literal["text"] = "text"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""

    is_text: ClassVar[bool] = True
    units: ClassVar[str] = "tokens"
