"""Force decoding gives what search gives, and what the definition says."""

from __future__ import annotations

import pytest
import torch
from searching import search
from table_model import BOS, EOS, TableModel, same

from dragoman.search import forced_decoding
from dragoman.search.forced_decoding import force_decode
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.search.textbook import next_log_probabilities


def test_scores_are_those_of_search() -> None:
    model = TableModel(20, 1)
    settings = SearchSettings(beam=3, n_best=3, max_length=9, length_penalty=0.8)
    asked = [Request(torch.randint(0, 20, (1 + i % 4,)), settings) for i in range(12)]
    for request, found in zip(asked, search(model, asked, bos=BOS, eos=EOS), strict=True):
        finished = [h for h in found if h.finished]
        scored = force_decode(
            model,
            [request.source] * len(finished),
            [h.tokens for h in finished],
            bos=BOS,
            eos=EOS,
            settings=settings,
        )
        assert same(scored, finished)


@pytest.mark.parametrize("tokens_per_batch", [1, 30, 10_000])
def test_order_and_batches_change_nothing(
    tokens_per_batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forced_decoding, "ROWS_PER_PIECE", 3)
    model = TableModel(20, 1)
    targets = [[], [3], [4, 4, 4, 4], [1, 2, 19], [7, 8]]
    sources = [torch.tensor([i, 5]) for i in range(5)]
    scored = force_decode(
        model, sources, targets, bos=BOS, eos=EOS, tokens_per_batch=tokens_per_batch
    )
    for source, target, hypothesis in zip(sources, targets, scored, strict=True):
        assert hypothesis.tokens == tuple(target) and hypothesis.finished
        expected = [
            next_log_probabilities(model, source, target[:place], bos=BOS)[token]
            for place, token in enumerate([*target, EOS])
        ]
        assert hypothesis.token_log_probabilities == pytest.approx(expected, abs=1e-5)


def test_nothing_to_score() -> None:
    assert force_decode(TableModel(5), [], [], bos=BOS, eos=EOS) == []
    with pytest.raises(ValueError, match="zip"):
        force_decode(TableModel(5), [torch.tensor([1])], [], bos=BOS, eos=EOS)
