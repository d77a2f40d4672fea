"""A text that is far longer than what is read of it, told by its characters.

To cut a text into tokens takes some seventy bytes of memory for each of its characters. Where so
much is too long in any case, up to a gigabyte on one line, it is not cut to find that out.
"""

from __future__ import annotations

_CHARACTERS = 1000
"""Of a text for each token that is read: no token writes so many."""


def beginning(text: str, tokens: int) -> str:
    """A part of a text that has its first ``tokens`` tokens; all of it, if it is not far longer."""
    return text[: tokens * _CHARACTERS]


def far_too_long(text: str, tokens: int) -> bool:
    """Whether a text has more than so many tokens by its characters alone."""
    return len(text) > tokens * _CHARACTERS
