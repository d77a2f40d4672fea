"""Refusals of requests: each has a code, an HTTP status, and one sentence that says what to do.

All errors of the API have the same format, ``{"error": "…", "code": "…", "values": {…}}``. The
field ``error`` has the sentence, as in LibreTranslate's API. With the code and the values, which
are also in the sentence, a program can show the message in another language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.base.errors import RecipeError, SearchError, TooLongError
from dragoman.base.wording import plural

Value = str | int | float | list[str]


STATUSES = {
    "cross_site": 403,
    "key_needed": 403,
    "key_unknown": 403,
    "operators_only": 403,
    "no_such_path": 404,
    "no_such_file": 404,
    "page_not_built": 404,
    "no_such_run": 404,
    "no_such_document": 404,
    "no_such_method": 405,
    "late_headers": 408,
    "late_body": 408,
    "body_too_large": 413,
    "not_json": 415,
    "host_not_allowed": 421,
    "too_many_requests": 429,
    "too_many_at_once": 429,
    "too_many_of_kind": 429,
    "others_wait": 429,
    "queue_full": 429,
    "failed": 500,
    "shutting_down": 503,
    "too_slow": 504,
}
"""The HTTP status of each code that is not 400. docs/http-api.md lists every code with its status
and the names of its values, and ``web/src/page/words_errors.ts`` has the sentence of each in
Korean."""


def error_body(code: str, message: str, values: Mapping[str, Value]) -> dict[str, Any]:
    """Build the body of an error."""
    return {"error": message, "code": code, "values": dict(values)}


FAILED = error_body("failed", "The server failed to answer this request. See its log.", {})


class Refusal(Exception):
    """A request that the server refuses, although the server itself works."""

    def __init__(
        self, code: str, message: str, *, retry_after: float | None = None, **values: Value
    ) -> None:
        """``code``: one of those in docs/http-api.md, which names its ``values``. ``retry_after``:
        the number of seconds after which the same request may succeed."""
        super().__init__(message)
        self.code = code
        self.status = STATUSES.get(code, 400)
        self.message = message
        self.retry_after = retry_after
        self.values = values

    @property
    def body(self) -> dict[str, Any]:
        """The body of the answer, as ``error_body`` makes it."""
        return error_body(self.code, self.message, self.values)


def body_too_large(most: int) -> Refusal:
    """Make the refusal of a request with too many bytes."""
    return Refusal(
        "body_too_large",
        f"The request is larger than {most:,} bytes, the most that this server takes. Send it in "
        "parts.",
        most=most,
    )


def key_in_header_needed(most: int) -> Refusal:
    """Return the refusal of a request that has more than ``most`` bytes but no key in its header:
    its client is not known before its body is read."""
    return Refusal(
        "body_too_large",
        f"The request is larger than {most:,} bytes, the most that this server takes without a key "
        "in its header. Send the key as Authorization: Bearer KEY.",
        most=most,
    )


def too_much_sound(seconds: float, most: float) -> Refusal:
    """Make the refusal of recordings whose total length, or cost of decoding, is too large."""
    return Refusal(
        "too_much_sound",
        f"The recordings have {seconds:,.1f} seconds of sound or more; this server takes "
        f"{most:,g} at once. A second counts as several if it has more than 192,000 samples over "
        "all channels. Shorten them, or send fewer at once.",
        duration=round(seconds, 1),
        most=most,
    )


def too_many_pixels(pixels: int, most: int) -> Refusal:
    """Make the refusal of pictures with too many pixels in total."""
    return Refusal(
        "too_many_pixels",
        f"The pictures have {pixels:,} pixels or more; this server takes {most:,} at once. Make "
        "them smaller, or send fewer at once.",
        pixels=pixels,
        most=most,
    )


def check_total(
    code: str,
    each: tuple[int, str],
    inputs: tuple[int, str],
    most: int,
    change: str,
    called: str = "",
) -> None:
    """Raises Refusal 400 if the number of outputs per input times the number of inputs is more than
    ``most``. ``each`` and ``inputs`` each hold a number and the word for what is counted.
    ``change`` says what the client can change; ``called`` is the word for the inputs in the
    message, if it is not the one in ``inputs``."""
    (many, output), (count, name) = each, inputs
    if many * count > most:
        values: dict[str, Any] = {name: count}
        raise Refusal(
            code,
            f"{plural(many, output)} of each of {count:,} {called or name} are {many * count:,}; "
            f"this server gives {most:,} at once. {change}",
            each=many,
            total=many * count,
            most=most,
            **values,
        )


def missing_field(field: str) -> Refusal:
    """Return the refusal of a request that lacks a parameter, in the wording of LibreTranslate."""
    return Refusal("missing_field", f"Invalid request: missing {field} parameter", field=field)


def wrong_field(field: str, problem: str) -> Refusal:
    """Make the refusal of a field with an invalid value."""
    return Refusal("bad_field", f"{field}: {problem}", field=field, problem=problem)


def invalid_request(field: str, problem: str) -> Refusal:
    """Make the refusal of a request that is wrong because of a field; ``problem`` names the
    field."""
    return Refusal("bad_field", f"Invalid request: {problem}", field=field, problem=problem)


def too_slow(seconds: float) -> Refusal:
    """Make the refusal of a request that takes longer than its time limit."""
    return Refusal(
        "too_slow",
        f"This took longer than {seconds:g} seconds and was stopped. Send less at once.",
        seconds=seconds,
    )


def unsearchable(error: RecipeError | SearchError) -> Refusal:
    """Make the refusal of search settings that contradict each other, or cannot be satisfied."""
    return Refusal("bad_search", str(error), problem=str(error))


def too_long(error: TooLongError, message: str) -> Refusal:
    """Make the refusal of a text that is longer than the model can read. ``message`` names the
    text."""
    if error.unit == "tokens":
        return Refusal("too_many_tokens", message, tokens=error.length, most=error.most)
    return Refusal("too_many_characters", message, characters=error.length, tokens=error.most)
