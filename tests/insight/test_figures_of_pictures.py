"""Figures of a model that labels pictures, against computations of their own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_cells import tiny_cell

from dragoman.base.errors import DragomanError
from dragoman.insight.figures.catalogue import make_figure, missing
from dragoman.insight.figures.patches import rollout
from dragoman.insight.subject import Subject
from dragoman.models.catalogue.classifier import Classifier
from dragoman.models.encoding import Encoder
from dragoman.pictures.matrix import MatrixPicture
from dragoman.sources.picture.idx import read_idx
from dragoman.tasks.catalogue import Run
from dragoman.tasks.training import train

PICTURE = "bars-images-idx3-ubyte.gz#3"


@pytest.fixture(scope="module", params=[True, False], ids=["class token", "mean"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2 x 2 patches of 4 x 4 pixels."""
    folder: Path = tmp_path_factory.mktemp("pictures")
    learned = ["model.positions.kind=learned", "model.positions.maximum=5", "model.layers=2"]
    token = f"model.class_token={str(request.param).lower()}"
    recipe = tiny_cell("classification", "encoder", "picture", folder).change([*learned, token])
    train(recipe, folder / "run", say=lambda _: None, display=False)
    return folder / "run"


def test_rollout_follows_attention_through_the_layers(run: Path) -> None:
    picture = str(run.parent / PICTURE)
    subject = Subject.open(Run.open(run), picture)
    made = make_figure("picture-rollout", subject)
    token = subject.attention.source[0] == "▁class"
    through = np.eye(4 + token)
    for layer in subject.attention.encoder.astype(float):  # (H, T, T)
        mixed = np.zeros_like(through)
        for row in range(len(mixed)):
            for column in range(len(mixed)):
                mixed[row, column] = (layer[:, row, column].mean() + (row == column)) / 2
        through = mixed @ through
    wanted = through[0, 1:] / through[0, 1:].sum() if token else through.mean(axis=0)
    shares = np.array([row[2] for row in made.data[0].rows], float)
    np.testing.assert_allclose(shares, wanted, atol=1e-6)
    assert [row[:2] for row in made.data[0].rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    pixels = read_idx(Path(picture.split("#")[0]))[3] / 255
    drawn, _, seen = (panel.values for panel in made.panels if isinstance(panel, MatrixPicture))
    np.testing.assert_allclose(drawn, pixels)
    place = int(shares.argmax())
    rows, columns = (slice(4 * one, 4 * one + 4) for one in divmod(place, 2))
    np.testing.assert_allclose(seen[rows, columns], pixels[rows, columns])
    assert (seen <= pixels + 1e-9).all()
    label = subject.output.text.split("  ")[0]
    assert made.notes[0].english.startswith(f"{picture}: {label}, ")


def test_a_picture_is_followed_from_its_patches_to_its_label(run: Path) -> None:
    picture = str(run.parent / PICTURE)
    subject = Subject.open(Run.open(run), picture)
    made = make_figure("picture-reading", subject)
    pixels = read_idx(Path(picture.split("#")[0]))[3] / 255
    cut, in_rows, embedded, first, last, labels = (
        panel.values for panel in made.panels if isinstance(panel, MatrixPicture)
    )
    assert cut.shape == (9, 9) and np.isnan(cut[4]).all() and np.isnan(cut[:, 4]).all()
    np.testing.assert_allclose(np.delete(np.delete(cut, 4, 0), 4, 1), pixels)
    np.testing.assert_allclose(in_rows[1], pixels[:4, 4:].ravel())
    network = subject.predictor.plain
    values = np.asarray(subject.predictor.source_values(picture))
    token = int(subject.run.recipe.model.class_token)
    (linear,) = (
        one.detach().double().numpy() for one in network.parameters() if one.shape == (32, 16)
    )
    assert embedded.shape == (4 + token, 32) and first.shape == last.shape == embedded.shape
    # What is beside the linear map is the same for every picture: a bias and positions.
    other = make_figure("picture-reading", Subject.open(Run.open(run), picture.replace("#3", "#4")))
    of_other = [panel.values for panel in other.panels if isinstance(panel, MatrixPicture)][2]
    other_values = np.asarray(subject.predictor.source_values(picture.replace("#3", "#4")))
    change = (values.astype(float) - other_values.astype(float)) @ linear.T
    found = (embedded - of_other)[token:]
    scale = np.linalg.lstsq(change.reshape(-1, 1), found.ravel(), rcond=None)[0][0]
    np.testing.assert_allclose(found, scale * change, atol=1e-5)
    assert scale > 0 and labels.sum() == pytest.approx(1)
    assert made.data[0].rows[0] == ("patches", 4, 16)


def test_rollout_without_attention_to_others_is_the_residual() -> None:
    alone = np.broadcast_to(np.eye(5), (3, 2, 5, 5))
    assert (rollout(alone, 5) == 0.2).all()
    evenly = np.full((1, 1, 5, 5), 0.2)
    np.testing.assert_allclose(rollout(evenly, 4), 0.25)


def test_likeness_of_places(run: Path) -> None:
    subject = Subject.open(Run.open(run))
    made = make_figure("picture-positions", subject)
    model = subject.predictor.plain
    assert isinstance(model, Classifier) and isinstance(model.body, Encoder)
    table = model.body.source_positions.table
    assert table is not None
    table = table.detach()
    assert len(made.data[0].rows) == 16
    first = int(model.body.settings.class_token)
    for row, column, other_row, other_column, cosine in made.data[0].rows:
        one, other = (
            table[first + 2 * (int(r) - 1) + int(c) - 1].double()
            for r, c in ((row, column), (other_row, other_column))
        )
        assert float(torch.cosine_similarity(one, other, dim=0)) == pytest.approx(cosine, abs=1e-6)
    svg = made.panels[0].svg()
    for name in ("row", "column"):
        assert re.findall(f">({name} .)</text>", svg) == [f"{name} 1", f"{name} 2"]


def test_what_they_lack_is_told(run: Path, tiny_run: Path) -> None:
    with pytest.raises(DragomanError, match=r"this figure needs one. Set --sentence FILE"):
        make_figure("picture-rollout", Subject.open(Run.open(run)))
    text = Subject.open(Run.open(tiny_run), "the dog sees the cat")
    for name in ("picture-rollout", "picture-positions"):
        with pytest.raises(DragomanError, match="this transformer model"):
            make_figure(name, text)
    model = Subject.open(Run.open(run)).predictor.plain
    assert missing("picture-positions", model) is None
    assert isinstance(model, Classifier) and isinstance(model.body, Encoder)
    model.body.source_positions.table = None
    lacks = missing("picture-positions", model)
    assert lacks is not None and "learned positions of patches" in lacks.english
    assert missing("picture-rollout", model) is None
