"""The page of one translation: every layer and head to look around in, and what changes if.

The explorer is the report's own (``report.js``); this page holds it for ``dragoman look``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.pictures.explorer import explorer
from dragoman.pictures.figure import Panel
from dragoman.pictures.labels import escape, visible
from dragoman.pictures.records import AttentionRecord
from dragoman.pictures.theme import page_html


@dataclass(frozen=True)
class ComparedLooks:
    """A translation beside what it becomes under a change."""

    change: str
    before: str
    after: str
    note: str
    """How much the model has come to doubt its first translation."""


@dataclass(frozen=True)
class Exhibit:
    """Further pictures of the page under a heading."""

    title: str
    text: str
    panels: Sequence[Panel]


def look_html(
    record: AttentionRecord,
    *,
    title: str,
    source: str,
    translation: str,
    compared: Sequence[ComparedLooks] = (),
    exhibits: Sequence[Exhibit] = (),
) -> str:
    """A self-contained page about one translation."""
    parts = [
        f'<header><p class="eyebrow">{escape(visible(title))}</p>',
        f"<h1>{escape(visible(translation))}</h1>",
        f'<p class="lead">{escape(visible(source))}</p></header>',
    ]
    if compared:
        parts.append("<section><h2>What if</h2>")
        for one in compared:
            parts.append(
                f'<div class="panel"><p class="muted">{escape(visible(one.change))}</p>'
                f"<p>{escape(visible(one.before))}</p>"
                f"<p><strong>{escape(visible(one.after))}</strong></p>"
                f'<p class="muted">{escape(visible(one.note))}</p></div>'
            )
        parts.append("</section>")
    parts.append(f"<section><h2>Where it looked</h2>{explorer([record])}</section>")
    for exhibit in exhibits:
        drawn = "".join(f'<div class="scroll" tabindex="0">{p.svg()}</div>' for p in exhibit.panels)
        parts.append(
            f"<section><h2>{escape(exhibit.title)}</h2>"
            f'<p class="muted">{escape(exhibit.text)}</p><figure class="panel">{drawn}</figure>'
            "</section>"
        )
    return page_html(title, "<main>" + "\n".join(parts) + "</main>\n")
