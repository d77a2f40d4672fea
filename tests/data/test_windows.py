"""Windows: every token is predicted once, given what stands before it in its own text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.batches import window_batch
from dragoman.data.chunks import CorpusRange
from dragoman.data.plan import Plan, PlanSettings
from dragoman.data.store import Tokens, Windows, slide

BOS, EOS = 1, 2


class Held:
    """A store in memory."""

    def __init__(self, texts: list[list[int]], corpora: tuple[CorpusRange, ...]) -> None:
        self.texts = [np.array(text, np.int32) for text in texts]
        self.corpora = corpora
        self.lengths: Mapping[str, npt.NDArray[np.int32]] = {
            "target": np.array([*map(len, texts)], np.int32)
        }

    def tokens(self, side: str, example: int, part: slice = slice(None)) -> Tokens:
        return self.texts[example][part]


texts_of_tokens = st.lists(st.lists(st.integers(3, 99), max_size=20), min_size=1, max_size=8)


@given(texts_of_tokens, st.integers(2, 9))
def test_windows_are_the_texts_cut_at_the_context(texts: list[list[int]], context: int) -> None:
    store = Held(texts, (CorpusRange(0, 1), CorpusRange(1, len(texts), 2.0)))
    windows = Windows(store, context, BOS, EOS)
    number = 0
    for text in texts:
        whole = [BOS, *text, EOS]
        for begin in range(0, len(text) + 1, context):
            read, predicted = windows.window(number)
            assert read.tolist() == whole[begin : begin + context][: len(read)]
            assert predicted.tolist() == whole[begin + 1 : begin + context + 1]
            assert len(read) == len(predicted) == windows.lengths["target"][number] + 1 <= context
            number += 1
    assert number == len(windows) == windows.corpora[-1].last
    first, second = windows.corpora
    assert first.first == 0 and first.last == second.first == -(-(len(texts[0]) + 1) // context)
    assert second.weight == 2.0


@given(st.integers(1, 60), st.integers(1, 12), st.data())
def test_sliding_windows_predict_each_place_once_with_enough_before_it(
    places: int, context: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(1, context))
    found = list(slide(places, context, stride))
    assert [p for w in found for p in range(w.new, w.end)] == list(range(places))
    for window in found:
        assert 0 < window.end - window.begin <= context
        assert window.new - window.begin >= min(window.new, context - stride)
    alone = list(slide(places, context, context))
    assert alone == [(n, n, min(n + context, places)) for n in range(0, places, context)]


def test_a_plan_goes_over_all_tokens_once_an_epoch() -> None:
    random = np.random.default_rng(0)
    texts = [random.integers(3, 99, size).tolist() for size in random.integers(0, 700, 40)]
    windows = Windows(Held(texts, (CorpusRange(0, 40),)), 64, BOS, EOS)
    plan = Plan(windows, PlanSettings(tokens_per_update=512, context=64), 1)
    assert plan.left_out.examples == 0
    predicted: list[int] = []
    for update in range(plan.updates_per_epoch()):
        for micro_batch in plan.update(update):
            ids = micro_batch.examples.tolist()
            batch = window_batch([windows.window(n) for n in ids], EOS, ids)
            assert batch.source.values.tolist() == [EOS] * len(ids) and batch.ids == tuple(ids)
            predicted += batch.target_out.tolist()
    assert sorted(predicted) == sorted(t for text in texts for t in (*text, EOS))
