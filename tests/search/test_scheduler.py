"""A batch that is kept full: what a request is answered does not depend on its neighbours."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from searching import search
from table_model import BOS, EOS, TableModel, same

from dragoman.base.errors import SearchError
from dragoman.models.on_torch import OnTorch
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.offline import Searcher
from dragoman.search.request import Request
from dragoman.search.scheduler import Scheduler
from dragoman.search.settings import SamplingSettings, SearchSettings
from dragoman.search.textbook import textbook

VOCABULARY = 8


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Any request that the textbook can answer, and samples."""
    limit = draw(st.integers(0, 7))
    beam = draw(st.integers(1, 5))
    sampling = draw(
        st.none()
        | st.builds(
            SamplingSettings,
            temperature=st.sampled_from([0.5, 1.0]),
            top_k=st.sampled_from([0, 3]),
            top_p=st.sampled_from([0.8, 1.0]),
            seed=st.integers(0, 2),
        )
    )
    settings = SearchSettings(
        beam=beam,
        n_best=draw(st.integers(1, beam)),
        length_penalty=draw(st.sampled_from([0.0, 0.6, 1.5])),
        penalty=draw(st.sampled_from(["wu", "marian"])),
        max_length=limit,
        min_length=draw(st.integers(0, min(2, limit))),
        no_repeat_ngram=draw(st.integers(0, 2)),
        stop=draw(st.sampled_from(["certain", "full", "empty"])),
        alternatives=sampling is None and draw(st.booleans()),
        sampling=sampling,
    )
    source = torch.tensor(draw(st.lists(st.integers(0, VOCABULARY - 1), max_size=5)))
    prefix = draw(st.lists(st.sampled_from([0, 1, 3, 4, 5]), max_size=min(2, limit)))
    return Request(source.long(), settings, tuple(prefix))


def alone(model: TableModel, request: Request) -> list[Hypothesis]:
    (answer,) = search(model, [request], bos=BOS, eos=EOS)
    return answer


@given(
    st.lists(requests(), max_size=10), st.integers(1, 30), st.integers(1, 30), st.integers(1, 12)
)
def test_neighbours_and_order_change_nothing(
    asked: list[Request], rows: int, refill: int, tokens: int
) -> None:
    model = TableModel(VOCABULARY, 1)
    scheduler = Scheduler(
        OnTorch(model),
        bos=BOS,
        eos=EOS,
        capacity_rows=rows,
        refill_rows=refill,
        capacity_tokens=tokens,
    )
    tickets = [scheduler.submit(request) for request in asked]
    answers: dict[int, list[Hypothesis]] = {}
    while not scheduler.idle:
        answers.update(scheduler.advance())
    assert list(answers) != [] or not asked
    for ticket, request in zip(tickets, asked, strict=True):
        assert same(answers[ticket], alone(model, request), within=0)
        plain = not request.settings.sampling and not request.settings.alternatives
        if plain and len(request.source):
            assert same(answers[ticket], textbook(model, request, bos=BOS, eos=EOS))
    assert scheduler.free_rows == rows and scheduler.rows == 0


@given(st.lists(requests(), min_size=1, max_size=8), st.integers(0, 2**32))
def test_coming_and_going_changes_nothing(asked: list[Request], seed: int) -> None:
    """Requests come at any moment, and some of them are taken back at any moment."""
    chance = random.Random(seed)
    model = TableModel(VOCABULARY, 2)
    scheduler = Scheduler(OnTorch(model), bos=BOS, eos=EOS, capacity_rows=12)
    waiting = list(enumerate(asked))
    number: dict[int, int] = {}
    answers: dict[int, list[Hypothesis]] = {}
    cancelled = set()
    while waiting or not scheduler.idle:
        if waiting and chance.random() < 0.5:
            index, request = waiting.pop()
            number[scheduler.submit(request)] = index
        if number and chance.random() < 0.1:
            ticket = chance.choice(sorted(number))
            scheduler.cancel(ticket)
            if number[ticket] not in answers:
                cancelled.add(number[ticket])
        for ticket, hypotheses in scheduler.advance():
            assert number[ticket] not in answers
            answers[number[ticket]] = hypotheses
    assert set(answers) == set(range(len(asked))) - cancelled
    for index, hypotheses in answers.items():
        assert same(hypotheses, alone(model, asked[index]), within=0)


