"""What systems are compared by."""

from __future__ import annotations

from pathlib import Path

import pytest
from untrained_run import untrained_run

from dragoman.errors import DataError, RunError
from dragoman.studies.comparison import PREPARED, compare


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
    found = compare([run, lower], *files, samples=10)
    assert found.references[0][0].endswith("&apos; t it ?") and found.tokenizer == "none"
    bleu = found.compared.quality.comparisons[0]
    assert bleu.scores[1].value == pytest.approx(100) and "tok:none" in bleu.signature
    assert PREPARED in found.compared.table()
    assert found.against("lower.de").comparisons[0].scores[0].value == pytest.approx(100)
    run = untrained_run(tmp_path / "plain", *small)
    found = compare([run, lower], *files, samples=10)
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
    found = compare(files, references=[Path("a.de")], samples=10)
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
    words = "is a parser: what is compared are runs that all translate, label, tag or parse"
    with pytest.raises(RunError, match=words):
        compare([run, run])


@pytest.mark.parametrize("lines", [1, 3])
def test_a_file_of_other_length_than_the_test_set_is_refused(tmp_path: Path, lines: int) -> None:
    for name, count in (("a", 2), ("b", lines), ("reference", 2)):
        (tmp_path / name).write_text("Ein Hund.\n" * count)
    with pytest.raises(DataError, match=rf"b has {lines} lines? for 2 sentences"):
        compare([tmp_path / "a", tmp_path / "b"], references=[tmp_path / "reference"])
