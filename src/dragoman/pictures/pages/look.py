"""The page of one translation: every layer and head to look around in, and what changes if.

The explorer is the report's own (``report.js``); this page holds it for ``dragoman look``.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.pictures.explorer import explorer
from dragoman.pictures.figure import Panel
from dragoman.pictures.labels import escape
from dragoman.pictures.records import AttentionRecord
from dragoman.pictures.theme import page_html

Exhibit = tuple[str, str, Sequence[Panel]]
"""Further pictures of the page: their heading, what is said of them, and the pictures."""


def look_html(
    record: AttentionRecord,
    *,
    title: str,
    source: str,
    translation: str,
    changed: tuple[str, str, str, str] | None,
    exhibits: Sequence[Exhibit],
) -> str:
    """A self-contained page about one translation. ``changed``: a change, the translation before
    and under it, and how much the model has come to doubt the first."""
    parts = [
        f'<header><p class="eyebrow">{escape(title)}</p>',
        f"<h1>{escape(translation)}</h1>",
        f'<p class="lead">{escape(source)}</p></header>',
    ]
    if changed is not None:
        change, before, after, note = map(escape, changed)
        told = f"<p>{before}</p><p><strong>{after}</strong></p>"
        doubt = f'<p class="muted">{note}</p>'
        parts += [
            "<section><h2>What if</h2>",
            f'<div class="panel"><p class="muted">{change}</p>{told}{doubt}</div>',
            "</section>",
        ]
    parts.append(f"<section><h2>Where it looked</h2>{explorer([record])}</section>")
    for heading, text, panels in exhibits:
        drawn = "".join(f'<div class="scroll" tabindex="0">{one.svg()}</div>' for one in panels)
        parts.append(
            f"<section><h2>{escape(heading)}</h2>"
            f'<p class="muted">{escape(text)}</p><figure class="panel">{drawn}</figure>'
            "</section>"
        )
    return page_html(title, "<main>" + "\n".join(parts) + "</main>\n")
