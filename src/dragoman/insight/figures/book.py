"""All figures into one folder: a book of them, and for each its picture and its numbers."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from dragoman.base.errors import install
from dragoman.demo.corpus import NOTICE
from dragoman.insight.figures.catalogue import every_figure
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import Figure, Words, write_figure
from dragoman.pictures.pages.book import book_html

_SYNTHETIC = Words(
    NOTICE + " Figures that look into a trained run use it.",
    "데모 말뭉치는 작은 문법으로 만든 합성 데이터입니다. 점수는 프로그램이 제대로 작동한다는 "
    "뜻일 뿐, 실제 글에 대해서는 아무것도 말해 주지 않습니다. 학습된 모델을 사용하는 그림은 이 "
    "모델로 그렸습니다.",
)


def write_book(folder: Path, subject: Subject | None, say: Callable[[str], None]) -> Path:
    """Write every figure that can be made and ``index.html`` -> the page.

    PNG needs matplotlib (the extra ``plots``); without it there are SVG and CSV.
    """
    folder.mkdir(parents=True, exist_ok=True)
    png = importlib.util.find_spec("matplotlib") is not None
    if not png:
        say(f"No PNG, which needs matplotlib: {install('plots')}")
    figures: list[Figure] = []
    missing: list[tuple[str, str]] = []
    for name, made, reason in every_figure(subject):
        if made is None:
            missing.append((name, reason))
            say(f"{name}: left out: {reason}")
            continue
        figures.append(made)
        write_figure(folder, made)
        say(f"{name}: {made.title.english}")
    about = [_SYNTHETIC] if subject is not None and subject.is_demo else []
    page = folder / "index.html"
    page.write_text(book_html(figures, about=about, missing=missing, png=png), encoding="utf-8")
    return page
