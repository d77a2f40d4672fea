"""Texts in one Unicode form, so that metrics count what readers see.

The letter é may be one character or two, an e and an accent; a syllable of Korean is one character
or three. Both sides of each comparison are composed (NFC, Unicode Standard Annex 15).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def composed(lines: Sequence[str]) -> list[str]:
    """The lines in NFC."""
    return [unicodedata.normalize("NFC", line) for line in lines]


def form_of(*texts: Sequence[str]) -> str:
    """What a signature ends in if composing changes any line of ``texts``; empty if it does not."""
    changed = any(not unicodedata.is_normalized("NFC", line) for lines in texts for line in lines)
    return "|unicode:NFC" if changed else ""
