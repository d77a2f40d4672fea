"""Counts the lines of reStructuredText whose inline markup survives translation.

A role or a literal must be copied exactly: ``:func:`open` ``, ````open(file)````. A link or role
with a title, ``:ref:`title <target>` ``, must keep its target; its title is translated. Strong and
emphasised words, ``**word**`` and ``*word*``, must keep the number of their marks. A line is intact
if it has all marks of its source and no others.

Source: docutils, "reStructuredText Markup Specification", section Inline Markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.base.wording import plural

_MARK = re.compile(
    r"``(?P<literal>.+?)``"
    r"|(?P<role>(?::[\w+.-]+)+:)`(?P<content>[^`]+)`"
    r"|`(?P<reference>[^`]+)`__?"
    r"|\*\*(?P<strong>[^*\s](?:[^*]*[^*\s])?)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])"
)
_TARGET = re.compile(r"<([^<>]+)>$")


@dataclass(frozen=True)
class Markup:
    """Counts of lines that keep their markup."""

    lines: int
    """The number of lines whose source has markup."""
    intact: int
    """The number of these whose translation has the same markup."""
    references: int
    """The number of these whose reference has the same markup, as a human translator kept it."""

    def __str__(self) -> str:
        return (
            f"inline markup intact in {self.intact:,} of the "
            f"{plural(self.lines, 'line that has', 'lines that have')} any "
            f"(in the references: {self.references:,})"
        )


def marks(text: str) -> Counter[tuple[str, str]]:
    """Count the inline marks of a line, by kind and by the content that must be kept."""
    counts: Counter[tuple[str, str]] = Counter()
    for match in _MARK.finditer(text):
        kind = match.lastgroup or ""
        if kind in ("strong", "emphasis"):
            counts[kind, ""] += 1
        elif kind == "literal":
            counts[kind, match["literal"]] += 1
        else:
            content = match[kind]
            target = _TARGET.search(content)
            counts[match["role"] or kind, target[1] if target else content] += 1
    return counts


def count_intact(
    sources: Sequence[str], translations: Sequence[str], references: Sequence[str]
) -> Markup:
    """Count the lines of a test set that keep their markup. The three sequences are parallel."""
    lines = intact = right = 0
    for source, translation, reference in zip(sources, translations, references, strict=True):
        wanted = marks(source)
        if wanted:
            lines += 1
            intact += marks(translation) == wanted
            right += marks(reference) == wanted
    return Markup(lines, intact, right)
