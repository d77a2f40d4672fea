"""A translator that writes in upper case: what has been translated is seen."""

from __future__ import annotations

from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import Document, OutputOptions, Target

GERMAN = OutputOptions("de")


def upper(document: Document) -> list[Target]:
    return [
        [one.upper() if isinstance(one, str) else one for one in unit.as_it_is]
        for unit in document.units
    ]


def raised(data: bytes | str, name: str, wanted: OutputOptions = GERMAN) -> bytes:
    """A file with its text in upper case."""
    document = read_document(data.encode() if isinstance(data, str) else data, name)
    return document.join(upper(document), wanted)
