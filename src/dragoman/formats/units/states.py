"""The states in which files say that a translation is, in all formats, and what each means here.

A translation that waits is made; one that a person stands behind is learned from; all others stay
as they are, and nobody learns from them.
"""

from __future__ import annotations

import re

WAITS = {"", "new", "needs-translation", "initial"}
"""States of a text that waits for its translation."""
_REVIEWED = {"final", "signed-off", "reviewed"}
"""A person has read the translation, whoever made it."""
_DONE = {"", "translated"}
"""It is done, unless a machine has made it, or it is of a similar text, or refused."""
MACHINE = "dragoman"
"""How a translation of ours is marked where a format has no state that says so: in TMX as the name
of who made it, in XLIFF 2 before a colon."""
_MACHINES = {MACHINE, "leveraged-mt", "mt-suggestion", "mt!", "mt"}
"""By what other programs mark the translations of machines."""
_DOUBTS = re.compile(r"fuzzy-match|rejected-\w+")
"""What XLIFF 1.2 says of a translation of a similar text, and of one that was refused."""


def teaches(state: str, origin: str = "") -> bool:
    """Whether a translation is learned from. ``state``: "" where the file says none; of PO fuzzy or
    "". ``origin``: how the file says that it came about: ``state-qualifier`` of XLIFF 1.2, the
    prefix of ``subState`` of XLIFF 2, ``creationid`` of TMX."""
    stands = origin.lower() not in _MACHINES and not _DOUBTS.fullmatch(origin)
    return state in _REVIEWED or (state in _DONE and stands)
