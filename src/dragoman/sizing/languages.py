"""The languages of files: by their names, by what a person says, by a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.forms.languages import CODES
from dragoman.specs.sections import LanguageSettings


def languages_of(paths: Sequence[str]) -> tuple[str, str]:
    """Guess languages from names: my.en and my.de.gz are "en" and "de"; "und" if unsure."""
    codes = []
    for path in paths:
        suffix = Path(path.removesuffix(".gz")).suffix.removeprefix(".").lower()
        codes.append(suffix if suffix in CODES else "und")
    return (codes[0], codes[1]) if len(codes) == 2 else ("und", "und")


def known_of(languages: tuple[str, str], otherwise: LanguageSettings) -> tuple[str, str]:
    """The languages that are said; of each that is not, the one of ``otherwise``."""
    source, target = languages
    return (
        otherwise.source if source == "und" else source,
        otherwise.target if target == "und" else target,
    )
