"""What systems are compared by."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from untrained_run import untrained_run

from dragoman.base.errors import DataError, RunError
from dragoman.runs.run import Run
from dragoman.studies.comparison import PREPARED, compare
from dragoman.studies.systems import ComparisonRequest, System


def test_a_run_without_case_is_compared_without_case(tmp_path: Path) -> None:
    """Of a run that says lower-cased tokens, BLEU over plain text would count nothing but that."""
    pytest.importorskip("sacremoses")
    lines = ["The cat's tail is long, isn't it?", "He (often) sleeps."]
    for name in ("en", "de"):
        (tmp_path / f"my.{name}").write_text("".join(f"{line}\n" for line in lines))
    lower = tmp_path / "lower.de"
    lower.write_text("".join(f"{line.lower()}\n" for line in lines))
    files = tmp_path / "my.en", (tmp_path / "my.de",)
    for name in ("moses", "plain"):
        (tmp_path / name).mkdir()
    small = "model.model_dim=16", "model.ffn_dim=16", "search.beam=1"
    run = untrained_run(tmp_path / "moses", "data.moses=true", *small)
    found = compare(ComparisonRequest([run, lower], *files, samples=10))
    assert (
        found.references[0][0].endswith("&apos; t it ?")
        and found.compare.keywords["tokenizer"] == "none"
    )
    bleu = found.compared.quality.comparisons[0]
    assert bleu.scores[1].value == pytest.approx(100) and "tok:none" in bleu.signature
    assert PREPARED in found.compared.table()
    assert found.against("lower.de").comparisons[0].scores[0].value == pytest.approx(100)
    run = untrained_run(tmp_path / "plain", *small)
    found = compare(ComparisonRequest([run, lower], *files, samples=10))
    bleu = found.compared.quality.comparisons[0]
    assert bleu.scores[1].value < 90 and "tok:13a" in bleu.signature
    assert PREPARED not in found.compared.quality.notes


def test_systems_have_names_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a system that is given again: by its name all that is found of it is looked up."""
    (tmp_path / "x").mkdir()
    for name in ("a.de", "x/a.de"):
        (tmp_path / name).write_text("Ein Hund.\nEine Katze.\n")
    monkeypatch.chdir(tmp_path)
    files = [Path("a.de"), Path("a.de"), Path("x/a.de"), Path("x/a.de"), Path("a.de")]
    found = compare(ComparisonRequest(files, references=[Path("a.de")], samples=10))
    names = ["a.de", "a.de (2)", "x/a.de", "x/a.de (2)", "a.de (3)"]
    assert [system.name for system in found.compared.systems] == names
    for comparison in found.compared.quality.comparisons:
        assert [score.system for score in comparison.scores] == names
    again = found.against("x/a.de").comparisons[0]
    assert sorted(score.system for score in again.scores) == sorted(names)


def test_a_run_of_another_task_is_told_what_is_compared(tmp_path: Path) -> None:
    run = untrained_run(
        tmp_path, "model.model_dim=16", "model.ffn_dim=16", "model.attention.num_heads=2",
        recipe_name="demo-trees",
    )  # fmt: skip
    words = "is a parser. Compare runs that all translate, label, tag or parse"
    with pytest.raises(RunError, match=words):
        compare(ComparisonRequest([run, run]))


@pytest.mark.parametrize("lines", [1, 3])
def test_a_file_of_other_length_than_the_test_set_is_refused(tmp_path: Path, lines: int) -> None:
    for name, count in (("a", 2), ("b", lines), ("reference", 2)):
        (tmp_path / name).write_text("Ein Hund.\n" * count)
    with pytest.raises(DataError, match=rf"b has {lines} lines? for 2 sentences"):
        compare(
            ComparisonRequest([tmp_path / "a", tmp_path / "b"], references=[tmp_path / "reference"])
        )


@pytest.mark.parametrize(
    ("bleu", "marked"),
    [((4.0, 3.0, 3.0), (False, False)), ((40.0, 3.0, 3.0), (True, True)),
     ((4.0, 40.0, 3.0), (True, False)), ((4.0, None, 3.0), (True, False))],
)  # fmt: skip
def test_systems_that_have_hardly_learned_are_not_told_apart(
    bleu: tuple[float | None, ...], marked: tuple[bool, ...], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """However different their outputs are. ``bleu``: on dev; None: nothing is recorded."""
    lines = [f"Der Hund {n} schläft heute im Garten ." for n in range(20)]
    outputs = {"a": lines, "b": [f"{line} nie" for line in lines], "c": lines[::-1]}
    (tmp_path / "run-a").mkdir()
    untrained_run(tmp_path / "run-a", "model.model_dim=16", "model.ffn_dim=16")
    records: dict[str, list[dict[str, Any]]] = {}
    for name, value, updates in zip(outputs, bleu, (2_090, 1_053, 7), strict=True):
        if name != "a":
            shutil.copytree(tmp_path / "run-a", tmp_path / f"run-{name}")
        learned = [
            {"kind": "update", "update": n, "tokens": 10, "elapsed": 1.0, "nll": 1.0}
            for n in range(1, updates + 1)
        ] + [{"kind": "validation", "scores": {"bleu": value}}]
        records[f"run-{name}"] = learned if value is not None else []
    monkeypatch.setattr(Run, "metrics", lambda self: records[self.folder.name])
    monkeypatch.setattr(System, "translations", lambda self, *_: [outputs[self.name[-1]]])
    (tmp_path / "my").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    runs = [tmp_path / f"run-{name}" for name in outputs]
    found = compare(ComparisonRequest(runs, tmp_path / "my", [tmp_path / "my"])).compared
    table = found.table()
    rows = [next(line for line in table.splitlines() if line.startswith(run.name)) for run in runs]
    assert tuple("*" in row for row in rows[1:]) == marked
    assert found.quality.learned == any(marked) == ("* differs" in table)
    told = [
        f"{run.name} has hardly learned to translate: BLEU {value:.2f} on dev, below the 5.00 of "
        "a model that has begun to learn"
        for run, value in zip(runs, bleu, strict=True) if value is not None and value < 5
    ]  # fmt: skip
    told += ["differences between systems that have hardly learned are not marked"]
    # Of runs that were not trained it is not known either what they have learned from.
    assert [line for line in found.warnings if "is not known" not in line] == told
    assert "run-a: 2,090 updates, 20,900 target tokens\n" in table
    first, second, _ = found.to_dict()["systems"]
    assert (first["updates"], first["tokens"]) == ([2_090], [20_900])
    if bleu[1] is None:
        assert second["updates"] == [None] and "run-b: its training is not recorded" in table
