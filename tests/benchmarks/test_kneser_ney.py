"""The n-gram baseline, beside its definitions written down, one sum after the other."""

from __future__ import annotations

import math
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from kneser_ney import KneserNey

BOS, EOS, SIZE = 1, 2, 9


def texts(count: int, seed: int) -> list[list[int]]:
    """Words that depend on those before, so that there is something to learn."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        text = [draw.randrange(3, SIZE)]
        while draw.random() < 0.9:
            follows = (text[-1] * 2 + sum(text[-3:])) % (SIZE - 3) + 3
            text.append(follows if draw.random() < 0.6 else draw.randrange(3, SIZE))
        found.append(text)
    return [*found, []]


class WrittenDown:
    """Chen and Goodman (1999), section 3, with tuples."""

    def __init__(self, texts: list[list[int]], order: int) -> None:
        self.order = order
        wholes = [(BOS, *text, EOS) for text in texts]
        grams = {
            n: Counter(w[i : i + n] for w in wholes for i in range(len(w) - n + 1))
            for n in range(1, order + 1)
        }
        self.counts: dict[int, dict[tuple[int, ...], int]] = {}
        for n in range(1, order + 1):
            if n == order:
                self.counts[n] = {gram: raw for gram, raw in grams[n].items() if gram != (BOS,)}
                continue
            before = defaultdict(set)
            for gram in grams[n + 1]:
                before[gram[1:]].add(gram[0])
            self.counts[n] = {
                gram: raw if gram[0] == BOS else len(before[gram])
                for gram, raw in grams[n].items()
                if gram != (BOS,)
            }
        self.discounts = {n: self._discounts(n) for n in self.counts}

    def _discounts(self, n: int) -> list[float]:
        of = Counter(self.counts[n].values())
        if not (of[1] and of[2] and of[3]):
            return [0, 0.5, 0.5, 0.5]
        y = of[1] / (of[1] + 2 * of[2])
        found = [k - (k + 1) * y * of[k + 1] / of[k] for k in (1, 2, 3)]
        return [0, *(min(max(d, 0.0), k) for k, d in enumerate(found, 1))]

    def probability(self, history: tuple[int, ...], word: int) -> float:
        n = len(history) + 1
        follow = {g[-1]: a for g, a in self.counts[n].items() if g[:-1] == history}
        lower = self.probability(history[1:], word) if history else 1 / (SIZE - 1)
        if not follow:
            return lower
        discount, total = self.discounts[n], sum(follow.values())
        held = sum(discount[min(a, 3)] for a in follow.values())
        count = follow.get(word, 0)
        return (count - discount[min(count, 3)]) / total + held / total * lower


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [3, 60])
def test_it_computes_its_definition(order: int, count: int) -> None:
    train, test = texts(count, 1), texts(6, 2)
    plain = WrittenDown(train, order)
    expected = []
    for text in test:
        whole = (BOS, *text, EOS)
        for place in range(1, len(whole)):
            history = whole[max(0, place - order + 1) : place]
            expected.append(math.log(plain.probability(history, whole[place])))
    model = KneserNey.train(train, order, SIZE, BOS, EOS)
    assert model.log_probabilities(test, EOS).tolist() == pytest.approx(expected)


def test_probabilities_add_up_to_one_behind_any_history() -> None:
    model = KneserNey.train(texts(40, 3), 5, SIZE, BOS, EOS)
    for history in ([], [3], [5, 4], [8, 8, 8, 8, 8], [3, 4, 5, 6, 7, 8]):
        ends = [word for word in range(SIZE) if word not in (BOS, EOS)]
        found = [model.log_probabilities([[*history, word]], EOS)[len(history)] for word in ends]
        found.append(model.log_probabilities([history], EOS)[-1])
        assert sum(map(math.exp, found)) == pytest.approx(1)


def test_more_context_helps_where_there_is_something_to_learn() -> None:
    train, test = texts(2000, 4), texts(200, 5)
    one, four = (
        -KneserNey.train(train, order, SIZE, BOS, EOS).log_probabilities(test, EOS).mean()
        for order in (1, 4)
    )
    assert four < 0.9 * one
