"""Feature files of CMU Sphinx, as AN4 comes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from row_files import write_wav

from dragoman.base.errors import DataError
from dragoman.sources.frames.form import FramesForm, FramesSource, read_features


def feature_file(path: Path, rows: npt.ArrayLike, order: str = ">") -> Path:
    values = np.asarray(rows, f"{order}f4")
    path.write_bytes(np.array(values.size, f"{order}i4").tobytes() + values.tobytes())
    return path


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_model_of_feature_files_reads_them_and_no_recordings(tmp_path: Path, order: str) -> None:
    form = FramesForm(FramesSource(features="mfcc"))
    given = np.random.default_rng(1).normal(size=(23, 13))
    (rows,) = form.encode([str(feature_file(tmp_path / "a.mfc", given, order))])
    wanted = (given - given.mean(axis=0)) / given.std(axis=0)
    assert rows.shape == (23, form.width)
    assert np.abs(rows.astype(float) - wanted).max() < 0.01
    recording = write_wav(tmp_path / "a.wav", np.zeros(4_000), rate=16_000)
    with pytest.raises(DataError, match=r"a\.wav is a recording, but this model reads feature"):
        form.rows(str(recording))


def test_damaged_feature_files(tmp_path: Path) -> None:
    path = feature_file(tmp_path / "a.mfc", np.zeros((4, 13)))
    content = path.read_bytes()
    for damaged in (b"", content[:2], content[:-4], content[:-1], content + b"more", content[:4]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.mfc is damaged or not a feature file"):
            read_features(path)
    feature_file(path, np.zeros((3, 12)))
    with pytest.raises(DataError, match="not a feature file with 13 coefficients"):
        read_features(path)
    feature_file(path, [[0.0] * 13, [math.nan] * 13])
    with pytest.raises(DataError, match="frame 1 contains a value that is not a number"):
        read_features(path)
    with pytest.raises(DataError, match=r"Use it with source\.features"):
        FramesForm(FramesSource()).rows(str(path))
    with pytest.raises(DataError, match="does not exist"):
        read_features(tmp_path / "none.mfc")


@pytest.mark.parametrize(
    "more", [{"rate": 8_000}, {"bands": 40}, {"window_ms": 20.0}, {"hop_ms": 5.0}]
)
def test_what_is_fixed_cannot_be_set(more: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="has no effect with features"):
        FramesSource(features="mfcc", **more)  # type: ignore[arg-type]
