"""Text of users and subword pieces, made fit to be shown: nothing invisible, nothing executable;
and tables of it in plain text, for terminals and logs.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence

from rich.cells import cell_len

WORD_START = "\u2581"
"""The character with which SentencePiece marks a space."""
SPACE = "\u2423"
"""The sign that is shown for a piece that is only a space."""

# Directional embeddings, overrides, isolates: they could turn round what stands beside the text.
_TURNS_LINES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    """Control characters as their pictures (␀, ␛), what cannot be encoded as U+FFFD.

    What is left is allowed in XML and HTML and moves no terminal's cursor.
    """
    return "".join(_visible_character(c) if not c.isprintable() else c for c in text)


def _visible_character(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    category = unicodedata.category(character)
    if category in ("Zl", "Zp"):
        return "\u2424"
    noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    if category in ("Cc", "Cs") or noncharacter or character in _TURNS_LINES:
        return "\ufffd"
    return character  # wide spaces, joiners, private letters, emoji newer than this Python


def escape(text: str) -> str:
    """``visible``, and safe between tags and inside quoted attributes of HTML and XML."""
    return html.escape(visible(text), quote=True)


def labels(pieces: Sequence[str]) -> tuple[str, ...]:
    """Subword pieces as they are shown: a word's first piece bare, what continues a word after
    three dots.

    ``▁Tier e . </s>`` -> ``Tier …e . </s>``. Pieces of a model that marks no spaces (characters)
    stay as they are.
    """
    if not any(piece.startswith(WORD_START) for piece in pieces):
        return tuple(pieces)
    shown = []
    for place, piece in enumerate(pieces):
        if piece.startswith(WORD_START):
            shown.append(piece.removeprefix(WORD_START) or SPACE)
        elif place == 0 or is_symbol(piece) or not any(map(str.isalnum, piece)):
            shown.append(piece)
        else:
            shown.append(f"…{piece}")
    return tuple(shown)


def is_symbol(piece: str) -> bool:
    """True if a piece stands for no text: ``<s>``, ``</s>``, ``<unk>``. Bytes ``<0x0A>`` do."""
    return piece.startswith("<") and piece.endswith(">") and not piece.startswith("<0x")


def text_width(text: str, size: float) -> float:
    """About how wide a text is in a proportional font of ``size`` pixels, rather too much."""
    ems = 0.0
    for character in text:
        if unicodedata.east_asian_width(character) in "WF":
            ems += 1.0
        elif character in "iljtfrI.,;:'!|() ":
            ems += 0.35
        elif character in "mwMW—…@" or character.isupper():
            ems += 0.8
        elif not unicodedata.combining(character):
            ems += 0.58
    return ems * size


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str | int | float]]) -> str:
    """A line of names, then a line a row; columns two spaces apart, numbers to the right."""
    lines = [list(header), *([cell_text(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(header))]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(header))]

    def pad(text: str, i: int) -> str:
        space = " " * (widths[i] - cell_len(text))
        return space + text if right[i] else text + space

    return "\n".join(
        "  ".join(pad(text, i) for i, text in enumerate(line)).rstrip() for line in lines
    )


def cell_text(cell: str | int | float) -> str:
    """Whole numbers with thousands set apart, others with four digits, words as they are."""
    match cell:
        case str():
            return cell
        case int():
            return f"{cell:,}"
        case _:
            return f"{cell:,.4g}"


def _is_number(cell: str | int | float) -> bool:
    if not isinstance(cell, str):
        return True
    return not cell or cell.lstrip("+-−")[:1].isdigit()
