"""``card.md``: the model card. What a stranger should know before using a run, as Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from dragoman.pictures.labels import cell_text, visible
from dragoman.pictures.records import RunSummary, ShownSample, Table


def card_markdown(
    run: RunSummary, *, library: str = "dragoman", licence: str | None = None, use: str = ""
) -> str:
    """The card, with the header that model hubs read. Text from data cannot become markup.

    ``library``: the program that the model is for; ``licence``: the identifier of a licence;
    ``use``: Python that uses the model.
    """
    languages = [
        name for name in run.languages if re.fullmatch(r"[A-Za-z]{2,3}", name) and name != "und"
    ]
    parts = [
        "---",
        f"library_name: {library}",
        f"pipeline_tag: {run.hub_tag}",
        *(["language:", *(f"- {name}" for name in languages)] if languages else []),
        *([f"license: {json.dumps(licence, ensure_ascii=False)}"] if licence else []),
        f"model_name: {json.dumps(run.name, ensure_ascii=False)}",
        "---",
        "",
        f"# {_inline(run.title)}",
        "",
    ]
    if run.notice:
        parts += [f"**{_inline(run.notice)}**", ""]
    if use:
        parts += ["## Use", "", *_fence(use, "python"), ""]
    if run.facts:
        parts += [*(f"- {_inline(name)}: {_inline(value)}" for name, value in run.facts), ""]
    if run.scores:
        parts += ["## Scores", ""]
        rows = [
            (s.measure.called, s.measure.text(s.value), s.test, s.signature) for s in run.scores
        ]
        parts += _table(Table("", ("score", "value", "test", "signature"), rows))
    for heading, tables in (("What it takes for what", run.measured), ("Data", run.data)):
        parts += [f"## {heading}", ""] if tables else []
        for table in tables:
            parts += [f"### {_inline(table.title)}", "", *_table(table)]
    if run.samples:
        parts += ["## Samples", "", *_samples(run.samples[:10])]
    if run.limits:
        parts += ["## Limits", "", *(f"- {_inline(limit)}" for limit in run.limits), ""]
    if run.machine:
        parts += ["## Machine", ""]
        parts += [*(f"- {_inline(name)}: {_inline(value)}" for name, value in run.machine), ""]
    if run.recipe:
        parts += ["## Recipe", "", *_fence(run.recipe.rstrip("\n"), "toml"), ""]
    parts.append(f"Made by {_inline(run.made_by)}.")
    return "\n".join(parts) + "\n"


def _inline(text: str) -> str:
    """Text that Markdown shows as it stands, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", visible(text))


def _table(table: Table) -> list[str]:
    lines = ["| " + " | ".join(_inline(name) for name in table.header) + " |"]
    lines.append("|" + " --- |" * len(table.header))
    for row in table.rows:
        lines.append("| " + " | ".join(_inline(cell_text(cell)) for cell in row) + " |")
    lines.append("")
    return [*lines, _inline(table.note), ""] if table.note else lines


def _samples(samples: Sequence[ShownSample]) -> list[str]:
    lines = []
    for sample in samples:
        lines.append(f"source     {visible(sample.source)}")
        if sample.reference:
            lines.append(f"reference  {visible(sample.reference)}")
        lines += [f"model      {visible(sample.hypothesis)}", ""]
    return [*_fence("\n".join(lines[:-1]), "text"), ""]


def _fence(text: str, language: str) -> list[str]:
    """A code block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", text, fence]
