"""CTC in a search: prefix probabilities equal those of all alignments, one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from searching import search
from table_model import BOS, EOS, TableModel, same

from dragoman.models.with_ctc import IMPOSSIBLE, CtcPrefixes, WithCtc
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.search.textbook import next_log_probabilities

HOST = torch.device("cpu")


def distributions(rows: int, outputs: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.log_softmax(2 * torch.randn(rows, outputs + 1, generator=generator), dim=-1)


def collapsed(ways: Sequence[int], blank: int) -> tuple[int, ...]:
    return tuple(token for token, _ in itertools.groupby(ways) if token != blank)


def texts_of(known: torch.Tensor) -> dict[tuple[int, ...], float]:
    """P of every text: the sum over all alignments."""
    rows, outputs = known.shape
    found: dict[tuple[int, ...], float] = {}
    for way in itertools.product(range(outputs), repeat=rows):
        text = collapsed(way, outputs - 1)
        p = math.exp(sum(float(known[row, token]) for row, token in enumerate(way)))
        found[text] = found.get(text, 0.0) + p
    return found


def prefixes_of(known: Sequence[torch.Tensor]) -> CtcPrefixes:
    made = CtcPrefixes(EOS, HOST)
    made.add(known)
    return made


@pytest.mark.parametrize(("rows", "outputs"), [(1, 3), (3, 4), (6, 3), (5, 4)])
def test_every_prefix_has_the_probability_of_all_its_alignments(rows: int, outputs: int) -> None:
    known = distributions(rows, outputs, rows)
    texts = texts_of(known)
    assert math.isclose(sum(texts.values()), 1, rel_tol=1e-6)

    def whole(prefix: tuple[int, ...]) -> float:
        return sum(p for text, p in texts.items() if text[: len(prefix)] == prefix)

    tokens = [token for token in range(outputs) if token != EOS]
    made, prefix = prefixes_of([known]), [()]
    for _ in range(min(rows, 3)):
        found = made.following().exp()
        for place, one in enumerate(prefix):
            for token in tokens:
                wanted = whole((*one, token)) / whole(one)
                assert math.isclose(float(found[place, token]), wanted, rel_tol=1e-5, abs_tol=1e-9)
            assert math.isclose(
                float(found[place, EOS]), texts.get(one, 0) / whole(one), rel_tol=1e-5, abs_tol=1e-9
            )
        pairs = [
            (place, (*one, token))
            for place, one in enumerate(prefix)
            for token in tokens
            if whole((*one, token)) > 0
        ]
        made.select(torch.tensor([place for place, _ in pairs]))
        prefix = [one for _, one in pairs]
        made.extend(torch.tensor([one[-1] for one in prefix]), torch.ones(len(pairs)) > 0)
        if not prefix:
            break


def test_the_end_scores_the_whole_text_as_the_loss_does() -> None:
    known = distributions(30, 5, 7)
    text = [1, 1, 0, 4, 4, 3]
    made, total = prefixes_of([known]), 0.0
    for token in text:
        total += float(made.following()[0, token])
        made.extend(torch.tensor([token]), torch.tensor([True]))
    total += float(made.following()[0, EOS])
    loss = torch.nn.functional.ctc_loss(
        known[:, None].double(), torch.tensor([text]), torch.tensor([30]), torch.tensor([6]),
        blank=5, reduction="sum",
    )  # fmt: skip
    assert math.isclose(total, -float(loss), rel_tol=1e-9)


def test_together_is_as_alone_whatever_joins_leaves_and_changes_places() -> None:
    draw = np.random.default_rng(3)
    known = [distributions(rows, 6, rows) for rows in (9, 2, 40, 17)]
    alone = {number: prefixes_of([one]) for number, one in enumerate(known)}
    rows: list[tuple[int, CtcPrefixes]] = []
    together = CtcPrefixes(EOS, HOST)
    for step in range(14):
        if step in (0, 2, 5):
            new = {0: [0, 1], 2: [2], 5: [3]}[step]
            together.add([known[number] for number in new])
            rows += [(number, alone[number]) for number in new]
        found = together.following()
        for place, (_, one) in enumerate(rows):
            assert torch.allclose(found[place], one.following()[0], rtol=1e-9, atol=1e-9)
        kept = sorted(draw.integers(0, len(rows), size=draw.integers(1, 7)).tolist())
        kept += [place for place in range(len(rows)) if step < 6 and place not in kept]
        kept = sorted(kept, key=lambda place: rows[place][0])
        together.select(torch.tensor(kept))
        tokens = draw.choice([0, 1, 3, 4, 5], size=len(kept))
        goes_on = draw.random(len(kept)) < 0.8
        before, rows = rows, []
        for place, token, goes in zip(kept, tokens.tolist(), goes_on.tolist(), strict=True):
            number, one = before[place]
            copy = CtcPrefixes(EOS, HOST)
            copy.__dict__.update(one.__dict__)
            copy.extend(torch.tensor([token]), torch.tensor([goes]))
            rows.append((number, copy))
        together.extend(torch.tensor(tokens), torch.tensor(goes_on))


def test_a_text_without_room_is_impossible_and_harms_nobody() -> None:
    made = prefixes_of([distributions(2, 4, 1)])
    for token in (1, 1):
        assert made.following()[0, token] == IMPOSSIBLE or token == 1
        made.extend(torch.tensor([token]), torch.tensor([True]))
    found = made.following()
    assert torch.isfinite(found).all() and (found <= 0).all()
    sharp = torch.full((3, 5), -float("inf"))
    sharp[:, 1] = 0
    found = prefixes_of([sharp]).following()
    assert found.tolist() == [[IMPOSSIBLE, 0.0, IMPOSSIBLE, IMPOSSIBLE]]


OUTPUTS = 4
TABLE = TableModel(OUTPUTS, 5)
LOGITS = 2 * torch.randn(8, OUTPUTS + 1, generator=torch.Generator().manual_seed(4))
"""Of a row by what stands in it, so that recordings differ."""


def beside(weight: float) -> WithCtc:
    return WithCtc(TABLE, lambda rows: LOGITS[rows], weight, eos=EOS)


def request(source: Sequence[int], beam: int, **settings: float) -> Request:
    asked = SearchSettings(beam=beam, n_best=min(beam, 3), max_length=3, **settings)  # type: ignore[arg-type]
    return Request(torch.tensor(source), asked)


def scores_of(source: Sequence[int], weight: float) -> dict[tuple[int, ...], float]:
    """The score of each text of up to three tokens, by both models."""
    by_ctc = texts_of(torch.log_softmax(LOGITS[list(source)], dim=-1))
    found = {}
    for length in range(4):
        for tokens in itertools.product((0, 1, 3), repeat=length):
            decoder = sum(
                next_log_probabilities(TABLE, torch.tensor(source), tokens[:place], bos=BOS)[token]
                for place, token in enumerate((*tokens, EOS))
            )
            if p := by_ctc.get(tokens):
                found[tokens] = (1 - weight) * decoder + weight * math.log(p)
    return found


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.7, 1.0])
def test_a_wide_beam_finds_what_is_best_by_both(weight: float) -> None:
    for source in ([3, 1, 4, 0, 5], [2, 2, 6], [7]):
        wanted = scores_of(source, weight)
        best = sorted(wanted, key=lambda text: -wanted[text])[:3]
        asked = request(source, 100, length_penalty=0)
        (found,) = search(beside(weight), [asked], bos=BOS, eos=EOS)
        if weight == 0:
            (found,) = search(TABLE, [asked], bos=BOS, eos=EOS)
            (again,) = search(beside(0), [asked], bos=BOS, eos=EOS)
            assert same(found, again)
            continue
        assert [one.tokens for one in found] == best
        for one in found:
            assert math.isclose(one.log_probability, wanted[one.tokens], abs_tol=1e-4)
    # The two alone do not agree.
    if weight == 0.3:
        tops = [max(s, key=s.__getitem__) for s in (scores_of([3, 1, 4, 0, 5], w) for w in (0, 1))]
        assert tops[0] != tops[1]


def test_neighbours_in_a_search_change_nothing() -> None:
    draw = np.random.default_rng(2)
    asked = [
        request(draw.integers(0, 8, size=draw.integers(1, 9)).tolist(), int(draw.integers(1, 5)))
        for _ in range(24)
    ]
    model = beside(0.4)
    alone = [next(search(model, [one], bos=BOS, eos=EOS)) for one in asked]
    for rows in (4, 9, 64):
        together = list(search(model, asked, bos=BOS, eos=EOS, capacity_rows=rows))
        assert all(same(a, b, 1e-4) for a, b in zip(alone, together, strict=True))
