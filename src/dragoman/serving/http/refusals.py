"""Why a request is not served: a code, an HTTP status, and one sentence that says what to do.

Every error of the API has one shape, ``{"error": "…", "code": "…", "values": {…}}``. The first is
LibreTranslate's; the code and the values, which stand in the sentence too, are for programs, which
may say it in another language.
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
    """The body of an error."""
    return {"error": message, "code": code, "values": dict(values)}


FAILED = error_body("failed", "The server failed at this; its log says why.", {})


class Refusal(Exception):
    """A request that is not served. The server itself is well."""

    def __init__(
        self, code: str, message: str, *, retry_after: float | None = None, **values: Value
    ) -> None:
        """``code``: one of those in docs/http-api.md, which names its ``values``. ``retry_after``:
        seconds after which the same request may be served."""
        super().__init__(message)
        self.code = code
        self.status = STATUSES.get(code, 400)
        self.message = message
        self.retry_after = retry_after
        self.values = values

    @property
    def body(self) -> dict[str, Any]:
        """What is answered."""
        return error_body(self.code, self.message, self.values)


def body_too_large(most: int) -> Refusal:
    """For a request of too many bytes."""
    return Refusal(
        "body_too_large",
        f"The request is larger than {most:,} bytes, the most that this server takes. Send it in "
        "parts.",
        most=most,
    )


def key_in_header_needed(most: int) -> Refusal:
    """For a request of too many bytes from a client that is not known before they are read."""
    return Refusal(
        "body_too_large",
        f"The request is larger than {most:,} bytes, the most that this server takes without a key "
        "in its header. Send the key as Authorization: Bearer KEY.",
        most=most,
    )


def too_much_sound(seconds: float, most: float) -> Refusal:
    """For recordings that last too long together, or cost as much to decode."""
    return Refusal(
        "too_much_sound",
        f"The recordings have {seconds:,.1f} seconds of sound or more; this server takes "
        f"{most:,g} at once. A second counts as several if it has more than 192,000 samples over "
        "all channels. Cut them, or send fewer at once.",
        duration=round(seconds, 1),
        most=most,
    )


def too_many_pixels(pixels: int, most: int) -> Refusal:
    """For pictures that are too large together."""
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
    """Raises Refusal 400 where ``each``, so many outputs and what one is, of each of ``inputs``, so
    many and what they are, are more than one answer holds. ``change``: what to do about it;
    ``called``: what the inputs are to people, if not by the name of their value."""
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
    """LibreTranslate's sentence for a parameter that is not there."""
    return Refusal("missing_field", f"Invalid request: missing {field} parameter", field=field)


def wrong_field(field: str, problem: str) -> Refusal:
    """For a field that cannot be as it is."""
    return Refusal("bad_field", f"{field}: {problem}", field=field, problem=problem)


def invalid_request(field: str, problem: str) -> Refusal:
    """The same where ``problem`` names the field, as the checks of whole requests tell it."""
    return Refusal("bad_field", f"Invalid request: {problem}", field=field, problem=problem)


def unsearchable(error: RecipeError | SearchError) -> Refusal:
    """For settings of a search that do not agree, and what a search cannot meet."""
    return Refusal("bad_search", str(error), problem=str(error))


def too_long(error: TooLongError, message: str) -> Refusal:
    """For a text of which more would be read than a model reads. ``message``: with its name."""
    if error.unit == "tokens":
        return Refusal("too_many_tokens", message, tokens=error.length, most=error.most)
    return Refusal("too_many_characters", message, characters=error.length, tokens=error.most)
