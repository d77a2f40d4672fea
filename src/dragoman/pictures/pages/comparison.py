"""The page of a comparison: several systems beside each other, and the paper's own figures.

One self-contained file, as ``report.py``'s: light and dark, no request to anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.pictures.chart import chart_svg
from dragoman.pictures.labels import escape
from dragoman.pictures.page import page_html
from dragoman.pictures.pages.report import table_html
from dragoman.pictures.records import Chart, Table

_STYLES = ".charts figure{max-width:30rem}"
"""A chart alone in its row does not fill the page."""


@dataclass(frozen=True)
class ReportSection:
    """A part of the page."""

    heading: str
    words: str = ""
    """What it shows and how it was measured."""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class ComparisonPage:
    """All that the page says."""

    title: str
    lead: str
    verdict: Sequence[str]
    """Sentences; the first is the most important."""
    sections: Sequence[ReportSection]
    made_by: str


def comparison_html(page: ComparisonPage) -> str:
    """The whole document. All text is escaped."""
    parts = [
        "<main>",
        "<header>",
        '<p class="eyebrow">dragoman compare</p>',
        f"<h1>{escape(page.title)}</h1>",
        f'<p class="lead">{escape(page.lead)}</p>',
    ]
    if page.verdict:
        first, *further = page.verdict
        parts.append(f'<p class="notice">{escape(first)}</p>')
        parts += [f"<p>{escape(sentence)}</p>" for sentence in further]
    parts.append("</header>")
    parts += [_section(section) for section in page.sections if section.charts or section.tables]
    parts.append("</main>")
    footer = (
        f"<footer><p>Made by {escape(page.made_by)}. This page is one file and asks nothing of any "
        "server.</p></footer>\n"
    )
    return page_html(page.title, "\n".join(parts) + "\n" + footer, styles=_STYLES)


def _section(section: ReportSection) -> str:
    parts = ["<section>", f"<h2>{escape(section.heading)}</h2>"]
    if section.words:
        parts.append(f'<p class="muted">{escape(section.words)}</p>')
    if section.charts:
        drawn = (f"<figure>{chart_svg(one, alone=False)}</figure>" for one in section.charts)
        parts += ['<div class="charts">', *drawn, "</div>"]
    return "\n".join([*parts, *map(table_html, section.tables), "</section>"])
