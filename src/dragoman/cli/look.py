"""``dragoman look``: see inside one output, and what changes if."""

from __future__ import annotations

from pathlib import Path

from dragoman.base.errors import DragomanError
from dragoman.cli.console import log_to_stderr
from dragoman.cli.given import tell_of_file
from dragoman.cli.options import RunFolder, argument, arguments, option


@arguments
class LookArguments:
    """What ``dragoman look`` takes."""

    run: RunFolder = argument("RUN")
    sentence: str = argument()
    """The sentence to look at: for a masked model, with blanks (___); for a language model, the
    text as if the model had written it."""
    target: str | None = None
    """Look at this translation instead of the one that the run produces."""
    kind: str | None = None
    """The attention to show in the terminal: cross, encoder or decoder."""
    layer: int | None = option(ge=1)
    """The layer to show. Default: the last."""
    head: int | None = option(ge=1)
    """The head to show. Default: the mean of all."""
    hide: list[str] = option()
    """Hide this source word, given as text or as its number, and show what changes. May be
    repeated."""
    head_off: list[str] = option()
    """Switch off a head, such as cross.2.1, encoder.1.* or decoder.*.3, and show what changes. May
    be repeated."""
    prefix: str = ""
    """Force the translation to begin with this text, and show what changes."""
    importance: bool = False
    """Also show the loss when each head is switched off."""
    gold: Path | None = None
    """A file of human-made links for this pair, in Pharaoh format: 0-0 1-2 2?1. The alignment error
    rate is then printed."""
    gold_base: int | None = option(ge=0, le=1)
    """The number that --gold gives to the first word: 0 (the default) or 1."""
    pieces: bool = False
    """Show subword pieces instead of words."""
    to: Path | None = None
    """Write every layer and head as a page (.html) or as numbers (.csv), or the attention shown in
    the terminal as a picture (.svg)."""


def look(args: LookArguments) -> None:
    """Show the attention of a run's layers and heads for one sentence.

    For a translator, you see the attention while it writes the translation; for a language model,
    while it writes the text that you give; for a parser, while it writes the tree; for a masked
    model or a classifier, while it reads. The terminal shows one layer and head; --to look.html
    writes an interactive page with all of them.

    Example: dragoman look runs/demo "The dog sleeps." --hide dog --to look.html
    """
    log_to_stderr(quiet=True)
    from rich.console import Console

    from dragoman import catalogue

    if args.to is not None and args.to.suffix not in (".html", ".svg", ".csv"):
        raise DragomanError(f"--to {args.to}: write .html, .svg or .csv")
    opened = catalogue.Run.open(args.run)  # a wrong folder is said before torch is imported
    if not opened.task.reads_files:
        tell_of_file(args.sentence, "Give one of its sentences")
    from dragoman.insight.look import LookOptions, look_at_sentence
    from dragoman.pictures.terminal import heatmap_text

    options = LookOptions(
        sentence=args.sentence, target=args.target, kind=args.kind, layer=args.layer,
        head=args.head, hide=tuple(args.hide), heads_off=tuple(args.head_off), prefix=args.prefix,
        importance=args.importance, gold=args.gold, gold_base=args.gold_base, pieces=args.pieces,
    )  # fmt: skip
    result = look_at_sentence(args.run, options)
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
    if args.to is not None:
        args.to.parent.mkdir(parents=True, exist_ok=True)
        args.to.write_text(result.written(args.to.suffix), encoding="utf-8")
        console.print(f"Written: {args.to}", markup=False)
    else:
        console.print(
            f"Another head: --kind {result.record.kinds[0]} --layer 1 --head 1, of "
            f"{', '.join(result.record.kinds)}. All of them, to look around in: --to look.html",
            style="dim",
            markup=False,
        )
