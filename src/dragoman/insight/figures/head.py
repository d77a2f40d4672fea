"""Figures of one attention head (paper §3.2): attention as a look-up, its four steps, and the
causal mask. They show a sentence that is short enough for every number to be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dragoman.base.wording import percent, power
from dragoman.insight.figures.captions import Parts
from dragoman.insight.head import Array, OpenedAttention, by_hand, open_attention, softmax
from dragoman.insight.panels import attention_words, matrix_table
from dragoman.insight.subject import Subject
from dragoman.models.interface import Part
from dragoman.pictures.figure import DataTable, Panel, Words
from dragoman.pictures.matrix import MatrixPicture
from dragoman.pictures.panels import TextPanel


def lookup_figure(subject: Subject, *, head: int = 0) -> Parts:
    """Compare a look-up in a hash table with one cross-attention head of the last layer. ``head``
    counts from 1; 0 selects the head that divides its attention most evenly between two words."""
    opened = open_short(subject, "cross", len(subject.transformer.attentions_of("cross")) - 1)
    said = attention_words(opened.attention)
    head, row = _find_undecided(opened, head)
    query, keys = opened.queries[head, row], opened.keys[head]
    values, weights = opened.values[head], opened.weights[head, row]
    scaled = (keys @ query) * opened.scale
    chosen = np.zeros_like(weights)
    chosen[int(scaled.argmax())] = 1.0
    output = weights @ values
    word, words = opened.looking[row], list(opened.looked_at)
    back = np.stack([values[int(scaled.argmax())], output])
    yield strip(f"Query of “{word}”", query[None], [word])
    yield strip("Keys", keys, words)
    yield MatrixPicture(
        "score, hash table, attention",
        np.stack([scaled / max(np.abs(scaled).max(), 1e-9), chosen, weights], axis=1),
        rows=words,
        columns=["score", "hash", "weight"],
        cell=(52, 24),
        reach=1.0,
    )
    yield strip("Values", values, words)
    yield strip("What comes back", back, ["hash table", "attention"])
    yield DataTable(
        ("key of", "scaled score", "hash table", "weight"),
        [
            (name, float(scaled[i]), float(chosen[i]), float(weights[i]))
            for i, name in enumerate(words)
        ],
    )
    yield matrix_table("query", query[None], [word])
    yield matrix_table("keys", keys, words)
    yield matrix_table("values", values, words)
    yield matrix_table("output", output[None], [word])
    yield from length_notes(subject)
    following = opened.looking[row + 1] if row + 1 < len(opened.looking) else ""
    to_choose = (
        (f" and chooses “{following}”", f"(고른 것은 “{following}”)") if following else ("", "")
    )
    strongest, strongest_ko = (
        ", ".join(
            f"{words[i]} {percent(float(weights[i]), korean=korean)}"
            for i in np.argsort(-weights)[:4]
        )
        for korean in (False, True)
    )
    yield Words(
        f"{opened.source} {said.english.capitalize()}, head {head + 1}, "
        f"the step that has just read “{word}”{to_choose[0]}. Weights: {strongest}. "
        "In the picture scores are divided by the largest.",
        f"{opened.source} {said.korean}, 헤드 {head + 1}, 방금 “{word}” 단어까지 읽은 "
        f"단계{to_choose[1]}. 가중치: {strongest_ko}. 그림의 점수는 최댓값으로 나눈 "
        "것입니다.",
    )


def four_steps_figure(subject: Subject, *, layer: int = 1, head: int = 1) -> Parts:
    """Compute the four steps of encoder self-attention (scores, scaling, softmax, weighted sum),
    once by loops and once by matrices. Layer and head count from 1."""
    opened = open_short(subject, "encoder", layer - 1)
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
    t, k = queries.shape
    v, cell = values.shape[1], cell_size(t)

    def square(title: str, matrix: Array, reach: float | None = None) -> Panel:
        return MatrixPicture(title, matrix, rows=words, columns=words, cell=cell, reach=reach)

    def long(title: str, matrix: Array) -> Panel:
        return strip(title, matrix, words, 4.5, 20)

    difference = max(
        float(np.abs(np.array(looped_weights) - weights).max()),
        float(np.abs(np.array(looped_output) - output).max()),
        float(np.abs(opened.weights[head] - weights).max()),
    )
    yield TextPanel(
        "Shapes: softmax(Q Kᵀ / √d_k) V",
        ("what", "shape", ""),
        [
            ("Q", f"{t} × {k}", "a query per word"),
            ("K", f"{t} × {k}", "a key per word"),
            ("V", f"{t} × {v}", "a value per word"),
            ("1: Q Kᵀ", f"{t} × {k} · {k} × {t} = {t} × {t}", "every query with every key"),
            ("2: / √d_k", f"{t} × {t}", f"divided by √{k} = {math.sqrt(k):.2f}"),
            ("3: softmax", f"{t} × {t}", "each row sums to 1"),
            ("4: · V", f"{t} × {t} · {t} × {v} = {t} × {v}", "an output per word"),
        ],
    )
    yield long("Q", queries)
    yield long("K", keys)
    yield square("1: Q Kᵀ", scores)
    yield square("2: Q Kᵀ / √d_k", scaled)
    yield square("3: softmax", weights, 1.0)
    yield long("V", values)
    yield long("4: softmax(Q Kᵀ / √d_k) V", output)
    yield DataTable(
        ("query of", "key of", "1 score", "2 scaled", "3 weight", "loop"),
        [
            (words[i], words[j], float(scores[i, j]), float(scaled[i, j]), float(weights[i, j]),
             looped_weights[i][j])
            for i, j in np.ndindex(t, t)
        ],
    )  # fmt: skip
    yield matrix_table("queries", queries, words)
    yield matrix_table("keys", keys, words)
    yield matrix_table("values", values, words)
    yield matrix_table("output", output, words)
    yield from length_notes(subject)
    yield Words(
        f"{opened.source} {said.english.capitalize()}, head {number}, "
        f"of the run {subject.name}, d_k = {k}. Loop, matrix form "
        f"and what the model computed differ by at most {power(difference)}.",
        f"{opened.source} {subject.name} 모델의 {said.korean}, 헤드 {number}, "
        f"d_k = {k}. 반복 계산, 행렬 계산, 모델의 계산 사이의 가장 큰 차이: "
        f"{power(difference)}.",
    )


def mask_figure(subject: Subject, *, layer: int = 1, head: int = 1) -> Parts:
    """Draw the decoder's scores before and after the causal mask. Layer and head count from 1."""
    opened = open_short(subject, "decoder", layer - 1)
    said, number, head = attention_words(opened.attention), head, head - 1
    words = list(opened.looking)
    scaled = opened.scores[head] * opened.scale
    behind = np.triu(np.ones_like(scaled, dtype=bool), 1)
    masked = np.where(behind, np.nan, scaled)
    unmasked = softmax(scaled)
    weights = softmax(np.where(behind, -1e300, scaled))
    cell = cell_size(len(words))

    def square(title: str, matrix: Array, reach: float | None = None) -> Panel:
        return MatrixPicture(
                title, matrix, rows=words, columns=words, cell=cell, reach=reach, absent="–∞",
                down="word just read", across="looked at",
            )  # fmt: skip

    leaked = float((unmasked * behind).sum(axis=1)[:-1].mean())
    yield square("Scores, before", scaled)
    yield square("Scores, masked", masked, float(np.abs(scaled).max()))
    yield square("Weights", weights, 1.0)
    yield DataTable(
        ("query of", "key of", "scaled score", "allowed", "weight", "model's"),
        [
            (words[i], words[j], float(scaled[i, j]), int(not behind[i, j]), float(weights[i, j]),
             float(opened.weights[head, i, j]))
            for i, j in np.ndindex(*scaled.shape)
        ],
    )  # fmt: skip
    yield from length_notes(subject)
    yield Words(
        f"{opened.source} {said.english.capitalize()}, head {number}, "
        f"of the run {subject.name}. Without the mask {percent(leaked)} of the weight "
        "would fall on words that are not written yet.",
        f"{opened.source} {subject.name} 모델의 {said.korean}, 헤드 {number}. 마스크가 "
        f"없으면 가중치의 {percent(leaked, korean=True)}가 아직 쓰지 않은 단어에 놓입니다.",
    )


