"""Which names the server goes by, and which web sites may make a browser send it work.

A page of any web site can make its reader's browser send requests to this server, from the reader's
own address. Two checks keep such pages out:

- A site can let its own name lead to this machine (DNS rebinding), so that the browser takes this
  server for a part of the site. So the header Host must have a name that the server goes by.
- A browser sends plain text and forms to other sites without asking them first. So these are not
  computed for a page of another site; JSON is what browsers ask for first (CORS).
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from dragoman.serving.http.addresses import is_address, without_port
from dragoman.serving.http.connection import FORM, PARTS, media_type
from dragoman.serving.http.refusals import Refusal

UNASKED = ("", "text/plain", FORM, PARTS)
"""What browsers send to another site without asking it (https://fetch.spec.whatwg.org,
section 2.2.2); the first is no content type at all."""


class Sites:
    """The server's own names, and the web sites whose pages may use it."""

    def __init__(self, host: str, allowed: Sequence[str], origins: Sequence[str]) -> None:
        """``host``: the name or address that it listens on. ``allowed``: more names, where
        ``*.example.org`` stands for all below example.org, and ``*`` for every name. ``origins``:
        the web sites."""
        self._names = {host.lower(), "localhost", "*.localhost", *allowed}
        self._origins = set(origins)

    def check(self, http: Request) -> None:
        """Raises Refusal 421 for a name that is none of the server's, and 403 for what a page of
        another web site sent unasked."""
        name = _name_of(http.headers.get("host", ""))
        if not self._is_own(name):
            raise Refusal(
                "host_not_allowed",
                f"This server does not go by the name {name}. If it is one of its names, start "
                f"the server with: --allowed-host {name}",
                host=name,
            )
        if http.method == "POST" and media_type(http) in UNASKED and self._is_foreign(http, name):
            raise Refusal(
                "cross_site",
                "A page of another web site sent this, so it is not computed. To let pages of that "
                "site use this server, add the site to its setting origins.",
            )

    def _is_own(self, name: str) -> bool:
        """Addresses are nobody's to let lead elsewhere; who names none (HTTP/1.0) is no browser."""
        if not name or is_address(name) or name in self._names or "*" in self._names:
            return True
        return any(name.endswith(one[1:]) for one in self._names if one.startswith("*."))

    def _is_foreign(self, http: Request, name: str) -> bool:
        """Whether a page of another site sent it. Programs send neither of the two headers, and
        old browsers only the origin."""
        origin, site = http.headers.get("origin"), http.headers.get("sec-fetch-site")
        if origin in self._origins or "*" in self._origins:
            return False
        if site is not None:
            return site not in ("same-origin", "none")
        return origin is not None and _name_of(origin.partition("://")[2]) != name


def _name_of(host: str) -> str:
    return without_port(host.strip().lower())[:200].rstrip(".")
