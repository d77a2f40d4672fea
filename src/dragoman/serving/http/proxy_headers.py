"""The door: what a reverse proxy says is taken from the proxies that are trusted, from nobody else.

Behind it a request's client is the real one, and its headers say nothing that a stranger made up:
``X-Forwarded-*`` and ``X-Request-ID`` are there only if a trusted proxy sent them.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.serving.http.addresses import Networks, plain, without_port

_OF_PROXIES = (b"x-forwarded-", b"x-real-ip", b"x-request-id", b"forwarded")
_SCHEMES = ("http", "https")


class ProxyHeaders:
    """Outermost: settles who asks before anything else looks at the request."""

    def __init__(self, app: ASGIApp, proxies: Networks) -> None:
        self.app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        host, port = scope.get("client") or ("unknown", 0)
        scope = {**scope, "client": (plain(host), port)}
        if host in self._proxies:
            headers = Headers(scope=scope)
            scope["client"] = (self._forwarded(headers, host), 0)
            scheme = headers.get("x-forwarded-proto", "").strip()
            if scheme in _SCHEMES:
                scope["scheme"] = scheme
        else:
            scope["headers"] = [
                (name, value)
                for name, value in scope["headers"]
                if not name.startswith(_OF_PROXIES)
            ]
        await self.app(scope, receive, send)

    def _forwarded(self, headers: Headers, peer: str) -> str:
        """The last address that no trusted proxy has: each adds whom it speaks for at the end."""
        said = ",".join(headers.getlist("x-forwarded-for")).split(",")
        hosts = [host for word in said if (host := without_port(word.strip()))]
        for host in reversed(hosts):
            if host not in self._proxies:
                return plain(host)[:64]
        return plain(hosts[0] if hosts else peer)[:64]
