"""The demonstration of a masked model by ``dragoman demo --task fill``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from dragoman.console.demo_files import Demo

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.run import Run


_BLANKS = (
    "The ___ didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too ___.",
    "The ___ eats the ___.",
)


def show_blanks(run: Run, measured: Any, console: Console) -> str:
    """Show candidates for the blanks of English sentences, and the attention of each word."""
    from dragoman.pictures.labels import plain_table
    from dragoman.pictures.records import merged_to_words
    from dragoman.pictures.terminal import heatmap_text
    from dragoman.tasks.masked.filler import Filler
    from dragoman.tasks.report import write_report

    console.print(f"\n{measured.table()}\n", markup=False)
    filler = Filler(run)
    console.print("What may fill a blank, given the text on both sides of it:\n")
    for text in _BLANKS:
        filled = filler(text)
        console.print(f"  {text}\n  [bold]{filled}[/bold]\n")
        for candidates in filled.blanks:
            rows = [(candidate.text, f"{candidate.probability:.3f}") for candidate in candidates]
            table = plain_table(("candidate", "probability"), rows)
            console.print("\n".join(f"    {line}" for line in table.splitlines()) + "\n")
    record = merged_to_words(filler.look(_BLANKS[0], ()))
    console.print("Where each word looks, the blank as <mask> (percent of attention)\n")
    last = len(record.encoder) - 1
    console.print(heatmap_text(record.heatmap("encoder", last), min(console.width, 100)))
    return f"The whole report: {write_report(run)}"


DEMO = Demo(
    "demo-masked", "an encoder, which fills in blanks of English sentences", show_blanks, (
        f"fill {{to}} {shlex.quote(_BLANKS[2])} --best 10",
        f"look {{to}} {shlex.quote(_BLANKS[0])} --to look.html",
        "train my.txt --task masked  # your own text",
    ),
)  # fmt: skip
