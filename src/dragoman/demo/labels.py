"""The embedded corpus as texts and labels: which German pronoun an English "it" becomes.

"The animal didn't cross the street because it was too tired" needs "es", for the animal (das Tier);
"… too wide" needs "sie", for the street (die Straße). The label is the pronoun, and neither it nor
any German word stands in the text: it takes the gender of every noun, and the last word to know
which of two nouns is meant.
"""

from __future__ import annotations

import re

from dragoman.demo.corpus import DemoPair

_ENGLISH = re.compile(r"\b(?:because|although) it (?:was|is) \w+ \w+\.$")
_GERMAN = re.compile(r"\b(?:weil|obwohl) (er|sie|es) \w+ \w+ (?:war|ist)\.$")


def label_of(pair: DemoPair) -> str | None:
    """The pronoun; None for a sentence without an "it" whose meaning decides."""
    found = _GERMAN.search(pair.target)
    if pair.family != "pronoun" or found is None or not _ENGLISH.search(pair.source):
        return None
    return found[1]
