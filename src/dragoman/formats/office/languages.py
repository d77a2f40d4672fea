"""The language that an office document says its text is in.

Each text has two, one for the letters of Europe and one for those of East Asia. Programs that make
documents leave English in both, and office programs the language of their menus in one. So a
document says its language where all of its texts and styles have the same, and it is not English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from dragoman.formats.units.document import SaidLanguage
from dragoman.formats.units.inline import is_asian
from dragoman.formats.units.unit import Unit

_WESTERN, _ASIAN = (
    re.compile(
        rf"(?:<w:lang(?=\s)[^<>]{{0,200}}?\sw:{word}|<a:rPr(?=\s)[^<>]{{0,200}}?\slang|\s{written})"
        r'="([a-z]{2,3})\b'
    )
    for word, written in (("val", "fo:language"), ("eastAsia", "style:language-asian"))
)
"""How Word, PowerPoint and OpenDocument say either."""
_OF_ASIA = {"ja", "ko", "zh"}
_LOOKED_AT = 1_000
"""Letters that tell which of the two counts."""


def said_languages(name: str, xml: Iterable[str], units: Iterable[Unit]) -> list[SaidLanguage]:
    """What the XML of a document says of the language of its units; nothing where it is unsure."""
    letters = (letter for unit in units for letter in unit.text if letter.isalpha())
    looked_at = list(islice(letters, _LOOKED_AT))
    of_asia = 2 * sum(map(is_asian, looked_at)) > len(looked_at)
    found = {code for text in xml for code in (_ASIAN if of_asia else _WESTERN).findall(text)}
    code = found.pop() if len(found) == 1 else "en"
    if code == "en" or (code in _OF_ASIA) != of_asia:
        return []
    where = f"{name}: the language of its text, {code},"
    return [SaidLanguage("source", code, where, is_binding=False)]
