"""Boxes as symbols: there and back, and what a search may write."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.base.errors import DataError
from dragoman.forms.boxes import PER_BOX, Box, BoxRules, BoxSettings, BoxSymbols, Read, Scene

SYMBOLS = BoxSymbols(["cat", "dog"], bins=64, most=3, read=Read(64, 64))


def test_boxes_on_whole_steps_come_back_as_they_are() -> None:
    boxes = (Box("dog", 3, 5, 20, 7), Box("cat", 0, 0, 64, 64))
    tokens = SYMBOLS.encode(Scene(64, 64, boxes))
    assert SYMBOLS.names_of(tokens) == ["5", "3", "12", "23", "dog", "0", "0", "64", "64", "cat"]
    assert SYMBOLS.decode(tokens, 64, 64) == list(boxes)


def test_a_picture_of_another_shape_is_read_around_its_middle() -> None:
    """128 x 64 is read as its middle half: what lies outside of that is not learned."""
    boxes = (Box("dog", 40, 8, 20, 30), Box("cat", 0, 0, 30, 10), Box("cat", 20, 0, 24, 10))
    tokens = SYMBOLS.encode(Scene(128, 64, boxes))
    assert SYMBOLS.decode(tokens, 128, 64) == [boxes[0], Box("cat", 32, 0, 12, 10)]


def test_a_thin_box_has_an_area_all_the_same() -> None:
    for left in (0.0, 31.9, 63.9):
        tokens = SYMBOLS.encode(Scene(64, 64, (Box("dog", left, 63.8, 0.1, 0.1),)))
        top, begin, bottom, end, _ = tokens
        assert bottom == top + 1 and end == begin + 1 and end in SYMBOLS.places


def test_crowds_and_unknown_labels_are_not_learned() -> None:
    scene = Scene(64, 64, (Box("dog", 1, 1, 5, 5, 0.0, True), Box("cow", 1, 1, 5, 5)))
    assert SYMBOLS.encode(scene) == [] and SYMBOLS.unknown_label(scene) == "cow"
    with pytest.raises(DataError, match=r"one category, 'cow'. Give pictures with at least two"):
        BoxSymbols.learn([scene], BoxSettings(), Read(64, 64))


@pytest.mark.parametrize("most", [None, 11])
def test_whatever_is_chosen_boxes_are_whole_and_have_an_area(most: int | None) -> None:
    rules, draw = BoxRules(SYMBOLS, most), np.random.default_rng(0)
    tokens = np.zeros((200, 0), np.int32)
    for _ in range(rules.longest):
        may = rules.allows(tokens)
        assert may.any(axis=1).all() and not may[:, [SYMBOLS.eos, SYMBOLS.nothing]].any()
        # Extreme choices are among them: the last that is allowed, or the first.
        chosen = [draw.choice([np.flatnonzero(row)[0], np.flatnonzero(row)[-1], draw.choice(
            np.flatnonzero(row))]) for row in may]  # fmt: skip
        tokens = np.hstack([tokens, np.array(chosen, np.int32)[:, None]])
    assert (np.flatnonzero(rules.allows(tokens)[0]) == [SYMBOLS.eos]).all()
    assert rules.longest == PER_BOX * (3 if most is None else 2)
    for row in tokens:
        boxes = SYMBOLS.decode(row.tolist(), 64, 64)
        assert len(boxes) == rules.longest // PER_BOX
        assert all(box.width > 0 and box.height > 0 for box in boxes)
        assert all(box.right <= 64 and box.bottom <= 64 for box in boxes)
