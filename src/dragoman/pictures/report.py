"""Self-contained pages: ``report.html``, which says what a run learned and how well, and the page
of a comparison, with several systems side by side and the paper's own figures.

Each is one file, light and dark, from phone to wide screen, printable. It makes no request: styles
and the script stand inside, and its Content-Security-Policy forbids all else. Every text that came
from data is escaped.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.base.wording import plural
from dragoman.pictures.chart import chart_svg
from dragoman.pictures.explorer import explorer
from dragoman.pictures.labels import cell_text, escape
from dragoman.pictures.panels import heatmap_svg, hops_svg
from dragoman.pictures.records import (
    AttentionRecord,
    Chart,
    Heatmap,
    Hops,
    RunSummary,
    ShownSample,
    ShownScore,
    Table,
    TreePair,
)
from dragoman.pictures.theme import page_html
from dragoman.pictures.tree import tree_svg

_SAMPLES_SHOWN = 8


def report_html(run: RunSummary) -> str:
    """The page. Sections without content are left out."""
    sections = [
        _header(run),
        _samples(run.samples, run.languages, run.undrawn),
        _mistakes(run.confusions, run.measured),
        _section("How it learned", *_draw_charts(run.charts)) if run.charts else "",
        _look(run.hops, run.attention),
        _section("Data", *map(_table, run.data)) if run.data else "",
        _recipe(run.recipe),
        _section("Machine", _facts(run.machine)) if run.machine else "",
        _limits(run.limits),
    ]
    body = "\n".join(section for section in sections if section)
    return page_html(run.title, f"<main>\n{body}\n</main>\n{_footer(run.made_by)}")


def _header(run: RunSummary) -> str:
    parts = [
        "<header>",
        f'<p class="eyebrow">{escape(run.name)}</p>' if run.direction else "",
        f"<h1>{escape(run.direction or run.name)}</h1>",
    ]
    if run.notice:
        parts.append(f'<p class="notice">{escape(run.notice)}</p>')
    parts.append(_scores(run.scores))
    if run.facts:
        parts.append(_facts(run.facts))
    parts.append("</header>")
    return "\n".join(part for part in parts if part)


def _scores(scores: Sequence[ShownScore]) -> str:
    if not scores:
        return ""
    parts = ['<ul class="scores">']
    for score in scores:
        parts.append(
            f'<li><span class="value">{score.measure.text(score.value)}</span>'
            f'<span class="name">{escape(score.measure.called)}</span>'
            f'<span class="test">{escape(score.test)}</span></li>'
        )
    parts.append("</ul>")
    signed = [score for score in scores if score.signature]
    if signed:
        parts.append('<div class="signatures">')
        for score in signed:
            parts.append(
                f"<div>{escape(score.measure.called)} <code>{escape(score.signature)}</code></div>"
            )
        parts.append("</div>")
    return "\n".join(parts)


def _samples(samples: Sequence[ShownSample], languages: Sequence[str], undrawn: int) -> str:
    if not samples:
        return ""
    compared = [sample for sample in samples if sample.reference]
    exact = sum(sample.hypothesis == sample.reference for sample in compared)
    about = "Sentences that the model never saw."
    if pairs := [sample.trees for sample in samples if sample.trees is not None]:
        about += f" {sum(pair.is_exact for pair in pairs)} of {len(pairs)} have every bracket of "
        about += "the reference and no other; elsewhere, the labels of brackets that the other "
        about += "tree does not have are underlined."
        if undrawn:
            about += f" {plural(undrawn, 'more was', 'more were')} parsed and not drawn: a tree is "
            about += "too long to be recorded whole."
    elif compared:
        about += f" {exact} of {len(compared)} are word for word the reference; elsewhere, what"
        about += " differs from it is underlined. Another wording need not be a worse one."
    shown, rest = samples[:_SAMPLES_SHOWN], samples[_SAMPLES_SHOWN:]
    parts = [f'<p class="muted">{about}</p>', _sample_list(shown, languages)]
    if rest:
        parts.append(f"<details><summary>{len(rest)} more</summary>")
        parts.append(_sample_list(rest, languages))
        parts.append("</details>")
    return _section("What it writes", *parts)


def _mistakes(confusions: Sequence[Heatmap], tables: Sequence[Table]) -> str:
    if not (confusions or tables):
        return ""
    figures = [_scrollable(heatmap_svg(heatmap, alone=False)) for heatmap in confusions]
    return _section("What it takes for what", *figures, *map(_table, tables))


def _sample_list(samples: Sequence[ShownSample], languages: Sequence[str]) -> str:
    known = languages or ("und",)  # of pictures there are none
    source_language, target_language = (_language_attribute(known[n]) for n in (0, -1))
    parts = ['<ul class="samples">']
    for sample in samples:
        if sample.trees is not None:
            parts.append(f"<li>{_both_trees(sample.trees)}</li>")
            continue
        lines = [("source", escape(sample.source), source_language, "source")]
        if sample.reference:
            lines.append(("reference", escape(sample.reference), target_language, "reference"))
        lines.append(("model", _differences(sample), target_language, "model"))
        parts.append("<li>")
        for who, text, language, kind in lines:
            parts.append(
                f'<span class="who">{who}</span>'
                f'<span class="{kind}" dir="auto"{language}>{text or "∅"}</span>'
            )
        parts.append("</li>")
    parts.append("</ul>")
    return "\n".join(parts)


def _both_trees(pair: TreePair) -> str:
    """The reference above the parse; both move together where they are wider than the screen."""
    both = [
        f'<div class="who">{who}{note}</div>'
        + tree_svg(tree, pair.no_tag, marked=marked, alone=False)
        for who, tree, marked, note in (
            ("reference", pair.reference, pair.missed, ""),
            ("model", pair.parse, pair.wrong, ": the same brackets" if pair.is_exact else ""),
        )
    ]
    return f'<div class="trees">{_scrollable("".join(both))}</div>'


def _language_attribute(name: str) -> str:
    """Screen readers speak a text in its language where the recipe names it by its code."""
    return f' lang="{name}"' if re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]+)*", name) else ""


def _differences(sample: ShownSample) -> str:
    """The hypothesis, its words that the reference does not have in this place marked."""
    if not sample.reference:
        return escape(sample.hypothesis)
    # Languages that write no spaces are compared sign by sign.
    between = " " if " " in sample.reference.strip() else ""
    hypothesis = sample.hypothesis.split() if between else list(sample.hypothesis)
    reference = sample.reference.split() if between else list(sample.reference)
    matcher = difflib.SequenceMatcher(a=reference, b=hypothesis, autojunk=False)
    parts = []
    for kind, _, _, start, end in matcher.get_opcodes():
        if start < end:
            text = escape(between.join(hypothesis[start:end]))
            parts.append(text if kind == "equal" else f"<mark>{text}</mark>")
    return between.join(parts)


def _draw_charts(charts: Sequence[Chart]) -> list[str]:
    figures = (f"<figure>{chart_svg(chart)}</figure>" for chart in charts)
    return ['<div class="charts">', *figures, "</div>"]


def _look(hops: Sequence[Hops], records: Sequence[AttentionRecord]) -> str:
    if not hops and not records:
        return ""
    parts = []
    for look in hops:
        word, through = escape(look.target[look.word]), escape(look.source[look.through])
        parts.append(
            f'<figure class="panel hops">{_scrollable(hops_svg(look))}'
            f"<figcaption>What decides “{word}”: it is written while looking at “{through}”"
            f" (above), and “{through}” itself has looked at other words (below). Lines are as"
            " strong as the attention weights.</figcaption></figure>"
        )
    if records:
        known = bool(hops) and tuple(hops[0].target) == tuple(records[0].target)
        first = heatmap_svg(records[0].heatmap("cross", len(records[0].cross) - 1), alone=False)
        parts.append(explorer(records, _scrollable(first), hops[0].word if known else None))
    return _section("Where it looked", *parts)


def _scrollable(wide: str) -> str:
    """Something that may be wider than the screen; the keyboard can scroll it too."""
    return f'<div class="scroll" tabindex="0">{wide}</div>'


def _table(table: Table) -> str:
    """A table of a page, which may be wider than the screen; its note below."""
    numeric = [
        bool(table.rows) and all(not isinstance(row[i], str) for row in table.rows)
        for i in range(len(table.header))
    ]
    parts = [
        f"<h3>{escape(table.title)}</h3>",
        '<div class="scroll" tabindex="0"><table>',
        "<thead><tr>",
    ]
    for name, number in zip(table.header, numeric, strict=True):
        kind = ' class="number"' if number else ""
        parts.append(f'<th scope="col"{kind}>{escape(name)}</th>')
    parts.append("</tr></thead><tbody>")
    for row in table.rows:
        parts.append("<tr>")
        for cell, number in zip(row, numeric, strict=True):
            kind = ' class="number"' if number else ""
            parts.append(f'<td{kind} dir="auto">{escape(cell_text(cell))}</td>')
        parts.append("</tr>")
    parts.append("</tbody></table></div>")
    if table.note:
        parts.append(f'<p class="muted">{escape(table.note)}</p>')
    return "\n".join(parts)


def _recipe(recipe: str) -> str:
    if not recipe:
        return ""
    lines = []
    for line in recipe.rstrip().split("\n"):
        text = escape(line.replace("\t", "  "))
        if line.lstrip().startswith("#"):
            text = f'<span class="comment">{text}</span>'
        elif line.startswith("["):
            text = f"<strong>{text}</strong>"
        lines.append(text)
    body = "\n".join(lines)
    return _section(
        "Recipe",
        '<p class="muted">Everything that was set. The same recipe, data and machine give the same'
        " model.</p>",
        f"<details><summary>Show all of it</summary><pre><code>{body}</code></pre></details>",
    )


def _limits(limits: Sequence[str]) -> str:
    if not limits:
        return ""
    items = (f"<li>{escape(limit)}</li>" for limit in limits)
    return _section("Limits", "<ul>", *items, "</ul>")


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    """A list of names and values."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return "\n".join(['<dl class="facts">', *rows, "</dl>"])


