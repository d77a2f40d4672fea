"""``dragoman figure``: the figures of the paper and its lectures, computed."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from dragoman.base.errors import DragomanError
from dragoman.cli.console import log_to_stderr
from dragoman.cli.options import argument, arguments, option


@arguments
class FigureArguments:
    """What ``dragoman figure`` takes."""

    name: str | None = argument("NAME", None)
    """The figure to compute; --list shows all names."""
    run: Path = option(Path("runs/demo"), metavar="RUN")
    """The trained run that the figure is computed from."""
    sentence: str | None = None
    """The sentence to show, for figures that show a sentence."""
    to: Path | None = None
    """The file to write, .svg or .png; the numbers are written next to it as CSV. Default: NAME.svg
    in the current folder."""
    set_: list[str] = option(metavar="SLIDER=VALUE")
    """Set a value that has a slider on the web page, such as dimension=64. May be repeated."""
    list_: bool = False
    """List all figures and stop."""
    all_: Path | None = None
    """Write all figures, and one page that collects them, to this folder."""


def figure(args: FigureArguments) -> None:
    """Compute a figure of the paper: a picture (SVG or PNG), its numbers (CSV) and a caption.

    Some figures need no run. The others are computed from a trained run: by default the demo's, or
    the one that --run names.

    Example: dragoman figure position-sinusoidal --to positions.svg

    Example: dragoman figure --all figures
    """
    log_to_stderr(quiet=True)
    if args.sentence is not None and not args.sentence.strip():
        raise DragomanError("--sentence is empty")
    if args.set_ and (args.list_ or args.all_ is not None):
        raise DragomanError("--set goes with the NAME of one figure; leave it out here")
    if args.list_:
        _list()
    elif args.all_ is not None:
        _write_all(args.all_, args.run, args.sentence)
    elif args.name is not None:
        _write_one(args.name, args.run, args.sentence, args.to, args.set_)
    else:
        typer.echo(
            "Name a figure, or use --list or --all DIR. See dragoman figure --help", err=True
        )
        raise typer.Exit(2)


def _list() -> None:
    from dragoman.insight.figures.captions import captions

    width = max(map(len, captions()))
    for name, words in captions().items():
        typer.echo(f"{name:<{width}}  {words.title.english}")


def _write_one(
    name: str, run: Path, sentence: str | None, to: Path | None, changes: list[str]
) -> None:
    from dragoman.insight.figures.captions import check_name

    check_name(name)
    from dragoman.insight.figures.catalogue import checked, make_figure, needs_run
    from dragoman.insight.subject import Subject
    from dragoman.pictures.figure import figure_png, figure_svg

    if sentence is not None and not needs_run(name):
        raise DragomanError(f"{name} shows no sentence; leave --sentence out")
    path = to or Path(f"{name}.svg")
    if path.suffix not in (".svg", ".png"):
        raise DragomanError(f"--to {path}: a figure is written as .svg or .png")
    subject = Subject.open(run, sentence) if needs_run(name) else None
    made = make_figure(name, subject, checked(name, subject, _sliders(changes)))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        figure_png(made, path)
    else:
        path.write_text(figure_svg(made), encoding="utf-8")
    written = [path]
    for table in made.data:
        part = f"-{table.name}" if table.name else ""
        beside = path.with_name(f"{path.stem}{part}.csv")
        beside.write_text(table.csv(), encoding="utf-8")
        written.append(beside)
    typer.echo(f"{made.title.english}\n\n{made.caption.english}\n")
    for note in made.notes:
        typer.echo(f"{note.english}\n")
    typer.echo(f"From: {made.source.english}.")
    if made.run:
        typer.echo(f"Looks into the run {made.run} ({run}).")
    typer.echo(f"Written: {', '.join(map(str, written))}")


def _sliders(changes: list[str]) -> dict[str, float]:
    """``SLIDER=VALUE`` as what the figure is made with. Errors: ``DragomanError``."""
    found: dict[str, float] = {}
    for change in changes:
        slider, equals, value = change.partition("=")
        try:
            found[slider.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise DragomanError(f"--set {change}: write SLIDER=VALUE with a number: dimension=64")
    return found


def _write_all(folder: Path, run: Path, sentence: str | None) -> None:
    from dragoman.insight.figures.book import write_book
    from dragoman.insight.subject import DEMO, Subject

    subject = None
    try:
        subject = Subject.open(run, sentence)
    except DragomanError as error:
        if run != DEMO:
            raise
        # Without a demo the figures that need no run can still be drawn.
        sys.stderr.write(f"{error}. Figures that look into a run are left out.\n")

    def say(line: str) -> None:
        typer.echo(line)

    page = write_book(folder, subject, say)
    typer.echo(f"\nThe book: {page}")
