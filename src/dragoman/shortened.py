"""Long texts, as they stand in messages and tables."""

from __future__ import annotations


def shortened(text: str, most: int) -> str:
    """At most ``most`` characters of a text; where there are more, the last is an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
