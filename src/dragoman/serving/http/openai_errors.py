"""Errors as OpenAI's clients read them, of the paths that are theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRANSCRIPTIONS, MODELS = "/v1/audio/transcriptions", "/v1/models"


def shaped(path: str, status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of an error in the shape of its path: a body of ours, or one of OpenAI's."""
    return openai_error(status, body) if path in (TRANSCRIPTIONS, MODELS) else dict(body)


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
