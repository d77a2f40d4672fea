"""Recordings are cut at their silences, and nothing that is said is lost."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.recordings.cutting import (
    CuttingSettings,
    Span,
    cut,
    levels_of,
    spans_of,
    threshold_of,
)

RATE = 8_000
Floats = npt.NDArray[np.float32]


def spoken(parts: Sequence[tuple[float, float]], noise: float = 1e-3, rate: int = RATE) -> Floats:
    """Seconds of sound and of silence behind it, over noise."""
    draw = np.random.default_rng(3)
    sounds = list[npt.NDArray[np.float64]]()
    for seconds, pause in parts:
        at = np.arange(round(seconds * rate)) / rate
        sounds += [0.3 * np.sin(2 * np.pi * 300 * at), np.zeros(round(pause * rate))]
    sound = np.concatenate(sounds)
    return (sound + noise * draw.standard_normal(len(sound))).astype(np.float32)


def spans(sound: Floats, rate: int = RATE, **more: float) -> list[Span]:
    return spans_of(levels_of([sound], rate), rate, CuttingSettings(**more))


@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("rate", [8_000, 11_025, 44_100])
def test_a_recording_is_cut_at_its_silences(noise: float, rate: int) -> None:
    sound = spoken([(0.0, 1.0), (1.5, 0.8), (0.4, 0.3), (0.5, 2.0), (1.0, 0.6)], noise, rate)
    found = spans(sound, rate)
    assert len(found) == 3  # 0.3 s are no silence
    for span, (begin, end) in zip(found, [(1.0, 2.5), (3.3, 4.5), (6.5, 7.5)], strict=True):
        assert span.begin == pytest.approx(begin - 0.2, abs=0.011)
        assert span.end == pytest.approx(end + 0.2, abs=0.011)


def test_margins_end_where_the_recording_does_and_halfway_between_two_spans() -> None:
    sound = spoken([(1.0, 1.0), (1.0, 0.0)])
    assert np.allclose(spans(sound, margin=5), [(0.0, 1.5), (1.5, 3.0)])


@pytest.mark.parametrize("silence", [np.zeros(20_000, np.float32), np.empty(0, np.float32)])
def test_silence_has_no_span(silence: Floats) -> None:
    assert spans(silence) == []


def test_a_click_is_no_speech() -> None:
    sound = spoken([(0.0, 2.0), (0.03, 2.0), (1.0, 1.0)])
    assert len(spans(sound)) == 1


def test_a_recording_without_silences_is_cut_at_its_quietest_places() -> None:
    sound = spoken([(30.0, 0.0)])
    for second in (8, 15, 23):
        sound[second * RATE : second * RATE + 800] *= 0.3
    found = spans(sound, longest=10)
    assert [found[0].begin, found[-1].end] == pytest.approx([0, 30], abs=0.02)
    assert all(one.end == other.begin for one, other in pairwise(found))
    for span, second in zip(found, (8, 15, 23), strict=False):
        assert span.end == pytest.approx(second + 0.05, abs=0.03)
    assert len(found) == 4


def test_no_end_of_a_long_span_is_cut_off_alone() -> None:
    sound = spoken([(10.5, 0.0)])
    sound[round(9.8 * RATE) : round(9.9 * RATE)] *= 0.1
    assert min(span.end - span.begin for span in spans(sound, longest=10)) > 3


@given(
    levels=st.lists(st.floats(-90, 0), min_size=0, max_size=400),
    longest=st.floats(1, 3),
    silence=st.floats(0.05, 0.5),
    margin=st.floats(0, 1),
)
@settings(max_examples=150, deadline=None)
def test_spans_hold_all_that_is_loud_and_none_is_too_long(
    levels: list[float], longest: float, silence: float, margin: float
) -> None:
    array = np.asarray(levels, np.float32)
    about = CuttingSettings(longest=longest, silence=silence, margin=margin)
    found = spans_of(array, RATE, about)
    frames = [(round(span.begin * 100), round(span.end * 100)) for span in found]
    end = 0
    inside = np.zeros(len(array), bool)
    for span, (begin, last) in zip(found, frames, strict=True):
        assert end <= begin < last <= len(array) and span.end - span.begin <= longest + 1e-6
        inside[begin:last], end = True, last
    loud = (array >= threshold_of(array)) & ~inside
    (left,) = np.nonzero(loud)
    for at in left:  # a click: fewer than five loud frames, with silence on both sides
        near = np.nonzero(array >= threshold_of(array))[0]
        together = near[np.abs(near - at) <= 5]
        assert len(together) < 5


@pytest.mark.parametrize("size", [1, 77, 5_000, 10**6])
def test_blocks_of_any_length_give_the_same_levels_and_the_same_samples(size: int) -> None:
    sound = spoken([(0.0, 0.5), (0.2, 0.7), (0.3, 0.5)])
    if size == 1:
        sound = sound[:4_000]

    def blocks() -> Iterator[Floats]:
        return (sound[at : at + size] for at in range(0, len(sound), size))

    assert np.array_equal(levels_of(blocks(), RATE), levels_of([sound], RATE))
    spans = [Span(0.1, 0.2), Span(0.2, 0.35), Span(0.4, 99.0)]
    wanted = [sound[800:1600], sound[1600:2800], sound[3200:]]
    for part, whole in zip(cut(blocks(), spans, RATE), wanted, strict=True):
        assert np.array_equal(part, whole)


def test_an_hour_is_cut_in_flat_memory() -> None:
    one = spoken([(5.0, 1.0)] * 10)

    def hour() -> Iterator[Floats]:
        return (one for _ in range(60))

    tracemalloc.start()
    try:
        found = spans_of(levels_of(hour(), RATE), RATE)
        longest = max(len(part) for part in cut(hour(), found, RATE))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == 600 and longest < 6 * RATE
    assert most < 40 << 20, most  # the hour itself has 115 MB