def _find_undecided(opened: OpenedAttention, wanted: int) -> tuple[int, int]:
    """Compare the second-largest weight in every row of attention, and return the head and the row
    (both from 0) where it is largest, because such a row looks at two words. Rows of punctuation
    and of start and end symbols are left out. ``wanted``: the number of the head, from 1, or 0 for
    any head."""
    second = np.sort(opened.weights, axis=-1)[:, :, -2:][:, :, 0]  # (H, T)
    if wanted:
        second = np.where(np.arange(len(second))[:, None] == wanted - 1, second + 1, 0)
    # Start and end symbols and punctuation are uninteresting examples.
    written = [any(c.isalnum() for c in piece) and "<" not in piece for piece in opened.looking]
    head, row = np.unravel_index(int((second * written).argmax()), second.shape)
    return int(head), int(row)


_READABLE = 14
"""The most tokens of a sentence that a figure chooses, so that every number is readable."""
_MAX_TOKENS = 24
"""The most tokens of a sentence that the user gives. Its cells are smaller than those of a sentence
that a figure chooses."""


def open_short(subject: Subject, part: Part, layer: int) -> OpenedAttention:
    """Return what the attention layer ``layer`` (from 0) of ``part`` computed for the subject's
    sentence and its output, both shortened so that every number can be shown."""
    source = _short(subject)
    target = subject.predictor.own_output(source).ids[: _most(subject) - 1]
    return open_attention(subject.predictor, part, layer, source, target)


