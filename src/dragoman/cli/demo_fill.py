"""``dragoman demo --task fill``: a model that fills in blanks, from nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.recipe import Recipe

_BLANKS = (
    "The ___ didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too ___.",
    "The ___ eats the ___.",
)


def fill(recipe: Recipe, to: Path, console: Console) -> None:
    """What may stand in the blanks of English sentences: trained, measured, drawn."""
    from dragoman.cli.console import command, train_demo
    from dragoman.pictures.plain_table import plain_table
    from dragoman.pictures.terminal import heatmap_text
    from dragoman.pictures.words import in_words
    from dragoman.tasks.masked.evaluation import evaluate_run
    from dragoman.tasks.masked.filler import Filler
    from dragoman.tasks.report import write_report

    run = train_demo(recipe, to, console, "an encoder, which fills in blanks of English sentences")
    console.print(f"\n{evaluate_run(run).table()}\n", markup=False)
    filler = Filler(run)
    console.print("What may stand in a blank, by the text on both sides of it:\n")
    for text in _BLANKS:
        found = filler(text)
        console.print(f"  {text}\n  [bold]{found}[/bold]\n")
        for candidates in found.blanks:
            rows = [(one.text, f"{one.probability:.3f}") for one in candidates]
            table = plain_table(("candidate", "probability"), rows)
            console.print("\n".join(f"    {line}" for line in table.splitlines()) + "\n")
    record = in_words(filler.look(_BLANKS[0], ()))
    console.print("Where each word looks, the blank as <mask> (percent of attention)\n")
    last = len(record.encoder) - 1
    console.print(heatmap_text(record.heatmap("encoder", last), min(console.width, 100)))
    console.print(f"The whole report: {write_report(run)}\n")
    console.print("Next:")
    for step in (
        command("fill", to, _BLANKS[2], "--best", "10"),
        command("look", to, _BLANKS[0], "--to", "look.html"),
        f"{command('train', 'my.txt', '--task', 'masked')}  # your own text",
    ):
        console.print(f"  {step}", markup=False, soft_wrap=True)
