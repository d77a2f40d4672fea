"""Why a request is not served: a code, an HTTP status, and one sentence that says what to do.

Every error of the API has one shape, ``{"error": "…", "code": "…", "values": {…}}``. The first is
LibreTranslate's; the code and the values, which stand in the sentence too, are for programs, which
may say it in another language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.errors import RecipeError, SearchError, TooLongError
from dragoman.plural import plural

Value = str | int | float | list[str]


class RefusalKind(NamedTuple):
    """What all refusals of one code have in common."""

    status: int
    """Of HTTP."""
    values: tuple[str, ...] = ()
    """The names of its values."""


KINDS: dict[str, RefusalKind] = {
    # ---- the body of a request
    "bad_body": RefusalKind(400),
    "bad_form": RefusalKind(400, ("problem",)),
    "not_an_object": RefusalKind(400),
    "not_json": RefusalKind(415),
    "too_many_names": RefusalKind(400, ("names", "most")),
    "too_many_values": RefusalKind(400, ("values", "most")),
    "missing_field": RefusalKind(400, ("field",)),
    "bad_field": RefusalKind(400, ("field", "problem")),
    "late_headers": RefusalKind(408, ("seconds",)),
    "late_body": RefusalKind(408, ("seconds",)),
    "body_too_large": RefusalKind(413, ("most",)),
    # ---- who asks, and how often
    "host_not_allowed": RefusalKind(421, ("host",)),
    "cross_site": RefusalKind(403),
    "key_needed": RefusalKind(403),
    "key_unknown": RefusalKind(403),
    "operators_only": RefusalKind(403),
    "too_many_requests": RefusalKind(429, ("most",)),
    "too_many_at_once": RefusalKind(429, ("requests", "most")),
    "too_many_of_kind": RefusalKind(429, ("requests", "kind")),
    "others_wait": RefusalKind(429, ("kind",)),
    "queue_full": RefusalKind(429, ("sentences", "most")),
    # ---- what is there
    "no_such_path": RefusalKind(404),
    "no_such_method": RefusalKind(405),
    "no_such_file": RefusalKind(404, ("file",)),
    "page_not_built": RefusalKind(404),
    "no_such_run": RefusalKind(404, ("run", "runs")),
    "other_task": RefusalKind(400, ("run", "task", "path")),
    "no_run_for_task": RefusalKind(400, ("task", "command")),
    "language_not_supported": RefusalKind(400, ("language", "side", "pairs")),
    "target_needed": RefusalKind(400, ("targets",)),
    # ---- how much
    "too_many_texts": RefusalKind(400, ("texts", "most")),
    "too_many_files": RefusalKind(400, ("files", "most")),
    "too_many_pixels": RefusalKind(400, ("pixels", "most")),
    "too_much_sound": RefusalKind(400, ("duration", "most")),
    "text_too_long": RefusalKind(400, ("characters", "most")),
    "too_many_marks": RefusalKind(400, ("marks", "most")),
    "too_many_sentences": RefusalKind(400, ("sentences", "most")),
    "too_many_tokens": RefusalKind(400, ("tokens", "most")),
    "too_many_characters": RefusalKind(400, ("characters", "tokens")),
    "too_costly": RefusalKind(400, ("cost", "most", "work")),
    "beam_too_wide": RefusalKind(400, ("asked", "most")),
    "too_many_hypotheses": RefusalKind(400, ("n_best", "beam", "hypotheses", "most")),
    "too_many_translations": RefusalKind(400, ("each", "sentences", "total", "most")),
    "too_many_trees": RefusalKind(400, ("each", "sentences", "total", "most")),
    "too_many_labels": RefusalKind(400, ("each", "texts", "total", "most")),
    "too_many_tags": RefusalKind(400, ("each", "words", "total", "most")),
    "too_many_candidates": RefusalKind(400, ("each", "blanks", "total", "most")),
    "too_many_choices": RefusalKind(400, ("asked", "most")),
    "too_many_blanks": RefusalKind(400, ("blanks", "most")),
    "too_much_to_write": RefusalKind(400, ("asked", "most")),
    # ---- what one task cannot do
    "bad_search": RefusalKind(400, ("problem",)),
    "bad_text": RefusalKind(400, ("problem",)),
    "bad_document": RefusalKind(400, ("problem",)),
    "bad_file": RefusalKind(400, ("file", "problem")),
    "other_source": RefusalKind(400, ("run", "reads")),
    "no_words_in_files": RefusalKind(400),
    "no_word_times": RefusalKind(400, ("run",)),
    "no_such_document": RefusalKind(404),
    "one_text_streamed": RefusalKind(400, ("texts",)),
    "two_prefixes": RefusalKind(400),
    "no_such_token": RefusalKind(400, ("field", "vocabulary")),
    "no_blank": RefusalKind(400),
    "no_token_fits": RefusalKind(400),
    "no_words": RefusalKind(400, ("text",)),
    "no_such_word": RefusalKind(400, ("word", "words")),
    # ---- looking inside
    "cannot_look": RefusalKind(400, ("run",)),
    "nothing_to_look_at": RefusalKind(400),
    "no_such_sentence": RefusalKind(400, ("sentence", "sentences")),
    "text_is_whole": RefusalKind(400),
    "writes_nothing": RefusalKind(400),
    "two_outputs": RefusalKind(400),
    "no_such_place": RefusalKind(400, ("field", "tokens")),
    "no_such_tokens": RefusalKind(400, ("side",)),
    "wrong_length": RefusalKind(400, ("tokens",)),
    "no_such_head": RefusalKind(400, ("part", "layers", "heads")),
    "no_such_cell": RefusalKind(400, ("part", "rows", "columns")),
    "no_queries": RefusalKind(400, ("family",)),
    "too_many_weights": RefusalKind(400, ("weights", "most")),
    "too_long_for_heads": RefusalKind(400, ("heads", "source", "target")),
    # ---- figures
    "no_such_figure": RefusalKind(400, ("figure",)),
    "no_figure_here": RefusalKind(400, ("figure", "english", "korean")),
    "bad_figure": RefusalKind(400, ("problem",)),
    "too_long_for_figure": RefusalKind(400, ("tokens", "most")),
    # ---- the server
    "failed": RefusalKind(500),
    "shutting_down": RefusalKind(503),
    "too_slow": RefusalKind(504, ("seconds",)),
}
"""Every code. docs/serve.md says what each means, and ``web/src/lib/words_errors.ts`` has the
sentence of each in Korean."""


def error_body(code: str, message: str, values: Mapping[str, Value]) -> dict[str, Any]:
    """The body of an error."""
    return {"error": message, "code": code, "values": dict(values)}


FAILED = error_body("failed", "The server failed at this; its log says why.", {})


class Refusal(Exception):
    """A request that is not served. The server itself is well."""

    def __init__(
        self, code: str, message: str, *, retry_after: float | None = None, **values: Value
    ) -> None:
        """``code``: one of ``KINDS``, which names its ``values``. ``retry_after``: seconds after
        which the same request may be served."""
        super().__init__(message)
        self.code = code
        self.status = KINDS[code].status
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
