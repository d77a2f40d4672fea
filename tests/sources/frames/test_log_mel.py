"""Bands of a spectrum: Kaldi's, and what a recording may do to them."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.sources.frames.form import FramesSource, LogMel

fbank = pytest.importorskip("kaldi_native_fbank")


def noise(seconds: float, rate: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    at = np.arange(round(rate * seconds)) / rate
    return (0.2 * np.sin(2 * np.pi * 440 * at) + 0.1 * draw.standard_normal(len(at))).astype("f4")


def rows(bands: LogMel, blocks: list[np.ndarray]) -> np.ndarray:
    return bands.normalise([*bands.parts(blocks)])


@pytest.mark.parametrize("bands", [23, 80])
@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 44_100])
def test_energies_are_those_of_kaldi(
    rate: int, bands: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.sources.frames.form._POINTS", 256)  # Kaldi's at 8 kHz
    options = fbank.FbankOptions()
    options.frame_opts.samp_freq = rate
    options.frame_opts.dither = 0
    options.mel_opts.num_bins = bands
    options.mel_opts.debug_mel = False
    oracle = fbank.OnlineFbank(options)
    samples = noise(0.7, rate)
    oracle.accept_waveform(rate, (samples * 32_768).tolist())
    oracle.input_finished()
    expected = np.stack([oracle.get_frame(n) for n in range(oracle.num_frames_ready)])
    found = np.concatenate([*LogMel(FramesSource(rate=rate, bands=bands)).parts([samples])])
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 2e-3


def test_blocks_of_any_length_give_the_same_frames() -> None:
    bands, samples = LogMel(FramesSource(rate=8_000)), noise(0.5, 8_000)
    whole = rows(bands, [samples])
    assert len(whole) == bands.frames(len(samples))
    for size in (1, 7, 200, 333, 5_000):
        parts = [samples[at : at + size] for at in range(0, len(samples), size)]
        assert np.abs(rows(bands, parts) - whole).max() < 1e-4


def test_every_band_has_points_at_8_khz() -> None:
    """256 points would leave some of 80 bands with one."""
    bands, seen = LogMel(FramesSource(rate=8_000)), set()
    for hertz in range(30, 4_000, 5):
        at = np.arange(1_600) / 8_000
        energies = np.concatenate([*bands.parts([np.sin(2 * np.pi * hertz * at).astype("f4")])])
        seen.add(int(energies.mean(axis=0).argmax()))
    assert seen == set(range(80))


def test_loudness_changes_nothing() -> None:
    bands, samples = LogMel(FramesSource(rate=8_000)), noise(0.4, 8_000)
    assert np.abs(rows(bands, [samples]) - rows(bands, [samples * 0.05])).max() < 1e-3


def test_silence_is_finite_and_a_recording_shorter_than_a_frame_is_one() -> None:
    bands = LogMel(FramesSource(rate=8_000))
    assert np.abs(rows(bands, [np.zeros(4_000, "f4")])).max() < 1e-4
    assert rows(bands, [noise(0.01, 8_000)]).shape == (1, 80)
    assert np.isfinite(bands.normalise([np.zeros((3, 2), "f4")])).all()


def test_a_tone_that_does_not_change_is_kept_where_recordings_are_normalised_as_a_whole() -> None:
    at = np.arange(4_000) / 8_000
    tones = [np.sin(2 * np.pi * hertz * at).astype("f4") for hertz in (300, 1_800)]
    by_band, whole = (
        LogMel(FramesSource(rate=8_000)),
        LogMel(FramesSource(rate=8_000, normalise="recording")),
    )
    one, other = (rows(whole, [samples]) for samples in tones)
    assert abs(one.mean()) < 1e-3 and abs(one.std() - 1) < 1e-3
    assert one.mean(axis=0).argmax() < other.mean(axis=0).argmax()
    assert np.abs(rows(by_band, [tones[0]]).mean(axis=0)).max() < 1e-3
