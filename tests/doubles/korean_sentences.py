"""What the page knows in Korean of what a server says of runs. Not a test."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

_RUN = Path(__file__).parents[2] / "web" / "src" / "run"


@cache
def names_in_korean() -> frozenset[str]:
    """Words and sentences that it knows as they are."""
    known = (_RUN / "words_named.ts").read_text(encoding="utf-8")
    found = re.findall(r'^  (?:(\w+)|"([^"]+)"):', known, re.MULTILINE)
    return frozenset(bare or quoted for bare, quoted in found)


@cache
def patterns_in_korean() -> tuple[re.Pattern[str], ...]:
    """Sentences in which something varies."""
    known = (_RUN / "words_said.ts").read_text(encoding="utf-8")
    english = re.findall(r'^  \[("(?:[^"\\]|\\.)+"),', known, re.MULTILINE)
    return tuple(re.compile(re.sub(r"\{\w+\}", ".+?", json.loads(one))) for one in english)


def is_in_korean(text: str) -> bool:
    """Whether the page knows all sentences of a text."""
    return all(
        {one, one[:1].lower() + one[1:]} & names_in_korean()
        or any(known.fullmatch(one.removesuffix(".")) for known in patterns_in_korean())
        for one in re.split(r"(?<=\.) (?=[A-Z])|; (?=of [\d,]+ )", text)
    )