def _footer(made_by: str) -> str:
    return (
        f"<footer><p>Made by {escape(made_by)}. This page is one file and sends no "
        "requests.</p></footer>\n"
    )


def _section(heading: str, *parts: str) -> str:
    return "\n".join(["<section>", f"<h2>{heading}</h2>", *parts, "</section>"])


_COMPARISON_STYLES = ".charts figure{max-width:30rem}"
"""A chart alone in its row does not fill the page."""


@dataclass(frozen=True)
class ReportSection:
    """A part of the page with charts and tables."""

    heading: str
    words: str = ""
    """A text that says what it shows and how it was measured."""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class ComparisonPage:
    """The texts, charts and tables of the page."""

    title: str
    lead: str
    verdict: Sequence[str]
    """Sentences; the first is the most important."""
    sections: Sequence[ReportSection]
    made_by: str


def comparison_html(page: ComparisonPage) -> str:
    """The whole document. All text is escaped."""
    parts = [
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
    for section in page.sections:
        if section.charts or section.tables:
            words = [f'<p class="muted">{escape(section.words)}</p>'] if section.words else []
            charts = _draw_charts(section.charts) if section.charts else []
            tables = map(_table, section.tables)
            parts.append(_section(escape(section.heading), *words, *charts, *tables))
    body = "\n".join(parts)
    whole = f"<main>\n{body}\n</main>\n{_footer(page.made_by)}"
    return page_html(page.title, whole, styles=_COMPARISON_STYLES)
