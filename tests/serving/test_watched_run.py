"""What is told of a run while it is trained: its curves in bounded memory, and a sentence as the
weights of each moment translate it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dragoman.base.errors import RecipeError, RunError
from dragoman.engine.settings import TranslatorSettings
from dragoman.server import training_page
from dragoman.server.training_page import MOST_POINTS, Records, WatchedRun
from dragoman.tasks.catalogue import Run


def update(number: int, **changed: Any) -> dict[str, Any]:
    return {
        "kind": "update", "update": number, "nll": float(number), "tokens": 10, "seconds": 0.1,
        "tokens_per_second": 100.0, "learning_rate": 1e-3, "gradient_norm": None,
        "elapsed": 0.5 * number,
    } | changed  # fmt: skip


def validation(number: int, *, best: bool = False) -> dict[str, Any]:
    sample = {"source": "a", "reference": "b", "translation": str(number)}
    return {
        "kind": "validation", "update": number, "weights": "current", "best": best,
        "scores": {"loss": 1.0}, "elapsed": 1.0, "samples": [sample],
    }  # fmt: skip


def write(path: Path, *records: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def test_any_number_of_records_keeps_a_bounded_curve(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    records = Records(path)
    records.read()
    assert records.latest is None
    for begin in range(1, 5001, 1000):  # some of it is there already, the rest comes
        write(path, *map(update, range(begin, begin + 1000)))
        records.read()
        assert len(records.updates) < MOST_POINTS
    assert records.latest == update(5000)
    ends = [0, *(record["update"] for record in records.updates)]
    for before, record in zip(ends, records.updates, strict=False):
        middle = (before + 1 + record["update"]) / 2
        assert record["nll"] == pytest.approx(middle), "the mean of its stretch"
        assert record["gradient_norm"] is None
    assert 5000 - ends[-1] < 5000 / (MOST_POINTS / 2)
    assert records.seconds_left(6000) == pytest.approx(500, rel=0.01)
    assert records.seconds_left(5000) == 0


def test_validations_are_kept_with_the_last_samples(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, *(validation(n, best=n == 2) for n in range(1, 4 * MOST_POINTS)))
    records = Records(path)
    records.read()
    kept = [record["update"] for record in records.validations]
    assert kept == list(range(1, 4 * MOST_POINTS))
    assert records.samples[0]["translation"] == str(kept[-1])


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    line = json.dumps(update(1))
    path.write_text(line[:20])
    records = Records(path)
    records.read()
    assert records.latest is None
    path.write_text(line + "\n")
    records.read()
    assert records.latest == update(1)
    with path.open("a") as file:
        file.write("{broken}\n")
    with pytest.raises(RunError, match=r"metrics\.jsonl"):
        records.read()


def test_nothing_is_told_before_there_is_a_run(tmp_path: Path) -> None:
    watched = WatchedRun(tmp_path / "run")
    assert watched.course() == {"name": "run"}
    watched.ask("A dog.")
    assert not watched.translate_next()


@pytest.fixture
def copied(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path / "run"))


def test_the_course_of_a_run(copied: Path) -> None:
    metrics = copied / "metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join(lines[:1]))
    watched = WatchedRun(copied)
    assert watched.course()["update"] == 1 and not watched.moves
    metrics.write_text("".join(lines))
    told = watched.course()
    json.dumps(told, allow_nan=False)
    assert watched.moves
    updates = Run.open(copied).recipe.training.updates
    assert (told["update"], told["updates"], told["left"]) == (updates, updates, 0)
    assert {"Loss", "Development scores", "Learning rate"} <= {c["title"] for c in told["charts"]}
    scores = {score["called"]: score for score in told["scores"]}
    assert {"loss", "BLEU"} <= scores.keys()
    bleu = {name: scores["BLEU"][name] for name in ("times", "digits", "unit")}
    assert bleu == {"times": 1, "digits": 2, "unit": ""} and scores["BLEU"]["value"] >= 0
    assert told["translates"] and told["samples"]
    watched.begin()
    assert not watched.moves
    # A corrected plan is read.
    recipe = copied / "recipe.toml"
    recipe.write_text(recipe.read_text().replace(f"updates = {updates}", "updates = 777"))
    assert watched.course()["updates"] == 777


def test_a_sentence_is_translated_at_every_moment_of_the_film(copied: Path) -> None:
    run, watched = Run.open(copied), WatchedRun(copied)
    film = [number for number, _ in run.film()]
    watched.course()
    watched.ask("a b")
    assert watched.translate_next()
    (first,) = watched.sentence()["said"]
    assert first["update"] == film[-1], "the newest weights come first"
    while watched.translate_next():
        pass
    told = watched.sentence()
    json.dumps(told, allow_nan=False)
    assert [one["update"] for one in told["said"]] == film
    last = Run(copied, run.recipe, f"training/snapshots/{film[-1]:08d}.safetensors")
    exactly = last.open_predictor(TranslatorSettings(precision="fp32"))
    assert told["said"][-1]["text"] == exactly("a b").text
    heads = told["heads"]
    assert [number for number, _ in heads["maps"]] == film
    rows = [sum(row) for _, weights in heads["maps"] for row in weights]
    assert rows == pytest.approx([1] * len(rows), abs=0.05)
    assert heads["maps"][0][1] != heads["maps"][-1][1]
    watched.head = (99, 99)
    chosen = watched.sentence()["heads"]
    assert (chosen["layer"], chosen["head"]) == (heads["layers"] - 1, heads["heads"] - 1)
    watched.ask("")
    assert watched.sentence()["said"] == [] and not watched.translate_next()


def test_new_weights_are_used_and_old_translations_make_room(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    film = {number for number, _ in Run.open(copied).film()}
    monkeypatch.setattr(training_page, "MOST_TRANSLATIONS", len(film) + 2)
    watched = WatchedRun(copied)
    watched.course()
    watched.ask("a b")
    snapshots = copied / "training" / "snapshots"
    newest = max(snapshots.iterdir())
    for number in range(1000, 1004):
        newest = newest.rename(snapshots / f"{number:08d}.safetensors")
        while watched.translate_next():
            pass
    said = [one["update"] for one in watched.sentence()["said"]]
    assert said == sorted(film | {1002, 1003})


def test_weights_that_are_damaged_are_told_once(copied: Path) -> None:
    watched = WatchedRun(copied)
    watched.course()
    (copied / "training" / "snapshots" / "99999999.safetensors").write_bytes(b"no weights")
    watched.ask("a b")
    assert watched.translate_next() and not watched.translate_next()
    assert "99999999.safetensors" in watched.sentence()["problem"]


def test_a_plan_that_is_damaged_for_a_while_does_not_end_the_translating(copied: Path) -> None:
    watched, recipe = WatchedRun(copied), copied / "recipe.toml"
    whole = recipe.read_bytes()
    watched.ask("a b")
    recipe.write_bytes(whole[:100])
    with pytest.raises(RecipeError):
        watched.course()
    assert not watched.translate_next() and not watched.sentence()["problem"]
    recipe.write_bytes(whole)
    vocabulary = (copied / "shared.model").rename(copied / "moved.model")
    assert not watched.translate_next() and not watched.sentence()["problem"]
    vocabulary.rename(copied / "shared.model")
    assert watched.translate_next() and watched.sentence()["said"]
