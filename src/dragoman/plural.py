"""Numbers with their nouns, as they stand in messages: 1 text, 2 texts."""

from __future__ import annotations


def plural(number: float, one: str, more: str | None = None) -> str:
    """A number and what it counts: ``one`` of it, or ``more``, by itself ``one`` with an s. Both
    may go on with a verb: ``plural(3, "text has", "texts have")`` is "3 texts have"."""
    told = f"{number:,}" if isinstance(number, int) else f"{number:,.10g}"
    return f"{told} {one if number == 1 else more or one + 's'}"
