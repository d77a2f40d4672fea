"""Every code of a refusal as docs/http-api.md lists it: its status and the names of its values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class RefusalKind(NamedTuple):
    """What all refusals of one code have in common."""

    status: int
    """Of HTTP."""
    values: tuple[str, ...]
    """The names of its values."""


_DOCS = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text(encoding="utf-8")
_ROWS = re.findall(r"^\| `(\w+)` \| (\d{3}) \| ([^|]*) \| \S[^|]+ \|$", _DOCS, re.MULTILINE)
KINDS = {
    code: RefusalKind(int(status), tuple(re.findall(r"`(\w+)`", names)))
    for code, status, names in _ROWS
}
