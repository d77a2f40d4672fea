"""Errors as OpenAI's clients read them, of the paths that are theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from dragoman.serving.http.messages import Message
from dragoman.serving.http.openapi import error_of

TRANSCRIPTIONS, MODELS = "/v1/audio/transcriptions", "/v1/models"
IMAGES = "/v1/images/generations"


class OpenAiError(Message):
    """What went wrong."""

    message: str
    """What was wrong, and what to do."""
    type: str
    """`invalid_request_error`, `rate_limit_error` or `server_error`."""
    param: str | None
    """The field that is wrong."""
    code: str
    """As of every other error of the server."""
    values: dict[str, str | int | float | Annotated[list[str], Field(fail_fast=True)]]
    """The numbers and names that stand in the sentence."""


class OpenAiErrorBody(Message):
    """Every error of these paths, in OpenAI's shape."""

    error: OpenAiError


OPENAI_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: error_of("The request must change", OpenAiErrorBody),
    413: error_of("The request is too large", OpenAiErrorBody),
    429: error_of("Too many requests; see the header Retry-After", OpenAiErrorBody),
    500: error_of("The server failed", OpenAiErrorBody),
    504: error_of("The request took too long", OpenAiErrorBody),
}
"""What an endpoint of theirs may answer but 200."""


def shaped(path: str, status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of an error in the shape of its path: a body of ours, or one of OpenAI's."""
    is_theirs = path in (TRANSCRIPTIONS, MODELS, IMAGES)
    return openai_error(status, body) if is_theirs else dict(body)


def openai_error(status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """A body of ours (``refusals.error_body``) as OpenAI would have it; the values stay."""
    kind = "invalid_request_error"
    if status == 429:
        kind = "rate_limit_error"
    elif status >= 500:
        kind = "server_error"
    told = {
        "message": body["error"],
        "type": kind,
        "param": body["values"].get("field"),
        "code": body["code"],
        "values": body["values"],
    }
    return {"error": told}
