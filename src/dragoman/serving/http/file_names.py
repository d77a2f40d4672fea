"""What a client calls a file, made harmless: it stands in messages and addresses."""

from __future__ import annotations

import re

_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\\"<>|:*?]")
_LONGEST = 100


def file_name(given: str | None) -> str:
    """The last part of a path, in one line, with nothing that a file system or HTML reads."""
    name = _NOT_IN_NAMES.sub("_", (given or "file").replace("\\", "/").rsplit("/", 1)[-1])
    return name[-_LONGEST:].lstrip(".") or "file"
