"""``dragoman detect``: pictures in, boxes around what is in them out; and its demo."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dragoman.base.errors import DragomanError, FileError
from dragoman.base.reading import NOT_UTF8, readable
from dragoman.cli.console import log_to_stderr, opened_run, output_to
from dragoman.cli.demo_files import SCENES, Demo, DemoFiles
from dragoman.cli.given import files_given, named_files
from dragoman.cli.options import RunFolder, argument, arguments, search_settings, setting

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.console import Console

    from dragoman.runs.run import Run
    from dragoman.tasks.detection.detector import DetectedPicture, Detection, Detector
    from dragoman.tasks.detection.drawing import DrawnBox


@arguments
class DetectArguments:
    """What ``dragoman detect`` takes."""

    run: RunFolder = argument("RUN")
    given: list[str] = argument("FILE", None)
    """Pictures, or folders of them. Default: the names of pictures on standard input, one per
    line."""
    to: str | None = None
    """Write to this file. The file appears only when it is complete."""
    format: Literal["text", "json", "coco"] = "text"
    """The output format. text: one line per box, with file, label, score, left, top, right and
    bottom, separated by tabs; a picture without a box has no line. json: one line per picture, as
    the pipelines of transformers answer. coco: one JSON file with images, annotations and
    categories, as ``dragoman train`` reads it."""
    threshold: float = 0.5
    """Leave out boxes whose score, from 0 to 1, is lower than this."""
    draw: Path | None = None
    """Also draw each picture with its boxes, into this folder."""
    draw_as: Literal["svg", "png"] = "svg"
    """The format of these drawings."""
    show: bool = False
    """Also draw each picture with its boxes in the terminal, in characters."""
    beam: int | None = setting(search_settings, default=None)


def detect(args: DetectArguments) -> None:
    """Find what is in pictures, and draw a box around each.

    Boxes are in pixels of the picture that you give, counted from its upper left corner. The score
    of a box is the probability of its label.

    Examples:

      dragoman detect runs/scenes a.png photos/

      dragoman detect runs/scenes a.png --format json

      dragoman detect runs/scenes photos/ --draw drawn/ --threshold 0.3

      dragoman detect runs/scenes photos/ --format coco --to found.json
    """
    from dragoman.engine.search_settings import with_beams

    log_to_stderr()
    if not 0 <= args.threshold <= 1:
        raise DragomanError(f"--threshold {args.threshold:g}: a score is between 0 and 1")
    run = opened_run(args.run, "detection", "which finds no boxes")
    names = named_files(args.given, run.recipe.source.kind)
    _check_drawings(args, names)
    from dragoman.tasks.detection.detector import Detector

    detector = Detector(run)
    settings = with_beams(detector.engine.search_settings, args.beam, None)
    found = detector.stream(files_given(names, run.recipe.source.kind), settings)
    with output_to(args.to, names) as out:
        for line in _written(args, detector, (_draw(args, one) for one in found)):
            out.write(line)
            out.flush()


def _written(
    args: DetectArguments, detector: Detector, pictures: Iterable[DetectedPicture]
) -> Iterator[str]:
    """What is written of each picture, as it comes."""
    if args.format == "coco":
        labels = detector.run.forms.boxes.symbols.labels
        told = json.dumps(_coco(args, labels, pictures), ensure_ascii=False)
        # A name of other bytes than UTF-8 is written so that it is read as it is.
        yield NOT_UTF8.sub(lambda found: ascii(found[0])[1:-1], told) + "\n"
        return
    for one in pictures:
        shown = one.above(args.threshold)
        if args.format == "json":
            yield f"{json.dumps([box.to_dict() for box in shown], ensure_ascii=False)}\n"
            continue
        for box in shown:
            places = box.box.left, box.box.top, box.box.right, box.box.bottom
            told = "\t".join(f"{place:.1f}" for place in places)
            yield f"{readable(one.picture)}\t{box.label}\t{box.score:.4f}\t{told}\n"


def _coco(
    args: DetectArguments, labels: Sequence[str], pictures: Iterable[DetectedPicture]
) -> dict[str, Any]:
    """One file of all, with the score of each box beside what COCO has."""
    numbers = {label: number for number, label in enumerate(labels, 1)}
    images, boxes = list[dict[str, Any]](), list[dict[str, Any]]()
    for number, one in enumerate(pictures, 1):
        name = one.picture
        if args.to is not None:  # names are relative to where the file lies
            name = os.path.relpath(name, os.path.dirname(args.to) or ".")
        images.append({"id": number, "file_name": name, "width": one.width, "height": one.height})
        for found in one.above(args.threshold):
            bbox = [round(float(side), 2) for side in found.box[1:5]]
            boxes.append(
                {
                    "id": len(boxes) + 1, "image_id": number, "score": round(found.score, 4),
                    "category_id": numbers[found.label], "bbox": bbox,
                    "area": round(bbox[2] * bbox[3], 2), "iscrowd": 0,
                }
            )  # fmt: skip
    categories = [{"id": number, "name": label} for label, number in numbers.items()]
    return {"images": images, "annotations": boxes, "categories": categories}


def _drawing(args: DetectArguments, name: str) -> str:
    """What the drawing of a picture is called."""
    return f"{Path(name).name.replace('#', '-')}.{args.draw_as}"


def _check_drawings(args: DetectArguments, names: Sequence[str]) -> None:
    """Errors: ``DragomanError`` for two pictures whose drawings would have one name."""
    if args.draw is None:
        return
    if args.draw.exists() and not args.draw.is_dir():
        raise FileError(f"--draw {args.draw}: it is a file; name a folder")
    seen = set[str]()
    for name in names:
        if (drawing := _drawing(args, name)) in seen:
            raise DragomanError(
                f"--draw {args.draw}: two pictures are called {Path(name).name}: draw them into "
                "folders of their own"
            )
        seen.add(drawing)


def _draw(args: DetectArguments, one: DetectedPicture) -> DetectedPicture:
    """The same picture, drawn where that is asked for."""
    if args.draw is None and not args.show:
        return one
    from dragoman.base.atomic import write_bytes, write_text
    from dragoman.sources.picture.idx import is_place, picture_at
    from dragoman.sources.picture.picture_file import whole_picture
    from dragoman.sources.shared.files import file_of
    from dragoman.tasks.detection.drawing import boxes_png, boxes_svg, boxes_text

    shown = [drawn_box(box) for box in one.above(args.threshold)]
    name = one.picture
    pixels = picture_at(name) if is_place(name) else whole_picture(file_of(name))
    if args.draw is not None:
        path = args.draw / _drawing(args, name)
        try:
            args.draw.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {args.draw}: {error.strerror}") from error
        if args.draw_as == "svg":
            write_text(path, boxes_svg(pixels, shown))
        else:
            write_bytes(path, boxes_png(pixels, shown))
    if args.show:
        from rich.console import Console

        console = Console(stderr=True, file=sys.stderr)
        console.print(boxes_text(pixels, shown, min(72, console.width)), end="")
    return one


def drawn_box(found: Detection) -> Any:
    """A box as ``tasks/detection/drawing.py`` draws it."""
    from dragoman.tasks.detection.drawing import DrawnBox

    box = found.box
    return DrawnBox(found.label, found.score, box.left, box.top, box.right, box.bottom)


SCENES_PICTURE = "scenes.svg"
_DRAWN = (2, 4)
"""Rows and columns of scenes in the picture."""
_LISTED = 3
"""Scenes whose boxes are listed."""
_ENLARGED = 6
"""Pixels of the picture for each of a scene."""
_GAP = 2
"""White pixels between two scenes."""


def drawn_scenes() -> DemoFiles:
    """The scenes that the demo learns from. Errors: ``DataError`` where the extra ``images`` is
    missing."""
    from dragoman.demo.scenes import SCENES_NOTICE, drawn_demo, write_drawn
    from dragoman.sources.picture.picture_file import library

    library()
    telling = "Drawing {count} scenes into {folder}: look at one of the PNG files."
    return DemoFiles(SCENES, SCENES_NOTICE, telling, drawn_demo, write_drawn)


def show_boxes(run: Run, found: Any, console: Console) -> str:
    """What is found in scenes that the model did not learn from, and where."""
    from dragoman.base.atomic import write_bytes, write_text
    from dragoman.forms.boxes import scene_of
    from dragoman.runs.evaluation_set import own_test_set
    from dragoman.tasks.detection.detector import THRESHOLD, described
    from dragoman.tasks.detection.drawing import boxes_png, boxes_svg, boxes_text
    from dragoman.tasks.report import write_report

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


DEMO = Demo(
    "demo-boxes", "a Transformer over convolutions, scenes of shapes to their boxes",
    show_boxes, (
        "detect {to} {to}-scenes/test/0001.png --show",
        "evaluate {to}         # AP50 and AP, for each shape",
        "train my-boxes.json --task detection  # your own pictures, boxes in COCO's JSON",
    ), drawn_scenes,
)  # fmt: skip
