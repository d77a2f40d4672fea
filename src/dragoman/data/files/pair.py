"""One example as it stands in a corpus."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence and its translation or its tree; of a text that stands alone the source is
    empty. Where a corpus names files, the source is the path of one."""

    line: int
    """Line in the file, from 1."""
    source: str
    target: str
    whole: str = ""
    """Of a section of a text that stands alone: what names the text, the same for all of its
    sections and for copies of it."""
    group: str = ""
    """What stays on one side of a split together: a speaker, a document; of a file without one,
    what it holds."""
