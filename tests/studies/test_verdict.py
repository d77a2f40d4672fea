"""The words of a comparison follow from its numbers: whoever wins."""

from __future__ import annotations

import math

import pytest

from dragoman.studies.report import CurvePoint, Standing, common_level, minutes_to, verdict


def curve(*values: float, minutes: float = 1.0) -> tuple[CurvePoint, ...]:
    """A validation every so many minutes."""
    return tuple(CurvePoint(100 * n, minutes * n, value) for n, value in enumerate(values, 1))


@pytest.mark.parametrize(
    ("transformer", "lstm", "p", "begins"),
    [
        (39.0, 36.0, 0.001, "The Transformer won: base (a Transformer) has the highest BLEU, 39.0"),
        (36.0, 39.0, 0.001, "The Transformer lost: lstm (an LSTM with attention) has the highest"),
        (38.9, 39.0, 0.4, "The Transformer did not win: lstm (an LSTM with attention)"),
        (39.0, 38.9, 0.4, "The Transformer is ahead, but not significantly ahead of all: base"),
    ],
)
def test_who_won_is_who_has_more(transformer: float, lstm: float, p: float, begins: str) -> None:
    ahead = transformer > lstm
    for order in (1, -1):
        standings = [
            Standing("base", "transformer", transformer, None if ahead else p),
            Standing("lstm", "recurrent", lstm, p if ahead else None),
        ][::order]
        (first,) = verdict(standings)
        assert first.startswith(begins)
        assert f"{abs(transformer - lstm):.1f} less (p = {p:.3f}" in first
        assert ("may be luck" in first) == (p > 0.05)


def test_one_rival_that_may_be_as_good_is_enough_for_doubt() -> None:
    (first,) = verdict(
        [
            Standing("base", "transformer", 39.0, None),
            Standing("lstm", "recurrent", 36.0, 0.001),
            Standing("conv", "convolutional", 38.8, 0.3),
        ]
    )
    assert first.startswith("The Transformer is ahead, but not significantly")
    assert "conv (a convolutional model) has 38.8, 0.2 less (p = 0.300, which may be luck)" in first


def test_models_of_one_kind_are_not_called_by_it() -> None:
    (first,) = verdict(
        [Standing("a", "transformer", 39.0, None), Standing("b", "transformer", 36.0, 0.001)]
    )
    assert first.startswith("a (a Transformer) has the highest BLEU, 39.0; b (a Transformer)")


def test_who_learned_sooner() -> None:
    slow = Standing("base", "transformer", 39.0, None, curve(10, 20, 30, 40, minutes=4))
    fast = Standing("lstm", "recurrent", 36.0, 0.01, curve(10, 20, 30, minutes=1))
    assert common_level([slow, fast]) == 28.5
    assert minutes_to(fast, 28.5) == pytest.approx(2.85)
    assert minutes_to(fast, 5) == pytest.approx(0.5)
    assert minutes_to(fast, 31) == math.inf
    _, told = verdict([slow, fast])
    assert told.startswith("To 28.5 BLEU on dev, which all of them reached, lstm (an LSTM with")
    assert "took the least time, 2.9 minutes; base (a Transformer) 11.4 (4.0 times" in told
    # One that never learned anything has no level in common with the others.
    assert len(verdict([slow, Standing("none", "recurrent", 0.1, 0.01, curve(0, 0.4))])) == 1


def test_who_translates_faster() -> None:
    *_, told = verdict(
        [
            Standing("base", "transformer", 39.0, None, (), 800.4),
            Standing("lstm", "recurrent", 36.0, 0.01, (), 1200.0),
        ]
    )
    assert told.startswith("lstm (an LSTM with attention) translates the most sentences a second,")
    assert told.endswith("1,200; base (a Transformer) 800.")


def test_curves_of_other_dev_sets_do_not_compare() -> None:
    def two(**other: str) -> list[str]:
        one = {"dev": "a", "machine": "Zen 4"}
        return verdict([
            Standing("a", "transformer", 39.0, None, curve(10, 30), **one),
            Standing("b", "recurrent", 36.0, 0.001, curve(5, 30), **one | other),
        ])  # fmt: skip

    assert "which all of them reached" in two()[1] and "not known" not in two()[1]
    assert two(dev="b")[1:] == ["Their dev sets differ, so their curves cannot be compared."]
    assert two(machine="Zen 5")[1:] == [
        "They were trained on different machines, so their minutes cannot be compared."
    ]
    unknown = verdict([
        Standing("a", "transformer", 39.0, None, curve(10, 30)),
        Standing("b", "recurrent", 36.0, 0.001, curve(5, 30)),
    ])  # fmt: skip
    assert unknown[1].endswith("It is not known whether one machine trained all of them.")


def test_nobody_wins_where_nothing_has_learned() -> None:
    (told,) = verdict(
        [
            Standing("a", "transformer", 0.7, None, curve(0.1, 0.7)),
            Standing("b", "recurrent", 0.0, 0.001, curve(0.0, 0.0)),
        ],
        learned=False,
    )
    assert told == (
        "None of them translates yet (BLEU: a (a Transformer) 0.7, b (an LSTM with attention) "
        "0.0), so none is better than another."
    )
