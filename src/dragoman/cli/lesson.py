"""``dragoman lesson`` writes the lesson about a run as one file, with a teacher's sheet."""

from __future__ import annotations

from pathlib import Path

import typer

from dragoman.base.atomic import write_text
from dragoman.base.errors import DragomanError
from dragoman.base.reading import whole_characters
from dragoman.console.options import RunFolder, argument, arguments, option
from dragoman.console.output import log_to_stderr


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
    from dragoman.insight.lesson.file import lesson_pages, require_page
    from dragoman.insight.lesson.lesson import make_lesson, subject_of
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
