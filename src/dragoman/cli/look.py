"""``dragoman look``: see inside one output, and what changes if."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.given import tell_of_file


def look(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    sentence: Annotated[
        str,
        typer.Argument(
            help="What is read, of a masked model with blanks (___); of a language model, what it "
            "writes."
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="Look at this translation in place of the run's own.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="What the terminal shows: cross, encoder or decoder."),
    ] = None,
    layer: Annotated[
        int | None, typer.Option(min=1, help="Of which layer; the last unless given.")
    ] = None,
    head: Annotated[
        int | None, typer.Option(min=1, help="Of which head; the mean of all unless given.")
    ] = None,
    hide: Annotated[
        list[str] | None,
        typer.Option(help="What if this word could not be seen? A word, or its number."),
    ] = None,
    head_off: Annotated[
        list[str] | None,
        typer.Option(help="What if a head were off? cross.2.1, encoder.1.*, decoder.*.3"),
    ] = None,
    prefix: Annotated[str, typer.Option(help="What if the translation began so?")] = "",
    importance: Annotated[
        bool, typer.Option("--importance", help="Also the loss without each head.")
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            help="Links made by people for this pair, in Pharaoh format: 0-0 1-2 2?1. Gives AER."
        ),
    ] = None,
    gold_base: Annotated[
        int | None,
        typer.Option(min=0, max=1, help="What its first word is counted as: 0 (if not said), 1."),
    ] = None,
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Show subword pieces in place of words.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option(help="Write a page (.html), a picture (.svg) or numbers (.csv).")
    ] = None,
) -> None:
    """Show where every layer and head of a run looked while it wrote: the translation of a sentence
    or, of a language model, the text that is given; its tree; or while it read, to fill in blanks
    or to give a label.

    The terminal shows one of them; --to look.html writes a page with all, to look around in.

    Example: dragoman look runs/demo "The dog sleeps." --hide dog --to look.html
    """
    from dragoman.cli.console import log_to_stderr

    log_to_stderr(quiet=True)
    from rich.console import Console

    from dragoman.errors import DragomanError
    from dragoman.runs.run import Run

    if to is not None and to.suffix not in (".html", ".svg", ".csv"):
        raise DragomanError(f"--to {to}: write .html, .svg or .csv")
    Run.open(run)  # a wrong folder is said before torch is imported
    tell_of_file(sentence, "Give one of its sentences")
    from dragoman.insight.look import LookOptions, look_at_sentence
    from dragoman.pictures.terminal import heatmap_text

    options = LookOptions(
        sentence=sentence,
        target=target,
        kind=kind,
        layer=layer,
        head=head,
        hide=tuple(hide or ()),
        heads_off=tuple(head_off or ()),
        prefix=prefix,
        importance=importance,
        gold=gold,
        gold_base=gold_base,
        pieces=pieces,
    )
    result = look_at_sentence(run, options)
    console = Console(highlight=False)
    console.print(result.output.text, style="bold", markup=False)
    console.print()
    if result.what_if is not None:
        console.print(result.summary, markup=False, style="dim")
        console.print(result.what_if.after.text, style="bold", markup=False)
        console.print(f"{result.doubt}\n" if result.doubt else "", markup=False)
    console.print(heatmap_text(result.heatmap, min(console.width, 120)))
    for line in result.lines:
        console.print(line, markup=False)
    if to is not None:
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(result.written(to.suffix), encoding="utf-8")
        console.print(f"Written: {to}", markup=False)
    else:
        console.print(
            f"Another head: --kind {result.record.kinds[0]} --layer 1 --head 1, of "
            f"{', '.join(result.record.kinds)}. All of them, to look around in: --to look.html",
            style="dim",
            markup=False,
        )
