"""Names of languages, and which language a text is in.

Codes are BCP 47 as recipes have them ("en", "pt-BR"); what is compared is the language alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.forms.languages import base

NAMES = {
    "af": "Afrikaans",
    "ar": "Arabic",
    "az": "Azerbaijani",
    "be": "Belarusian",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "br": "Breton",
    "ca": "Catalan",
    "cs": "Czech",
    "cy": "Welsh",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "eo": "Esperanto",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "ga": "Irish",
    "gl": "Galician",
    "gu": "Gujarati",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "hy": "Armenian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese",
    "ka": "Georgian",
    "kk": "Kazakh",
    "km": "Khmer",
    "ko": "Korean",
    "la": "Latin",
    "lo": "Lao",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "mk": "Macedonian",
    "mn": "Mongolian",
    "ms": "Malay",
    "mt": "Maltese",
    "my": "Burmese",
    "nb": "Norwegian Bokmål",
    "ne": "Nepali",
    "nl": "Dutch",
    "nn": "Norwegian Nynorsk",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "te": "Telugu",
    "th": "Thai",
    "tl": "Tagalog",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "uz": "Uzbek",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


def name_of(code: str) -> str:
    """The English name, or the code where there is none."""
    return NAMES.get(base(code), code)


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
