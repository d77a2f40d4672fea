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
and the names of its values."""
SENTENCES = {
    "bad_body": (
        "The body is neither valid JSON nor a form. Send JSON with the header Content-Type: "
        "application/json."
    ),
    "bad_form": "{problem}.",
    "not_an_object": (
        "The body must be a JSON object: the names of the parameters and their values, in braces."
    ),
    "not_json": "The body must be JSON. Send it with the header Content-Type: application/json.",
    "too_many_names": "An object in the JSON body has {names:,} keys; at most {most} are allowed.",
    "too_many_values": (
        "The body has {values:,} values in its lists and objects; {most:,} are allowed in one "
        "request. Send it in parts."
    ),
    "missing_field": "Invalid request: missing {field} parameter",
    "bad_field": "{field}: {problem}",
    "late_headers": "The headers of the request did not end within {seconds:g} seconds.",
    "late_body": "The request did not arrive completely within {seconds:g} seconds. Send it again.",
    "body_too_large": (
        "The request is larger than {most:,} bytes, the most that this server takes. Send it in "
        "parts."
    ),
    "host_not_allowed": (
        "This server is not called {host}. If that is one of its names, start the server with: "
        "--allowed-host {host}"
    ),
    "cross_site": (
        "A page of another web site sent this request, so it was refused. To let pages of that "
        "site use this server, add the site to its setting origins."
    ),
    "key_needed": (
        'This server needs an API key: send it as "api_key" in the request or in the header '
        "Authorization: Bearer KEY. Its operator gives out keys."
    ),
    "key_unknown": "This API key is not known. Ask the server's operator for one.",
    "operators_only": (
        "Only operators of the server may do this. Your address is not in its setting operators."
    ),
    "too_many_requests": (
        "This server takes {most:,} requests a minute from one client. Wait a moment, or send "
        "several texts in one request."
    ),
    "too_many_at_once": (
        "You have {requests} requests under way; this server takes {most} at a time from one "
        "client. Wait for one to finish, or send several texts in one request."
    ),
    "others_wait": (
        "Other clients already wait for the same kind of work ({kind}). Try again in a moment."
    ),
    "queue_full": (
        "{sentences:,} sentences wait for this translator already, and {most:,} may. Try again in"
        " a moment."
    ),
    "no_such_file": "The page has no file {file!r}.",
    "no_such_run": "There is no run {run!r} here. Use one of: {runs}.",
    "target_needed": "Set the target language: {targets}.",
    "too_many_texts": (
        "The request has {texts:,} texts; this server takes {most:,} at once. Send them in "
        "several requests."
    ),
    "too_many_files": (
        "The request has {files:,} files or more; this server takes {most:,} at once. Send them "
        "in several requests."
    ),
    "too_many_pixels": (
        "The pictures have {pixels:,} pixels or more; this server takes {most:,} at once. Make "
        "them smaller, or send fewer at once."
    ),
    "too_much_sound": (
        "The recordings have {duration:,.1f} seconds of sound or more; this server takes "
        "{most:,g} at once. A second counts as several if it has more than 192,000 samples over "
        "all channels. Shorten them, or send fewer at once."
    ),
    "text_too_long": (
        "The request has {characters:,} characters of text; this server takes {most:,} at once. "
        "Send it in parts."
    ),
    "too_many_marks": (
        "The request has {marks:,} combining marks in a row; this server takes {most}. No writing"
        " system needs this many. Leave them out."
    ),
    "too_many_sentences": (
        "The request has {sentences:,} sentences; this server takes {most:,} at once. Send it in "
        "parts."
    ),
    "beam_too_wide": (
        "This server searches with a beam of at most {most} and gives at most {most} translations"
        " of one text; {asked:,} were requested."
    ),
    "too_many_hypotheses": (
        "{n_best} alternatives with beam {beam} take {hypotheses} places; this server has {most}."
        " Request fewer, or use a smaller beam."
    ),
    "bad_text": "{problem}.",
    "bad_file": "{problem}.",
    "no_such_token": "{field} must be below {vocabulary}.",
    "nothing_to_look_at": "There is no text to look at.",
    "no_such_sentence": (
        "sentence: the text has {sentences}, counted from 0; {sentence} was asked for."
    ),
    "text_is_whole": "sentence: this run does not split its text into sentences. Leave it out.",
    "writes_nothing": "This run writes nothing: leave prefix_tokens and given out.",
    "two_outputs": "given is a whole output, without its end symbol. Leave prefix_tokens out.",
    "no_such_place": "hidden: the text has {tokens} tokens, counted from 0.",
    "no_such_tokens": "first and count: there are fewer {side} tokens.",
    "wrong_length": "compare: the output for this text has {tokens} tokens.",
    "no_such_cell": "row and column: {part} has {rows} by {columns} tokens.",
    "no_queries": (
        "Queries, keys and values are read from the attention of a Transformer; this run is a "
        "{family} model."
    ),
    "too_many_weights": (
        "The answer would have {weights:,} weights; at most {most:,} are allowed. Use /v1/look "
        "for maps and /v1/look/attention for single layers and heads."
    ),
    "too_long_for_heads": (
        "{heads} heads over {source} and {target} tokens are too many to switch off one by one. "
        "Send a shorter sentence."
    ),
    "no_such_figure": "There is no figure {figure!r}. GET /v1/figures lists all figures.",
    "too_long_for_figure": (
        "The sentence has {tokens} tokens; figures show at most {most}. Use the tab Look for "
        "longer sentences."
    ),
    "shutting_down": "The server is shutting down. Try again in a moment.",
    "too_slow": "This took longer than {seconds:g} seconds and was stopped. Send less at once.",
}
"""The default message of each code; braces name the values. The order is that of docs/http-api.md;
``web/src/page/words_errors.ts`` has the messages in Korean."""


def error_body(code: str, message: str, values: Mapping[str, Value]) -> dict[str, Any]:
    """Build the body of an error."""
    return {"error": message, "code": code, "values": dict(values)}


FAILED = error_body("failed", "The server failed to answer this request. See its log.", {})


class Refusal(Exception):
    """A request that the server refuses, although the server itself works."""

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        retry_after: float | None = None,
        **values: Value,
    ) -> None:
        """``code``: one of those in docs/http-api.md, which names its ``values``. ``message``: the
        sentence, if it is not that of ``SENTENCES``. ``retry_after``: the number of seconds after
        which the same request may succeed."""
        if message is None:
            lists = {name: ", ".join(v) for name, v in values.items() if isinstance(v, list)}
            message = SENTENCES[code].format(**values | lists)
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
    return Refusal("too_much_sound", duration=round(seconds, 1), most=most)


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


def wrong_field(field: str, problem: str) -> Refusal:
    """Make the refusal of a field with an invalid value."""
    return Refusal("bad_field", field=field, problem=problem)


def invalid_request(field: str, problem: str) -> Refusal:
    """Make the refusal of a request that is wrong because of a field; ``problem`` names the
    field."""
    return Refusal("bad_field", f"Invalid request: {problem}", field=field, problem=problem)


def unsearchable(error: RecipeError | SearchError) -> Refusal:
    """Make the refusal of search settings that contradict each other, or cannot be satisfied."""
    return Refusal("bad_search", str(error), problem=str(error))


def too_long(error: TooLongError, message: str) -> Refusal:
    """Make the refusal of a text that is longer than the model can read. ``message`` names the
    text."""
    if error.unit == "tokens":
        return Refusal("too_many_tokens", message, tokens=error.length, most=error.most)
    return Refusal("too_many_characters", message, characters=error.length, tokens=error.most)
