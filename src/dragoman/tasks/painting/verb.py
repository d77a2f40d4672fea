"""``dragoman paint``: captions in, pictures out; and the demo of ``dragoman demo --task paint``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import DragomanError, FileError
from dragoman.console.demo_files import CAPTIONED, Demo, DemoFiles, reading
from dragoman.console.options import (
    RunFolder,
    argument,
    arguments,
    option,
    sampling_settings,
    search_settings,
    setting,
    values_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.recipe.recipe import Recipe
    from dragoman.runs.run import Run
    from dragoman.tasks.painting.painter import PaintedPicture

_ROWS = 256
"""The largest number of captions that one PNG file shows."""


@arguments
class PaintArguments:
    """The arguments and options of ``dragoman paint``."""

    run: RunFolder = argument("RUN")
    captions: list[str] = argument("CAPTION", None)
    """The captions to paint. Default: the lines of standard input."""
    to: Path | None = None
    """Write a PNG to this file: a row for each caption, with its pictures side by side. Default:
    draw the pictures in the terminal."""
    count: int = option(1, ge=1)
    """The number of pictures of each caption."""
    judge: Path | None = None
    """A run that reads pictures and writes their captions, or has them as labels. Of the pictures
    of a caption, it chooses those in which it finds the caption the most probable."""
    best_of: int = option(8, ge=2, metavar="N")
    """With --judge: the number of pictures of each caption from which --count are chosen."""
    scale: int = option(8, ge=1)
    """The side of a pixel in the PNG, in pixels of the file."""
    codes: bool = False
    """Print the codes of each picture instead: its caption, its log-probability and its codes,
    separated by tabs."""
    beam: int | None = setting(search_settings, default=None)
    sample: bool = False
    """Draw pictures at random, by their probabilities, instead of searching for the most probable
    ones."""
    temperature: float = setting(sampling_settings)
    top_k: int = setting(sampling_settings)
    top_p: float = setting(sampling_settings)
    seed: int = setting(sampling_settings)


def paint(args: PaintArguments) -> None:
    """Paint a picture from a caption.

    The model writes the codes of the picture, from left to right and from top to bottom. By default
    the most probable picture is painted; with --sample, pictures are drawn by their probabilities.

    Examples:

      dragoman paint runs/shapes "a small red circle above a large blue square"

      dragoman paint runs/shapes "a large green cross" --to cross.png

      dragoman paint runs/shapes "a small red circle" --sample --count 8 --seed 3 --to circles.png

      dragoman paint runs/shapes "a small red circle" --sample --judge runs/captions --best-of 16
    """
    from dragoman.data.files.lines import STANDARD_INPUT, decode_lines
    from dragoman.tasks.catalogue import open_run

    run = open_run(args.run, "painting", "which does not paint")
    drawn = values_of(args, sampling_settings)
    if not args.sample and drawn != sampling_settings()().model_dump():
        raise DragomanError(
            "--temperature, --top-k, --top-p and --seed need sampling. Add --sample"
        )
    if args.sample and args.beam is not None:
        raise DragomanError("--sample and --beam do not work together. Leave one out")
    if args.codes and args.to is not None:
        raise DragomanError("--codes prints codes, but --to writes pictures. Leave one out")
    if args.to is not None and args.to.suffix.lower() != ".png":
        raise FileError(f"--to {args.to}: pictures are PNG files. Use a name that ends in .png")
    if args.to is not None and not args.to.parent.is_dir():
        raise FileError(f"cannot write {args.to}: there is no folder {args.to.parent}")
    captions = list(args.captions or decode_lines(sys.stdin.buffer, STANDARD_INPUT))
    if args.to is not None and len(captions) > _ROWS:
        raise DragomanError(f"{len(captions):,} captions, but one PNG shows at most {_ROWS}")
    from dragoman.tasks.painting.painter import Judge, Painter, painting_settings, unknown_words

    _tell_unknown(unknown_words(run.lexicon(), captions))
    judge, made = None, args.count
    if args.judge is not None:
        from dragoman.tasks import catalogue

        judge, made = Judge(catalogue.Run.open(args.judge)), max(args.count, args.best_of)
    painter = Painter(run)
    sampling = sampling_settings().model_validate(drawn) if args.sample else None
    settings = painting_settings(painter.engine.search_settings, made, args.beam, sampling)
    painted = (every[: args.count] for every in painter.stream(captions, settings, judge))
    if args.to is None:
        _show(args, painted)
    else:
        _write(args.to, list(painted), args.scale)


def _tell_unknown(unknown: Sequence[str]) -> None:
    """Warn about words that no training caption has."""
    if unknown:
        more = f" and {len(unknown) - 8:,} more" if len(unknown) > 8 else ""
        words = ", ".join(map(repr, unknown[:8])) + more
        sys.stderr.write(
            f"warning: no training caption has {words}, so the model does not know what to paint "
            "for it\n"
        )


def _show(args: PaintArguments, painted: Iterator[list[PaintedPicture]]) -> None:
    from rich.console import Console

    from dragoman.base.reading import readable
    from dragoman.base.wording import decimals
    from dragoman.pictures.bitmaps import half_blocks
    from dragoman.tasks.painting.painter import in_a_row

    console = Console(highlight=False)
    shows = console.color_system is not None
    if not (args.codes or shows):
        sys.stderr.write(
            "note: this output has no colours, so no picture is drawn. Write it with --to "
            "FILE.png\n"
        )
    for pictures in painted:
        if args.codes:
            for picture in pictures:
                caption, score = readable(picture.caption), decimals(picture.score, 4)
                sys.stdout.write(f"{caption}\t{score}\t{picture.text}\n")
            continue
        sys.stdout.write(f"{readable(pictures[0].caption)}\n")
        sys.stdout.flush()
        if not shows:
            continue
        row = in_a_row([picture.pixels for picture in pictures])
        console.print(half_blocks(row, console.width), end="", soft_wrap=True)


def _write(to: Path, painted: Sequence[Sequence[PaintedPicture]], scale: int) -> None:
    import numpy as np

    from dragoman.base.atomic import write_bytes
    from dragoman.pictures.bitmaps import png_of
    from dragoman.tasks.painting.painter import enlarge, in_a_row

    if not painted:
        return
    rows = [in_a_row([picture.pixels for picture in pictures]) for pictures in painted]
    across = [row.swapaxes(0, 1) for row in rows]
    whole = np.ascontiguousarray(in_a_row(across).swapaxes(0, 1))
    write_bytes(to, png_of(enlarge(whole, scale)))


PAINTED_PICTURE = "painted.png"
_PAINTED = 8
_SHOWN = 3
"""The number of pictures that are drawn in the terminal."""
CODES_CHANGES: tuple[str, ...] = ()
"""Changes to the recipe of the run that learns the codes."""


def make_pictures() -> DemoFiles:
    """Make the pictures that the demo learns from, and their captions. Errors: ``DataError`` if the
    extra ``images`` is missing."""
    from dragoman.demo.captioned_shapes import CAPTIONED_NOTICE, draw_shapes, write_shapes
    from dragoman.pictures.bitmaps import png_of
    from dragoman.sources.picture.picture_file import library

    library()
    telling = "Drawing {count} pictures into {folder}: look at one of the PNG files."
    write = partial(write_shapes, encoded=png_of)
    return DemoFiles(CAPTIONED, CAPTIONED_NOTICE, telling, draw_shapes, write)


def show_painted(run: Run, report: Any, console: Console) -> str:
    """Show pictures that are painted for captions outside the training text. Return a line that
    names the files with the pictures and the report."""
    from dragoman.base.atomic import write_bytes
    from dragoman.pictures.bitmaps import half_blocks, png_of
    from dragoman.tasks.painting.painter import enlarge, in_a_row
    from dragoman.tasks.report import write_report

    console.print("\nTest: captions whose pictures were not in either training\n")
    console.print(report.table(), markup=False, soft_wrap=True)
    step = max(1, len(report.pictures) // _PAINTED)
    some = report.pictures[::step][:_PAINTED]
    console.print("\nWhat it paints:\n")
    for picture in some[:_SHOWN]:
        console.print(f"  {picture.caption}\n", markup=False)
        if console.color_system is not None:
            console.print(half_blocks(picture.pixels, console.width))
    path = run.folder / PAINTED_PICTURE
    write_bytes(path, png_of(enlarge(in_a_row([picture.pixels for picture in some]), 4)))
    captions = "; ".join(picture.caption for picture in some)
    console.print(f"From left to right: {captions}", markup=False)
    return f"All of these: {path}; the whole report: {write_report(run)}"


def learn_codes(recipe: Recipe, folder: Path, console: Console) -> Recipe:
    """Train the autoencoder that learns the codes of the pictures in ``folder``. Return the
    painter's recipe, changed so that it names the autoencoder's run."""
    import typer

    from dragoman.tasks import catalogue
    from dragoman.tasks.training import train

    coder = reading(catalogue.Recipe.load("demo-codes", CODES_CHANGES), folder)
    codes = folder / "codes"
    console.print(f"\nTraining into {codes}: an autoencoder, pictures to codes and back.\n")
    outcome = train(coder, codes, say=console.print)
    if outcome.reason == "interrupted":
        raise typer.Exit(130)
    report = catalogue.runtime_of(coder.spec).evaluate(catalogue.Run.open(codes))
    console.print(f"\n{report.table()}\n", markup=False, soft_wrap=True)
    painting = recipe.painting.model_copy(update={"codes": str(codes.absolute())})
    return recipe.model_copy(update={"painting": painting})


DEMO = Demo(
    "demo-paint", "a Transformer, captions to the codes of pictures",
    show_painted, (
        'paint {to} "a small red circle above a large blue square"',
        'paint {to} "a large green cross" --sample --count 4 --to crosses.png',
        "train captions.tsv --task painting --codes {to}-captions/codes  # your own captions",
    ), make_pictures, learn_codes,
)  # fmt: skip
