"""Recordings are read whole, or refused: what libsndfile would cut without a word is told."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dragoman.base.errors import DataError
from dragoman.sources.frames.recordings import blocks_of, seconds_of
from dragoman.sources.shared.files import File, InMemory

RATE = 16_000
KINDS = {"FLAC": "PCM_16", "OGG": "VORBIS", "OPUS": "OPUS", "MP3": "MPEG_LAYER_III"}
_DRAW = np.random.default_rng(0)


def recording(
    kind: str, samples: int, *, rate: int = RATE, channels: int = 1, coding: str | None = None
) -> bytes:
    sound = _DRAW.normal(0, 0.1, (samples, channels)).astype("f4")
    held = io.BytesIO()
    name = "OGG" if kind == "OPUS" else kind
    soundfile.write(held, sound, rate, format=name, subtype=coding or KINDS[kind])
    return held.getvalue()


def samples_in(file: File) -> int:
    return sum(map(len, blocks_of(file, RATE)))


def telling(flac: bytes, samples: int) -> bytes:
    """A FLAC file whose header tells another number of samples (RFC 9639, section 8.2)."""
    told = int.from_bytes(flac[18:26]) >> 36 << 36 | samples
    return flac[:18] + told.to_bytes(8) + flac[26:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [(3, 3), (3, 1), (1, 3)])
def test_several_recordings_one_behind_the_other_are_refused(
    kind: str, lengths: tuple[int, int], tmp_path: Path
) -> None:
    parts = [recording(kind, seconds * RATE) for seconds in lengths]
    for part, seconds in zip(parts, lengths, strict=True):
        assert samples_in(InMemory("a", part)) == seconds * RATE
    path = tmp_path / "a.sound"
    path.write_bytes(b"".join(parts))
    for file in (path, InMemory("a", path.read_bytes())):
        with pytest.raises(DataError, match="holds several recordings"):
            samples_in(file)
        with pytest.raises(DataError, match="holds several recordings"):
            seconds_of(file)


@pytest.mark.parametrize("kind", KINDS)
def test_recordings_that_are_cut_off_are_refused(kind: str) -> None:
    whole = recording(kind, 3 * RATE)
    for share in (0.5, 0.9):
        with pytest.raises(DataError, match="cut off"):
            samples_in(InMemory("a", whole[: int(share * len(whole))]))


@pytest.mark.parametrize("told", [1, RATE, 4096 * 4, 3 * RATE - 1, 3 * RATE + 1, 20 * RATE])
def test_flac_that_tells_another_length_is_refused(told: int) -> None:
    whole = recording("FLAC", 3 * RATE)
    with pytest.raises(DataError, match=rf"says {told:,} samples, .* sample {3 * RATE:,}$"):
        seconds_of(InMemory("a", telling(whole, told)))


def test_flac_of_every_shape_is_read_whole() -> None:
    """Rates, depths and channels have codes of their own in the header of a frame, and so have the
    samples of the last one."""
    rates, channels, depths = (
        (8_000, 11_025, 44_100, 50_001, 96_000),
        (1, 2, 6),
        ("PCM_S8", "PCM_24"),
    )
    for rate, count, coding in itertools.product(rates, channels, depths):
        samples = int(_DRAW.integers(1, 40_000))
        data = recording("FLAC", samples, rate=rate, channels=count, coding=coding)
        for file in (data, data + b"TAG" + bytes(125)):
            assert seconds_of(InMemory("a", file)) == samples / rate
    for samples in (1, 191, 192, 4096, 4097, 4096 * 130 + 256):  # a number of two bytes and more
        silent = io.BytesIO()
        soundfile.write(silent, np.zeros(samples, "f4"), RATE, format="FLAC")
        assert samples_in(InMemory("a", silent.getvalue())) == samples


def test_what_looks_like_a_frame_costs_little() -> None:
    """A quarter of a megabyte of headers, each with its checksum."""
    whole = recording("FLAC", RATE)
    frame = whole[whole.rindex(b"\xff\xf8") :][:16]
    with pytest.raises(DataError, match="does not end with a frame"):
        seconds_of(InMemory("a", whole + frame * 16_000))
