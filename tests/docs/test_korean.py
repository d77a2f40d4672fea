"""The Korean of the page, held to the glossary and the style of docs/korean.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HANGUL = re.compile("[가-힣]")
GLOSSARY = (ROOT / "docs" / "korean.md").read_text(encoding="utf-8")


def sources() -> list[Path]:
    """Everything that speaks Korean to people; the segmentation of Korean text does not."""
    places = ("web/src/**/*.ts", "web/src/**/*.svelte", "src/dragoman/**/*.py")
    found = [path for place in places for path in ROOT.glob(place)]
    found.append(ROOT / "src/dragoman/insight/figures/captions.toml")
    return [path for path in found if path.name != "segmentation.py"]


def korean() -> list[tuple[str, str]]:
    """Place and line of all Korean."""
    return [
        (f"{path.relative_to(ROOT)}:{number}", line)
        for path in sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if HANGUL.search(line)
    ]


def glossary() -> list[tuple[list[str], list[str]]]:
    """Terms that are used, and terms that are not."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| ([^|]*) ?\|$", GLOSSARY, re.MULTILINE)
    return [
        (re.split(r"[,;] ", used.strip()), [one for one in unused.strip().split(", ") if one])
        for used, unused in rows
        if used.strip() not in ("한국어", "---")
    ]


def test_one_term_for_one_thing() -> None:
    unused = [term for _, terms in glossary() for term in terms]
    assert len(unused) > 20
    wrong = [
        f"{place}: {term}: {line.strip()}"
        for place, line in korean()
        for term in unused
        if term in line
    ]
    assert not wrong, "\n".join(wrong)


def test_the_terms_are_in_use() -> None:
    """A glossary of words that nobody reads would hold nothing."""
    text = " ".join(line for _, line in korean())
    for used, _ in glossary():
        assert any(re.sub(r"\(RMS\)", "", term) in text for term in used), used


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("합니다체", r"(?<!니)다\."),
        ("two particles in one", r"[이가을를은는와과로]\([이가을를은는와과로]\)|\([으이]\)"),
        (
            "a particle that depends on what is put in",
            r"\}”(?:이|가|을|를|은|는|과|와|로|으로)(?![가-힣])|\}(?:이|을|은|과|로|으로)(?![가-힣])",
        ),
    ],
    ids=["sentences", "two", "particles"],
)
def test_one_style(what: str, pattern: str) -> None:
    wrong = [f"{place}: {line.strip()}" for place, line in korean() if re.search(pattern, line)]
    assert not wrong, f"{what}:\n" + "\n".join(wrong)
