"""The sizes that the documentation shows are those that files alone choose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest

from dragoman.sizing.size import Size
from dragoman.sizing.text_alone import TEXT_TABLE
from dragoman.tasks.classification.sizes import LABEL_TABLE
from dragoman.tasks.parsing.sizes import TREE_TABLE
from dragoman.tasks.tagging.sizes import TAG_TABLE
from dragoman.tasks.transcription.sizes import SPOKEN_TABLE
from dragoman.tasks.translation.sizes import TABLE

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "pairs": "training", "texts": "language-models", "labels": "labels", "tags": "tags",
    "trees": "trees", "hours": "transcribe",
}  # fmt: skip
"""The page of each table."""
TABLES = {
    "pairs": TABLE, "texts": [row.size for row in TEXT_TABLE], "labels": LABEL_TABLE,
    "tags": TAG_TABLE, "trees": TREE_TABLE, "hours": SPOKEN_TABLE,
}  # fmt: skip
NO_NUMBER = {"model", "tags"}
"""Columns of words."""


def shown(name: str) -> list[dict[str, str]]:
    """The rows of the table of sizes of a page."""
    lines = iter((DOCS / f"{PAGES[name]}.md").read_text(encoding="utf-8").splitlines())
    table = takewhile(
        lambda line: line.startswith("|"),
        dropwhile(lambda line: not re.match(r"\| fewer \w+ than \|", line), lines),
    )
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    return [dict(zip(header, row, strict=True)) for row in rows]


def cells_of(size: Size, context: int | None) -> dict[str, str]:
    return {
        "vocabulary": f"{size.vocabulary:,}", "tokens": f"{size.vocabulary:,}",
        "width": f"{size.model_dim}", "feed-forward": f"{4 * size.model_dim:,}",
        "heads": f"{size.heads}", "layers": f"{size.layers}", "dropout": f"{size.dropout}",
        "context": f"{context}", "tokens per update": f"{size.tokens_per_update:,}",
        "epochs": f"{size.epochs}",
    }  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_sizes_is_shown_as_it_is(name: str) -> None:
    sizes: Sequence[Size] = TABLES[name]
    contexts = [row.context for row in TEXT_TABLE] if name == "texts" else [None] * len(sizes)
    for row, size, context in zip(shown(name), sizes, contexts, strict=True):
        first, *columns = (column for column in row if column not in NO_NUMBER)
        assert row[first] == ("more" if size.below == float("inf") else f"{size.below:,}")
        cells = cells_of(size, context)
        for column in columns:
            # An LSTM has no heads; of two halves that are alike the first is compared, and a
            # vocabulary of characters is one of all that there are.
            said = row[column].partition("+")[0]
            assert said in (cells[column], "", "characters"), f"{column}: {row}"
