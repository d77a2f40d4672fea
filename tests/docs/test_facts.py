"""Facts that stand on a page and in the program, or on two pages, agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragoman.base.errors import DragomanError
from dragoman.formats.catalogue import format_of
from dragoman.sources.frames.form import FramesSource

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return " ".join((DOCS / f"{name}.md").read_text(encoding="utf-8").split())


def test_an_hour_of_sound_takes_what_the_page_says() -> None:
    """In half precision: two bytes for each band of each frame."""
    (told,) = re.findall(r"half precision: ([\d.]+) MB for an hour", page("label-recordings"))
    assert FramesSource().bands * 2 * 100 * 3600 == float(told) * 1e6


def test_a_translator_of_pictures_has_the_score_of_the_results() -> None:
    """On the page that shows how to train it, as where it was measured."""
    score = re.search(
        r"the second reaches ([\d.]+) BLEU\. .* reaches ([\d.]+)", page("text-in-pictures")
    )
    assert score is not None
    results = page("results")
    assert f"BLEU **{score[1]}**" in results and f"BLEU {score[2]} (" in results
    wrong = re.search(r"gets ([\d.]+) % of the characters wrong", page("text-in-pictures"))
    assert wrong is not None and f"CER {wrong[1]} %" in results


def test_detectors_have_the_scores_of_the_results() -> None:
    told = re.search(
        r"reaches AP50 ([\d.]+) % and AP ([\d.]+) %; as a set, AP50 ([\d.]+) % and AP ([\d.]+) %",
        page("boxes"),
    )
    assert told is not None
    for score in told.groups():
        assert re.search(rf"\b{re.escape(score)} %|\*\*{re.escape(score)} %\*\*", page("results"))


def test_each_older_office_format_has_a_conversion_of_its_own() -> None:
    for old, new in (("doc", "docx"), ("xls", "xlsx"), ("ppt", "pptx")):
        assert f"--convert-to {new} FILE.{old}" in page("documents")
    with pytest.raises(DragomanError, match="soffice --convert-to"):
        format_of(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old.xls")


def test_pages_speak_of_no_earlier_version() -> None:
    """Nothing has been released before this one."""
    for name in ("serve", "http-api", "labels", "documents", "transcribe"):
        assert not re.search(r"(?:earlier|older|previous) version|version without", page(name)), (
            name
        )


def test_the_korean_help_says_which_runs_have_which_view() -> None:
    assert "들여다보기는 글을 읽는 모든 과제에서 쓸 수 있습니다" in page("ko/page")
    assert "Look works for all tasks that read text" in page("page")
