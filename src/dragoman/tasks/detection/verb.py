"""``dragoman detect``: pictures in, boxes around what is in them out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dragoman.base.errors import DragomanError, FileError
from dragoman.base.reading import NOT_UTF8, readable
from dragoman.console.given import files_given, input_files
from dragoman.console.options import RunFolder, argument, arguments, search_settings, setting
from dragoman.console.output import output_to

if TYPE_CHECKING:
    from dragoman.tasks.detection.detector import DetectedPicture, Detector


@arguments
class DetectArguments:
    """The arguments and options of ``dragoman detect``."""

    run: RunFolder = argument("RUN")
    given: list[str] = argument("FILE", None)
    """Pictures, or folders of them. Default: the names of pictures on standard input, one per
    line."""
    to: str | None = None
    """Write to this file. The file appears only when it is complete."""
    format: Literal["text", "json", "coco"] = "text"
    """The output format. text: one line per box, with file, label, score, left, top, right and
    bottom, separated by tabs; a picture without a box has no line. json: one line per picture, as
    the detection pipelines of Hugging Face's Transformers return it. coco: one JSON file with
    images, annotations and categories, as ``dragoman train`` reads it."""
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
    from dragoman.engine.settings import with_beams

    if not 0 <= args.threshold <= 1:
        raise DragomanError(f"--threshold {args.threshold:g}: use a score between 0 and 1")
    from dragoman.tasks.catalogue import open_run

    run = open_run(args.run, "detection", "which finds no boxes")
    names = input_files(args.given, run.recipe.source.kind)
    _check_drawings(args, names)
    from dragoman.tasks.detection.detector import Detector

    detector = Detector(run)
    settings = with_beams(detector.engine.search_settings, args.beam, None)
    pictures = detector.stream(files_given(names, run.recipe.source.kind), settings)
    with output_to(args.to, names) as out:
        for line in _format(args, detector, (_draw(args, picture) for picture in pictures)):
            out.write(line)
            out.flush()


def _format(
    args: DetectArguments, detector: Detector, pictures: Iterable[DetectedPicture]
) -> Iterator[str]:
    """Yield the text of the output, picture by picture as they are found."""
    if args.format == "coco":
        labels = detector.run.forms.boxes.symbols.labels
        text = json.dumps(_coco(args, labels, pictures), ensure_ascii=False)
        # A file name that is not valid UTF-8 is written with escapes.
        yield NOT_UTF8.sub(lambda match: ascii(match[0])[1:-1], text) + "\n"
        return
    for picture in pictures:
        boxes = picture.above(args.threshold)
        if args.format == "json":
            yield f"{json.dumps([box.to_dict() for box in boxes], ensure_ascii=False)}\n"
            continue
        for box in boxes:
            edges = "\t".join(f"{edge:.1f}" for edge in box.box.edges)
            yield f"{readable(picture.picture)}\t{box.label}\t{box.score:.4f}\t{edges}\n"


def _coco(
    args: DetectArguments, labels: Sequence[str], pictures: Iterable[DetectedPicture]
) -> dict[str, Any]:
    """Return all pictures in COCO's format, with the score of each box in addition. ``labels``: all
    categories that the run knows."""
    numbers = {label: number for number, label in enumerate(labels, 1)}
    images, boxes = list[dict[str, Any]](), list[dict[str, Any]]()
    for number, image in enumerate(pictures, 1):
        name = image.picture
        if args.to is not None:  # names are relative to the folder of the file
            name = os.path.relpath(name, os.path.dirname(args.to) or ".")
        images += [{"id": number, "file_name": name, "width": image.width, "height": image.height}]
        for detection in image.above(args.threshold):
            bbox = [round(float(side), 2) for side in detection.box[1:5]]
            boxes.append(
                {
                    "id": len(boxes) + 1, "image_id": number, "score": round(detection.score, 4),
                    "category_id": numbers[detection.label], "bbox": bbox,
                    "area": round(bbox[2] * bbox[3], 2), "iscrowd": 0,
                }
            )  # fmt: skip
    categories = [{"id": number, "name": label} for label, number in numbers.items()]
    return {"images": images, "annotations": boxes, "categories": categories}


def _drawing(args: DetectArguments, name: str) -> str:
    """Return the file name of the drawing of the picture ``name``."""
    return f"{Path(name).name.replace('#', '-')}.{args.draw_as}"


def _check_drawings(args: DetectArguments, names: Sequence[str]) -> None:
    """Raise ``DragomanError`` if the drawings of two pictures would have the same file name."""
    if args.draw is None:
        return
    if args.draw.exists() and not args.draw.is_dir():
        raise FileError(f"--draw {args.draw}: it is a file. Set a folder")
    seen = set[str]()
    for name in names:
        if (drawing := _drawing(args, name)) in seen:
            raise DragomanError(
                f"--draw {args.draw}: two pictures are called {Path(name).name}. Draw them into "
                "different folders"
            )
        seen.add(drawing)


def _draw(args: DetectArguments, picture: DetectedPicture) -> DetectedPicture:
    """Draw a picture into the folder or the terminal if the options say so, and return it."""
    if args.draw is None and not args.show:
        return picture
    from dragoman.base.atomic import write_bytes, write_text
    from dragoman.sources.picture.idx import is_place, picture_at
    from dragoman.sources.picture.picture_file import whole_picture
    from dragoman.sources.shared.files import file_of
    from dragoman.tasks.detection.drawing import boxes_png, boxes_svg, boxes_text

    boxes = picture.above(args.threshold)
    name = picture.picture
    pixels = picture_at(name) if is_place(name) else whole_picture(file_of(name))
    if args.draw is not None:
        path = args.draw / _drawing(args, name)
        try:
            args.draw.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {args.draw}: {error.strerror}") from error
        if args.draw_as == "svg":
            write_text(path, boxes_svg(pixels, boxes))
        else:
            write_bytes(path, boxes_png(pixels, boxes))
    if args.show:
        from rich.console import Console

        console = Console(stderr=True, file=sys.stderr)
        console.print(boxes_text(pixels, boxes, min(72, console.width)), end="")
    return picture
