"""What ``dragoman demo`` with ``--task classify-picture``, ``detect`` or ``paint`` makes before it
trains, and shows of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.demo_files import CAPTIONED, PICTURES, SCENES, new_folder, reading
from dragoman.tasks.detection.verb import drawn_box

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.console import Console

    from dragoman.data.files.pair import Pair
    from dragoman.pictures.figure import Figure, Panel
    from dragoman.recipe import Recipe
    from dragoman.runs.run import Run
    from dragoman.tasks.classification.evaluation import ClassificationReport
    from dragoman.tasks.detection.detector import DetectedPicture
    from dragoman.tasks.detection.drawing import DrawnBox


LOOKED_AT_PICTURE = "looked-at.svg"


def draw_pictures(recipe: Recipe, to: Path, console: Console) -> Recipe:
    """Write the pictures that the demo learns from. -> The recipe, which then names them.

    Errors: ``RunError`` for a folder there that the demo did not make, ``DataError`` where the
    extra ``images`` is missing.
    """
    from dragoman.demo.shapes import DRAWN_NOTICE, drawn_demo, write_drawn
    from dragoman.pictures.bitmaps import png_of
    from dragoman.sources.picture.picture_file import library

    library()  # what reads pictures: without it nothing is written
    folder = new_folder(to, PICTURES, DRAWN_NOTICE, console)
    parts = drawn_demo()
    count = sum(map(len, parts.values()))
    console.print(f"Drawing {count:,} pictures into {folder}: open one of the PNG files.")
    write_drawn(folder, parts, png_of)
    return reading(recipe, folder)


def show_shapes(run: Run, console: Console) -> str:
    """How well shapes are told apart in combinations of pattern and colour that training did not
    show them in, and where the model looks."""
    from dragoman.atomic import write_text
    from dragoman.pictures.figure import figure_svg
    from dragoman.tasks.classification.evaluation import labelled_set
    from dragoman.tasks.report import write_report

    of = "pictures whose combinations of shape, pattern and colour"
    found = show_confusions(run, console, of, "Shape")
    pairs = labelled_set(run).pairs
    chosen = [next(pair for pair in pairs if pair.target == name) for name in found.labels]
    figure, said = rollout_sheet(run, chosen)
    for pair, one in zip(chosen, said, strict=True):
        console.print(f"  {Path(pair.source).name}: [bold]{one}[/bold]")
    path = run.folder / LOOKED_AT_PICTURE
    write_text(path, figure_svg(figure))
    return (
        f"\nWhere it looked in these pictures, by attention rollout: {path}; the whole report: "
        f"{write_report(run)}"
    )


def show_confusions(run: Run, console: Console, tested: str, label: str) -> ClassificationReport:
    """How well a run labels its test set, and what it takes for what."""
    from dragoman.pictures.terminal import heatmap_text
    from dragoman.tasks.classification.evaluation import evaluate_run
    from dragoman.tasks.shared.label_report import drawn

    found = evaluate_run(run)
    scores = found.scores
    console.print(
        f"\nTest: {found.confusion.texts:,} {tested} were held out\n"
        f"accuracy {scores['accuracy']:.1f} %, macro F1 {scores['macro_f1']:.1f} %\n"
    )
    title = f"{label} by row, chosen by column (percent of the row)"
    picture = drawn(title, found.labels, found.confusion)
    assert picture is not None
    console.print(heatmap_text(picture, min(console.width, 100)))
    return found


def rollout_sheet(run: Run, pictures: Sequence[Pair]) -> tuple[Figure, list[str]]:
    """Attention rollout over pictures, a row for each, and what is said of each."""
    from dragoman.insight.figures.catalogue import make_figure
    from dragoman.insight.subject import Subject
    from dragoman.pictures.matrix import MatrixPicture
    from dragoman.tasks.classification.labeller import Labeller

    subject = Subject.open(run.folder, pictures[0].source)
    labeller = subject.predictor
    assert isinstance(labeller, Labeller)
    panels: list[Panel] = []
    said = []
    chosen = labeller([pair.source for pair in pictures])
    for pair, label in zip(pictures, chosen, strict=True):
        one = replace(subject, sentence=pair.source)
        figure = make_figure("picture-rollout", one)
        wrong = "" if label.label == pair.target else f", not {pair.target}"
        said.append(f"{label.label} {100 * label.probability:.0f} %{wrong}")
        first, *others = figure.panels
        assert isinstance(first, MatrixPicture)
        panels += [replace(first, title=said[-1]), *others]
    return replace(figure, panels=panels), said


SCENES_PICTURE = "scenes.svg"
_DRAWN = (2, 4)
"""Rows and columns of scenes in the picture."""
_LISTED = 3
"""Scenes whose boxes are listed."""
_ENLARGED = 6
"""Pixels of the picture for each of a scene."""
_GAP = 2
"""White pixels between two scenes."""


def draw_scenes(recipe: Recipe, to: Path, console: Console) -> Recipe:
    """Write the scenes that the demo learns from. -> The recipe, which then names them.

    Errors: ``RunError`` for a folder there that the demo did not make, ``DataError`` where the
    extra ``images`` is missing.
    """
    from dragoman.demo.scenes import SCENES_NOTICE, drawn_demo, write_drawn
    from dragoman.sources.picture.picture_file import library

    library()  # what writes and reads pictures: without it nothing is written
    folder = new_folder(to, SCENES, SCENES_NOTICE, console)
    parts = drawn_demo()
    count = sum(map(len, parts.values()))
    console.print(f"Drawing {count:,} scenes into {folder}: look at one of the PNG files.")
    write_drawn(folder, parts)
    return reading(recipe, folder)


def show_boxes(run: Run, console: Console) -> str:
    """What is found in scenes that the model did not learn from, and where."""
    from dragoman.atomic import write_bytes, write_text
    from dragoman.boxes import scene_of
    from dragoman.runs.evaluation_set import own_test_set
    from dragoman.tasks.detection.detector import THRESHOLD, described
    from dragoman.tasks.detection.drawing import boxes_png, boxes_svg, boxes_text
    from dragoman.tasks.detection.evaluation import evaluate_run
    from dragoman.tasks.report import write_report

    found = evaluate_run(run)
    console.print("\nTest: scenes that were not in training\n")
    console.print(found.table(), markup=False, soft_wrap=True)
    pairs, _ = own_test_set(run)
    console.print(f"\nWhat it finds, each box with its score ({THRESHOLD:g} at least):\n")
    for pair, one in zip(pairs[:_LISTED], found.pictures, strict=False):
        drawn = ", ".join(
            f"{box.label} at {box.left:.0f},{box.top:.0f} to {box.right:.0f},{box.bottom:.0f}"
            for box in scene_of(pair.target).boxes
        )
        console.print(f"  {Path(one.picture).name}, drawn: {drawn}", markup=False, soft_wrap=True)
        boxes = "\n  ".join(map(described, one.above(THRESHOLD))) or "nothing"
        console.print(f"  [bold]{boxes}[/bold]\n")
    pixels, boxes_of = sheet(found.pictures[:1], (1, 1), 1)
    console.print(boxes_text(pixels, boxes_of, min(72, console.width)))
    pixels, boxes_of = sheet(found.pictures, _DRAWN, _ENLARGED)
    picture = run.folder / SCENES_PICTURE
    write_text(picture, boxes_svg(pixels, boxes_of))
    write_bytes(picture.with_suffix(".png"), boxes_png(pixels, boxes_of))
    return f"More of them: {picture} and .png; the whole report: {write_report(run)}"


def sheet(
    found: Sequence[DetectedPicture], shape: tuple[int, int], enlarged: int
) -> tuple[npt.NDArray[np.uint8], list[DrawnBox]]:
    """The first of some pictures of one size, side by side on a picture of as many rows and columns
    of them, and their boxes on it."""
    import numpy as np

    from dragoman.sources.picture.picture_file import whole_picture
    from dragoman.tasks.detection.detector import THRESHOLD

    rows, columns = shape
    high, wide = found[0].height + _GAP, found[0].width + _GAP
    whole = np.full((rows * high - _GAP, columns * wide - _GAP, 3), 255, np.uint8)
    boxes: list[DrawnBox] = []
    for place, one in enumerate(found[: rows * columns]):
        down, across = (place // columns) * high, (place % columns) * wide
        whole[down : down + one.height, across : across + one.width] = whole_picture(
            Path(one.picture)
        )
        for detection in one.above(THRESHOLD):
            box = drawn_box(detection)
            left, right = (enlarged * (across + edge) for edge in (box.left, box.right))
            top, bottom = (enlarged * (down + edge) for edge in (box.top, box.bottom))
            boxes.append(box._replace(left=left, top=top, right=right, bottom=bottom))
    return np.kron(whole, np.ones((enlarged, enlarged, 1), np.uint8)), boxes


PAINTED_PICTURE = "painted.png"
_PAINTED = 8
_SHOWN = 3
"""Pictures that are drawn in the terminal."""
CODES_CHANGES: tuple[str, ...] = ()
"""Of the recipe of the codes."""


def draw_captioned(recipe: Recipe, to: Path, console: Console) -> Recipe:
    """Draw the pictures that the demo learns from, and learn their codes. -> The recipe, which then
    names both.

    Errors: ``RunError`` for a folder there that the demo did not make, ``DataError`` where the
    extra ``images`` is missing.
    """
    import typer

    from dragoman import catalogue
    from dragoman.demo.captioned_shapes import CAPTIONED_NOTICE, drawn_shapes, write_shapes
    from dragoman.pictures.bitmaps import png_of
    from dragoman.sources.picture.picture_file import library

    library()  # what reads pictures: without it nothing is written
    folder = new_folder(to, CAPTIONED, CAPTIONED_NOTICE, console)
    shapes = drawn_shapes()
    count = sum(map(len, shapes))
    console.print(f"Drawing {count:,} pictures into {folder}: look at one of the PNG files.")
    write_shapes(folder, shapes, png_of)
    coder = reading(catalogue.Recipe.load("demo-codes", CODES_CHANGES), folder)
    codes = folder / "codes"
    from dragoman.tasks.codes.evaluation import evaluate_run
    from dragoman.tasks.training import train

    console.print(f"\nTraining into {codes}: an autoencoder, pictures to codes and back.\n")
    outcome = train(coder, codes, say=console.print)
    if outcome.reason == "interrupted":
        raise typer.Exit(130)
    console.print(
        f"\n{evaluate_run(catalogue.Run.open(codes)).table()}\n", markup=False, soft_wrap=True
    )
    painting = recipe.painting.model_copy(update={"codes": str(codes.absolute())})
    return reading(recipe, folder).model_copy(update={"painting": painting})


def show_painted(run: Run, console: Console) -> str:
    """What is painted of captions that the model has not learned from."""
    from dragoman.atomic import write_bytes
    from dragoman.pictures.bitmaps import half_blocks, png_of
    from dragoman.tasks.painting.evaluation import evaluate_run
    from dragoman.tasks.painting.painter import enlarged, in_a_row
    from dragoman.tasks.report import write_report

    found = evaluate_run(run)
    console.print("\nTest: captions whose pictures were not in either training\n")
    console.print(found.table(), markup=False, soft_wrap=True)
    step = max(1, len(found.pictures) // _PAINTED)
    some = found.pictures[::step][:_PAINTED]
    console.print("\nWhat it paints:\n")
    for one in some[:_SHOWN]:
        console.print(f"  {one.caption}\n", markup=False)
        if console.color_system is not None:
            console.print(half_blocks(one.pixels, console.width))
    picture = run.folder / PAINTED_PICTURE
    pixels = [one.pixels for one in some]
    write_bytes(picture, png_of(enlarged(in_a_row(pixels), 4)))
    console.print("From left to right: " + "; ".join(one.caption for one in some), markup=False)
    return f"All of these: {picture}; the whole report: {write_report(run)}"
