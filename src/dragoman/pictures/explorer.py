"""Every attention weight of some translations, to look around in: choose a layer, a head, a word.

One script (``report.js``) over data inside the page; the report holds it, so does the page of
``dragoman look``, and so do notebooks, inside a frame that keeps its style and script from the
notebook's.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.base.wording import decimals
from dragoman.pictures.figure import Panel
from dragoman.pictures.labels import WORD_START, escape, labels, visible
from dragoman.pictures.theme import FONT, page_html, part

# Weights are one byte each in the page; past this, only the means of each layer's heads are kept.
_MAX_WEIGHTS = 2_000_000


class AttentionView(Protocol):
    """The fields of an ``AttentionRecord`` that are shown; it describes them."""

    @property
    def source(self) -> Sequence[str]: ...
    @property
    def target(self) -> Sequence[str]: ...
    @property
    def encoder(self) -> NDArray[np.floating]: ...
    @property
    def decoder(self) -> NDArray[np.floating]: ...
    @property
    def cross(self) -> NDArray[np.floating]: ...
    @property
    def begin(self) -> str: ...


def explorer(records: Sequence[AttentionView], before: str = "", asked: int | None = None) -> str:
    """HTML, data and script; one to a page. ``before`` stands there until the script has run.

    ``asked`` is the target word of the first record that is pointed out at first.
    """
    weights = sum(r.encoder.size + r.decoder.size + r.cross.size for r in records)
    thinned = weights > _MAX_WEIGHTS
    payload = [_pack(record, thinned) for record in records]
    words = records[0].target or records[0].source
    payload[0]["asked"] = asked if asked is not None else len(words) // 2
    data = json.dumps(payload, ensure_ascii=True, separators=(",", ":"))
    # Inside <script> only these could end it or be read as markup.
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    about = (
        "Choose an attention and one of the small pictures: each is a head of a layer, the first"
        " of a row the mean of its heads. Point at a word to see where it looked."
    )
    if thinned:
        about += " This model has too many heads for one page: only the means are here."
    return (
        f'<div class="panel"><p class="muted">{about}</p>\n'
        f'<div class="look" id="look">{before}</div></div>\n'
        f'<script type="application/json" id="attention-records">{data}</script>\n'
        f"<script>{part('report.js')}</script>"
    )


def _pack(record: AttentionView, means_only: bool) -> dict[str, object]:
    def kind(weights: NDArray[np.floating]) -> dict[str, object]:
        kept = weights.mean(axis=1, keepdims=True) if means_only else weights
        layers, heads, rows, columns = kept.shape
        whole = np.clip(np.nan_to_num(kept) * 255, 0, 255).round().astype(np.uint8)
        packed = base64.b64encode(whole.tobytes()).decode("ascii")
        sizes = {"layers": layers, "heads": heads, "rows": rows, "columns": columns}
        return {**sizes, "weights": packed}

    return {
        "source": [visible(token) for token in labels(record.source)],
        "target": [visible(token) for token in labels(record.target)],
        "begin": visible(record.begin),
        "encoder": kind(record.encoder),
        "decoder": kind(record.decoder),
        "cross": kind(record.cross),
    }


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
        title = f"{escape(visible(token))}: {probability:.1%}"
        word = escape(visible(word))
        parts.append(f'{space}<span title="{title}" style="{line}">{word}</span>')
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


Exhibit = tuple[str, str, Sequence[Panel]]
"""Further pictures of the page: their heading, what is said of them, and the pictures."""


def look_html(
    record: AttentionView,
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
        texts = f"<p>{before}</p><p><strong>{after}</strong></p>"
        doubt = f'<p class="muted">{note}</p>'
        parts += [
            "<section><h2>What if</h2>",
            f'<div class="panel"><p class="muted">{change}</p>{texts}{doubt}</div>',
            "</section>",
        ]
    parts.append(f"<section><h2>Where it looked</h2>{explorer([record])}</section>")
    for heading, text, panels in exhibits:
        drawn = "".join(f'<div class="scroll" tabindex="0">{panel.svg()}</div>' for panel in panels)
        parts.append(
            f"<section><h2>{escape(heading)}</h2>"
            f'<p class="muted">{escape(text)}</p><figure class="panel">{drawn}</figure>'
            "</section>"
        )
    return page_html(title, "<main>" + "\n".join(parts) + "</main>\n")
