"""The demo of ``dragoman demo --task detect``: its files, and the results that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.console.demo_files import SCENES, Demo, DemoFiles

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.console import Console

    from dragoman.runs.run import Run
    from dragoman.tasks.detection.detector import DetectedPicture, Detection


SCENES_PICTURE = "scenes.svg"
_DRAWN = (2, 4)
"""The numbers of rows and columns of scenes in the drawing."""
_LISTED = 3
"""The number of scenes whose boxes are listed."""
_ENLARGED = 6
"""The side of a pixel of a scene in the drawing, in pixels."""
_GAP = 2
"""The white space between two scenes, in pixels."""


def make_scenes() -> DemoFiles:
    """Make the scenes that the demo learns from. Errors: ``DataError`` if the extra ``images`` is
    missing."""
    from dragoman.demo.scenes import SCENES_NOTICE, draw_demo, write_drawn
    from dragoman.sources.picture.picture_file import library

    library()
    telling = "Drawing {count} scenes into {folder}: look at one of the PNG files."
    return DemoFiles(SCENES, SCENES_NOTICE, telling, draw_demo, write_drawn)


def show_boxes(run: Run, report: Any, console: Console) -> str:
    """Show the boxes that the model finds in scenes that were not in training, and their scores.
    Return a line that names the files with the drawings and the report."""
    from dragoman.base.atomic import write_bytes, write_text
    from dragoman.forms.boxes import scene_of
    from dragoman.runs.evaluation_set import own_test_set
    from dragoman.tasks.detection.detector import THRESHOLD, text_of_box
    from dragoman.tasks.detection.drawing import boxes_png, boxes_svg, boxes_text
    from dragoman.tasks.report import write_report

    console.print("\nTest: scenes that were not in training\n")
    console.print(report.table(), markup=False, soft_wrap=True)
    pairs, _ = own_test_set(run)
    console.print(f"\nWhat it finds, each box with its score ({THRESHOLD:g} at least):\n")
    for pair, sample in zip(pairs[:_LISTED], report.pictures, strict=False):
        true = ", ".join(
            f"{box.label} at {box.left:.0f},{box.top:.0f} to {box.right:.0f},{box.bottom:.0f}"
            for box in scene_of(pair.target).boxes
        )
        console.print(f"  {Path(sample.picture).name}, drawn: {true}", markup=False, soft_wrap=True)
        boxes = "\n  ".join(map(text_of_box, sample.above(THRESHOLD))) or "nothing"
        console.print(f"  [bold]{boxes}[/bold]\n")
    pixels, boxes_of = sheet(report.pictures[:1], (1, 1), 1)
    console.print(boxes_text(pixels, boxes_of, min(72, console.width)))
    pixels, boxes_of = sheet(report.pictures, _DRAWN, _ENLARGED)
    drawing = run.folder / SCENES_PICTURE
    write_text(drawing, boxes_svg(pixels, boxes_of))
    write_bytes(drawing.with_suffix(".png"), boxes_png(pixels, boxes_of))
    return f"More of them: {drawing} and .png; the whole report: {write_report(run)}"


def sheet(
    pictures: Sequence[DetectedPicture], shape: tuple[int, int], enlarged: int
) -> tuple[npt.NDArray[np.uint8], list[Detection]]:
    """Arrange pictures of the same size, with their boxes, in rows and columns. ``shape``: the
    numbers of rows and columns, which the first ``pictures`` fill; ``enlarged``: the side of the
    square that each pixel becomes. Return the pixels (H, W, 3) and the boxes at their new
    places."""
    import numpy as np

    from dragoman.forms.boxes import Box
    from dragoman.sources.picture.picture_file import whole_picture
    from dragoman.tasks.detection.detector import THRESHOLD

    rows, columns = shape
    high, wide = pictures[0].height + _GAP, pictures[0].width + _GAP
    whole = np.full((rows * high - _GAP, columns * wide - _GAP, 3), 255, np.uint8)
    boxes: list[Detection] = []
    for place, picture in enumerate(pictures[: rows * columns]):
        down, across = (place // columns) * high, (place % columns) * wide
        whole[down : down + picture.height, across : across + picture.width] = whole_picture(
            Path(picture.picture)
        )
        for detection in picture.above(THRESHOLD):
            _, left, top, width, height, *_ = detection.box
            begin = enlarged * (across + left), enlarged * (down + top)
            box = Box(detection.label, *begin, enlarged * width, enlarged * height)
            boxes.append(replace(detection, box=box))
    return np.kron(whole, np.ones((enlarged, enlarged, 1), np.uint8)), boxes


DEMO = Demo(
    "demo-boxes", "a Transformer over convolutions, scenes of shapes to their boxes",
    show_boxes, (
        "detect {to} {to}-scenes/test/0001.png --show",
        "evaluate {to}         # AP50 and AP, for each shape",
        "train my-boxes.json --task detection  # your own pictures, boxes in COCO's JSON",
    ), make_scenes,
)  # fmt: skip
