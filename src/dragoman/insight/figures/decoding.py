"""Figures of decoding (paper §6.1): the effect of temperature and of the length penalty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.base.wording import decimals, percent
from dragoman.insight.figures.captions import Parts
from dragoman.insight.head import Array, softmax
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import DataTable, Panel, Words
from dragoman.pictures.labels import labels
from dragoman.pictures.matrix import MatrixPicture
from dragoman.pictures.panels import LinePanel, TextPanel
from dragoman.pictures.records import Series
from dragoman.search.hypothesis import Hypothesis, length_penalty

_TOKENS = 10
_HYPOTHESES = 4
"""At most this many hypotheses are drawn, because more lines cannot be distinguished."""
_STRENGTHS = tuple(round(i / 20, 2) for i in range(41))
"""The values of α at which the curves are drawn, from 0 to 2."""


def temperature_figure(subject: Subject, *, temperature: float = 0.5) -> Parts:
    """Draw the probabilities of the next token at the least certain step of a translation, at
    several temperatures."""
    run, asked_of = subject.run, subject.candidates
    subject, step = max(
        ((candidate, _least_sure(candidate)) for candidate in asked_of),
        key=lambda choice: float(_entropy(softmax(choice[0].logits[choice[1]][None]))[0]),
    )
    logits, sentence = subject.logits, subject.sentence
    order = np.argsort(-logits[step])
    tokens = order[:_TOKENS]
    names = [str(name) for name in labels(run.target_text.pieces(tokens.tolist()))]
    ways = sorted({temperature, 0.5, 1.0, 2.0})
    shares = np.stack([softmax(logits[step] / way) for way in ways])
    curve = [round(0.1 * i, 1) for i in range(1, 31)]
    spread = [float(_entropy(softmax(logits[step][None] / way))[0]) for way in curve]
    first = [float(softmax(logits[step] / way)[order[0]]) for way in curve]
    (written,) = run.target.raw([subject.output.ids[:step]])
    place, place_ko = (
        (f"after “{written}”", f"“{written}” 다음") if written else ("that begins it", "첫 단계")
    )
    held, held_ko = (
        ", ".join(
            f"{percent(float(share[tokens].sum()), 1, korean=korean)} (T = {way:g})"
            for way, share in zip(ways, shares, strict=True)
        )
        for korean in (False, True)
    )
    others, asked = logits.shape[1] - len(tokens), len(asked_of)
    of_many = (f" of {asked} sentences", f"문장 {asked}개에서 ") if asked > 1 else ("", "")

    def by_temperature(title: str, values: Sequence[float], y_label: str = "") -> Panel:
        return LinePanel(
            title,
            [Series("", curve, values)],
            x_label="T",
            y_label=y_label,
            from_zero=True,
            marked_x=temperature,
            marked_as=f"T = {temperature:g}",
            size=(360, 240),
        )

    yield MatrixPicture(
        "Probability of the ten likeliest tokens, in percent",
        shares[:, tokens] * 100,
        rows=[f"T = {way:g}" for way in ways],
        columns=names,
        cell=(52, 30),
        reach=100.0,
    )
    yield by_temperature("Entropy of the choice", spread, "nats")
    yield by_temperature("Probability of the likeliest", first)
    yield DataTable(
        ("token", "logit", *(f"T = {way:g}" for way in ways)),
        [
            (names[i], float(logits[step, token]), *(float(share[token]) for share in shares))
            for i, token in enumerate(tokens)
        ],
    )
    yield DataTable(
        ("T", "entropy", "likeliest"),
        list(zip(curve, spread, first, strict=True)),
        "curve",
    )
    yield Words(
        f"“{sentence}”, the step {place}, where this run is least sure"
        f"{of_many[0]}. Of all probability the {len(tokens)} tokens shown hold {held}; "
        f"the other {others:,} of the vocabulary share the rest.",
        f"“{sentence}”, 이 모델이 {of_many[1]}가장 망설이는 단계: {place_ko}. 그린 토큰 "
        f"{len(tokens)}개가 차지하는 확률: {held_ko}. 나머지는 어휘의 다른 토큰 "
        f"{others:,}개가 나누어 가집니다.",
    )


def length_penalty_figure(subject: Subject, *, penalty: float = 0.6) -> Parts:
    """Draw the hypotheses of wide beams, scored with every strength of the length penalty.

    If the user gave no sentence, the figure shows the one whose hypotheses change their order most.
    """
    run = subject.run
    subject = max(subject.candidates, key=_crossings)
    best = _likeliest_by_length(subject)
    lengths = [len(hypothesis.token_log_probabilities) for hypothesis in best]
    scores = {alpha: _scores(best, alpha) for alpha in sorted({*_STRENGTHS, penalty})}
    texts = run.target.raw([hypothesis.tokens for hypothesis in best])
    numbers = [str(i + 1) for i in range(len(best))]
    names = [f"{i}: {length} tokens" for i, length in zip(numbers, lengths, strict=True)]
    tokens = list(range(1, 61))
    ranked = np.argsort(-np.array(scores[penalty]), kind="stable").tolist()
    rows = [
        (i + 1, texts[i], lengths[i], best[i].log_probability, scores[penalty][i]) for i in ranked
    ]
    yield LinePanel(
        "What log P is divided by",
        [
            Series(f"α = {a:g}", tokens, [length_penalty(n, a) for n in tokens])
            for a in sorted({0.0, penalty, 1.0})
        ],
        x_label="tokens",
        from_zero=True,
        size=(420, 260),
    )
    yield LinePanel(
        "Score of each hypothesis",
        [
            Series(name, _STRENGTHS, [scores[a][i] for a in _STRENGTHS])
            for i, name in enumerate(names)
        ],
        x_label="α",
        marked_x=penalty,
        marked_as=f"α = {penalty:g}",
        size=(520, 260),
    )
    yield TextPanel(
        f"Hypotheses, the best at α = {penalty:g} first",
        ("", "hypothesis", "tokens", "log P", "score"),
        [
            (number, text, length, decimals(log_p, 2), decimals(score, 3))
            for number, text, length, log_p, score in rows
        ],
    )
    yield DataTable(
        ("number", "hypothesis", "tokens", "log P", "score", "pieces"),
        [
            (*row, " ".join(run.target_text.pieces(list(best[i].tokens))))
            for row, i in zip(rows, ranked, strict=True)
        ],
    )
    yield DataTable(
        ("alpha", *numbers),
        [(alpha, *values) for alpha, values in scores.items()],
        "scores",
    )
    yield _penalty_note(subject, best)


def _penalty_note(subject: Subject, hypotheses: Sequence[Hypothesis]) -> Words:
    """Return a note on the number of pairs of lines that cross, and on the α at which the best
    hypothesis changes."""
    winners = [int(np.argmax(_scores(hypotheses, alpha))) for alpha in _STRENGTHS]
    turns = [f"{_STRENGTHS[i]:g}" for i in range(1, len(winners)) if winners[i] != winners[i - 1]]
    changes, crossings = ", ".join(turns), _crossings(subject)
    pairs = {0: "No lines cross", 1: "1 pair of lines crosses"}.get(
        crossings, f"{crossings} pairs of lines cross"
    )
    pairs_ko = f"곡선 {crossings}쌍이 만납니다" if crossings else "만나는 곡선이 없습니다"
    best = "The same hypothesis is best at every α."
    best_ko = "1위 가설은 어느 α에서나 같습니다."
    if turns:
        best = f"Another hypothesis becomes the best at α = {changes}."
        best_ko = f"α = {changes}에서 1위 가설이 바뀝니다."
    return Words(
        f"“{subject.sentence}” {pairs} between α = 0 and 2. {best}",
        f"“{subject.sentence}” α가 0에서 2까지 변하는 동안 {pairs_ko}. {best_ko}",
    )


def _likeliest_by_length(subject: Subject) -> tuple[Hypothesis, ...]:
    """Return the likeliest hypothesis of each length, the likeliest of all first.

    Hypotheses more than twice as long as the first are left out: they only repeat themselves, and
    their low log P would squeeze all other lines together.
    """
    by_length: dict[int, Hypothesis] = {}
    longest = 2 * len(subject.hypotheses[0].token_log_probabilities)
    for hypothesis in subject.hypotheses:
        if len(hypothesis.token_log_probabilities) <= longest:
            by_length.setdefault(len(hypothesis.token_log_probabilities), hypothesis)
    return tuple(by_length.values())[:_HYPOTHESES]


def _scores(hypotheses: Sequence[Hypothesis], alpha: float) -> list[float]:
    return [
        hypothesis.log_probability / length_penalty(len(hypothesis.token_log_probabilities), alpha)
        for hypothesis in hypotheses
    ]


def _crossings(subject: Subject) -> int:
    """Return the number of pairs of drawn hypotheses whose order at the largest α differs from that
    at the smallest."""
    best = _likeliest_by_length(subject)
    first, last = (np.array(_scores(best, alpha)) for alpha in (_STRENGTHS[0], _STRENGTHS[-1]))
    turned = np.sign(first[:, None] - first) * np.sign(last[:, None] - last)
    return int((turned < 0).sum()) // 2


def _least_sure(subject: Subject) -> int:
    """Return the step of the output with the greatest entropy. Steps that choose punctuation are
    avoided as uninteresting."""
    logits = subject.logits
    pieces = subject.run.target_text.pieces(logits.argmax(axis=1).tolist())
    is_word = np.array([any(c.isalnum() for c in piece) and "<" not in piece for piece in pieces])
    spread = _entropy(softmax(logits))
    return int(np.where(is_word, spread, -1.0).argmax() if is_word.any() else spread.argmax())


def _entropy(shares: Array) -> Array:
    """Return the entropies (T,), in nats, of the distributions ``shares`` (T, V)."""
    entropies: Array = -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=-1)
    return entropies
