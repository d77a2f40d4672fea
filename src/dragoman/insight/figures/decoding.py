"""Figures of decoding (paper §6.1): what temperature and the length penalty do to a choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.insight.figures.captions import figure
from dragoman.insight.figures.subject import Subject
from dragoman.insight.head import Array, shown, softmax
from dragoman.nn.layout import Sequences
from dragoman.pictures.figure import Cell, DataTable, Figure, Words
from dragoman.pictures.matrix import Matrix
from dragoman.pictures.panels import Cells, Lines, Text
from dragoman.pictures.records import Chart, Series
from dragoman.search.hypothesis import Hypothesis, length_penalty
from dragoman.search.offline import search
from dragoman.search.request import Request, SearchSettings

_TOKENS = 10
_HYPOTHESES = 6
_STRENGTHS = tuple(round(i / 20, 2) for i in range(41))
"""α of the curves, 0 to 2."""


def temperature_figure(subject: Subject, *, temperature: float = 0.5) -> Figure:
    """The next token at the most undecided step of a translation, at several temperatures."""
    run, sentence = subject.run, subject.sentence
    logits = _logits(subject)
    step = _least_sure(softmax(logits), run.target_text.pieces(logits.argmax(axis=1).tolist()))
    order = np.argsort(-logits[step])
    tokens = order[:_TOKENS]
    names = [str(name) for name in shown(run.target_text.pieces(tokens.tolist()))]
    ways = sorted({temperature, 0.5, 1.0, 2.0})
    shares = np.stack([softmax(logits[step] / way) for way in ways])
    curve = [round(0.1 * i, 1) for i in range(1, 31)]
    spread = [float(_entropy(softmax(logits[step][None] / way))[0]) for way in curve]
    first = [float(softmax(logits[step] / way)[order[0]]) for way in curve]
    written = run.target_text.decode(subject.translation.ids[:step])
    rows: list[tuple[Cell, ...]] = [
        (names[i], float(logits[step, token]), *(float(share[token]) for share in shares))
        for i, token in enumerate(tokens)
    ]
    return figure(
        "temperature",
        [
            Cells(
                Matrix(
                    "Probability of the ten likeliest tokens, in percent",
                    shares[:, tokens] * 100,
                    rows=[f"T = {way:g}" for way in ways],
                    columns=names,
                    cell=(52, 30),
                    reach=100.0,
                )
            ),
            Lines(
                Chart(
                    "Entropy of the choice",
                    [Series("", curve, spread)],
                    x_label="T",
                    y_label="nats",
                    from_zero=True,
                    marked_x=temperature,
                    marked_as=f"T = {temperature:g}",
                ),
                360,
                240,
            ),
            Lines(
                Chart(
                    "Probability of the likeliest",
                    [Series("", curve, first)],
                    x_label="T",
                    from_zero=True,
                    marked_x=temperature,
                    marked_as=f"T = {temperature:g}",
                ),
                360,
                240,
            ),
        ],
        [
            DataTable("", ("token", "logit", *(f"T = {way:g}" for way in ways)), rows),
            DataTable(
                "curve",
                ("T", "entropy", "likeliest"),
                list(zip(curve, spread, first, strict=True)),
            ),
        ],
        run=subject.name,
        notes=[
            Words(
                f"“{sentence}”, the step after “{written}”, where this run is least sure.",
                f"“{sentence}”, 이 모델이 가장 망설이는 걸음: “{written}” 다음.",
            )
        ],
    )


def length_penalty_figure(subject: Subject, *, penalty: float = 0.6) -> Figure:
    """The hypotheses of a wide beam, scored with every strength of the penalty."""
    run = subject.run
    found = _hypotheses(subject)
    lengths = [len(one.token_log_probabilities) for one in found]
    scores = {
        alpha: [
            one.log_probability / length_penalty(n, alpha)
            for one, n in zip(found, lengths, strict=True)
        ]
        for alpha in sorted({*_STRENGTHS, penalty})
    }
    best = int(np.argmax(scores[penalty]))
    texts = [run.target_text.decode(one.tokens) for one in found]
    numbers = [str(i + 1) for i in range(len(found))]
    tokens = list(range(1, 61))
    rows: list[tuple[Cell, ...]] = [
        (i + 1, texts[i], lengths[i], found[i].log_probability, scores[penalty][i])
        for i in range(len(found))
    ]
    winners = [int(np.argmax(scores[alpha])) for alpha in _STRENGTHS]
    turns = [f"{_STRENGTHS[i]:g}" for i in range(1, len(winners)) if winners[i] != winners[i - 1]]
    told = ", ".join(turns)
    return figure(
        "length-penalty",
        [
            Lines(
                Chart(
                    "What log P is divided by",
                    [
                        Series(f"α = {a:g}", tokens, [length_penalty(n, a) for n in tokens])
                        for a in sorted({0.0, penalty, 1.0})
                    ],
                    x_label="tokens",
                    from_zero=True,
                ),
                420,
                260,
            ),
            Lines(
                Chart(
                    "Score of each hypothesis",
                    [
                        Series(numbers[i], _STRENGTHS, [scores[a][i] for a in _STRENGTHS])
                        for i in range(min(len(found), 4))
                    ],
                    x_label="α",
                    marked_x=penalty,
                    marked_as=f"α = {penalty:g}",
                ),
                420,
                260,
            ),
            Text(
                f"Hypotheses of the beam, α = {penalty:g}; the best is number {best + 1}",
                ("", "hypothesis", "tokens", "log P", "score"),
                [
                    (row[0], row[1], row[2], f"{found[i].log_probability:.2f}",
                     f"{scores[penalty][i]:.3f}")
                    for i, row in enumerate(rows)
                ],
            ),
        ],
        [
            DataTable(
                "",
                ("number", "hypothesis", "tokens", "log P", "score", "pieces"),
                [
                    (*row, " ".join(run.target_text.pieces(list(one.tokens))))
                    for row, one in zip(rows, found, strict=True)
                ],
            ),
            DataTable(
                "scores",
                ("alpha", *numbers),
                [(alpha, *values) for alpha, values in scores.items()],
            ),
        ],
        run=subject.name,
        notes=[
            Words(
                f"“{subject.sentence}” Another hypothesis becomes the best at α = {told}."
                if turns
                else f"“{subject.sentence}” The same hypothesis is best at every α from 0 to 2.",
                f"“{subject.sentence}” α = {told}에서 가장 좋은 가설이 바뀐다."
                if turns
                else f"“{subject.sentence}” α가 0에서 2까지 변해도 가장 좋은 가설은 같다.",
            )
        ],
    )  # fmt: skip


def _hypotheses(subject: Subject) -> list[Hypothesis]:
    """What beams of 8 find without a penalty and with a strong one, the likeliest first."""
    target = subject.run.target_text
    source = torch.tensor(subject.translator.source_ids(subject.sentence))
    requests = [
        Request(source, SearchSettings(beam=8, n_best=8, length_penalty=alpha))
        for alpha in (0.0, 2.0)
    ]
    with torch.inference_mode():
        lists = list(search(subject.run.model(), requests, bos=target.bos, eos=target.eos))
    known = {one.tokens: one for found in lists for one in found if one.finished}
    ended = known or {lists[0][0].tokens: lists[0][0]}
    return sorted(ended.values(), key=lambda one: -one.log_probability)[:_HYPOTHESES]


def _logits(subject: Subject) -> Array:
    """(T, V) of the translation's steps, that of the end symbol included."""
    model = subject.run.model()
    given = [subject.run.target_text.bos, *subject.translation.ids]
    source = subject.translator.source_ids(subject.sentence)
    with torch.inference_mode():
        memory = model.encode(Sequences.of([torch.tensor(source)]))
        hidden = model.decode(Sequences.of([torch.tensor(given)]), memory)
        return model.project(hidden).double().numpy()


def _least_sure(shares: Array, pieces: Sequence[str]) -> int:
    """The step of greatest entropy; punctuation makes dull examples."""
    is_word = np.array([any(c.isalnum() for c in one) and "<" not in one for one in pieces])
    spread = _entropy(shares)
    return int(np.where(is_word, spread, -1.0).argmax() if is_word.any() else spread.argmax())


def _entropy(shares: Array) -> Array:
    """(T, V) -> (T,) nats."""
    found: Array = -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=-1)
    return found
