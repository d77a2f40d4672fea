"""What the file that a raw example names holds, as a name of its own: copies have the same one,
wherever they lie."""

from __future__ import annotations

import hashlib
from pathlib import Path

from dragoman.forms.rows.idx import is_idx
from dragoman.forms.rows.pictures_form import picture_at
from dragoman.forms.rows.unusable import unusable

_BLOCK = 1 << 20


def content_of(raw: str) -> str:
    """A hash, in hex. Errors: ``DataError`` for a file that is missing or cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    if is_idx(raw.rpartition("#")[0]):
        digest.update(picture_at(raw).tobytes())
        return digest.hexdigest()
    try:
        with Path(raw).open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except (OSError, ValueError) as error:
        raise unusable(raw, error) from error
    return digest.hexdigest()
