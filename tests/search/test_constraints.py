"""What may not be said is not said, whatever else is in the batch; what must be, is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from searching import search
from table_model import BOS, EOS, TableModel, same

from dragoman.base.errors import SearchError
from dragoman.search.beam import drop_forbidden
from dragoman.search.constraints import NOTHING, repeating_tokens
from dragoman.search.forced_decoding import force_decode
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.search.textbook import textbook


def run(
    model: TableModel, requests: list[Request], forbidden: tuple[int, ...] = ()
) -> list[list[Hypothesis]]:
    return list(search(model, requests, bos=BOS, eos=EOS, forbidden=forbidden))


@pytest.mark.parametrize("ngram", [1, 2, 3])
def test_repeating_tokens_are_found(ngram: int) -> None:
    generator = np.random.default_rng(ngram)
    tokens = generator.integers(0, 3, (40, 9)).astype(np.int32)
    length = generator.integers(0, 10, 40)
    found = repeating_tokens(tokens, length, ngram)
    for row, count, repeating in zip(tokens.tolist(), length.tolist(), found.tolist(), strict=True):
        past = row[:count]
        runs = {tuple(past[i : i + ngram]) for i in range(count - ngram + 1)}
        expected = {t for t in range(3) if (*past[count - ngram + 1 :], t)[-ngram:] in runs}
        if count < ngram - 1:
            expected = set()
        assert set(repeating) - {NOTHING} == expected


def test_forbidden_candidates_are_dropped() -> None:
    scores = np.array([[-1.0, -2.0], [-1.0, -2.0]], np.float32)
    found = drop_forbidden(scores, np.array([[4, 5], [4, 5]]), np.array([[5, NOTHING], [4, 5]]))
    assert found.tolist() == [[-1.0, -np.inf], [-np.inf, -np.inf]]


@pytest.mark.parametrize("ngram", [1, 2, 3])
@pytest.mark.parametrize("beam", [1, 3])
def test_no_ngram_stands_twice(ngram: int, beam: int) -> None:
    model = TableModel(6, ngram, ending=-2.0)
    settings = SearchSettings(beam=beam, max_length=20, no_repeat_ngram=ngram)
    requests = [Request(torch.tensor([i]), settings) for i in range(6)]
    drawing = settings.model_copy(update={"sampling": SamplingSettings(seed=1)})
    requests += [Request(torch.tensor([i]), drawing) for i in range(6)]
    for (hypothesis,) in run(model, requests):
        runs = [hypothesis.tokens[i : i + ngram] for i in range(len(hypothesis.tokens) - ngram + 1)]
        assert len(runs) == len(set(runs))


def test_without_a_block_they_do_repeat() -> None:
    """Otherwise the test above would say nothing."""
    model = TableModel(6, 1, ending=-2.0)
    settings = SearchSettings(beam=1, min_length=10)
    ((hypothesis,),) = run(model, [Request(torch.tensor([0]), settings)])
    assert len(hypothesis.tokens) > len(set(hypothesis.tokens))


@pytest.mark.parametrize("sampling", [None, SamplingSettings(seed=5)])
def test_lengths_are_kept(sampling: SamplingSettings | None) -> None:
    eager = TableModel(8, 3, ending=4.0)
    never = TableModel(8, 3, ending=-60.0)
    settings = SearchSettings(min_length=6, max_length=6, sampling=sampling)
    ((exact,),) = run(eager, [Request(torch.tensor([5]), settings)])
    assert len(exact.tokens) == 6 and exact.finished
    settings = SearchSettings(min_length=4, max_extra=3, sampling=sampling)
    ((long,),) = run(eager, [Request(torch.tensor([5, 5]), settings)])
    assert len(long.tokens) >= 4 and long.finished
    ((cut,),) = run(never, [Request(torch.tensor([5, 5]), settings)])
    # Two tokens of source and three more: five with the end symbol, which never came.
    assert len(cut.tokens) == 4 and not cut.finished
    assert len(cut.token_log_probabilities) == 4


def test_a_length_of_zero_is_possible() -> None:
    ((hypothesis,),) = run(
        TableModel(8, 3), [Request(torch.tensor([5]), SearchSettings(max_length=0))]
    )
    assert hypothesis.tokens == ()
    assert np.isfinite(hypothesis.score)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("sampling", [None, SamplingSettings(seed=5)])
def test_a_prefix_is_kept_and_costs_what_the_model_says(
    beam: int, sampling: SamplingSettings | None
) -> None:
    model = TableModel(15, 2)
    source, prefix = torch.tensor([4, 2, 7]), (9, 9, 9, 3)
    settings = SearchSettings(beam=beam, sampling=sampling, no_repeat_ngram=1, max_length=12)
    ((found,),) = run(model, [Request(source, settings, prefix)], forbidden=(3,))
    assert found.tokens[:4] == prefix
    assert not set(found.tokens[4:]) & {9, 3}
    (scored,) = force_decode(model, [source], [found.tokens], bos=BOS, eos=EOS)
    count = len(found.token_log_probabilities)
    assert found.token_log_probabilities == pytest.approx(
        scored.token_log_probabilities[:count], abs=1e-5
    )


def test_a_prefix_is_as_long_as_the_output_may_be() -> None:
    model = TableModel(15, 2)
    settings = SearchSettings(max_length=3)
    ((found,),) = run(model, [Request(torch.tensor([4]), settings, (5, 6, 7))])
    assert found.tokens == (5, 6, 7)
    with pytest.raises(SearchError, match=r"4 tokens.*3 at most"):
        run(model, [Request(torch.tensor([4]), settings, (5, 6, 7, 8))])
    with pytest.raises(SearchError, match="end symbol 2"):
        run(model, [Request(torch.tensor([4]), settings, (5, EOS))])


def test_forbidden_symbols_do_not_appear() -> None:
    model = TableModel(7, 1, ending=-1.0)
    settings = [
        SearchSettings(beam=1, max_length=12),
        SearchSettings(beam=5, n_best=5, max_length=12),
        SearchSettings(n_best=5, max_length=12, sampling=SamplingSettings()),
    ]
    requests = [Request(torch.tensor([i]), s) for i in range(4) for s in settings]
    free = {token for answer in run(model, requests) for h in answer for token in h.tokens}
    assert free >= {0, 1, 4}
    for answer in run(model, requests, forbidden=(0, 1, 4)):
        for hypothesis in answer:
            assert not set(hypothesis.tokens) & {0, 1, 4}


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("sampling", [None, SamplingSettings()])
def test_where_nothing_may_follow_it_is_cut(beam: int, sampling: SamplingSettings | None) -> None:
    """Three tokens, no repetition, and no end before the tenth: stuck after three."""
    model = TableModel(4, 1)
    settings = SearchSettings(
        beam=beam, min_length=10, no_repeat_ngram=1, n_best=beam, sampling=sampling
    )
    for hypothesis in run(model, [Request(torch.tensor([3]), settings)])[0]:
        assert sorted(hypothesis.tokens) == [0, 1, 3]
        assert not hypothesis.finished and np.isfinite(hypothesis.score)


def test_nothing_at_all_may_follow() -> None:
    settings = SearchSettings(min_length=2)
    ((nothing,),) = run(TableModel(4, 1), [Request(torch.tensor([3]), settings)], (0, 1, 3))
    assert (nothing.tokens, nothing.score, nothing.finished) == ((), 0.0, False)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_that_gives_no_numbers_ends_in_a_cut(beam: int) -> None:
    model = TableModel(6, 1)
    model.logits[:] = torch.nan
    settings = SearchSettings(beam=beam)
    for sampling in (None, SamplingSettings(), SamplingSettings(top_p=0.5)):
        request = Request(torch.tensor([3]), settings.model_copy(update={"sampling": sampling}))
        ((hypothesis,),) = run(model, [request])
        assert hypothesis.tokens == () and not hypothesis.finished


def test_only_what_must_needs_the_whole_vocabulary() -> None:
    """Forbidden tokens are dropped from more candidates; fast paths never hear of them."""
    model = TableModel(50, 1)
    settings = SearchSettings(beam=3, min_length=5, max_length=5, no_repeat_ngram=1)
    run(model, [Request(torch.tensor([3]), settings)], forbidden=(0, 1))
    assert [k for k, _ in model.wanted] == [7, 8, 9, 10, 11, 11]
    assert not any(adjusted for _, adjusted in model.wanted)
    model.wanted.clear()
    run(model, [Request(torch.tensor([3]), SearchSettings(beam=1, max_length=5), (7, 8))])
    assert [adjusted for _, adjusted in model.wanted[:3]] == [True, True, False]
    assert model.wanted[-1] == (1, False)


@pytest.mark.parametrize("seed", range(10))
def test_all_together_as_in_the_textbook(seed: int) -> None:
    model = TableModel(9, seed)
    settings = SearchSettings(
        beam=1 + seed % 4, n_best=1, min_length=4, max_length=9, no_repeat_ngram=1 + seed % 3
    )
    # A prefix may hold what is forbidden after it.
    forbidden = (0, 3, 7)[: seed % 4]
    request = Request(torch.tensor([seed]), settings, (3, 4)[: seed % 3])
    expected = textbook(model, request, bos=BOS, eos=EOS, forbidden=forbidden)
    assert same(run(model, [request], forbidden)[0], expected)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"beam": 0}, "greater than or equal to 1"),
        ({"n_best": 5}, "n_best 5 is greater than beam 4"),
        ({"min_length": 5, "max_length": 4}, "min_length 5 is greater than max_length 4"),
        ({"alternatives": True, "sampling": {}}, "Leave sampling out"),
        ({"length_penalty": -1}, "greater than or equal to 0"),
        ({"beams": 4}, "Extra inputs"),
    ],
)
def test_settings_that_contradict_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        SearchSettings.model_validate(wrong)
