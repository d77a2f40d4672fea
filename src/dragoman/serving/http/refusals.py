"""Why a request is not served: an HTTP status and one sentence that says what to do.

Every error of the API has one shape, ``{"error": "…"}``, which is LibreTranslate's too.
"""

from __future__ import annotations

FAILED = "The server failed at this; its log says why."


class Refusal(Exception):
    """A request that is not served. The server itself is well."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        """``retry_after``: seconds after which the same request may be served."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after


def bad_request(message: str) -> Refusal:
    """The request itself must change."""
    return Refusal(400, message)


def not_found(message: str) -> Refusal:
    return Refusal(404, message)


def slow_down(message: str, retry_after: float) -> Refusal:
    """The same request may be served a little later."""
    return Refusal(429, message, retry_after)