def test_a_batch_of_one_row_takes_one_after_the_other() -> None:
    model = TableModel(VOCABULARY, 3)
    settings = [SearchSettings(beam=1, max_length=8), SearchSettings(beam=4, max_length=8)]
    asked = [Request(torch.tensor([i, 3]), settings[i % 2]) for i in range(6)]
    found = list(search(model, asked, bos=BOS, eos=EOS, capacity_rows=1))
    assert all(
        same(a, textbook(model, r, bos=BOS, eos=EOS)) for a, r in zip(found, asked, strict=True)
    )
    assert model.encoded[:6] == [1] * 6


def test_the_batch_is_kept_full() -> None:
    model = TableModel(VOCABULARY, 3)
    settings = SearchSettings(beam=1, max_length=20)
    asked = [Request(torch.tensor([i % 8, i // 8]), settings) for i in range(60)]
    scheduler = Scheduler(OnTorch(model), bos=BOS, eos=EOS, capacity_rows=8)
    for request in asked:
        scheduler.submit(request)
    while not scheduler.idle:
        scheduler.advance()
        if scheduler._waiting:
            # All rows were at work in the step; those that ended come in with the next one.
            assert model.stepped[-1] == 8
    assert sum(model.encoded) == 60


def test_waiting_until_enough_is_free_encodes_together() -> None:
    model = TableModel(VOCABULARY, 3)
    settings = SearchSettings(beam=1, max_length=20)
    scheduler = Scheduler(OnTorch(model), bos=BOS, eos=EOS, capacity_rows=8, refill_rows=4)
    for i in range(60):
        scheduler.submit(Request(torch.tensor([i % 8, i // 8]), settings))
    while not scheduler.idle:
        scheduler.advance()
    assert min(model.encoded[:-1]) >= 4


def test_long_sources_do_not_fill_the_memory() -> None:
    model = TableModel(VOCABULARY, 3)
    settings = SearchSettings(beam=1, max_length=3)
    scheduler = Scheduler(OnTorch(model), bos=BOS, eos=EOS, capacity_rows=100, capacity_tokens=10)
    lengths = [30, 4, 4, 4, 12, 1, 1]
    for length in lengths:
        scheduler.submit(Request(torch.ones(length, dtype=torch.int64), settings))
    while not scheduler.idle:
        scheduler.advance()
    assert model.encoded[:2] == [1, 2]
    assert sum(model.encoded) == len(lengths)


def test_an_empty_source_is_answered_without_the_model() -> None:
    model = TableModel(VOCABULARY, 3)
    empty = Request(torch.zeros(0, dtype=torch.int64), SearchSettings())
    asked = [empty, Request(torch.tensor([4]), SearchSettings(max_length=8)), empty]
    first, second, third = search(model, asked, bos=BOS, eos=EOS)
    assert model.encoded == [1]
    assert first == third == [Hypothesis((), 0.0, 0.0, (), finished=True)]
    assert same(second, textbook(model, asked[1], bos=BOS, eos=EOS))


def test_tokens_can_be_watched_as_they_are_chosen() -> None:
    model = TableModel(VOCABULARY, 6, ending=-2.0)
    scheduler = Scheduler(OnTorch(model), bos=BOS, eos=EOS)
    greedy = Request(torch.tensor([4]), SearchSettings(beam=1, max_length=9))
    sampled = Request(
        torch.tensor([4]), SearchSettings(max_length=9, sampling=SamplingSettings(seed=1))
    )
    beam = Request(torch.tensor([5]), SearchSettings(beam=3, max_length=9))
    tickets = [scheduler.submit(request) for request in (greedy, sampled, beam)]
    assert scheduler.so_far(tickets[0]) is None
    seen: dict[int, list[Hypothesis]] = {ticket: [] for ticket in tickets}
    answers: dict[int, list[Hypothesis]] = {}
    while not scheduler.idle:
        answers.update(scheduler.advance())
        for ticket in tickets:
            if (hypothesis := scheduler.so_far(ticket)) is not None:
                seen[ticket].append(hypothesis)
    for ticket in tickets:
        assert scheduler.so_far(ticket) is None
        assert [len(h.tokens) for h in seen[ticket]] == list(range(1, len(seen[ticket]) + 1))
    for ticket in tickets[:2]:
        (final,) = answers[ticket]
        assert len(seen[ticket]) >= 3
        for hypothesis in seen[ticket]:
            count = len(hypothesis.tokens)
            assert hypothesis.tokens == final.tokens[:count] and not hypothesis.finished
            assert hypothesis.token_log_probabilities == final.token_log_probabilities[:count]


def test_a_request_that_cannot_be_met_harms_no_other() -> None:
    model = TableModel(VOCABULARY, 6)
    scheduler = Scheduler(OnTorch(model), bos=BOS, eos=EOS)
    good = Request(torch.tensor([4]), SearchSettings(max_length=8))
    ticket = scheduler.submit(good)
    with pytest.raises(SearchError):
        scheduler.submit(Request(torch.tensor([4]), SearchSettings(max_length=1), (3, 3)))
    answers: dict[int, list[Hypothesis]] = {}
    while not scheduler.idle:
        answers.update(scheduler.advance())
    assert same(answers[ticket], textbook(model, good, bos=BOS, eos=EOS))


@pytest.mark.parametrize("leaver", range(4))
@pytest.mark.parametrize("moment", [1, 2, 5])
def test_who_leaves_takes_only_its_own_rows_along(leaver: int, moment: int) -> None:
    model = TableModel(VOCABULARY, 6, ending=-3.0)
    scheduler = Scheduler(OnTorch(model), bos=BOS, eos=EOS)
    asked = [Request(torch.tensor([i]), SearchSettings(beam=1 + i, max_length=8)) for i in range(4)]
    tickets = [scheduler.submit(request) for request in asked]
    for _ in range(moment):
        assert not scheduler.advance()
    scheduler.cancel(tickets[leaver])
    answers: dict[int, list[Hypothesis]] = {}
    while not scheduler.idle:
        answers.update(scheduler.advance())
    for i in range(4):
        if i != leaver:
            assert same(answers[tickets[i]], textbook(model, asked[i], bos=BOS, eos=EOS))


def test_a_cancelled_request_frees_its_rows() -> None:
    model = TableModel(VOCABULARY, 6, ending=-50.0)
    scheduler = Scheduler(OnTorch(model), bos=BOS, eos=EOS, capacity_rows=8)
    settings = SearchSettings(beam=4, max_length=50)
    first, second, third = (
        scheduler.submit(Request(torch.tensor([i]), settings)) for i in (3, 4, 5)
    )
    for _ in range(3):
        scheduler.advance()
    assert (scheduler.rows, len(scheduler._waiting), scheduler.free_rows) == (8, 1, -4)
    scheduler.cancel(first)
    assert (scheduler.rows, scheduler.free_rows) == (4, 0)
    scheduler.advance()
    assert (scheduler.rows, len(scheduler._waiting)) == (8, 0)
    scheduler.cancel(third)
    scheduler.cancel(second)
    scheduler.cancel(second)
    assert scheduler.idle and scheduler.rows == 0 and scheduler.advance() == []


@pytest.mark.parametrize("workers", [1, 3])
def test_answers_come_in_the_order_of_the_requests(workers: int) -> None:
    model = TableModel(VOCABULARY, 6)
    asked = [
        Request(torch.randint(0, 8, (1 + i * 7 % 5,)), SearchSettings(beam=1 + i % 3, max_length=8))
        for i in range(50)
    ]
    found = search(model, asked, bos=BOS, eos=EOS, capacity_rows=6, window=20, workers=workers)
    assert all(
        same(a, textbook(model, r, bos=BOS, eos=EOS)) for a, r in zip(found, asked, strict=True)
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_what_is_made_of_an_answer_stands_in_its_place(workers: int) -> None:
    model = TableModel(VOCABULARY, 6)
    settings = SearchSettings(beam=2, max_length=8)
    asked = [Request(torch.randint(0, 8, (1 + i * 7 % 5,)), settings) for i in range(50)]
    searcher = Searcher(
        OnTorch(model), bos=BOS, eos=EOS, capacity_rows=6, window=20, workers=workers
    )

    def make(number: int, hypotheses: list[Hypothesis]) -> tuple[int, list[Hypothesis]]:
        return number, hypotheses

    made = list(searcher.each(asked, make))
    assert [number for number, _ in made] == list(range(50))
    assert all(
        same(a, textbook(model, r, bos=BOS, eos=EOS)) for (_, a), r in zip(made, asked, strict=True)
    )

    def fail(number: int, hypotheses: list[Hypothesis]) -> None:
        if number == 30:
            raise MemoryError("no room")

    read = searcher.each(asked, fail)
    with pytest.raises(MemoryError, match="no room"):
        list(read)
    assert [number for number, _ in searcher.each(asked, make)] == list(range(50))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_endless_stream_is_read_window_by_window(workers: int) -> None:
    read, readers = 0, set()

    def endless() -> Iterator[Request]:
        nonlocal read
        while True:
            read += 1
            readers.add(threading.get_ident())
            yield Request(torch.tensor([read % 8]), SearchSettings(beam=1))

    model = TableModel(VOCABULARY, 6)
    answers = search(model, endless(), bos=BOS, eos=EOS, window=10, workers=workers)
    for taken in range(1, 40):
        next(answers)
        # The window of the last answer that was taken, and the next one.
        assert read <= 10 * ((taken - 1) // 10 + 2)
    assert readers == {threading.get_ident()}
    answers.close()  # type: ignore[attr-defined]


def test_a_window_begins_while_the_last_of_the_one_before_run() -> None:
    """Where one window follows another, the batch is as full as within a window."""
    model = TableModel(VOCABULARY, 6)
    settings = SearchSettings(beam=1, max_length=30)
    torch.manual_seed(0)
    asked = [Request(torch.randint(0, 8, (1 + i * 7 % 5,)), settings) for i in range(160)]
    found = search(model, asked, bos=BOS, eos=EOS, capacity_rows=16, window=40)
    assert all(
        same(a, textbook(model, r, bos=BOS, eos=EOS)) for a, r in zip(found, asked, strict=True)
    )
    # Three quarters of the rows are free before new ones come in: more than four are left.
    thin = [rows <= 4 for rows in model.stepped]
    assert sum(not one for one in thin) > 40
    assert all(thin[thin.index(True) :]), "the batch ran empty before the end"


@pytest.mark.parametrize("workers", [1, 3])
def test_who_takes_answers_slowly_gets_them_all(workers: int) -> None:
    """Workers come to the end of what may be read, and begin again."""
    model = TableModel(VOCABULARY, 6)
    asked = [Request(torch.tensor([i % 8]), SearchSettings(beam=1)) for i in range(30)]
    found = search(model, asked, bos=BOS, eos=EOS, window=4, workers=workers)
    for answer, request in zip(found, asked, strict=True):
        time.sleep(0.005)
        assert same(answer, textbook(model, request, bos=BOS, eos=EOS))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 6, 8, 11])
def test_an_error_of_reading_comes_after_the_answers_to_what_was_read(
    workers: int, count: int
) -> None:
    def broken() -> Iterator[Request]:
        for i in range(count):
            yield Request(torch.tensor([i % 8]), SearchSettings(beam=1))
        raise OSError("the disk is gone")

    model = TableModel(VOCABULARY, 6)
    found = search(model, broken(), bos=BOS, eos=EOS, window=4, workers=workers)
    assert len(list(islice(found, count))) == count
    with pytest.raises(OSError, match="the disk is gone"):
        next(found)


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_the_model_come_through(workers: int) -> None:
    class Broken(TableModel):
        def encode(self, source):  # type: ignore[no-untyped-def]
            raise MemoryError("no room")

    asked = [Request(torch.tensor([4]), SearchSettings())] * 4
    with pytest.raises(MemoryError, match="no room"):
        list(search(Broken(8), asked, bos=BOS, eos=EOS, workers=workers))
