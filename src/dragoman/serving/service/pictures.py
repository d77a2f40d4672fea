"""Pictures that were sent, bounded before any is decoded: what detectors and readers of lines
share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.forms.rows.in_memory import InMemory
from dragoman.forms.rows.picture_file import turned_size
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.refusals import (
    body_too_large,
    missing_field,
    too_many_pixels,
    wrong_field,
)
from dragoman.serving.http.uploads import Upload, readable, too_many_files

LINE = 4_096
"""Columns of a line of text that are read at least, however short those of the training were."""


@dataclass(frozen=True)
class OpenedPicture:
    """A picture whose header was read."""

    file: InMemory
    height: int
    """As its camera was held."""
    width: int


def check_pictures(uploads: Sequence[Upload], limits: LimitSettings, *, is_seen: bool) -> None:
    """Raises Refusal 400 for no file, for too many, and for several where what is seen of them is
    asked for."""
    if not uploads:
        raise missing_field("file")
    if len(uploads) > limits.items:
        raise too_many_files(len(uploads), limits.items)
    if is_seen and len(uploads) > 1:
        raise wrong_field("seen", "it is told of one picture: send one at a time")


def opened(uploads: Sequence[Upload], limits: LimitSettings) -> Iterator[OpenedPicture]:
    """Each picture with its size. Raises Refusal 400 for one that cannot be read, and as soon as
    they hold too much together."""
    pixels, count = 0, 0
    for upload in uploads:
        file = upload.read()
        count += len(file.data)
        if count > limits.upload_bytes:
            raise body_too_large(limits.upload_bytes)
        with readable(file):
            height, width = turned_size(file)
        pixels += height * width
        if pixels > limits.pixels:
            raise too_many_pixels(pixels, limits.pixels)
        yield OpenedPicture(file, height, width)
