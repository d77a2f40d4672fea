"""Records as a notebook shows them: the pages' own views, self-contained, inside a frame.

A frame keeps the page's style and script from the notebook's, and two of them from each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dragoman.decimals import decimals
from dragoman.pictures.explorer import AttentionView, explorer
from dragoman.pictures.labels import WORD_START, escape, labels, visible
from dragoman.pictures.page import page_html
from dragoman.pictures.theme import FONT


def attention_html(record: AttentionView) -> str:
    """The whole attention of a translation, to look around in."""
    styles = "body{padding:.25rem;max-width:none}.panel{margin:0}"
    page = page_html("attention", f"<main>{explorer([record])}</main>", styles=styles)
    rows = max(len(record.source), len(record.target))
    height = 420 + 32 * min(rows, 24)
    return (
        f'<iframe srcdoc="{escape(page)}" title="attention" loading="lazy"'
        f' sandbox="allow-scripts" style="width:100%;height:{height}px;border:0"></iframe>'
    )


def translation_html(
    source: str,
    text: str,
    tokens: Sequence[str],
    log_probabilities: Sequence[float],
    score: float,
    alternatives: Sequence[tuple[str, float]] = (),
    attention: AttentionView | None = None,
) -> str:
    """A translation, the probability of each token under it, and its attention if there is one."""
    parts = [f'<div style="font-family:{escape(FONT)};line-height:1.6">']
    parts.append(f'<div style="opacity:.7">{escape(visible(source))}</div>')
    parts.append('<div style="font-size:1.15em">')
    shown = labels(tokens)
    pairs = zip(tokens, shown, log_probabilities, strict=False)
    for token, label, log_probability in pairs:
        probability = math.exp(log_probability)
        space = " " if token.startswith(WORD_START) else ""
        word = label.removeprefix("-") if not space else label
        line = f"border-bottom:3px solid rgba(51,80,143,{max(probability, 0.06):.2f})"
        told = f"{escape(visible(token))}: {probability:.1%}"
        word = escape(visible(word))
        parts.append(f'{space}<span title="{told}" style="{line}">{word}</span>')
    parts.append(f'</div><div style="opacity:.7;font-size:.85em">score {decimals(score, 3)}</div>')
    for other, other_score in alternatives:
        parts.append(
            f'<div style="opacity:.85">{escape(visible(other))} '
            f'<span style="opacity:.7;font-size:.85em">{decimals(other_score, 3)}</span></div>'
        )
    parts.append("</div>")
    if attention is not None:
        parts.append(attention_html(attention))
    return "".join(parts)
