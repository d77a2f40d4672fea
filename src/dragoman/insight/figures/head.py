"""Figures of one head opened (paper §3.2): look-up, four steps, scale, mask, several heads."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from dragoman.errors import DragomanError
from dragoman.insight.figures.captions import Drawn
from dragoman.insight.figures.layer_words import attention_words
from dragoman.insight.figures.subject import Subject
from dragoman.insight.head import Array, OpenedAttention, by_hand, open_attention, softmax
from dragoman.models.interface import Part
from dragoman.pictures.figure import Cell, DataTable, Panel, Words
from dragoman.pictures.matrix import Matrix
from dragoman.pictures.panels import Cells, Lines, Text
from dragoman.pictures.records import Chart, Series

_LONGEST = 14
"""Tokens of a sentence that can still be shown with every number."""


def lookup_figure(subject: Subject, *, head: int = 0) -> Drawn:
    """A hash table beside one real head, counted from 1; 0 is the one that is least sure."""
    opened = _open(subject, "cross", len(subject.transformer.attentions_of("cross")) - 1)
    said = attention_words(opened.attention)
    head, row = _undecided(opened, head)
    query, keys = opened.queries[head, row], opened.keys[head]
    values, weights = opened.values[head], opened.weights[head, row]
    scaled = (keys @ query) * opened.scale
    chosen = np.zeros_like(weights)
    chosen[int(scaled.argmax())] = 1.0
    output = weights @ values
    word, words = opened.looking[row], list(opened.looked_at)
    wide = 7.0
    panels: list[Panel] = [
        Cells(
            Matrix(
                f"Query of “{word}”", query[None], rows=[word], cell=(wide, 24), across="dimension"
            )
        ),
        Cells(Matrix("Keys", keys, rows=words, cell=(wide, 24), across="dimension")),
        Cells(
            Matrix(
                "score, hash table, attention",
                np.stack([scaled / max(np.abs(scaled).max(), 1e-9), chosen, weights], axis=1),
                rows=words,
                columns=["score", "hash", "weight"],
                cell=(52, 24),
                reach=1.0,
            )
        ),
        Cells(Matrix("Values", values, rows=words, cell=(wide, 24), across="dimension")),
        Cells(
            Matrix(
                "What comes back",
                np.stack([values[int(scaled.argmax())], output]),
                rows=["hash table", "attention"],
                cell=(wide, 24),
                across="dimension",
            )
        ),
    ]
    rows: list[tuple[Cell, ...]] = [
        (name, float(scaled[i]), float(chosen[i]), float(weights[i]))
        for i, name in enumerate(words)
    ]
    following = opened.looking[row + 1] if row + 1 < len(opened.looking) else ""
    to_choose = (
        (f" and chooses “{following}”", f"(고른 것은 “{following}”)") if following else ("", "")
    )
    strongest = ", ".join(f"{words[i]} {weights[i]:.0%}" for i in np.argsort(-weights)[:4])
    return Drawn(
        panels,
        [
            DataTable("", ("key of", "scaled score", "hash table", "weight"), rows),
            _matrix_table("query", query[None], [word]),
            _matrix_table("keys", keys, words),
            _matrix_table("values", values, words),
            _matrix_table("output", output[None], [word]),
        ],
        run=subject.name,
        notes=[
            Words(
                f"{opened.source} {said.english.capitalize()}, head {head + 1}, "
                f"the step that has just read “{word}”{to_choose[0]}. Weights: {strongest}. "
                "In the picture scores are divided by the largest.",
                f"{opened.source} {said.korean}, 헤드 {head + 1}, 방금 “{word}” 단어까지 읽은 "
                f"단계{to_choose[1]}. 가중치: {strongest}. 그림의 점수는 최댓값으로 나눈 것입니다.",
            )
        ],
    )


def four_steps_figure(subject: Subject, *, layer: int = 1, head: int = 1) -> Drawn:
    """The recipe with real numbers, by loops and by matrices. Layer and head count from 1."""
    opened = _open(subject, "encoder", layer - 1)
    said, number, head = attention_words(opened.attention), head, head - 1
    words = list(opened.looking)
    queries, keys, values = opened.queries[head], opened.keys[head], opened.values[head]
    scores = opened.scores[head]
    scaled = scores * opened.scale
    weights = softmax(scaled)
    output = weights @ values
    looped_weights, looped_output = by_hand(
        queries.tolist(), keys.tolist(), values.tolist(), opened.scale
    )
    count, key_width = queries.shape
    value_width = values.shape[1]
    wide, cell = 4.5, _cell(count)

    def square(title: str, matrix: Array, reach: float | None = None) -> Panel:
        return Cells(Matrix(title, matrix, rows=words, columns=words, cell=cell, reach=reach))

    def long(title: str, matrix: Array) -> Panel:
        return Cells(Matrix(title, matrix, rows=words, cell=(wide, 20), across="dimension"))

    t, k, v = count, key_width, value_width
    shapes = [
        ("Q", f"{t} × {k}", "a query per word"),
        ("K", f"{t} × {k}", "a key per word"),
        ("V", f"{t} × {v}", "a value per word"),
        ("1: Q Kᵀ", f"{t} × {k} · {k} × {t} = {t} × {t}", "every query with every key"),
        ("2: / √d_k", f"{t} × {t}", f"divided by √{k} = {math.sqrt(k):.2f}"),
        ("3: softmax", f"{t} × {t}", "each row sums to 1"),
        ("4: · V", f"{t} × {t} · {t} × {v} = {t} × {v}", "an output per word"),
    ]
    difference = max(
        float(np.abs(np.array(looped_weights) - weights).max()),
        float(np.abs(np.array(looped_output) - output).max()),
        float(np.abs(opened.weights[head] - weights).max()),
    )
    steps: list[tuple[Cell, ...]] = [
        (words[i], words[j], float(scores[i, j]), float(scaled[i, j]), float(weights[i, j]),
         looped_weights[i][j])
        for i, j in np.ndindex(count, count)
    ]  # fmt: skip
    return Drawn(
        [
            Text("Shapes: softmax(Q Kᵀ / √d_k) V", ("what", "shape", ""), shapes),
            long("Q", queries),
            long("K", keys),
            square("1: Q Kᵀ", scores),
            square("2: Q Kᵀ / √d_k", scaled),
            square("3: softmax", weights, 1.0),
            long("V", values),
            long("4: softmax(Q Kᵀ / √d_k) V", output),
        ],
        [
            DataTable("", ("query of", "key of", "1 score", "2 scaled", "3 weight", "loop"), steps),
            _matrix_table("queries", queries, words),
            _matrix_table("keys", keys, words),
            _matrix_table("values", values, words),
            _matrix_table("output", output, words),
        ],
        run=subject.name,
        notes=[
            Words(
                f"{opened.source} {said.english.capitalize()}, head {number}, "
                f"of the run {subject.name}, d_k = {key_width}. Loop, matrix form "
                f"and what the model computed differ by at most {difference:.0e}.",
                f"{opened.source} {subject.name} 모델의 {said.korean}, 헤드 {number}, "
                f"d_k = {key_width}. 반복 계산, 행렬 계산, 모델의 계산 사이의 가장 큰 차이: "
                f"{difference:.0e}.",
            )
        ],
    )


def scale_figure() -> Drawn:
    """Variance of q · k against d_k, and what a softmax makes of it."""
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
            row += [float(one.mean()) for one in (weights.max(-1), entropy, slope)]
        rows.append(row)
    table = np.array(rows)

    def line(name: str, column: int) -> Series:
        return Series(name, widths, table[:, column].tolist())

    def chart(title: str, *series: Series, log: bool = False, label: str = "") -> Panel:
        return Lines(
            Chart(title, series, x_label="d_k, logarithmic", log_x=True, log_y=log,
                  from_zero=not log, y_label=label or ("logarithmic" if log else "")),
            430,
        )  # fmt: skip

    header = (
        "d_k", "variance of q·k", "largest weight", "entropy", "1 - sum p^2",
        "largest weight, scaled", "entropy, scaled", "1 - sum p^2, scaled",
    )  # fmt: skip
    return Drawn(
        [
            chart(
                "Variance of q · k",
                line("measured", 1),
                Series("d_k", widths, [float(width) for width in widths]),
                log=True,
            ),
            chart("Largest of 32 weights, mean", line("as it is", 2), line("/ √d_k", 5)),
            chart("Entropy of the weights", line("as it is", 3), line("/ √d_k", 6), label="nats"),
            chart("What gradient is left, 1 − Σp²", line("as it is", 4), line("/ √d_k", 7)),
        ],
        [DataTable("", header, [(int(row[0]), *row[1:]) for row in rows])],
    )


def mask_figure(subject: Subject, *, layer: int = 1, head: int = 1) -> Drawn:
    """Scores of the decoder before and behind the causal mask. Layer and head count from 1."""
    opened = _open(subject, "decoder", layer - 1)
    said, number, head = attention_words(opened.attention), head, head - 1
    words = list(opened.looking)
    scaled = opened.scores[head] * opened.scale
    behind = np.triu(np.ones_like(scaled, dtype=bool), 1)
    masked = np.where(behind, np.nan, scaled)
    unmasked = softmax(scaled)
    weights = softmax(np.where(behind, -1e300, scaled))
    cell = _cell(len(words))

    def square(title: str, matrix: Array, reach: float | None = None) -> Panel:
        return Cells(
            Matrix(
                title, matrix, rows=words, columns=words, cell=cell, reach=reach, absent="–∞",
                down="word just read", across="looked at",
            )
        )  # fmt: skip

    rows: list[tuple[Cell, ...]] = [
        (words[i], words[j], float(scaled[i, j]), int(not behind[i, j]), float(weights[i, j]),
         float(opened.weights[head, i, j]))
        for i, j in np.ndindex(*scaled.shape)
    ]  # fmt: skip
    leaked = float((unmasked * behind).sum(axis=1)[:-1].mean())
    return Drawn(
        [
            square("Scores, before", scaled),
            square("Scores, masked", masked, float(np.abs(scaled).max())),
            square("Weights", weights, 1.0),
        ],
        [
            DataTable(
                "", ("query of", "key of", "scaled score", "allowed", "weight", "model's"), rows
            )
        ],
        run=subject.name,
        notes=[
            Words(
                f"{opened.source} {said.english.capitalize()}, head {number}, "
                f"of the run {subject.name}. Without the mask {leaked:.0%} of the weight "
                "would fall on words that are not written yet.",
                f"{opened.source} {subject.name} 모델의 {said.korean}, 헤드 {number}. 마스크가 "
                f"없으면 가중치의 {leaked:.0%}가 아직 쓰지 않은 단어에 놓입니다.",
            )
        ],
    )


def heads_figure(subject: Subject, *, heads: int = 0) -> Drawn:
    """One input, several heads, one output; the whole input beside slices of it.

    ``heads``: cut the run's own matrices into so many heads; 0 as it was trained. Errors:
    ``DragomanError`` for a number that they cannot be cut into.
    """
    opened = _open(subject, "encoder", 0)
    said = attention_words(opened.attention)
    words = list(opened.looking)
    trained, count, key_width = opened.queries.shape
    width = opened.inputs.shape[1]
    if heads and heads != trained:
        opened = _cut_anew(opened, heads, width)
    heads, count, key_width = opened.queries.shape
    weight = subject.transformer.query_matrix(opened.attention)
    shares = _shares(weight.double().numpy(), heads, width)
    fine = 2.2 if width <= 256 else 560 / width
    joined = opened.joined
    value_width = joined.shape[1] // heads
    names = [f"head {h + 1}" for h in range(heads)]
    slices = [f"slice {h + 1}" for h in range(heads)]
    shown = min(heads, 8)
    panels: list[Panel] = [
        Cells(Matrix(
                f"Input X, {count} × {width}", opened.inputs, rows=words, cell=(fine, 18),
                across="dimension",
            )
        ),
        *(
            Cells(
                Matrix(
                    f"Q of head {h + 1}, {count} × {key_width}",
                    opened.queries[h],
                    rows=words,
                    cell=(fine * 2, 18),
                    across="dimension",
                )
            )
            for h in range(shown)
        ),
        Cells(
            Matrix(
                f"Concat of {heads} heads, {count} × {heads} · {value_width}",
                joined,
                rows=words,
                cell=(fine, 18),
                across="dimension",
            )
        ),
        Cells(
            Matrix(
                "This run: share of W^Q", shares, rows=names, columns=slices,
                cell=(52, 26), reach=1.0,
            )
        ),
        Cells(
            Matrix(
                "Slices only", np.eye(heads), rows=names, columns=slices, cell=(52, 26), reach=1.0
            )
        ),
        Text(
            "Numbers in W^Q",
            ("variant", "per head", "all heads"),
            [
                ("whole input", width * key_width, width * key_width * heads),
                ("own slice", width // heads * key_width, width * key_width),
            ],
        ),
    ]  # fmt: skip
    return Drawn(
        panels,
        [
            DataTable(
                "",
                ("head", "slice of the input", "share of |W^Q|^2"),
                [(h + 1, s + 1, float(shares[h, s])) for h, s in np.ndindex(*shares.shape)],
            ),
            _matrix_table("input", opened.inputs, words),
            *(_matrix_table(f"query-{h + 1}", opened.queries[h], words) for h in range(heads)),
            _matrix_table("joined", joined, words),
        ],
        run=subject.name,
        notes=[
            Words(
                f"{opened.source} {said.english.capitalize()} of the run "
                f"{subject.name}: d_model = {width}, h = {heads}, d_k = {key_width}.",
                f"{opened.source} {subject.name} 모델의 {said.korean}: d_model = {width}, "
                f"h = {heads}, d_k = {key_width}.",
            ),
            *(
                [
                    Words(
                        f"It was trained with {trained} heads. Here its matrices are cut into "
                        f"{heads}, which shows the cutting, not what it learned.",
                        f"이 모델은 헤드 {trained}개로 학습했습니다. 여기서는 행렬을 {heads}개로 "
                        "나누었으므로, 나누는 방법을 보여 줄 뿐 학습된 결과는 아닙니다.",
                    )
                ]
                if heads != trained
                else []
            ),
        ],
    )


def _cut_anew(opened: OpenedAttention, heads: int, width: int) -> OpenedAttention:
    """The same matrices side by side, cut into other heads: (H, T, K) -> (H', T, K H / H')."""
    own, _, key_width = opened.queries.shape
    value_width = opened.values.shape[-1]
    if any(size % heads for size in (own * key_width, own * value_width, width)):
        raise DragomanError(f"matrices of width {own * key_width} cannot be cut into {heads} heads")

    def cut(parts: Array) -> Array:
        count = parts.shape[1]
        whole = parts.transpose(1, 0, 2).reshape(count, -1)
        again: Array = whole.reshape(count, heads, -1).transpose(1, 0, 2)
        return again

    queries, keys, values = cut(opened.queries), cut(opened.keys), cut(opened.values)
    scale = opened.scale * math.sqrt(key_width / queries.shape[-1]) if opened.scale != 1 else 1.0
    weights = softmax(queries @ keys.transpose(0, 2, 1) * scale)
    joined = (weights @ values).transpose(1, 0, 2).reshape(queries.shape[1], -1)
    return replace(
        opened, queries=queries, keys=keys, values=values, weights=weights, joined=joined,
        scale=scale,
    )  # fmt: skip


def _open(subject: Subject, part: Part, layer: int) -> OpenedAttention:
    """One attention of a sentence that is short enough to show every number of."""
    source = subject.sentence
    if len(subject.predictor.source_ids(source)) > _LONGEST:
        source = _short(subject)
    target = subject.predictor.shown(source).ids[: _LONGEST - 1]
    return open_attention(subject.predictor, part, layer, source, target)


def _short(subject: Subject) -> str:
    """The demo's short sentence, else the shortest of the run's samples, else the first words."""
    if subject.is_demo:
        return "The small man eats the dinosaur."
    candidates = [source for source, _ in subject.pairs if source.strip()]
    fitting = [s for s in candidates if len(subject.predictor.source_ids(s)) <= _LONGEST]
    if fitting:
        return max(fitting, key=len)
    kept = subject.sentence.split()
    while len(kept) > 1 and len(subject.predictor.source_ids(" ".join(kept))) > _LONGEST:
        kept.pop()
    return " ".join(kept)


def _undecided(opened: OpenedAttention, wanted: int) -> tuple[int, int]:
    """Head and row whose second-largest weight is largest: it looks at two words at least."""
    second = np.sort(opened.weights, axis=-1)[:, :, -2]  # (H, T)
    if wanted:
        second = np.where(np.arange(len(second))[:, None] == wanted - 1, second + 1, 0)
    # Start and end symbols and punctuation make dull examples.
    written = [any(c.isalnum() for c in one) and "<" not in one for one in opened.looking]
    head, row = np.unravel_index(int((second * written).argmax()), second.shape)
    return int(head), int(row)


def _shares(weight: Array, heads: int, width: int) -> Array:
    """(H, H): of each head's W^Q, the share of its square that falls on each slice of the input."""
    if weight.ndim == 3:
        return np.eye(heads)
    squares = np.square(weight).reshape(heads, -1, heads, width // heads).sum(axis=(1, 3))
    share: Array = squares / squares.sum(axis=1, keepdims=True)
    return share


def _cell(count: int) -> tuple[float, float]:
    return (38.0, 24.0) if count <= _LONGEST else (max(8.0, 500 / count), max(8.0, 400 / count))


def _matrix_table(name: str, values: Array, rows: list[str]) -> DataTable:
    header = ("word", *(f"dimension {d}" for d in range(values.shape[1])))
    return DataTable(name, header, [(rows[i], *map(float, row)) for i, row in enumerate(values)])
