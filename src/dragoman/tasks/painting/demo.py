"""The demo of ``dragoman demo --task paint``: its training files, and the results that it shows."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.console.demo_files import CAPTIONED, Demo, DemoFiles, reading

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.recipe.recipe import Recipe
    from dragoman.runs.run import Run


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
