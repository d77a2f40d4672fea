"""Where a server that was started says that it is."""

from __future__ import annotations

import re
from collections.abc import Iterable


def address_told(lines: Iterable[str]) -> str:
    """The address among the lines that a server writes; all of them in an ``AssertionError`` where
    there is none."""
    said = ""
    for line in lines:
        said += line
        if found := re.search(r"http://[\d.]+:\d+", line):
            return found[0]
    raise AssertionError(said)
