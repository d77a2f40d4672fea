"""Figures of attention (paper §3.2): the scale 1 / √d_k, and what happens to a softmax without it;
several heads, from one input to one output; and every layer and head of encoder, decoder and
cross-attention."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from dragoman.base.errors import DragomanError
from dragoman.insight.figures.captions import Parts
from dragoman.insight.figures.head import length_notes, open_short, strip
from dragoman.insight.head import Array, OpenedAttention, softmax
from dragoman.insight.panels import attention_panels, attention_table, attention_words, matrix_table
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import DataTable, Panel, Words
from dragoman.pictures.matrix import MatrixPicture
from dragoman.pictures.panels import LinePanel, TextPanel
from dragoman.pictures.records import AttentionKind, Series, merged_to_words


def attention_figure(
    subject: Subject, *, kind: AttentionKind, layer: int = 0, head: int = 0
) -> Parts:
    """Draw every layer and head of one kind of attention, and one layer in large. ``layer`` and
    ``head`` of the large picture count from 1; layer 0 is the last layer, head 0 the mean of its
    heads."""
    record = merged_to_words(subject.attention)
    shown = subject.output.text
    if subject.predictor.reads:
        shown = f"{subject.sentence} → {shown}"
    yield from attention_panels(record, kind, layer - 1, head - 1 if head else None)
    yield attention_table(record, kind)
    yield Words(shown, shown)


def scale_figure() -> Parts:
    """Draw the variance of q · k against d_k for random q and k. Also draw the largest weight, the
    entropy and the gradient 1 − Σp² of the softmax of such scores, with and without the scale 1 /
    √d_k."""
    generator = torch.Generator().manual_seed(1)
    widths, pairs, keys = [2**i for i in range(1, 11)], 4000, 32
    rows = []
    for width in widths:
        q = torch.randn(pairs, width, generator=generator, dtype=torch.float64)
        k = torch.randn(pairs, width, generator=generator, dtype=torch.float64)
        variance = float((q * k).sum(-1).var())
        many = torch.randn(keys, width, generator=generator, dtype=torch.float64)
        scores = (q[:1000] @ many.T).numpy()
        row: list[float] = [width, variance]
        for scale in (1.0, width**-0.5):
            weights = softmax(scores * scale)
            entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(-1)
            slope = 1 - np.square(weights).sum(-1)
            row += [float(values.mean()) for values in (weights.max(-1), entropy, slope)]
        rows.append(row)
    table = np.array(rows)

    def line(name: str, column: int) -> Series:
        return Series(name, widths, table[:, column].tolist())

    def chart(title: str, *series: Series, log: bool = False, label: str = "") -> Panel:
        return LinePanel(
            title, series, x_label="d_k, logarithmic", log_x=True, log_y=log, from_zero=not log,
            y_label=label or ("logarithmic" if log else ""), size=(430, 260),
        )  # fmt: skip

    header = (
        "d_k", "variance of q·k", "largest weight", "entropy", "1 - sum p^2",
        "largest weight, scaled", "entropy, scaled", "1 - sum p^2, scaled",
    )  # fmt: skip
    yield chart(
        "Variance of q · k",
        line("measured", 1),
        Series("d_k", widths, [float(width) for width in widths]),
        log=True,
    )
    yield chart("Largest of 32 weights, mean", line("as it is", 2), line("/ √d_k", 5))
    yield chart("Entropy of the weights", line("as it is", 3), line("/ √d_k", 6), label="nats")
    yield chart("What gradient is left, 1 − Σp²", line("as it is", 4), line("/ √d_k", 7))
    yield DataTable(header, [(int(row[0]), *row[1:]) for row in rows])


def heads_figure(subject: Subject, *, heads: int = 0) -> Parts:
    """Draw how several heads lead from one input to one output, and show that each head reads the
    whole input and not a slice of it.

    ``heads``: the number of heads that the run's own matrices are cut into; 0: as trained. Errors:
    ``DragomanError`` for a number of heads that does not divide the widths of the matrices.
    """
    opened = open_short(subject, "encoder", 0)
    words, trained = list(opened.looking), len(opened.queries)
    width = opened.inputs.shape[1]
    if heads and heads != trained:
        opened = _recut(opened, heads, width)
    heads = len(opened.queries)
    weight = subject.transformer.query_matrix(opened.attention)
    shares = _shares(weight.double().numpy(), heads, width)
    yield from _panels(opened, shares)
    yield DataTable(
        ("head", "slice of the input", "share of |W^Q|^2"),
        [(h + 1, s + 1, float(shares[h, s])) for h, s in np.ndindex(*shares.shape)],
    )
    yield matrix_table("input", opened.inputs, words)
    for h, queries in enumerate(opened.queries):
        yield matrix_table(f"query-{h + 1}", queries, words)
    yield matrix_table("joined", opened.joined, words)
    yield from length_notes(subject)
    yield from _notes(opened, subject.name, trained)


def _panels(opened: OpenedAttention, shares: Array) -> Parts:
    """Draw the input, the queries of at most eight heads, the joined heads, and
    ``shares``. ``shares`` (H, H): how the squared W^Q weights of each head are divided among the
    slices of the input."""
    heads, count, key_width = opened.queries.shape
    words, width = list(opened.looking), opened.inputs.shape[1]
    fine = 2.2 if width <= 256 else 560 / width

    def of_slices(title: str, values: Array) -> Panel:
        rows, columns = ([f"{what} {i + 1}" for i in range(heads)] for what in ("head", "slice"))
        return MatrixPicture(title, values, rows, columns, cell=(52, 26), reach=1.0)

    joined = f"Concat of {heads} heads, {count} × {heads} · {opened.joined.shape[1] // heads}"
    numbers = [
        ("whole input", width * key_width, width * key_width * heads),
        ("own slice", width // heads * key_width, width * key_width),
    ]
    yield strip(f"Input X, {count} × {width}", opened.inputs, words, fine, 18)
    for h, queries in enumerate(opened.queries[:8]):
        yield strip(f"Q of head {h + 1}, {count} × {key_width}", queries, words, fine * 2, 18)
    yield strip(joined, opened.joined, words, fine, 18)
    yield of_slices("This run: share of W^Q", shares)
    yield of_slices("Slices only", np.eye(heads))
    yield TextPanel("Numbers in W^Q", ("variant", "per head", "all heads"), numbers)


def _notes(opened: OpenedAttention, run: str, trained: int) -> Parts:
    """Make notes about the attention of the run ``run``. ``trained``: the number of heads that
    the run was trained with. If ``opened`` has another number, one of the notes says that the
    matrices were cut."""
    said, width = attention_words(opened.attention), opened.inputs.shape[1]
    heads, _, key_width = opened.queries.shape
    yield Words(
        f"{opened.source} {said.english.capitalize()} of the run "
        f"{run}: d_model = {width}, h = {heads}, d_k = {key_width}.",
        f"{opened.source} {run} 모델의 {said.korean}: d_model = {width}, "
        f"h = {heads}, d_k = {key_width}.",
    )
    if heads != trained:
        yield Words(
            f"It was trained with {trained} heads. Here its matrices are cut into "
            f"{heads}, which shows the cutting, not what it learned.",
            f"이 모델은 헤드 {trained}개로 학습했습니다. 여기서는 행렬을 {heads}개로 "
            "나누었으므로, 나누는 방법을 보여 줄 뿐 학습된 결과는 아닙니다.",
        )


def _recut(opened: OpenedAttention, heads: int, width: int) -> OpenedAttention:
    """Cut the queries, keys and values of all H heads, (H, T, d), into H' = ``heads`` heads, (H',
    T, d H / H'), and compute the weights and the joined output again. ``width``: the width of the
    model. Errors: ``DragomanError`` for a number of heads that does not divide the widths of the
    matrices."""
    own, _, key_width = opened.queries.shape
    value_width = opened.values.shape[-1]
    if any(size % heads for size in (own * key_width, own * value_width, width)):
        raise DragomanError(f"matrices of width {own * key_width} cannot be cut into {heads} heads")

    def cut(parts: Array) -> Array:
        count = parts.shape[1]
        whole = parts.transpose(1, 0, 2).reshape(count, -1)
        return whole.reshape(count, heads, -1).transpose(1, 0, 2)

    queries, keys, values = cut(opened.queries), cut(opened.keys), cut(opened.values)
    scale = opened.scale * math.sqrt(key_width / queries.shape[-1]) if opened.scale != 1 else 1.0
    weights = softmax(queries @ keys.transpose(0, 2, 1) * scale)
    joined = (weights @ values).transpose(1, 0, 2).reshape(queries.shape[1], -1)
    return replace(
        opened, queries=queries, keys=keys, values=values, weights=weights, joined=joined,
        scale=scale,
    )  # fmt: skip


def _shares(weight: Array, heads: int, width: int) -> Array:
    """Return (H, H): for each head, how its squared W^Q weights are divided among the H slices of
    the input, as shares that sum to 1. ``weight``: W^Q (H · d_k, width), or the matrices (H, d_k,
    width / H) of heads that read only their own slice; ``width``: the width of the input."""
    if weight.ndim == 3:
        return np.eye(heads)
    squares = np.square(weight).reshape(heads, -1, heads, width // heads).sum(axis=(1, 3))
    share: Array = squares / squares.sum(axis=1, keepdims=True)
    return share
