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

from dragoman.sources.frames.cutting import (
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


def rumble(count: int, draw: np.random.Generator) -> Floats:
    """Steady noise as of a room, most of it below 150 Hz, of one level."""
    white = np.fft.rfft(draw.standard_normal(count))
    pink = white / np.maximum(1, np.arange(len(white)) * RATE / count / 150)
    sound = np.fft.irfft(pink, count)
    return (sound / np.sqrt(np.mean(sound**2))).astype(np.float32)


def turns(noise: float, pause: float, seed: int) -> tuple[Floats, list[list[tuple[int, int]]]]:
    """Ten minutes of two speakers in turns, the second 25 dB quieter, over noise of so many dB
    below the first; a silence of 20 seconds behind each minute. Also the samples of the words of
    each. ``pause``: seconds between two words at most."""
    draw = np.random.default_rng(seed)
    sound = rumble(600 * RATE, draw) * np.float32(0.1 * 10 ** (noise / 20))
    words: list[list[tuple[int, int]]] = [[], []]
    at, speaker = RATE, 0
    while at < 598 * RATE:
        if at // (60 * RATE) != (at - 10 * RATE) // (60 * RATE):
            at += 20 * RATE
        for _ in range(draw.integers(1, 12)):
            length = int(draw.uniform(0.25, 0.6) * RATE)
            if at + length >= len(sound):
                break
            envelope = np.abs(np.sin(np.linspace(0, np.pi * draw.integers(1, 4), length)))
            voice = np.sin(2 * np.pi * draw.uniform(90, 250) * np.arange(length) / RATE)
            word = 0.2 * envelope * voice * 10 ** (-25 * speaker / 20)
            sound[at : at + length] += word.astype(np.float32)
            words[speaker].append((at, at + length))
            at += length + int(draw.uniform(0.02, pause) * RATE)
        at += int(draw.uniform(0.4, 2) * RATE)
        speaker = 1 - speaker
    return sound, words


@pytest.mark.parametrize("pause", [0.05, 0.4])
@pytest.mark.parametrize(("noise", "gain"), [(-33, 0), (-36, -20), (-60, 0), (-120, -30)])
def test_a_speaker_25_db_quieter_is_heard_and_steady_noise_is_not(
    noise: float, gain: float, pause: float
) -> None:
    sound, words = turns(noise, pause, seed=round(10 * pause) - int(noise))
    sound *= np.float32(10 ** (gain / 20))
    inside = np.zeros(len(sound), bool)
    for span in spans(sound):
        inside[round(span.begin * RATE) : round(span.end * RATE)] = True
    for spoken_by in words:
        found = [inside[begin:end].mean() > 0.9 for begin, end in spoken_by]
        assert len(found) > 100 and np.mean(found) > 0.98
    ends = sorted(end for of_one in words for _, end in of_one)
    begins = sorted(begin for of_one in words for begin, _ in of_one)
    silent = [(a, b) for a, b in zip(ends, begins[1:], strict=False) if b - a > 5 * RATE]
    assert len(silent) > 4
    for begin, end in silent:
        assert inside[begin:end].mean() < 0.1


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