def length_notes(subject: Subject) -> Parts:
    """Make a note if the figure shows only the beginning of the sentence that the user gave."""
    shown = _short(subject)
    if subject.is_given and shown != subject.sentence:
        count = len(subject.predictor.source_ids(subject.sentence))
        yield Words(
            f"The sentence has {count} tokens; this figure shows {_MAX_TOKENS}, so it shows the "
            f"beginning: “{shown}”",
            f"문장의 토큰은 {count}개이고 이 그림은 {_MAX_TOKENS}개까지 보여 주므로 앞부분만 "
            f"그렸습니다: “{shown}”",
        )


def _most(subject: Subject) -> int:
    return _MAX_TOKENS if subject.is_given else _READABLE


def _short(subject: Subject) -> str:
    """Return a sentence that is short enough to draw. This is the subject's sentence if it is short
    enough, else the beginning of the sentence that the user gave. If the user gave none, it is a
    short sentence of the demo corpus for a run trained on it; for other runs, it is the longest
    sample that is short enough, or else the beginning of the subject's sentence."""

    def fits(sentence: str) -> bool:
        return len(subject.predictor.source_ids(sentence)) <= _most(subject)

    if fits(subject.sentence):
        return subject.sentence
    if not subject.is_given:
        if subject.is_demo:
            return "The small man eats the dinosaur."
        fitting = [source for source, _ in subject.pairs if source.strip() and fits(source)]
        if fitting:
            return max(fitting, key=len)
    words = subject.sentence.split()
    while len(words) > 1 and not fits(" ".join(words)):
        words.pop()
    begins = " ".join(words)
    while len(begins) > 1 and not fits(begins):  # a script without spaces
        begins = begins[:-1]
    return begins


def cell_size(count: int) -> tuple[float, float]:
    """Return the width and height, in pixels, of a cell in a square matrix of ``count`` words."""
    return (38.0, 24.0) if count <= _READABLE else (max(8.0, 500 / count), max(8.0, 400 / count))


def strip(
    title: str, values: Array, rows: Sequence[str], width: float = 7.0, height: float = 24
) -> Panel:
    """Return a panel of ``values`` (T, D), with a row for each word in ``rows``, and cells of
    ``width`` and ``height`` pixels."""
    cell = width, height
    return MatrixPicture(title, values, rows=rows, cell=cell, across="dimension")
