"""The languages of a training run, from ``--languages`` or from the names of the files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from dragoman.base.errors import RecipeError
from dragoman.forms.languages import CODES, COUNTRIES, code_meant, is_code, name_of
from dragoman.runs.recipe.sections import LanguageSettings

_KANURI = " (kr is Kanuri; for Kanuri, use kau)"


def languages_of(paths: Sequence[str]) -> tuple[str, str]:
    """Guess languages from names: my.en and my.de.gz are "en" and "de"; "und" if unsure.

    Errors: ``RecipeError`` for my.kr, whose name means a text in Kanuri.
    """
    codes = []
    for path in paths:
        suffix = Path(path.removesuffix(".gz")).suffix.removeprefix(".").lower()
        if suffix in CODES and suffix in COUNTRIES:
            code = COUNTRIES[suffix]
            parts = Path(path).name.split(".")
            named = ".".join(code if part == suffix else part for part in parts)
            renamed = Path(path).with_name(named)
            raise RecipeError(
                f"{path}: the code of {name_of(code)} is {code}, and {suffix} is another "
                f"language. Rename the file: mv {shlex.quote(path)} {shlex.quote(str(renamed))}. "
                f"Or set --languages{_KANURI}"
            )
        codes.append(suffix if suffix in CODES else "und")
    return (codes[0], codes[1]) if len(codes) == 2 else ("und", "und")


def given_languages(codes: str | None, paths: Sequence[str]) -> tuple[str, str]:
    """The languages of both sides, from ``--languages`` or else from the names of their files.

    Errors: ``RecipeError`` for anything but two codes.
    """
    if not codes:
        return languages_of(paths)
    source, dash, target = codes.partition("-")
    if not dash or not source or not target:
        raise RecipeError(f"--languages {codes}: use a form such as en-de")
    _check_codes(codes)
    return source, target


def given_language(code: str | None, path: str) -> str:
    """The language of texts without translations. Errors: ``RecipeError`` for two codes."""
    if code is not None and "-" in code:
        raise RecipeError(f"--languages {code}: texts have one language. Use a form such as en")
    _check_codes(code or "")
    return code or languages_of([path, path])[0]


def _check_codes(codes: str) -> None:
    """Errors: ``RecipeError`` for names of languages, codes of countries and what is no code."""
    source, dash, target = codes.partition("-")
    meant = f"{code_meant(source)}{dash}{code_meant(target)}"
    if meant != codes:
        kanuri = _KANURI if "kr" in (source, target) else ""
        raise RecipeError(f"--languages {codes}: use language codes: --languages {meant}{kanuri}")
    if any(code and not is_code(code) for code in (source, target)):
        raise RecipeError(f"--languages {codes}: use language codes, such as en-de")


def fill_unknown(languages: Mapping[str, str], otherwise: LanguageSettings) -> dict[str, str]:
    """The known languages; unknown ones are taken from ``otherwise``."""
    return {
        side: getattr(otherwise, side) if code == "und" else code
        for side, code in languages.items()
    }
