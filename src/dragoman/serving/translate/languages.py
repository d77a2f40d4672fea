"""Which language a text is in, however short it is.

Codes are BCP 47 as recipes have them ("en", "pt-BR"); what is compared is the language alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.forms.languages import base


@dataclass(frozen=True)
class Detected:
    """A language that a text may be in."""

    language: str
    confidence: float
    """Probability from 0 to 1, among all languages that the detector knows."""


class Detector:
    """Tells the language of a text, by py3langid, which carries its model with it.

    Making one takes a second; it may be used from one thread at a time.
    """

    def __init__(self) -> None:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def rank(self, text: str) -> list[Detected]:
        """All languages, the most probable first. A text without letters tells nothing."""
        found = self._identifier.rank(text.replace("\0", " "))
        return [Detected(str(code), float(probability)) for code, probability in found]

    def choose(self, text: str, offered: Sequence[str]) -> Detected:
        """The most probable of the ``offered`` codes, which is never empty."""
        ranked = self.rank(text)
        for guess in ranked:
            for code in offered:
                if base(code) == guess.language:
                    return Detected(code, guess.confidence)
        return Detected(offered[0], 0.0)
