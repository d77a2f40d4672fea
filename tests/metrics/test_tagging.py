"""Spans and their F1 beside the rules of conlleval, written down once more."""

from __future__ import annotations

import itertools

import pytest

from dragoman.metrics.tagging import SpanScores, TagScores, is_iob, spans_of

MARKS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def ends_before(last: str, last_kind: str, mark: str, kind: str) -> bool:
    """``endOfChunk`` of conlleval.pl, of which B, I and O are left."""
    return (
        (last == "B" and mark == "B")
        or (last == "B" and mark == "O")
        or (last == "I" and mark == "B")
        or (last == "I" and mark == "O")
        or (last not in ("O", ".") and last_kind != kind)
    )


def begins_at(last: str, last_kind: str, mark: str, kind: str) -> bool:
    """``startOfChunk``."""
    return (
        (last == "B" and mark == "B")
        or (last == "I" and mark == "B")
        or (last == "O" and mark == "B")
        or (last == "O" and mark == "I")
        or (mark not in ("O", ".") and last_kind != kind)
    )


def conlleval(true: list[str], guessed: list[str]) -> tuple[int, int, int]:
    """Right, found and there, counted as its loop does, word by word."""
    right = found = there = 0
    in_correct = False
    last_true, last_true_kind, last_guess, last_guess_kind = "O", "", "O", ""
    for own, other in zip([*true, "O"], [*guessed, "O"], strict=True):
        (mark, _, kind), (guess, _, guess_kind) = own.partition("-"), other.partition("-")
        end_true = ends_before(last_true, last_true_kind, mark, kind)
        end_guess = ends_before(last_guess, last_guess_kind, guess, guess_kind)
        if in_correct:
            if end_true and end_guess and last_guess_kind == last_true_kind:
                in_correct = False
                right += 1
            elif end_true != end_guess or guess_kind != kind:
                in_correct = False
        begin_true = begins_at(last_true, last_true_kind, mark, kind)
        begin_guess = begins_at(last_guess, last_guess_kind, guess, guess_kind)
        if begin_true and begin_guess and guess_kind == kind:
            in_correct = True
        there += begin_true
        found += begin_guess
        last_true, last_true_kind, last_guess, last_guess_kind = mark, kind, guess, guess_kind
    return right, found, there


@pytest.mark.parametrize("length", [1, 2, 3])
def test_spans_are_those_of_conlleval(length: int) -> None:
    """All taggings of up to three words beside each other."""
    every = [list(tags) for tags in itertools.product(MARKS, repeat=length)]
    for true, guessed in itertools.product(every, repeat=2):
        scores = SpanScores()
        scores.add(true, guessed)
        counts = scores.all
        assert (counts.right, counts.found, counts.there) == conlleval(true, guessed)


def test_a_span_is_right_only_whole() -> None:
    true = ["B-X", "I-X", "O", "B-Y", "B-Y", "O", "I-X"]
    assert spans_of(true) == [("X", 0, 2), ("Y", 3, 4), ("Y", 4, 5), ("X", 6, 7)]
    scores = SpanScores()
    scores.add(true, ["B-X", "O", "O", "B-Y", "I-Y", "O", "I-X"])
    assert dict(scores.by_kind())["X"].f1 == pytest.approx(1 / 2)
    assert dict(scores.by_kind())["Y"].f1 == 0
    whole = scores.all
    assert (whole.precision, whole.recall) == (1 / 3, 1 / 4)
    assert whole.f1 == pytest.approx(2 / (3 + 4))


def test_known_and_unknown_words_are_counted_apart() -> None:
    scores = TagScores.of([["A", "B", "C"], ["A"]], [["A", "B", "A"], ["B"]],
                          [[True, False, False], [True]], iob=False)  # fmt: skip
    assert scores.figures() == {"accuracy": 50.0, "known": 50.0, "unknown": 50.0}
    assert TagScores.of([["A"]], [["A"]], [[True]], iob=False).figures() == {
        "accuracy": 100.0, "known": 100.0
    }  # fmt: skip


def test_which_tags_are_of_spans() -> None:
    assert is_iob(["O", "B-X", "I-X"]) and is_iob(["B-X"]) and is_iob(["I-X", "O"])
    assert not is_iob(["O"]) and not is_iob(["NN", "B-X"]) and not is_iob(["B-", "O"])
    assert not is_iob(["DT", "NN"]) and not is_iob([])
