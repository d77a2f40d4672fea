"""The timeline: published models as they were, and a run by what it wrote down of itself."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from untrained_run import untrained_run

from dragoman.base.errors import DragomanError
from dragoman.insight.figures.catalogue import make_figure
from dragoman.insight.subject import Subject
from dragoman.pictures.figure import csv_files
from dragoman.tasks.catalogue import Run

SMALL = ("model.model_dim=16", "model.ffn_dim=16", "model.layers=1")


def test_a_run_stands_beside_what_was_published(tmp_path: Path) -> None:
    folder = untrained_run(tmp_path, *SMALL, recipe_name="demo-letters")
    subject = Subject.open(Run.open(folder), "Der Hund")
    with pytest.raises(DragomanError, match="has no metrics"):
        make_figure("timeline", subject)
    update = {"kind": "update", "update": 1, "nll": 2.0, "tokens": 5, "tokens_per_second": 1.0}
    lines = [
        {**update, "learning_rate": 0.1, "gradient_norm": 1.0, "elapsed": seconds}
        for seconds in (43_200.0, 86_400.0)
    ]
    written = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "metrics.jsonl").write_text(written, encoding="utf-8")
    figure = make_figure("timeline", subject)
    (table,) = csv_files(figure).values()
    rows = {row["model"]: row for row in csv.DictReader(io.StringIO(table))}
    assert list(rows) == ["ULMFiT", "GPT", "BERT", "GPT-2", folder.name]
    assert [float(row["days"]) for row in rows.values()] == [1, 240, 256, 2048, 1]
    assert all(row["source"] for row in rows.values())
    sizes = sum(one.numel() for one in subject.predictor.plain.parameters())
    assert float(rows[folder.name]["parameters"]) == sizes
    assert "trained for 1440.0 minutes" in figure.notes[0].english
    assert "1 times as long" in figure.notes[0].english
