"""The figure of a model that transcribes, against computations of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_cells import tiny_cell

from dragoman.base.errors import DragomanError
from dragoman.engine.ctc_ranking import ctc_log_probabilities
from dragoman.forms.text_form import as_text
from dragoman.insight.figures.catalogue import make_figure, missing
from dragoman.insight.figures.recordings import BLANK, band_attention
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import figure_svg
from dragoman.pictures.matrix import MatrixPicture
from dragoman.tasks.catalogue import Run
from dragoman.tasks.training import train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("recordings")
    recipe = tiny_cell("translation", "transformer", "frames", folder).change(
        ["training.updates=20", "training.validate_every=20", "training.ctc_weight=0.5"]
    )
    train(recipe, folder / "run", say=lambda _: None, display=False, measure=False)
    return folder / "run"


def test_spikes_are_what_ctc_says(run: Path) -> None:
    recording = str(sorted((run.parent / "tones").rglob("*.wav"))[0])
    subject = Subject.open(Run.open(run), recording)
    made = make_figure("ctc-spikes", subject)
    (values,) = subject.predictor.engine.source.read([recording])
    known = ctc_log_probabilities(subject.predictor.engine, values).double().exp().numpy()
    tokens = list(dict.fromkeys(subject.output.ids))
    names = as_text(subject.run.target).names_of(tokens)
    of_token = dict(zip([*names, BLANK], [*tokens, known.shape[1] - 1], strict=True))
    rows = made.data[0].rows
    assert len(rows) == (known[:, list(of_token.values())] >= 0.01).sum()
    for row, second, token, probability in rows:
        assert known[int(row), of_token[str(token)]] == pytest.approx(probability, abs=1e-5)
        assert second == pytest.approx(0.02 * int(row))  # two frames of 10 ms
    bands, spikes, looked = (one for one in made.panels if isinstance(one, MatrixPicture))
    assert bands.values.shape == (20, len(values))
    assert bands.values[-1, 3] == pytest.approx(  # the lowest is below
        float(np.clip(values[3, 0] / 5 + 0.5, 0, 1)), abs=0.01
    )
    assert spikes.values.shape == (len(names) + 1, len(known))
    np.testing.assert_allclose(looked.values.sum(axis=1), 1, atol=1e-4)
    lefts = {one.left for one in (bands, spikes, looked)}
    assert len(lefts) == 1  # all begin at one place
    assert abs(bands.cell[0] * len(values) - spikes.cell[0] * len(known)) < 2 * spikes.cell[0]
    assert figure_svg(made).startswith("<svg")
    more = {int(row) for row, _, token, p in rows if token != BLANK and float(p) > 0.5}
    assert f"sure of a token in {len(more)} of {len(known)} rows" in made.notes[0].english


def test_band_heads_are_shown_as_they_attend(tmp_path: Path) -> None:
    recipe = tiny_cell("translation", "transformer", "frames", tmp_path).change(
        ["training.updates=2", "training.validate_every=2", "source.band_heads=4"]
    )
    train(recipe, tmp_path / "run", say=lambda _: None, display=False, measure=False)
    recording = str(sorted((tmp_path / "tones").rglob("*.wav"))[0])
    subject = Subject.open(Run.open(tmp_path / "run"), recording)
    made = make_figure("band-heads", subject)
    (values,) = subject.predictor.engine.source.read([recording])
    weights = band_attention(subject, values)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert weights.shape == (4, len(values), len(values))
    panels = [one for one in made.panels if isinstance(one, MatrixPicture)]
    assert [one.values.shape[0] for one in panels[::2]] == [5, 5, 5, 5]  # of 20 bands
    assert panels[0].title == "Head 4: bands 16 to 20" and panels[-2].title.startswith("Head 1:")
    lowest = float(np.clip(values[3, 0] / 5 + 0.5, 0, 1))
    assert panels[-2].values[-1, 3] == pytest.approx(lowest, abs=0.01)
    for shown, one in zip(reversed(panels[1::2]), weights, strict=True):
        np.testing.assert_allclose(shown.values.sum(axis=1), 1, atol=1e-5)
        size = len(shown.values)
        first = np.linspace(0, len(one), size + 1).round().astype(int)[1]
        assert shown.values[0, 0] == pytest.approx(one[:first, :first].sum(axis=1).mean(), abs=1e-6)
    assert figure_svg(made).startswith("<svg")


def test_what_it_lacks_is_told(run: Path, tiny_run: Path) -> None:
    with pytest.raises(
        DragomanError, match=r"reads recordings, and this figure needs one. Set --sent"
    ):
        make_figure("ctc-spikes", Subject.open(Run.open(run)))
    subject = Subject.open(Run.open(run), "x.wav")
    for name in ("heads", "attention-cross", "length-penalty"):
        with pytest.raises(DragomanError, match="this model reads recordings"):
            make_figure(name, subject)
    with pytest.raises(DragomanError, match=r"x\.wav"):
        make_figure("ctc-spikes", subject)
    subject.predictor.plain.ctc = None
    lacks = missing("band-heads", subject.predictor.plain)
    assert lacks is not None and "--set source.band_heads=4" in lacks.english
    lacks = missing("ctc-spikes", subject.predictor.plain)
    assert lacks is not None and "has not learned it" in lacks.english
    with pytest.raises(DragomanError, match="has not learned it"):
        make_figure("ctc-spikes", Subject.open(Run.open(tiny_run), "the dog sees the cat"))
