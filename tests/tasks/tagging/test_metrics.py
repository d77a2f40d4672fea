"""Spans and their F1 beside the rules of conlleval, written down once more."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.metrics.classification import Matches, matches_of
from dragoman.tasks.tagging.metrics import TagScores, has_spans, spans_of

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
        found = matches_of(spans_of(guessed), spans_of(true))
        counts = sum(found.values(), Matches())
        assert (counts.right, counts.found, counts.there) == conlleval(true, guessed)


def ended(last: str, last_kind: str, mark: str, kind: str) -> bool:
    """``end_of_chunk`` of seqeval, which knows B, I, E, S and O."""
    pairs = {("B", "B"), ("B", "S"), ("B", "O"), ("I", "B"), ("I", "S"), ("I", "O")}
    return last in ("E", "S") or (last, mark) in pairs or (last != "O" and last_kind != kind)


def started(last: str, last_kind: str, mark: str, kind: str) -> bool:
    """``start_of_chunk`` of seqeval."""
    pairs = {("E", "E"), ("E", "I"), ("S", "E"), ("S", "I"), ("O", "E"), ("O", "I")}
    return mark in ("B", "S") or (last, mark) in pairs or (mark != "O" and last_kind != kind)


def seqeval(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """``get_entities`` of seqeval, with the word behind the last one."""
    last, last_kind, begin, chunks = "O", "", 0, []
    for place, tag in enumerate([*tags, "O"]):
        mark, _, kind = tag.partition("-")
        if ended(last, last_kind, mark, kind) and last != "O":
            chunks.append((last_kind, begin, place))
        if started(last, last_kind, mark, kind):
            begin = place
        last, last_kind = mark, kind
    return chunks


ALL_MARKS = ["O", *(f"{mark}-{kind}" for mark in "BIES" for kind in "XY")]


@given(st.lists(st.sampled_from(ALL_MARKS), max_size=12))
@settings(max_examples=500, deadline=None)
def test_spans_of_bioes_are_those_of_seqeval(tags: list[str]) -> None:
    assert spans_of(tags) == seqeval(tags)
    other = [tag.replace("E-", "L-").replace("S-", "U-") for tag in tags]
    assert spans_of(other) == spans_of(tags), "BILOU says the same"


@given(st.lists(st.tuples(st.sampled_from(["X", "Y", ""]), st.integers(1, 4)), max_size=6))
def test_a_sentence_has_the_same_spans_in_each_scheme(parts: list[tuple[str, int]]) -> None:
    iob, bioes, spans = list[str](), list[str](), list[tuple[str, int, int]]()
    for kind, words in parts:
        begin = len(iob)
        if not kind:
            iob += ["O"] * words
            bioes += ["O"] * words
            continue
        iob += [f"B-{kind}", *[f"I-{kind}"] * (words - 1)]
        whole = [f"B-{kind}", *[f"I-{kind}"] * (words - 2), f"E-{kind}"]
        bioes += whole if words > 1 else [f"S-{kind}"]
        spans.append((kind, begin, begin + words))
    assert spans_of(iob) == spans_of(bioes) == spans
    if spans:
        assert has_spans(bioes) and has_spans(iob)
        figures = TagScores.of([bioes], [bioes], [[True] * len(bioes)], has_spans(bioes)).figures()
        assert figures["f1"] == 100


def test_a_span_is_right_only_whole() -> None:
    true = ["B-X", "I-X", "O", "B-Y", "B-Y", "O", "I-X"]
    assert spans_of(true) == [("X", 0, 2), ("Y", 3, 4), ("Y", 4, 5), ("X", 6, 7)]
    found = matches_of(spans_of(["B-X", "O", "O", "B-Y", "I-Y", "O", "I-X"]), spans_of(true))
    assert found["X"].f1 == pytest.approx(1 / 2)
    assert found["Y"].f1 == 0
    whole = sum(found.values(), Matches())
    assert (whole.precision, whole.recall) == (1 / 3, 1 / 4)
    assert whole.f1 == pytest.approx(2 / (3 + 4))


def test_known_and_unknown_words_are_counted_apart() -> None:
    scores = TagScores.of([["A", "B", "C"], ["A"]], [["A", "B", "A"], ["B"]],
                          [[True, False, False], [True]], spans=False)  # fmt: skip
    assert scores.figures() == {"accuracy": 50.0, "known": 50.0, "unknown": 50.0}
    assert TagScores.of([["A"]], [["A"]], [[True]], spans=False).figures() == {
        "accuracy": 100.0, "known": 100.0
    }  # fmt: skip


def test_which_tags_are_of_spans() -> None:
    assert has_spans(["O", "B-X", "I-X"]) and has_spans(["B-X"]) and has_spans(["I-X", "O"])
    assert not has_spans(["O"]) and not has_spans(["NN", "B-X"]) and not has_spans(["B-", "O"])
    assert not has_spans(["DT", "NN"]) and not has_spans([])
