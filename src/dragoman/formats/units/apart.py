"""The space between a code that shows text of its own and the words beside it."""

from __future__ import annotations

from dragoman.formats.units.unit import Code

_JOINED_BEFORE = {",", ";", ":", ".", "!", "?", ")"}
"""Marks after which a space stands before the next word."""
_JOINED_BEHIND = set(" \r\n\t.,;:!?)]}\"'»”’%…-/")
"""Marks before which none stands."""


def needs_space_before(code: Code, last: str) -> bool:
    """``last``: the character in front of it."""
    return code.apart_before and (last.isalnum() or last in _JOINED_BEFORE)


def needs_space_behind(code: Code, following: str, source: str) -> bool:
    """``following``: the character behind it; ``source``: the text that it stood in."""
    if not code.apart_behind or not following:
        return False
    had_space = code.place == 0 or source[code.place - 1] == " "
    return following.isalnum() or (had_space and following not in _JOINED_BEHIND)
