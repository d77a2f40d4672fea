"""Pictures that were sent, bounded before any is decoded: what detectors and readers of lines
share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.forms.rows.in_memory import InMemory
from dragoman.forms.rows.picture_file import turned_size
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.refusals import body_too_large, too_many_pixels
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


def check_count(uploads: Sequence[Upload], limits: LimitSettings) -> None:
    """Raises Refusal 400 for too many files."""
    if len(uploads) > limits.items:
        raise too_many_files(len(uploads), limits.items)


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
