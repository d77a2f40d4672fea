"""What the file that a raw example names holds, as a name of its own: copies have the same one,
wherever they lie."""

from __future__ import annotations

import hashlib
import os.path
from functools import lru_cache, partial

from dragoman.sources.line.form import DRAWN
from dragoman.sources.picture.form import picture_at
from dragoman.sources.picture.idx import is_idx
from dragoman.sources.shared.unusable import unusable
from dragoman.sources.shared.zipped import file_of, place_of

_KEPT = 1 << 17
"""Files whose hashes are kept, some 300 bytes each: a training asks for them eight times."""


def content_of(raw: str) -> str:
    """A hash, in hex; of a text to be drawn that of the text, of a picture in an IDX file that of
    its pixels, of any other file, such as clips.idx#1.wav, that of its bytes. Errors: ``DataError``
    for a file that is missing or cannot be read."""
    if raw.startswith(DRAWN):
        text = raw.encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, digest_size=16).hexdigest()
    path, _, place = raw.rpartition("#")
    if is_idx(path) and place.isascii() and place.isdecimal() and not os.path.isfile(raw):
        return hashlib.blake2b(picture_at(raw).tobytes(), digest_size=16).hexdigest()
    try:
        about = place_of(raw)[0].stat()
        return _hash_of(raw, about.st_mtime_ns, about.st_size)
    except (OSError, ValueError) as error:
        raise unusable(raw, error) from error


@lru_cache(maxsize=_KEPT)
def _hash_of(raw: str, changed: int, size: int) -> str:
    """``changed`` and ``size`` tell a file from one that took its place."""
    with file_of(raw).open("rb") as file:
        return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16)).hexdigest()
