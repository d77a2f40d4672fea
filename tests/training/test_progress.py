"""What a training run tells people: lines, the live display, metrics.jsonl, TensorBoard."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
import warnings
from pathlib import Path

import pytest
from follower import Follower
from rich.console import Console
from training_toy import Toy, toy_batches, toy_trainer

from dragoman.base.errors import TrainingError
from dragoman.tasks.catalogue import TASKS
from dragoman.training.minutes import seconds_to_fill
from dragoman.training.progress import (
    LiveDisplay,
    PlainDisplay,
    RecentLoss,
    ShownPace,
    clock,
    make_display,
)
from dragoman.training.records import (
    Evaluation,
    Listener,
    MetricsLog,
    Sample,
    TensorBoard,
    UpdateRecord,
    ValidationRecord,
    as_json,
)
from dragoman.training.settings import FirstPlan, TrainingSettings


def update(number: int, loss: float | None = 2.0, tokens: int = 100) -> UpdateRecord:
    return UpdateRecord(
        update=number,
        loss=loss,
        nll=loss,
        perplexity=None if loss is None else 7.39,
        tokens=tokens,
        seconds=0.5,
        tokens_per_second=tokens / 0.5,
        learning_rate=1e-3,
        gradient_norm=loss,
        elapsed=number * 0.5,
        skipped=loss is None,
    )


def validation(number: int, bleu: float = 24.9) -> ValidationRecord:
    return ValidationRecord(
        update=number,
        weights="current",
        scores={"loss": 2.41, "bleu": bleu},
        samples=(Sample("ein [bold]Haus\x1b[31m", "a house", "a home"),),
        best=True,
        seconds=21.0,
        elapsed=100.0,
    )


def test_plain_lines_come_every_so_often() -> None:
    stream = io.StringIO()
    display = make_display(TASKS["translation"], 100, 1000.0, stream)
    assert isinstance(display, PlainDisplay)
    display.begin(0)
    for number in range(1, 101):
        display.on_update(update(number))
    display.on_validation(validation(100))
    display.on_message("a warning")
    display.end()
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("update 1 of 100  loss 2.000  perplexity 7.39  200 target tokens/s")
    assert lines[1].startswith("update 100 of 100  loss 2.000")  # nothing in between, then the last
    assert lines[2] == "validation at 100: loss 2.410, BLEU 24.90 (best so far), 21 s"
    assert lines[3].strip().startswith("source    ein [bold]Haus")
    assert lines[-1] == "a warning"
    assert "\x1b" not in stream.getvalue()


def test_samples_are_shown_again_after_a_while_where_they_have_changed() -> None:
    stream = io.StringIO()
    display = make_display(TASKS["translation"], 100, 1000.0, stream)
    display.begin(0)

    def shown(at: int, text: str) -> list[str]:
        before = len(stream.getvalue())
        samples = (Sample("ein Haus", "a house", text), Sample("ein Hund", "a dog", "a dog"))
        display.on_validation(dataclasses.replace(validation(at), samples=samples))
        lines = stream.getvalue()[before:].splitlines()[1:]
        return [line.split(maxsplit=1)[1] for line in lines if line.strip().startswith("model")]

    assert shown(10, "a") == ["a", "a dog"]
    assert shown(20, "a b") == [], "a moment later"
    assert shown(100, "a home") == ["a home"], "the last, of what has changed"


def test_scores_and_speed_are_of_the_task() -> None:
    """Shares of a masked model in percent, as those of a classifier; texts are no tokens."""
    shown = {}
    for name, scores in (
        ("masked", {"loss": 2.5, "perplexity": 12.1825, "accuracy": 0.239}),
        ("classification", {"macro_f1": 53.96, "accuracy": 98.24, "loss": 0.5401}),
        ("language-model", {"loss": 2.5, "perplexity": 3.2e7, "bits_per_byte": 1.0704}),
    ):
        stream = io.StringIO()
        display = make_display(TASKS[name], 100, 1000.0, stream)
        display.begin(0)
        display.on_update(update(1))
        record = validation(1)
        display.on_validation(dataclasses.replace(record, scores=scores, samples=(), best=False))
        shown[name] = [line.split("  rate")[0] for line in stream.getvalue().splitlines()]
    assert shown == {
        "masked": [
            "update 1 of 100  loss 2.000  perplexity 7.39  200 masked tokens/s",
            "validation at 1: loss 2.500, perplexity 12.18, accuracy 23.9 %, 21 s",
        ],
        "classification": [
            "update 1 of 100  loss 2.000  200 texts/s",
            "validation at 1: macro F1 54.0 %, accuracy 98.2 %, loss 0.540, 21 s",
        ],
        "language-model": [
            "update 1 of 100  loss 2.000  perplexity 7.39  200 target tokens/s",
            "validation at 1: loss 2.500, perplexity 3.2e+07, bits per byte 1.070, 21 s",
        ],
    }


def test_a_terminal_gets_the_live_display(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(make_display(TASKS["translation"], 100, stream=Terminal()), LiveDisplay)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_display(TASKS["translation"], 100, stream=Terminal()), PlainDisplay)


def test_the_live_display_shows_it_all() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, legacy_windows=False)
    display = LiveDisplay(TASKS["translation"], 100, console)
    display.begin(40)
    display.on_update(update(41))
    display.on_validation(validation(41))
    display.on_message("a warning")
    display.on_update(update(100))
    display.end()
    shown = stream.getvalue()
    for words in ("of 100", "tokens/s", "BLEU 24.90", "a warning", "a house", "ein [bold]Haus"):
        assert words in shown
    assert "\x1b[31m" not in shown


def test_loss_is_averaged_over_tokens_and_skips_skipped_updates() -> None:
    recent = RecentLoss(TASKS["translation"])
    recent.add(update(1, 1.0, tokens=100))
    recent.add(update(2, 4.0, tokens=200))
    recent.add(update(3, None, tokens=50))
    assert recent.read(0.5).startswith("loss 3.000  perplexity 20.09  200 target tokens/s")
    assert recent.read(0.5).startswith("loss 0.000")


def test_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("dragoman.training.progress.time.monotonic", lambda: now[0])
    pace = ShownPace(50)
    pace.begin(10)
    assert pace.time_left(10, 0.0) == ""
    now[0] += 60
    assert pace.time_left(20, 60.0) == "3:00 left"
    assert [clock(s) for s in (0, 59.6, 3600)] == ["0:00", "1:00", "1:00:00"]


def test_time_left_is_that_of_the_plan_until_it_is_counted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("dragoman.training.progress.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    plan = TrainingSettings(updates=50, minutes=3.0)
    display = make_display(TASKS["translation"], 50, 0.0, stream, fills=seconds_to_fill(plan))
    display.begin(0)
    now[0] += 20  # slow, as a first update is
    display.on_update(update(1))
    assert stream.getvalue().endswith("3:00 left\n")
    now[0] += 20
    display.on_plan(50)  # counted again, to as many
    display.on_update(update(10))
    assert stream.getvalue().endswith("2:40 left\n")
    first = FirstPlan(until=1, updates=50, validate_every=0, snapshot_every=0, warmup=0)
    for other in ({"minutes": 1.0}, {"minutes": 0.0}, {"first_plan": first}):
        assert seconds_to_fill(plan.model_copy(update=other)) == 0.0, "nothing is counted again"


def test_records_are_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, 0)
    log.write(update(1))
    position = log.position
    log.write(validation(1, bleu=float("nan")))
    log.close()
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert (first["kind"], first["update"], first["loss"]) == ("update", 1, 2.0)
    assert second["scores"] == {"loss": 2.41, "bleu": None}
    assert second["samples"][0]["translation"] == "a home"
    assert json.loads(as_json(update(3, None)))["perplexity"] is None

    log = MetricsLog(path, position)  # as a resumed run opens it
    log.write(update(2))
    log.close()
    assert [json.loads(line)["update"] for line in path.read_text().splitlines()] == [1, 2]

    path.unlink()  # somebody removed it
    log = MetricsLog(path, position)
    log.write(update(3))
    log.close()
    assert len(path.read_text().splitlines()) == 1


def trained(folder: Path, *listeners: Listener, tensorboard: bool = False) -> None:
    settings = {
        "updates": 4, "validate_every": 2, "tensorboard": tensorboard, "precision": "fp32",
        "metric": "bleu",
    }  # fmt: skip
    toy_trainer(
        Toy(),
        TrainingSettings.model_validate(settings),
        seed=1,
        batches=toy_batches,
        schedule=lambda _: 0.01,
        folder=folder,
        evaluate=lambda n: Evaluation({"bleu": float(n)}, (Sample("a", "b", "c"),)),
        listeners=listeners,
    ).run()


def test_listeners_hear_everything_in_order(tmp_path: Path) -> None:
    follower = Follower()
    trained(tmp_path, follower)
    assert follower.told == [
        *("begin 0", "update 1", "update 2", "validation 2"),
        *("update 3", "update 4", "validation 4", "end"),
    ]


def test_tensorboard_gets_the_records(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorBoard's own
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        trained(tmp_path, tensorboard=True)
        events = EventAccumulator(str(tmp_path / "tensorboard"))
        events.Reload()
    assert [e.step for e in events.Scalars("training/loss")] == [1, 2, 3, 4]
    assert [e.value for e in events.Scalars("validation/bleu")] == [2.0, 4.0]
    assert "samples/text_summary" in events.Tags()["tensors"]


def test_tensorboard_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(TrainingError, match=r"pip install '?tensorboard"):
        TensorBoard(tmp_path)
