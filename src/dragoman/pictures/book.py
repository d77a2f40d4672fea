"""The book of figures: one HTML page with every picture inside, captions in English and Korean.

It makes no request and needs no script; with one, a reader chooses the language, and the page
begins in the browser's. Tables of numbers are next to it as CSV.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.pictures.figure import Figure, Words, csv_files, figure_svg
from dragoman.pictures.labels import escape
from dragoman.pictures.theme import page_html, part

TITLE = Words("The Transformer, figure by figure", "그림으로 보는 Transformer")
_LEAD = Words(
    "Every figure is computed, none is drawn by hand. The numbers of each are in a CSV file. "
    "Equations are those of “Attention Is All You Need” (Vaswani et al., 2017). In matrices "
    "blue is above zero, orange below, and the deeper the colour, the further from it.",
    "모든 그림은 손으로 그린 것이 아니라 계산한 것이며, 수는 그림마다 CSV로 있습니다. 식은 "
    "“Attention Is All You Need”(Vaswani 외, 2017)의 것입니다. 행렬에서 파란색은 0보다 큰 수, "
    "주황색은 0보다 작은 수이며, 색이 진할수록 절댓값이 큽니다.",
)


def book_html(
    figures: Sequence[Figure],
    *,
    about: Sequence[Words] = (),
    missing: Sequence[tuple[str, str]] = (),
    png: bool = True,
) -> str:
    """The page. ``about`` is said first; ``missing`` are figures left out, and why.

    Links lead to ``NAME.svg``, ``NAME.png`` (with ``png``) and the CSV files in the same folder.
    """
    contents = "\n".join(
        f'<li><a href="#{figure.name}">{_both(figure.title, "span")}</a></li>' for figure in figures
    )
    notices = "\n".join(_both(words, "p", "notice") for words in about)
    body = "\n".join(_section(figure, png) for figure in figures)
    whole = (
        "<main>\n<header>\n"
        '<p class="languages" hidden><button type="button" value="en" lang="en">English</button>'
        '<button type="button" value="ko" lang="ko">한국어</button></p>\n'
        f"{_both(TITLE, 'h1')}\n{_both(_LEAD, 'p', 'lead')}\n{notices}\n"
        f'<nav><ol class="contents">\n{contents}\n</ol></nav>\n</header>\n'
        f"{body}\n{_missing(missing)}</main>\n<script>{part('book.js')}</script>\n"
    )
    return page_html(TITLE.english, whole, styles=part("book.css"))


def _section(figure: Figure, png: bool) -> str:
    drawn = figure_svg(figure, alone=False)
    notes = "\n".join(_both(note, "p", "note") for note in figure.notes)
    files = [f"{figure.name}.svg", *([f"{figure.name}.png"] if png else []), *csv_files(figure)]
    links = " · ".join(f'<a href="{escape(name)}" download>{escape(name)}</a>' for name in files)
    looked_into = ""
    if figure.run:
        words = Words(
            f"Looks into the trained run “{figure.run}”.",
            f"사용한 모델: “{figure.run}”.",
        )
        looked_into = _both(words, "span") + " "
    return (
        f'<section id="{figure.name}">\n{_both(figure.title, "h2")}\n'
        f'<figure class="panel"><div class="scroll" tabindex="0">{drawn}</div>\n<figcaption>\n'
        f"{_both(figure.caption, 'p')}\n{notes}\n"
        f'<p class="from">{looked_into}{_both(figure.source, "cite")}</p>\n'
        f"<details><summary>{_both(Words('Files', '파일'), 'span')}</summary>"
        f'<p class="files">{links}</p></details>\n</figcaption></figure>\n</section>'
    )


def _missing(missing: Sequence[tuple[str, str]]) -> str:
    if not missing:
        return ""
    items = "\n".join(
        f"<li><code>{escape(name)}</code>: {escape(reason)}</li>" for name, reason in missing
    )
    heading = _both(Words("Left out", "빠진 그림"), "h2")
    return f"<section>\n{heading}\n<ul>\n{items}\n</ul>\n</section>\n"


def _both(words: Words, tag: str, kind: str = "") -> str:
    """An element twice, once for each language; a script or the style hides one."""
    of_kind = f' class="{kind}"' if kind else ""
    return "".join(
        f'<{tag} lang="{language}"{of_kind}>{escape(text)}</{tag}>'
        for language, text in (("en", words.english), ("ko", words.korean))
    )
