"""A run that has learned nothing says so, and what would teach it."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import Dragoman
from serving_echo import open_run
from tiny_cells import tiny_cell
from untrained_run import untrained_run

from dragoman.serving.operate.settings import ServeSettings
from dragoman.sizing.minutes import min_tokens, too_short, with_updates
from dragoman.tasks.catalogue import TASKS, Recipe, Run
from dragoman.tasks.report import write_report
from dragoman.tasks.shared.progress_made import TrainingSummary
from dragoman.tasks.training import train
from dragoman.tasks.verdict import _alike, cautions, verdict
from dragoman.training.fastest_way import Throughput

SENTENCES = [
    "A man rides a bicycle.", "Two dogs run through the snow.", "The sea is calm today.",
    "She reads her book in bed.", "Nobody knows the answer.",
]  # fmt: skip


def recorded(
    folder: Path,
    recipe_name: str,
    scores: dict[str, float],
    outputs: Sequence[str] = SENTENCES,
    *,
    tokens: int = 10_000,
    notes: dict[str, Any] | None = None,
    found: dict[str, Any] | None = None,
) -> Run:
    """A run whose records say that it has trained for a minute, and come to ``scores`` on dev."""
    folder.mkdir()
    Recipe.load(recipe_name).save(folder / "recipe.toml")
    update = {
        "kind": "update", "update": 1, "loss": 2.0, "nll": 2.0, "perplexity": 7.4,
        "tokens": tokens, "seconds": 60.0, "tokens_per_second": tokens / 60,
        "learning_rate": 1e-3, "gradient_norm": 1.0, "elapsed": 60.0, "skipped": False,
    }  # fmt: skip
    samples = [
        {"source": f"source {number}", "reference": SENTENCES[number], "translation": output}
        for number, output in enumerate(outputs)
    ]
    validation = {
        "kind": "validation", "update": 1, "weights": "current", "best": True, "seconds": 1.0,
        "elapsed": 60.0, "scores": scores, "samples": samples,
    }  # fmt: skip
    lines = "".join(f"{json.dumps(record)}\n" for record in (update, validation))
    (folder / "metrics.jsonl").write_text(lines, encoding="utf-8")
    (folder / "data.json").write_text(json.dumps({"text": notes or {}}), encoding="utf-8")
    if found is not None:
        (folder / "scores.json").write_text(json.dumps(found), encoding="utf-8")
    return Run.open(folder)


@pytest.mark.parametrize(
    ("recipe", "poor", "good", "words"),
    [
        (
            "demo",
            {"bleu": 0.7, "loss": 6.0},
            {"bleu": 25.0, "loss": 2.0},
            "translate: BLEU 0.70 on dev",
        ),
        ("demo-trees", {"f1": 19.0, "loss": 2.1}, {"f1": 71.0, "loss": 0.4}, "parse: F1 19.0 %"),
        ("demo-letters", {"loss": 2.9}, {"loss": 1.4}, "write: its loss on dev is 2.900"),
        ("demo-masked", {"loss": 2.8}, {"loss": 1.4}, "fill: its loss on dev is 2.800"),
    ],
)
def test_a_poor_score_is_said_and_a_good_one_is_not(
    tmp_path: Path, recipe: str, poor: dict[str, float], good: dict[str, float], words: str
) -> None:
    notes = {"tokens": 5_000, "length": 6.0, "by_frequency": 3.0}
    (said,) = verdict(recorded(tmp_path / "poor", recipe, poor, notes=notes))
    assert f"hardly learned to {words}" in said
    minutes, whole = (int(n) for n in re.findall(r"(?:About |--minutes )(\d+)", said))
    assert whole == minutes + 1, "beside the minute that it had"
    run = recorded(tmp_path / "good", recipe, good, notes=notes)
    assert verdict(run) == []


def held_out(folder: Path, **counts: int) -> Run:
    """A run with so many examples held out."""
    run = recorded(folder, "demo", {"bleu": 25.0})
    (folder / "data.json").write_text(json.dumps({"pairs": counts}), encoding="utf-8")
    return run


def test_how_little_was_seen_is_said_in_one_sentence(tmp_path: Path) -> None:
    few = held_out(tmp_path / "few", train=60, dev=3, test=1)
    (said,) = cautions(few, 0.7)
    assert "it has learned from 70 % of its pairs, its weights were chosen by 3 pairs and" in said
    assert said.endswith("it was measured on 1 pair.")
    (said,) = cautions(few, 30.0)
    assert "learned from" not in said and "chosen by 3 pairs and it was measured on 1 pair" in said
    many = held_out(tmp_path / "many", train=6_000, dev=20, test=400)
    assert cautions(many, 1.0) == [] == cautions(few.open(many.folder), 7.5)
    (said,) = cautions(many, 0.004)
    assert said.endswith("it has learned from 0.4 % of its pairs.")
    assert cautions(held_out(tmp_path / "none", train=30, dev=0, test=0), 3.0) == []


@pytest.mark.parametrize(("task", "source"), [("classification", "text"), ("masked", "text")])
def test_a_training_tells_how_often_it_has_seen_each_example(
    tmp_path: Path, task: str, source: str
) -> None:
    """Of every update the same share of all tokens is read, whatever a task counts."""
    told = []
    for updates in (1, 2):
        recipe = tiny_cell(task, "encoder", source, tmp_path / str(updates)).change(
            [f"training.updates={updates}", "training.validate_every=0"]
        )
        outcome = train(
            recipe, tmp_path / f"run{updates}", say=lambda _: None, display=False, measure=False
        )
        told.append(outcome.epochs)
    assert told[1] == 2 * told[0]
    read = TrainingSummary.of(Run.open(tmp_path / "run2"))
    if task == "classification":  # which counts examples
        every = Run.open(tmp_path / "run2").notes()["pairs"]["train"]
        assert told[1] == pytest.approx(read.tokens / every, rel=0.05)


def test_the_minutes_that_are_missing_follow_from_what_was_seen(tmp_path: Path) -> None:
    few, more = (
        verdict(recorded(tmp_path / str(tokens), "demo", {"bleu": 1.0}, tokens=tokens))[0]
        for tokens in (16_000, 64_000)
    )
    # The demo's model is 128 wide, and 10,000 tokens for each make 1,280,000.
    assert "About 79 more minutes" in few and "--minutes 80" in few
    assert "About 19 more minutes" in more and "--minutes 20" in more
    late = verdict(recorded(tmp_path / "late", "demo", {"bleu": 1.0}, tokens=2_000_000))[0]
    assert "has seen 2,000,000 target tokens, and such a model usually begins after about" in late
    assert "1,280,000: this one takes longer. About 1 more minute" in late


def test_before_and_after_a_training_the_same_minutes_are_told(tmp_path: Path) -> None:
    """By one estimate, where the machine is as fast as was measured."""
    run = recorded(tmp_path / "run", "demo", {"bleu": 1.0}, tokens=64_000,
                   notes={"tokens": 1_000_000, "length": 9.0})  # fmt: skip
    measured = Throughput(64_000 / 60, 1.0, 60, 1)
    planned = with_updates(run.recipe, 60, minutes=1.0)
    before = too_short(planned, measured, round(1_000_000 / (64_000 / 60)), 9.0)
    assert before is not None and "--minutes 20," in before
    assert "--minutes 20," in verdict(run)[0]
    by_muon = planned.change(["training.optimizer.kind=muon"])
    sooner = too_short(by_muon, measured, round(1_000_000 / (64_000 / 60)), 9.0)
    assert sooner is not None and "--minutes 5," in sooner


def test_what_a_model_must_see_grows_with_its_width_and_with_the_text() -> None:
    task = TASKS["translation"]
    assert min_tokens(task, 128) == 2 * min_tokens(task, 64)
    assert min_tokens(task, 64, 60.0) > min_tokens(task, 64, 10.0) == min_tokens(task, 64)
    # Of 4,500 pairs of six tokens it learns after a dozen epochs.
    assert min_tokens(task, 64, 6.0, 27_000) == 12 * 27_000
    assert min_tokens(task, 64, 6.0, 100) == 64 * 2_000, "but not at once"


def test_a_text_known_by_heart_asks_for_more_text(tmp_path: Path) -> None:
    notes = {"tokens": 100, "length": 6.0}
    (said,) = verdict(recorded(tmp_path / "run", "demo", {"bleu": 1.0, "loss": 7.0}, notes=notes))
    assert "seen its pairs 100 times" in said and "more minutes would not" in said


def test_outputs_that_do_not_follow_what_is_read_are_said(tmp_path: Path) -> None:
    same = ["The man is a man.", "The man is a man in.", "A man is a man."]
    run = recorded(tmp_path / "same", "demo", {"bleu": 8.0}, same)
    assert verdict(run) == [
        "It writes much the same words whatever it reads, such as “The man is a man.”."
    ]
    untrained_run(run.folder)
    write_report(Run.open(run.folder), attention=[])
    assert Run.open(run.folder).verdict() == verdict(run)
    for page in ("report.html", "card.md"):
        assert "much the same words" in (run.folder / page).read_text(encoding="utf-8")
    assert verdict(recorded(tmp_path / "own", "demo", {"bleu": 8.0})) == []
    # Two outputs say nothing.
    assert verdict(recorded(tmp_path / "two", "demo", {"bleu": 8.0}, same[:2])) == []


def test_texts_are_as_alike_as_the_letter_triples_that_they_share() -> None:
    assert _alike(["abcd", "abcd"]) == 1 and _alike(["abcd", "wxyz"]) == 0
    assert _alike(["abcd", "abcz"]) == pytest.approx(0.5)
    assert _alike(["abcd", "abcz", "wxyz"]) == pytest.approx(0.5 / 3)


def labelled(counts: list[list[int]]) -> dict[str, Any]:
    """``scores.json`` of a run with these confusions: label by row, chosen by column."""
    texts, right = [sum(row) for row in counts], [row[k] for k, row in enumerate(counts)]
    columns = [sum(row[k] for row in counts) for k in range(len(counts))]
    f1 = [2 * r / max(1, t + c) for r, t, c in zip(right, texts, columns, strict=True)]
    return {
        "test": "t", "sentences": sum(texts), "confusion": counts,
        "labels": [
            {"label": f"label {k}", "texts": n, "precision": 0.0, "recall": right[k] / n,
             "f1": f1[k]}
            for k, n in enumerate(texts)
        ],
    }  # fmt: skip


def test_a_labeller_is_judged_by_the_most_frequent_label(tmp_path: Path) -> None:
    def said(name: str, counts: list[list[int]]) -> list[str]:
        return verdict(
            recorded(tmp_path / name, "demo-labels", {"macro_f1": 0.3}, found=labelled(counts))
        )

    (always,) = said("always", [[60, 0], [40, 0]])
    assert "hardly learned to classify: it gives every text the label 'label 0'" in always
    (chance,) = said("chance", [[50, 10], [33, 7]])
    assert "accuracy 57.0 %, and always answering 'label 0' gives 60.0 %" in chance
    assert said("learned", [[55, 5], [10, 30]]) == []
    # Few of a rare label are found, and those are more than guessing finds.
    assert said("rare", [[94, 1], [3, 2]]) == []


def test_what_guessing_costs_is_noted_and_a_brief_training_says_what_it_came_to(
    dragoman: Dragoman, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw, words = random.Random(1), ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op"]
    text = tmp_path / "my.txt"
    lines = (" ".join(draw.choices(words, k=8)) for _ in range(400))
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    small = ("model.model_dim=16", "model.ffn_dim=16", "model.attention.num_heads=2",
             "model.layers=1", "training.updates=2")  # fmt: skip
    sets = [f"--set={one}" for one in small]
    run = tmp_path / "run"
    task = ("--task", "language-model", "--texts", "text")
    said = dragoman("train", text, *task, "--to", run, *sets)
    assert said.code == 0, said.err
    assert "hardly learned to write" in said.out.replace("\n", " ")
    note = Run.open(run).notes()["text"]
    letters = "".join(words) + " " * 8
    entropy = -sum(
        letters.count(one) / 24 * math.log(letters.count(one) / 24) for one in set(letters)
    )
    assert note["by_frequency"] == pytest.approx(entropy, abs=0.15)
    assert note["length"] == pytest.approx(8 * 3, abs=1)
    assert "hardly learned to write" in (run / "card.md").read_text(encoding="utf-8")
    said = dragoman("write", run, words[0], "--longest", 2)
    (line,) = (one for one in said.err.splitlines() if "hardly learned" in one)
    assert line.startswith(f"{run}: This run has hardly learned to write")
    assert "hardly learned" not in said.out
    told = open_run(Run.open(run), ServeSettings(), "run").knowledge.verdict
    assert told and line.endswith(told)
    capsys.readouterr()
    (run / "verdict.json").unlink()
    said = dragoman("write", run, words[0], "--longest", 2)
    assert said.code == 0 and "hardly learned" not in said.err
    assert open_run(Run.open(run), ServeSettings(), "run").knowledge.verdict == ""


def test_records_of_any_numbers_are_read(tmp_path: Path) -> None:
    nothing = labelled([[1, 0], [0, 1]])
    for one in nothing["labels"]:
        one["texts"] = 0
    assert verdict(recorded(tmp_path / "none", "demo-labels", {}, found=nothing)) == []
    run = recorded(tmp_path / "huge", "demo", {"bleu": 1.0})
    metrics = run.folder / "metrics.jsonl"
    text = metrics.read_text(encoding="utf-8").replace('"elapsed": 60.0', '"elapsed": 1e308')
    metrics.write_text(text, encoding="utf-8")
    assert "About 1,000,000 more minutes" in verdict(run)[0]


def test_the_loss_of_a_training_is_the_mean_of_its_last_updates(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", "demo", {"bleu": 25.0})
    first, rest = (run.folder / "metrics.jsonl").read_text("utf-8").split("\n", 1)
    losses = [9.0] * 38 + [3.0, 2.0]  # the last twentieth: two of forty
    updates = [json.dumps(json.loads(first) | {"nll": nll}) for nll in losses]
    (run.folder / "metrics.jsonl").write_text("\n".join([*updates, rest]), encoding="utf-8")
    read = TrainingSummary.of(Run.open(run.folder))
    assert read.nll == pytest.approx(2.5)
    assert read.tokens == 40 * json.loads(first)["tokens"]
