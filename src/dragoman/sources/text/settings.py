"""The settings of text as a source."""

from __future__ import annotations

from typing import ClassVar, Literal

from dragoman.sources.shared.settings import SourceSettings


class TextSource(SourceSettings):
    """Text, as tokens of a vocabulary."""

    kind: Literal["text"] = "text"
    """The kind of input. text: text; frames: sound, as mel bands of its spectrum; picture:
    pictures, as patches; line: a line of text in a picture, as columns of pixels."""

    sections: ClassVar[frozenset[str]] = frozenset()
    units: ClassVar[str] = "tokens"
    raws: ClassVar[str] = "texts"
    to_measure: ClassVar[str] = "two files: dragoman evaluate {run} test.source test.reference"

    def check_corpus(self, name: str, holds: str, *, names_files: bool) -> None:
        if names_files:
            raise ValueError(
                f"{name} names files, and text is read: set source.kind to frames (recordings), "
                "picture or line"
            )
