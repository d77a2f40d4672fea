"""Frequencies moved: what was said sounds as if it were said by somebody smaller or larger."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from tiny_cells import tiny_cell

from dragoman.data.augmentation.frequency_warp import FrequencyWarp, moved
from dragoman.data.augmentation.spec_augment import SpecAugmentSettings, masked
from dragoman.forms.rows.log_mel import LogMel, middles, normalised
from dragoman.forms.rows.mfcc import Mfcc
from dragoman.forms.rows.settings import FramesSource
from dragoman.runs.prepare import prepare
from dragoman.runs.vocabularies import learn_vocabularies
from dragoman.tasks.catalogue import runtime_of

Features = Literal["log-mel", "mfcc"]


def test_frequencies_move_by_alpha_up_to_the_knee_and_the_highest_stays() -> None:
    for alpha in (0.8, 0.9, 1.0, 1.1, 1.2):
        at = moved(np.linspace(0, 8000, 801), alpha, 8000.0)
        knee = 4800 * min(alpha, 1) / alpha
        low = np.linspace(0, 8000, 801) <= knee
        assert np.allclose(at[low], alpha * np.linspace(0, 8000, 801)[low])
        assert at[-1] == 8000 and (np.diff(at) > 0).all()
        assert np.abs(np.diff(at)).max() < 25  # no jump at the knee: 10 Hz become less than 25


def test_a_peak_goes_where_its_frequency_goes() -> None:
    source = FramesSource(bands=80)
    at = middles(source)
    warp = FrequencyWarp(source)
    for hertz in (500.0, 1500.0, 3000.0):
        peak = np.exp(-(((at - hertz) / 150) ** 2))
        for alpha in (0.85, 1.15):
            found = peak @ warp.matrix(alpha)
            assert abs(at[found.argmax()] - alpha * hertz) < 90
    assert np.allclose(warp.matrix(1.0), np.eye(80))
    assert np.allclose(np.ones(80) @ warp.matrix(0.9), 1)  # silence stays silence


def _said(scale: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Two seconds of pulses through three resonances that glide, ``scale`` times as high."""
    frequencies = np.fft.rfftfreq(400, 1 / 16_000)
    blocks = []
    for step in range(80):
        shape = np.full_like(frequencies, 0.02)
        glide = np.sin(step / 9)
        for hertz in (550 + 250 * glide, 1_700 - 600 * glide, 2_900 + 200 * glide):
            shape += 1 / (1 + ((frequencies - scale * hertz) / 120) ** 2)
        blocks.append(np.fft.irfft(shape))
    return np.concatenate(blocks)


@pytest.mark.parametrize("features", ["log-mel", "mfcc"])
@pytest.mark.parametrize("alpha", [0.88, 1.12])
def test_what_is_moved_is_like_what_was_said_at_other_frequencies(
    features: Features, alpha: float
) -> None:
    source = FramesSource(features=features)
    compute = LogMel(source) if features == "log-mel" else Mfcc()
    rows, wanted = (normalised(compute([_said(scale).astype(np.float32)])) for scale in (1, alpha))
    found = FrequencyWarp(source)(rows, alpha)
    assert found.dtype == rows.dtype and np.allclose(found.mean(axis=0), 0, atol=1e-4)
    assert np.allclose(found.std(axis=0), 1, atol=1e-3)

    def apart(one: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
        return float(((one - wanted) ** 2).mean())

    assert apart(found) < 0.3 * apart(rows)
    wrong = FrequencyWarp(source)(rows, 1 / alpha)
    assert apart(found) < 0.1 * apart(wrong)


def test_both_sides_of_1_are_drawn_and_nothing_else_changes() -> None:
    source = FramesSource(bands=20, normalise="recording")
    warp, settings = FrequencyWarp(source), SpecAugmentSettings(warp=0.1)
    assert settings.is_on
    at = middles(source)
    rows = np.tile(np.exp(-(((at - 1500) / 400) ** 2)), (4, 1)).astype(np.float16)
    found = [masked(rows, settings, seed, warp) for seed in range(60)]
    centres = [float((one[0] * at).sum() / one[0].sum()) for one in found]
    before = float((rows[0] * at).sum() / rows[0].sum())
    assert min(centres) < 0.95 * before and max(centres) > 1.05 * before
    assert all(one.shape == rows.shape and one.dtype == rows.dtype for one in found)


def test_a_training_moves_what_it_reads(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path / "files").change(
        ["training.spec_augment.warp=0.1"]
    )
    (tmp_path / "run").mkdir()
    learn_vocabularies(recipe, tmp_path / "run", lambda _: None)
    found = prepare(recipe, tmp_path / "run", lambda _: None)
    examples = runtime_of(recipe.spec).training_parts().examples(found.train, recipe, found.forms)
    one, again, later = (examples.batch(update, [0]).source.values.numpy() for update in (3, 3, 4))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, later)
    assert one.shape == found.train.values("source", 0).shape
