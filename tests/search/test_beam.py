"""Beam search against the truth (every output tried) and against a textbook without any batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from searching import search
from table_model import BOS, EOS, TableModel, exhaustive, same

from dragoman.search.beam import PlainBeam
from dragoman.search.beam_state import BeamState
from dragoman.search.forced_decoding import force_decode
from dragoman.search.hypothesis import Hypothesis, StepRecord
from dragoman.search.request import Request, SearchJob
from dragoman.search.settings import Penalty, SearchSettings
from dragoman.search.textbook import next_log_probabilities, textbook


def only(model: TableModel, request: Request) -> list[Hypothesis]:
    (answer,) = search(model, [request], bos=BOS, eos=EOS)
    return answer


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("alpha", "penalty"),
    [(0.0, "wu"), (0.6, "wu"), (1.0, "wu"), (2.0, "wu"), (0.6, "marian"), (1.0, "marian")],
)
@pytest.mark.parametrize(("vocabulary", "limit"), [(3, 6), (4, 4), (5, 3), (7, 2), (9, 1), (4, 0)])
def test_a_wide_beam_is_exhaustive(
    seed: int, alpha: float, penalty: Penalty, vocabulary: int, limit: int
) -> None:
    model = TableModel(vocabulary, seed, ending=-1.0)
    settings = SearchSettings(
        beam=vocabulary ** (limit + 1),
        length_penalty=alpha,
        penalty=penalty,
        max_length=limit,
        n_best=2,
    )
    request = Request(torch.tensor([3, 1, seed]), settings)
    assert same(only(model, request), exhaustive(model, request))


def test_a_wide_beam_is_exhaustive_from_a_minimum_length() -> None:
    model = TableModel(4, 7, ending=2.0)
    settings = SearchSettings(beam=600, max_length=4, min_length=3, n_best=20)
    request = Request(torch.tensor([5]), settings)
    assert same(only(model, request), exhaustive(model, request))


@pytest.mark.parametrize("seed", range(8))
def test_beam_1_is_greedy(seed: int) -> None:
    model = TableModel(12, seed)
    request = Request(torch.tensor([4, seed, 2]), SearchSettings(beam=1, max_length=9))
    tokens: list[int] = []
    scores: list[float] = []
    while len(tokens) <= 9:
        following = next_log_probabilities(model, request.source, tokens, bos=BOS)
        best = int(np.argmax(following))
        if best != EOS and len(tokens) == 9:
            break
        scores.append(following[best])
        if best == EOS:
            break
        tokens.append(best)
    (hypothesis,) = only(model, request)
    assert hypothesis.tokens == tuple(tokens)
    assert hypothesis.token_log_probabilities == pytest.approx(scores, abs=1e-5)
    assert hypothesis.finished == (len(scores) > len(tokens))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("stop", ["certain", "full", "empty"])
@pytest.mark.parametrize("penalty", ["wu", "marian"])
def test_early_stopping_loses_nothing(seed: int, stop: str, penalty: Penalty) -> None:
    """The textbook goes on to the very end; `certain` stops early and must not be told apart."""
    model = TableModel(10, seed, ending=1.0)
    beam = 1 + seed % 5
    settings = SearchSettings(
        beam=beam, n_best=1 + seed % beam, length_penalty=seed % 3 * 0.6, penalty=penalty,
        max_length=14, stop=stop,
    )  # fmt: skip
    request = Request(torch.tensor([seed, 8]), settings)
    assert same(only(model, request), textbook(model, request, bos=BOS, eos=EOS))


def test_it_does_stop_early() -> None:
    """Otherwise the test above would say nothing."""
    model = TableModel(10, 3, ending=2.0)
    certain = SearchSettings(beam=4, max_length=200)
    full = SearchSettings(beam=4, max_length=200, stop="full")
    only(model, Request(torch.tensor([1, 8]), certain))
    steps = len(model.stepped)
    assert steps < 100
    only(model, Request(torch.tensor([1, 8]), full))
    assert len(model.stepped) - steps <= steps


@pytest.mark.parametrize("seed", range(6))
def test_what_ends_leaves_the_beam_until_it_is_empty(seed: int) -> None:
    """Marian's rule: after each step, as many are live as the beam has places that none took that
    ended. The other rules fill these places again."""
    model = TableModel(10, seed, ending=0.5)
    counts = {}
    for stop in ("empty", "full"):
        record: list[StepRecord] = []
        settings = SearchSettings(beam=5, n_best=5, max_length=40, stop=stop)
        found = only(model, Request(torch.tensor([seed, 8]), settings, record=record))
        assert all(one.finished for one in found)
        outcomes = [[one.outcome for one in step.continuations] for step in record]
        ended = np.cumsum([one.count("ended") for one in outcomes])
        kept = np.array([one.count("kept") for one in outcomes])
        counts[stop] = (kept[:-1] == 5 - ended[:-1]).all() and ended[-1] == 5
        assert stop == "empty" or (kept[:-1] == 5).all()
    assert counts["empty"]


def test_score_is_that_of_the_paper() -> None:
    (found,) = only(TableModel(8, 1), Request(torch.tensor([4]), SearchSettings(max_length=6)))
    total = sum(found.token_log_probabilities)
    length = len(found.tokens) + 1
    assert found.finished and len(found.token_log_probabilities) == length
    assert found.log_probability == pytest.approx(total)
    assert found.score == pytest.approx(total / ((5 + length) / 6) ** 0.6)


@pytest.mark.parametrize("beam", [1, 4])
def test_marians_penalty_divides_by_the_length(beam: int) -> None:
    settings = SearchSettings(beam=beam, length_penalty=0.7, penalty="marian", max_length=6)
    model, source = TableModel(8, 1), torch.tensor([4])
    (found,) = only(model, Request(source, settings))
    length = len(found.tokens) + 1
    assert found.finished and found.score == pytest.approx(found.log_probability / length**0.7)
    scored = force_decode(model, [source], [found.tokens], bos=BOS, eos=EOS, settings=settings)
    assert scored[0].score == pytest.approx(found.score, abs=1e-6)


def test_the_two_penalties_prefer_other_outputs() -> None:
    """Otherwise the tests above could not tell them apart."""
    request = Request(torch.tensor([1, 8]), SearchSettings(beam=6, n_best=6, max_length=14))
    orders = set()
    for penalty in ("wu", "marian"):
        change = {"penalty": penalty, "length_penalty": 1.0}
        settings = request.settings.model_copy(update=change)
        found = textbook(
            TableModel(10, 3, ending=1.0), replace(request, settings=settings), bos=BOS, eos=EOS
        )
        orders.add(tuple(one.tokens for one in found))
    assert len(orders) == 2


@pytest.mark.parametrize("seed", range(4))
def test_alternatives_differ_in_their_first_free_token(seed: int) -> None:
    model = TableModel(9, seed)
    settings = SearchSettings(beam=3, n_best=4, alternatives=True, max_length=8)
    source, prefix = torch.tensor([seed, 5]), (4, 6)
    found = only(model, Request(source, settings, prefix))
    following = next_log_probabilities(model, source, prefix, bos=BOS)
    best = sorted(range(9), key=lambda token: -following[token])[:4]
    firsts = [h.tokens[2] if len(h.tokens) > 2 else EOS for h in found]
    assert sorted(firsts) == sorted(best)
    assert found == sorted(found, key=lambda h: (h.finished, h.score), reverse=True)
    for first, hypothesis in zip(firsts, found, strict=True):
        if first != EOS:
            alone = SearchSettings(beam=3, max_length=8)
            assert same(
                [hypothesis],
                textbook(model, Request(source, alone, (*prefix, first)), bos=BOS, eos=EOS),
            )


def test_record_holds_what_each_step_looked_at() -> None:
    model = TableModel(9, 5)
    record: list[StepRecord] = []
    source = torch.tensor([5, 5])
    settings = SearchSettings(beam=3, max_length=7)
    (found,) = only(model, Request(source, settings, record=record))
    prefixes: list[tuple[int, ...]] = [()]
    ended = []
    for place, step in enumerate(record):
        assert (step.branch, step.place) == (0, place)
        totals = [candidate.total for candidate in step.continuations]
        assert totals == sorted(totals, reverse=True) and len(totals) <= 6
        kept = []
        for candidate in step.continuations:
            prefix = prefixes[candidate.parent]
            following = next_log_probabilities(model, source, prefix, bos=BOS)
            assert candidate.log_probability == pytest.approx(following[candidate.token], abs=1e-5)
            if candidate.outcome == "kept":
                kept.append((*prefix, candidate.token))
            elif candidate.outcome == "ended":
                ended.append(prefix)
        prefixes = kept
        assert len(prefixes) <= 3
    assert found.tokens in ended
    assert same([found], only(model, Request(source, settings)))


def test_each_alternative_has_a_record_of_its_own() -> None:
    record: list[StepRecord] = []
    settings = SearchSettings(beam=2, n_best=3, alternatives=True, max_length=4)
    only(TableModel(9, 1, ending=-9.0), Request(torch.tensor([3]), settings, record=record))
    assert [step.branch for step in record if step.place == 0] == [0]
    assert len([c for c in record[0].continuations if c.outcome == "kept"]) == 3
    assert sorted(step.branch for step in record if step.place == 1) == [0, 1, 2]


def live_of(rows: list[int], width: list[int], totals: list[float], limit: int = 9) -> BeamState:
    """A batch in the middle of its way: groups of so many rows."""
    live = BeamState(BOS)
    tasks = [
        SearchJob(i, Request(torch.tensor([3]), SearchSettings(beam=w, max_length=limit)), 1, w, 1)
        for i, w in enumerate(width)
    ]
    live.add(tasks, max(sum(width), sum(rows)))
    live.groups["rows"] = rows
    live.rows = sum(rows)
    live.totals[:] = totals
    return live


def test_expand_leaves_out_what_is_not_possible() -> None:
    nan, no = np.nan, -np.inf
    live = live_of([2, 1], [2, 2], [-1.0, -2.0, -1.0])
    scores = np.array([[-1.0, no, nan], [-0.5, -9.0, no], [no, no, nan]], np.float32)
    ids = np.array([[7, 8, 9], [5, EOS, 3], [1, 3, 4]])
    beam = PlainBeam(live)
    # The end symbol is the third best of a beam of 2.
    assert beam.expand(scores, ids, EOS, None) == 0
    chosen = live.looked[live.looked["goes_on"]]
    assert chosen["token"].tolist() == [7, 5]
    assert chosen["total"].tolist() == [-2.0, -2.5]
    assert (chosen["candidate"] // 3).tolist() == [0, 1]
    assert beam.judge()
    assert live.groups["done"].tolist() == [False, True]
    assert beam.move()
    assert (live.rows, live.all_parents[: live.rows].tolist()) == (2, [0, 1])
