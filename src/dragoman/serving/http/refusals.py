"""Why a request is not served: a code, an HTTP status, and one sentence that says what to do.

Every error of the API has one shape, ``{"error": "…", "code": "…", "values": {…}}``. The first is
LibreTranslate's; the code and the values, which stand in the sentence too, are for programs, which
may say it in another language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.errors import SearchError, TooLongError

Value = str | int | float | list[str]


class Kind(NamedTuple):
    """What all refusals of one code have in common."""

    status: int
    """Of HTTP."""
    values: tuple[str, ...] = ()
    """The names of its values."""


KINDS: dict[str, Kind] = {
    # ---- the body of a request
    "bad_body": Kind(400),
    "bad_form": Kind(400, ("problem",)),
    "not_an_object": Kind(400),
    "too_many_names": Kind(400, ("names", "most")),
    "too_many_values": Kind(400, ("values", "most")),
    "missing_field": Kind(400, ("field",)),
    "bad_field": Kind(400, ("field", "problem")),
    "late_headers": Kind(408, ("seconds",)),
    "late_body": Kind(408, ("seconds",)),
    "body_too_large": Kind(413, ("most",)),
    # ---- who asks, and how often
    "key_needed": Kind(403),
    "key_unknown": Kind(403),
    "operators_only": Kind(403),
    "too_many_requests": Kind(429, ("most",)),
    "too_many_at_once": Kind(429, ("requests", "most")),
    "too_many_of_kind": Kind(429, ("requests", "kind")),
    "others_wait": Kind(429, ("kind",)),
    "queue_full": Kind(429, ("sentences", "most")),
    # ---- what is there
    "no_such_path": Kind(404),
    "no_such_method": Kind(405),
    "no_such_file": Kind(404, ("file",)),
    "page_not_built": Kind(404),
    "no_such_run": Kind(404, ("run", "runs")),
    "no_record": Kind(404, ("run",)),
    "other_task": Kind(400, ("run", "task", "path")),
    "no_run_for_task": Kind(400, ("task", "command")),
    "language_not_supported": Kind(400, ("language", "side", "pairs")),
    "target_needed": Kind(400, ("targets",)),
    # ---- how much
    "too_many_texts": Kind(400, ("texts", "most")),
    "too_many_files": Kind(400, ("files", "most")),
    "too_many_pixels": Kind(400, ("pixels", "most")),
    "too_much_sound": Kind(400, ("duration", "most")),
    "text_too_long": Kind(400, ("characters", "most")),
    "too_many_marks": Kind(400, ("marks", "most")),
    "too_many_sentences": Kind(400, ("sentences", "most")),
    "too_many_tokens": Kind(400, ("tokens", "most")),
    "too_many_characters": Kind(400, ("characters", "tokens")),
    "too_costly": Kind(400, ("cost", "most", "work")),
    "beam_too_wide": Kind(400, ("asked", "most")),
    "too_many_hypotheses": Kind(400, ("n_best", "beam", "hypotheses", "most")),
    "too_many_translations": Kind(400, ("each", "sentences", "total", "most")),
    "too_many_trees": Kind(400, ("each", "sentences", "total", "most")),
    "too_many_labels": Kind(400, ("each", "texts", "total", "most")),
    "too_many_tags": Kind(400, ("each", "words", "total", "most")),
    "too_many_candidates": Kind(400, ("each", "blanks", "total", "most")),
    "too_many_choices": Kind(400, ("asked", "most")),
    "too_many_blanks": Kind(400, ("blanks", "most")),
    "too_much_to_write": Kind(400, ("asked", "most")),
    # ---- what one task cannot do
    "bad_search": Kind(400, ("problem",)),
    "bad_text": Kind(400, ("problem",)),
    "bad_document": Kind(400, ("problem",)),
    "bad_file": Kind(400, ("file", "problem")),
    "other_source": Kind(400, ("run", "reads")),
    "no_words_in_files": Kind(400),
    "no_word_times": Kind(400, ("run",)),
    "no_such_document": Kind(404),
    "one_text_streamed": Kind(400, ("texts",)),
    "two_prefixes": Kind(400),
    "no_such_token": Kind(400, ("field", "vocabulary")),
    "no_blank": Kind(400),
    "no_token_fits": Kind(400),
    "no_words": Kind(400, ("text",)),
    "no_such_word": Kind(400, ("word", "words")),
    # ---- looking inside
    "cannot_look": Kind(400, ("run",)),
    "nothing_to_look_at": Kind(400),
    "no_such_sentence": Kind(400, ("sentence", "sentences")),
    "text_is_whole": Kind(400),
    "writes_nothing": Kind(400),
    "two_outputs": Kind(400),
    "no_such_place": Kind(400, ("field", "tokens")),
    "no_such_tokens": Kind(400, ("side",)),
    "wrong_length": Kind(400, ("tokens",)),
    "no_such_head": Kind(400, ("part", "layers", "heads")),
    "no_such_cell": Kind(400, ("part", "rows", "columns")),
    "no_queries": Kind(400, ("family",)),
    "too_many_weights": Kind(400, ("weights", "most")),
    "too_long_for_heads": Kind(400, ("heads", "source", "target")),
    # ---- figures
    "no_such_figure": Kind(400, ("figure",)),
    "no_figure_here": Kind(400, ("figure", "english", "korean")),
    "bad_figure": Kind(400, ("problem",)),
    "too_long_for_figure": Kind(400, ("tokens", "most")),
    # ---- the server
    "failed": Kind(500),
    "shutting_down": Kind(503),
    "too_slow": Kind(504, ("seconds",)),
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


def missing_field(field: str) -> Refusal:
    """LibreTranslate's sentence for a parameter that is not there."""
    return Refusal("missing_field", f"Invalid request: missing {field} parameter", field=field)


def wrong_field(field: str, problem: str) -> Refusal:
    """For a field that cannot be as it is."""
    return Refusal("bad_field", f"{field}: {problem}", field=field, problem=problem)


def invalid_request(field: str, problem: str) -> Refusal:
    """The same where ``problem`` names the field, as the checks of whole requests tell it."""
    return Refusal("bad_field", f"Invalid request: {problem}", field=field, problem=problem)


def unsearchable(error: SearchError) -> Refusal:
    """For what a search cannot meet."""
    return Refusal("bad_search", str(error), problem=str(error))


def too_long(error: TooLongError, message: str) -> Refusal:
    """For a text of which more would be read than a model reads. ``message``: with its name."""
    if error.unit == "tokens":
        return Refusal("too_many_tokens", message, tokens=error.length, most=error.most)
    return Refusal("too_many_characters", message, characters=error.length, tokens=error.most)
