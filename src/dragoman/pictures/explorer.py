"""Every attention weight of some translations, to look around in: choose a layer, a head, a word.

One script (``report.js``) over data inside the page; the report, ``dragoman look`` and notebooks
hold it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.pictures.labels import labels, visible
from dragoman.pictures.page import part

# Weights are one byte each in the page; past this, only the means of each layer's heads are kept.
_MAX_WEIGHTS = 2_000_000


class AttentionView(Protocol):
    """What is shown: an ``AttentionRecord``, described there."""

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
    payload = [_packed(record, thinned) for record in records]
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


def _packed(record: AttentionView, means_only: bool) -> dict[str, object]:
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
