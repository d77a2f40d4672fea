"""What the page must know of the server's limits, since it asks for no more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.serving.look import schema
from dragoman.tasks.masked import filler

SOURCES = Path(__file__).parents[2] / "web" / "src"


@pytest.mark.parametrize(
    ("file", "most"),
    [("look/look.ts", schema.MAX_PIECES), ("masked/ask_blanks.svelte.ts", filler.MAX_PIECES)],
)
def test_the_page_asks_for_as_many_pieces_as_the_server_takes(file: str, most: int) -> None:
    text = (SOURCES / file).read_text(encoding="utf-8")
    assert re.findall(r"const MOST_PIECES = (\d+);", text) == [str(most)]
