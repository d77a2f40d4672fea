"""Does inline markup survive translation? Counted in lines, for text in reStructuredText.

A role or a literal has to come out letter by letter: ``:func:`open` ``, ````open(file)````. Of a
link or a role with a title, ``:ref:`title <target>` ``, the target has to; its title is translated.
Of strong and emphasised words, ``**word**`` and ``*word*``, the marks have to be there, as often as
in the source. A line is intact when all of its marks are there and none besides.

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
    """How many lines keep their markup."""

    lines: int
    """Lines whose source has any."""
    intact: int
    """Of these, lines whose translation has the same."""
    references: int
    """Of these, lines whose reference has the same: what a translator by trade keeps."""

    def __str__(self) -> str:
        return (
            f"inline markup intact in {self.intact:,} of the "
            f"{plural(self.lines, 'line that has', 'lines that have')} any "
            f"(in the references: {self.references:,})"
        )


def marks(text: str) -> Counter[tuple[str, str]]:
    """The inline marks of a line: (kind, what has to stay as it is) -> how often."""
    found: Counter[tuple[str, str]] = Counter()
    for match in _MARK.finditer(text):
        kind = match.lastgroup or ""
        if kind in ("strong", "emphasis"):
            found[kind, ""] += 1
        elif kind == "literal":
            found[kind, match["literal"]] += 1
        else:
            content = match[kind]
            target = _TARGET.search(content)
            found[match["role"] or kind, target[1] if target else content] += 1
    return found


def count_intact(
    sources: Sequence[str], translations: Sequence[str], references: Sequence[str]
) -> Markup:
    """Count the lines of a test set that keep their markup. The three are parallel."""
    lines = intact = right = 0
    for source, translation, reference in zip(sources, translations, references, strict=True):
        wanted = marks(source)
        if wanted:
            lines += 1
            intact += marks(translation) == wanted
            right += marks(reference) == wanted
    return Markup(lines, intact, right)
