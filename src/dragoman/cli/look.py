"""``dragoman look`` shows the inside of one output and the effect of changes, ``dragoman figure``
computes the figures of the paper and its lectures, and ``dragoman lesson`` writes the lesson about
a run as one file, with a teacher's sheet.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.base.atomic import write_text
from dragoman.base.errors import DragomanError
from dragoman.base.reading import whole_characters
from dragoman.console.given import tell_of_file
from dragoman.console.options import RunFolder, Tag, argument, arguments, option
from dragoman.console.output import log_to_stderr
from dragoman.insight.options import LookOptions

if TYPE_CHECKING:
    from dragoman.insight.subject import Subject


@arguments
class LookArguments(LookOptions):
    """The arguments and options of ``dragoman look``."""

    run: RunFolder = argument("RUN")
    tag: Tag = None
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

    from dragoman.tasks import catalogue

    if args.to is not None and args.to.suffix not in (".html", ".svg", ".csv"):
        raise DragomanError(f"--to {args.to}: use a name that ends in .html, .svg or .csv")
    # A wrong folder is reported before torch is imported.
    opened = catalogue.Run.open(args.run).with_tag(args.tag)
    if not opened.task.reads_files:
        tell_of_file(args.sentence, "Give one of its sentences")
    from dragoman.insight.look import look_at_sentence
    from dragoman.pictures.terminal import heatmap_text

    result = look_at_sentence(opened, args)
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
        args.to.write_text(result.as_text(args.to.suffix), encoding="utf-8")
        console.print(f"Written: {args.to}", markup=False)
    else:
        console.print(
            f"Another head: --kind {result.record.kinds[0]} --layer 1 --head 1, of "
            f"{', '.join(result.record.kinds)}. All of them, to look around in: --to look.html",
            style="dim",
            markup=False,
        )


@arguments
class FigureArguments:
    """The arguments and options of ``dragoman figure``."""

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
    """Compute a figure of Attention Is All You Need, or one like it.

    A figure consists of a picture (SVG or PNG), its numbers (CSV) and a caption.

    Some figures need no run. The others are computed from a trained run: by default the demo's, or
    the one that --run names.

    Example: dragoman figure position-sinusoidal --to positions.svg

    Example: dragoman figure --all figures
    """
    log_to_stderr(quiet=True)
    if args.sentence is not None and not args.sentence.strip():
        raise DragomanError("--sentence is empty")
    if args.set_ and (args.list_ or args.all_ is not None):
        raise DragomanError("--set works only with the NAME of one figure. Leave it out")
    if args.list_:
        _list()
    elif args.all_ is not None:
        _write_all(args.all_, args.run, args.sentence)
    elif args.name is not None:
        _write_one(args.name, args)
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


def _write_one(name: str, args: FigureArguments) -> None:
    from dragoman.insight.figures.captions import check_name

    check_name(name)
    from dragoman.insight.figures.catalogue import make_figure, needs_run, validate
    from dragoman.pictures.figure import write_figure

    if args.sentence is not None and not needs_run(name):
        raise DragomanError(f"{name} shows no sentence. Leave out --sentence")
    path = args.to or Path(f"{name}.svg")
    if path.suffix not in (".svg", ".png"):
        raise DragomanError(f"--to {path}: use a name that ends in .svg or .png")
    subject = _subject(args.run, args.sentence) if needs_run(name) else None
    made = make_figure(name, subject, validate(name, subject, _sliders(args.set_)))
    path.parent.mkdir(parents=True, exist_ok=True)
    written = write_figure(path.parent, replace(made, name=path.stem), path.suffix)
    typer.echo(f"{made.title.english}\n\n{made.caption.english}\n")
    for note in made.notes:
        typer.echo(f"{note.english}\n")
    typer.echo(f"From: {made.source.english}.")
    if made.run:
        typer.echo(f"These figures look into the run {made.run} ({args.run}).")
    typer.echo(f"Written: {', '.join(map(str, written))}")


def _subject(run: Path, sentence: str | None) -> Subject:
    """Open a run to make figures of. Errors: as ``Subject.open``."""
    from dragoman.insight.subject import Subject
    from dragoman.tasks import catalogue
    from dragoman.tasks.training import small_model

    return Subject.open(catalogue.Run.open(run), sentence, train=small_model)


def _sliders(changes: list[str]) -> dict[str, float]:
    """Parse ``SLIDER=VALUE`` arguments of a figure. Errors: ``DragomanError``."""
    values: dict[str, float] = {}
    for change in changes:
        slider, equals, value = change.partition("=")
        try:
            values[slider.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise DragomanError(f"--set {change}: write SLIDER=VALUE with a number: dimension=64")
    return values


def _write_all(folder: Path, run: Path, sentence: str | None) -> None:
    from dragoman.insight.figures.catalogue import write_book
    from dragoman.insight.subject import DEMO

    subject = None
    try:
        subject = _subject(run, sentence)
    except DragomanError as error:
        if run != DEMO:
            raise
        # Without a demo, figures that need no run can still be drawn.
        sys.stderr.write(f"{error}. Figures that look into a run are left out.\n")
    page = write_book(folder, subject, typer.echo)
    typer.echo(f"\nThe book: {page}")


@arguments
class LessonArguments:
    """The arguments and options of ``dragoman lesson``."""

    run: RunFolder = argument("RUN")
    sentence: str | None = None
    """The sentence that the lesson is about; of a text, its first. Default: the sentence of the
    paper, or for a run that does not read English, one that the run was measured on."""
    to: Path = option(Path("lesson.html"))
    """The file to write. The teacher's sheet is written next to it, as NAME-teacher.html."""


def lesson(args: LessonArguments) -> None:
    """Write a lesson in ten steps about a translator: how it turns a sentence into a translation.

    All numbers are computed from the run. The file needs no server and no network; open it in a
    browser. The teacher's sheet next to it has all answers, for printing.

    Example: dragoman lesson runs/demo --to lesson.html
    """
    log_to_stderr(quiet=True)
    if args.sentence is not None and not args.sentence.strip():
        raise DragomanError("--sentence is empty")
    if args.to.suffix != ".html":
        raise DragomanError(f"--to {args.to}: use a name that ends in .html")
    sheet = args.to.with_stem(f"{args.to.stem}-teacher")
    for path in (args.to, sheet):
        if path.is_dir():
            raise DragomanError(f"{path} is a folder. Set another name with --to FILE.html")
    from dragoman.insight.lesson.lesson import lesson_pages, make_lesson, require_page, subject_of
    from dragoman.tasks import catalogue

    require_page()
    run = catalogue.Run.open(args.run)
    made = [make_lesson(subject_of(run, whole_characters(args.sentence or "")))]
    if made[0].other is not None:
        made.append(make_lesson(subject_of(run, made[0].other.text)))
    args.to.parent.mkdir(parents=True, exist_ok=True)
    for path, page in zip((args.to, sheet), lesson_pages(made), strict=True):
        write_text(path, page)
        typer.echo(f"Written: {path}")
