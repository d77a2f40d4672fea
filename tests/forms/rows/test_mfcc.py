"""The coefficients of CMU Sphinx: equal to its own for the recordings of AN4, where they are."""

from __future__ import annotations

import math
import os
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from row_files import write_wav

from dragoman.errors import DataError
from dragoman.forms.rows.frames_form import FramesForm
from dragoman.forms.rows.mfcc import RATE, Mfcc, read_features
from dragoman.forms.rows.settings import COEFFICIENTS, FramesSource
from dragoman.models.front_ends import front_end

MFCC = Mfcc()
Floats = npt.NDArray[np.float32]


def sound(samples: int) -> Floats:
    draw = np.random.default_rng(5)
    at = np.arange(samples) / RATE
    clean = 0.3 * np.sin(2 * np.pi * (300 * at + 900 * at**2))
    return (clean + 0.02 * draw.standard_normal(samples)).astype(np.float32)


def as_written(samples: Floats) -> npt.NDArray[np.float64]:
    """The formula, a number at a time, as the documentation of Sphinx writes it."""
    x = [32_768 * float(one) for one in samples]
    y = [one - 0.97 * (x[n - 1] if n else 0) for n, one in enumerate(x)]
    low, high = (2595 * math.log10(1 + hertz / 700) for hertz in (130, 6_800))
    mels = [low + (high - low) * n / 41 for n in range(42)]
    corners = [int(700 * (10 ** (mel / 2595) - 1) / 31.25 + 0.5) for mel in mels]
    frames = []
    for begin in range(0, len(y) - 409, 160):
        frame = [y[begin + n] * (0.54 - 0.46 * math.cos(2 * math.pi * n / 409)) for n in range(410)]
        power = np.abs(np.fft.fft(frame, 512)) ** 2
        bands = []
        for left, middle, right in zip(corners, corners[1:], corners[2:], strict=False):
            rise = sum((k - left) / (middle - left) * power[k] for k in range(left, middle))
            fall = sum((right - k) / (right - middle) * power[k] for k in range(middle, right))
            bands.append(math.log((rise + fall) * 2 / ((right - left) * 31.25)))
        frames.append([
            sum(
                (0.5 if j == 0 else 1) * band * math.cos(math.pi * i * (j + 0.5) / 40)
                for j, band in enumerate(bands)
            ) / 40
            for i in range(13)
        ])  # fmt: skip
    return np.asarray(frames)


def test_coefficients_are_those_of_the_formula() -> None:
    samples = sound(2_000)
    found = MFCC([samples])
    assert found.shape == (MFCC.frames(2_000), COEFFICIENTS) == (10, 13)
    assert np.abs(found - as_written(samples)).max() < 1e-4


@pytest.mark.parametrize("size", [1, 161, 999])
def test_blocks_of_any_length_give_the_same_coefficients(size: int) -> None:
    samples = sound(3_000)
    blocks: Iterator[Floats] = (samples[at : at + size] for at in range(0, 3_000, size))
    assert np.allclose(MFCC(blocks), MFCC([samples]), atol=1e-5)


def test_silence_and_what_is_shorter_than_a_frame() -> None:
    assert np.isfinite(MFCC([np.zeros(1_000, np.float32)])).all()
    assert MFCC([sound(100)]).shape == (1, 13)


def feature_file(path: Path, rows: npt.ArrayLike, order: str = ">") -> Path:
    values = np.asarray(rows, f"{order}f4")
    path.write_bytes(np.array(values.size, f"{order}i4").tobytes() + values.tobytes())
    return path


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_model_of_feature_files_hears_recordings(tmp_path: Path, order: str) -> None:
    form = FramesForm(FramesSource(features="mfcc"))
    samples = np.round(sound(4_000) * 32_767) / 32_767
    recording = write_wav(tmp_path / "a.wav", samples, rate=RATE)
    exact = (samples * 32_767).astype("<i2") / np.float32(32_768)
    features = feature_file(tmp_path / "a.mfc", MFCC([exact.astype(np.float32)]), order)
    heard, kept = form.encode([str(recording), str(features)])
    assert heard.shape == kept.shape == (23, 13)
    assert np.abs(heard.astype(float) - kept.astype(float)).max() < 0.01
    front = front_end(form.settings, 16)
    assert front is not None


def test_damaged_feature_files(tmp_path: Path) -> None:
    path = feature_file(tmp_path / "a.mfc", np.zeros((4, 13)))
    content = path.read_bytes()
    for damaged in (b"", content[:2], content[:-4], content[:-1], content + b"more", content[:4]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.mfc is damaged or no feature file"):
            read_features(path)
    feature_file(path, np.zeros((3, 12)))
    with pytest.raises(DataError, match="no feature file of 13 coefficients"):
        read_features(path)
    feature_file(path, [[0.0] * 13, [math.nan] * 13])
    with pytest.raises(DataError, match="frame 1 holds what is not a number"):
        read_features(path)
    with pytest.raises(DataError, match=r"goes with source\.features"):
        FramesForm(FramesSource()).rows(str(path))
    with pytest.raises(DataError, match="does not exist"):
        read_features(tmp_path / "none.mfc")


@pytest.mark.parametrize(
    "more", [{"rate": 8_000}, {"bands": 40}, {"window_ms": 20.0}, {"hop_ms": 5.0}]
)
def test_what_is_fixed_cannot_be_set(more: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="cannot be set for features"):
        FramesSource(features="mfcc", **more)  # type: ignore[arg-type]


@pytest.mark.skipif("DRAGOMAN_AN4" not in os.environ, reason="DRAGOMAN_AN4 names no folder of AN4")
def test_an4() -> None:
    """``DRAGOMAN_AN4``: a folder with recordings (.wav) and features (.mfc) of the same names. The
    last frame is apart: AN4's is filled up with zeros."""
    root = Path(os.environ["DRAGOMAN_AN4"])
    features = {path.stem: path for path in root.rglob("*.mfc")}
    worst = []
    for path in sorted(root.rglob("*.wav")):
        with wave.open(str(path)) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / np.float32(32_768)
        found, wanted = MFCC([samples.astype(np.float32)]), read_features(features[path.stem])
        assert len(wanted) - len(found) in (0, 1)
        shared = len(wanted) - 1
        worst.append(float(np.abs(found[:shared] - wanted[:shared]).max()))
    assert worst and max(worst) < 1e-3, max(worst, default=None)
