"""Samples of long documents: cut when they are recorded, passed over where they were not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Dragoman
from untrained_run import untrained_run

from dragoman.base.errors import RunError
from dragoman.base.reading import MAX_JSON
from dragoman.forms.form import Pair
from dragoman.runs.files import read_metrics
from dragoman.runs.run import METRICS, SCORES
from dragoman.tasks.catalogue import Run
from dragoman.tasks.shared.evaluation import keep_scores, samples
from dragoman.training.records import MAX_SHOWN

SMALL = (
    "text.vocabulary=300", "text.character_coverage=0.99",
    "model.model_dim=16", "model.ffn_dim=16", "model.layers=1",
    "model.attention.num_heads=2", "plan.tokens_per_update=64", "training.updates=2",
    "training.validate_every=1", "training.precision=fp32",
)  # fmt: skip


@pytest.mark.system
def test_a_document_in_the_dev_set_is_trained_with_and_reported(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    kinds = {"cat": "The cat sleeps on a chair.", "dog": "A dog eats and runs home."}
    lines = [f"{label}\t{text} {n}\n" for n in range(30) for label, text in kinds.items()]
    (tmp_path / "my.tsv").write_text("".join(lines), encoding="utf-8")
    document = "The cat sleeps. " * (MAX_JSON // 15)
    (tmp_path / "dev.tsv").write_text(f"cat\t{document}\ndog\tA dog.\n", encoding="utf-8")
    changes = [word for size in SMALL for word in ("--set", size)]
    said = dragoman(
        "train", tmp_path / "my.tsv", "--task", "classification", "--dev", tmp_path / "dev.tsv",
        "--test", tmp_path / "dev.tsv", "--to", tmp_path / "run", *changes,
    )  # fmt: skip
    assert said.code == 0, said.err
    assert (tmp_path / "run" / "report.html").is_file()
    assert (tmp_path / "run" / METRICS).stat().st_size < 20_000
    assert dragoman("resume", tmp_path / "run").code == 0


def test_a_line_that_is_too_long_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / METRICS).write_text("x" * (MAX_JSON + 9) + "\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"line 1 has more than .* Remove the file"):
        list(read_metrics(tmp_path / METRICS))


@pytest.mark.parametrize("wanted", [3, 1000])
def test_scores_of_long_texts_are_read_back(tmp_path: Path, wanted: int) -> None:
    run = Run.open(untrained_run(tmp_path, f"evaluation.samples={wanted}"))
    text = "개가 잠을 잔다. " * 500
    pairs = [Pair(n, text, text) for n in range(1200)]
    found: dict[str, Any] = samples(run, pairs, [text] * 1200)
    assert len(found["samples"]) == wanted
    assert max(len(one["source"]) for one in found["samples"]) <= MAX_SHOWN
    keep_scores(run, found, own=True)
    assert (tmp_path / SCORES).stat().st_size < MAX_JSON
    assert len(run.scores()["samples"]) == wanted
    (short,) = samples(run, [Pair(1, "A dog.", "Ein Hund.")], ["Der Hund."])["samples"]
    assert json.dumps(short) == json.dumps(
        {"source": "A dog.", "reference": "Ein Hund.", "translation": "Der Hund."}
    )


def test_a_label_that_is_too_long_is_refused_where_it_stands(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    lines = [f"{'ab'[n % 2]}\tThe cat sleeps {n}.\n" for n in range(40)]
    lines[6] = f"{'long ' * 210}\tThe cat sleeps.\n"
    (tmp_path / "my.tsv").write_text("".join(lines), encoding="utf-8")
    ask = ("train", tmp_path / "my.tsv", "--task", "classification", "--columns", "label,text")
    said = dragoman(*ask, "--to", tmp_path / "run", "--set", "data.split.test=0")
    assert said.code == 1 and "line 7: the label has 1,049 characters" in said.err
    assert not (tmp_path / "run").exists()
