"""What the forms of text must know of languages, by their codes ("en", "pt-BR")."""

from __future__ import annotations

WITHOUT_SPACES = frozenset({"ja", "km", "lo", "my", "th", "zh"})
"""Languages written without spaces between words: each token is shown as a word."""


def base(code: str) -> str:
    """The language of a code without its region: "pt-BR" -> "pt"."""
    return code.replace("_", "-").split("-")[0].lower()


def writes_spaces(code: str) -> bool:
    """Whether there are spaces between words and between sentences."""
    return base(code) not in WITHOUT_SPACES
