"""Figures of models that are no Transformers: drawn of what they have, refused for the rest."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from untrained_run import untrained_run

from dragoman.base.errors import DragomanError
from dragoman.insight.figures.catalogue import FIGURES, make_figure
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import csv_files
from dragoman.tasks.catalogue import Run

SENTENCE = "The small man eats the dinosaur."
LAYERS = {"recurrent": 1, "convolutional": 2}


@pytest.fixture(scope="module", params=LAYERS)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    folder: Path = tmp_path_factory.mktemp(request.param)
    run = untrained_run(folder, "search.max_length=8", recipe_name=f"demo-{request.param}")
    return Subject.open(Run.open(run), SENTENCE)


def test_every_attention_to_the_source_is_drawn(subject: Subject) -> None:
    """Each layer has a map of its own, whose rows sum to one: no two layers see the same."""
    (table,) = csv_files(make_figure("attention-cross", subject)).values()
    maps: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        of_head = maps.setdefault((row["layer"], row["head"]), {})
        of_head[row["row"], row["column"]] = float(row["weight"])
    layers = LAYERS[subject.predictor.plain.settings.kind]
    assert list(maps) == [(str(layer + 1), "1") for layer in range(layers)]
    assert len({tuple(of_head.values()) for of_head in maps.values()}) == layers
    for of_head in maps.values():
        rows = {row for row, _ in of_head}
        sums = [sum(w for (r, _), w in of_head.items() if r == row) for row in rows]
        np.testing.assert_allclose(sums, 1, atol=1e-5)


def test_alignment_is_drawn(subject: Subject) -> None:
    assert any(csv_files(make_figure("alignment", subject)).values())


def test_what_it_lacks_is_refused_by_name(subject: Subject) -> None:
    kind = subject.predictor.plain.settings.kind
    of_run = {name: one for name, one in FIGURES.items() if one.needs is not None}
    refused = [name for name, one in of_run.items() if set(one.needs) - {"cross", "writes"}]
    assert {"attention-encoder", "attention-decoder", "heads", "pronoun"} <= set(refused)
    for name in refused:
        with pytest.raises(DragomanError, match=kind):
            make_figure(name, subject)
