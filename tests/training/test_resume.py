"""A run killed at any moment ends as one that was not; stopping, locks, full disks."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor
from training_toy import Toy, ToyRun, run_in_process, start, toy_batches, toy_objective

from dragoman.base.errors import RunError
from dragoman.training.checkpoint import Checkpoints, TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import Splits
from dragoman.training.settings import TrainingSettings
from dragoman.training.update import Updater
from dragoman.training.weights import load_weights

pytestmark = pytest.mark.system


def started(run: ToyRun) -> BaseProcess:
    return start(run_in_process, run)


def finished(run: ToyRun) -> ToyRun:
    """Run (or resume) to the end."""
    process = started(run)
    process.join(60)
    assert process.exitcode == 0, (run.folder / "said").read_text()
    return run


def said(run: ToyRun) -> str:
    return (run.folder / "said").read_text()


def records(run: ToyRun) -> list[dict[str, Any]]:
    """What metrics.jsonl says, times aside."""
    lines = (run.folder / "metrics.jsonl").read_text().splitlines()
    timed = ("seconds", "elapsed", "tokens_per_second")
    return [{k: v for k, v in json.loads(line).items() if k not in timed} for line in lines]


def assert_same_end(run: ToyRun, uninterrupted: ToyRun) -> None:
    assert records(run) == records(uninterrupted)
    updates = [r["update"] for r in records(run) if r["kind"] == "update"]
    assert updates == list(range(1, run.updates + 1))
    assert tensors(run) == tensors(uninterrupted)
    assert "film/00000000.safetensors" in tensors(run)


def tensors(run: ToyRun) -> dict[str, bytes]:
    """All weights and moments; only how often the last update was saved may differ."""
    found = {
        re.sub(r"(checkpoint-\d+)-\d+", r"\1", str(path.relative_to(run.folder))): path.read_bytes()
        for path in run.folder.rglob("*.safetensors")
    }
    assert {Path(name).name for name in found} >= {"model.safetensors", "second.safetensors"}
    return found


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> ToyRun:
    return finished(ToyRun(tmp_path_factory.mktemp("uninterrupted") / "run"))


def kill_again_and_again(run: ToyRun, kills: int, draw: random.Random) -> int:
    """Kill at random moments, every other time inside the writing of a file -> how many of those
    left something half-written behind."""
    halves = killed = 0
    while killed < kills:
        if killed % 2:
            process = started(replace(run, kill_at_sync=draw.randint(1, 40)))
            process.join(60)
        else:
            process = started(run)
            process.join(draw.uniform(0.0, 0.3))
            process.kill()  # not os.kill: it may have ended by itself
            process.join(60)
        halves += any(run.folder.rglob(".writing-*"))
        if process.exitcode == 0:  # it came to its end first: begin anew
            shutil.rmtree(run.folder)
        else:
            assert process.exitcode == -signal.SIGKILL, said(run)
            killed += 1
    return halves


@pytest.mark.slow  # ten processes that import torch
def test_ten_kills_change_nothing(tmp_path: Path, uninterrupted: ToyRun) -> None:
    run = replace(uninterrupted, folder=tmp_path / "run")
    assert kill_again_and_again(run, 10, random.Random(1)) >= 2
    assert_same_end(finished(run), uninterrupted)


@pytest.mark.slow
def test_two_hundred_kills_change_nothing(tmp_path: Path, uninterrupted: ToyRun) -> None:
    for number in range(20):
        run = replace(uninterrupted, folder=tmp_path / str(number))
        kill_again_and_again(run, 10, random.Random(number))
        assert_same_end(finished(run), uninterrupted)


def test_a_kill_at_every_single_write_changes_nothing(
    tmp_path: Path, uninterrupted: ToyRun
) -> None:
    """The last of the first checkpoint, which has seven, and all of the second, of update 4."""
    for sync in range(6, 15):
        run = replace(uninterrupted, folder=tmp_path / str(sync), updates=5)
        process = started(replace(run, kill_at_sync=sync))
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        for folder in (run.folder, run.folder / "training", run.folder / "training" / "snapshots"):
            folder.mkdir(exist_ok=True)
            (folder / ".writing-before").touch()
        finished(run)
        updates = [r for r in records(run) if r["kind"] == "update"]
        assert updates == records(uninterrupted)[:5]
        assert not any(run.folder.rglob(".writing-*"))


def wait_for(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def lines(run: ToyRun) -> int:
    path = run.folder / "metrics.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def test_muon_goes_on_to_the_last_bit(tmp_path: Path) -> None:
    settings = {"optimizer": {"kind": "muon", "weight_decay": 0.1}}
    whole = finished(ToyRun(tmp_path / "whole", 12, settings))
    run = replace(whole, folder=tmp_path / "run")
    process = started(replace(run, kill_at_sync=12))
    process.join(60)
    assert process.exitcode == -signal.SIGKILL and Checkpoints(run.folder / "training").exists
    assert_same_end(finished(run), whole)
    momenta = load_weights(next(whole.folder.rglob("first.safetensors"))).tensors
    assert momenta["inner.weight"].any()


def test_a_checkpoint_of_another_optimizer_is_refused(tmp_path: Path) -> None:
    run = finished(ToyRun(tmp_path, 4))
    with pytest.raises(RunError, match=r'moments of adam, and .*optimizer\.kind is "muon"'):
        replace(run, updates=8, settings={"optimizer": {"kind": "muon"}}).train()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_saves_and_names_the_resume_command(
    tmp_path: Path, uninterrupted: ToyRun, number: int
) -> None:
    run = replace(uninterrupted, folder=tmp_path / "run")
    process = started(replace(run, seconds_per_update=0.02))
    wait_for(lambda: lines(run) >= 7)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode == 0
    done = records(run)[-1]["update"]
    assert 7 <= done < run.updates
    assert f"stopped at update {done} of 40; everything is saved" in said(run)
    assert f"dragoman resume {run.folder}" in said(run)
    assert Checkpoints(run.folder / "training").latest().state.update == done
    assert_same_end(finished(run), uninterrupted)


def test_a_request_during_validation_stops_at_once_and_validates_later(
    tmp_path: Path, uninterrupted: ToyRun
) -> None:
    run = replace(uninterrupted, folder=tmp_path / "run")
    # Longer than is waited below: whoever waited for it would not have ended.
    process = started(replace(run, slow_validation=120.0))
    wait_for((run.folder / "validating").exists)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    assert process.exitcode == 0
    assert "stopped at update 10 of 40" in said(run)
    assert [r["kind"] for r in records(run)] == ["update"] * 10
    assert_same_end(finished(run), uninterrupted)


def test_a_third_request_stops_unsaved(tmp_path: Path) -> None:
    run = ToyRun(tmp_path / "run", seconds_per_update=10)
    process = started(run)
    wait_for((run.folder / "updating").exists)
    assert process.pid is not None
    while process.is_alive():
        os.kill(process.pid, signal.SIGINT)
        process.join(0.1)
    assert process.exitcode == 1
    assert lines(run) == 0


def test_a_finished_run_stays_as_it_is_and_can_be_made_longer(
    tmp_path: Path, uninterrupted: ToyRun
) -> None:
    run = replace(uninterrupted, folder=tmp_path / "run", updates=20)
    finished(run)
    before = (run.folder / "metrics.jsonl").read_bytes()
    finished(run)
    assert (run.folder / "metrics.jsonl").read_bytes() == before
    longer = finished(replace(run, updates=40))
    updates = [r for r in records(longer) if r["kind"] == "update"]
    assert updates == [r for r in records(uninterrupted) if r["kind"] == "update"]


@pytest.mark.parametrize("when", ["always", "while saving"])
def test_a_full_disk_leaves_the_old_checkpoint(
    tmp_path: Path, uninterrupted: ToyRun, when: Literal["always", "while saving"]
) -> None:
    run = finished(
        replace(uninterrupted, folder=tmp_path / "run", updates=20, settings={"film": 0})
    )
    before = tensors(run)
    longer = replace(run, updates=uninterrupted.updates)
    process = started(replace(longer, full_disk=when))
    process.join(60)
    assert process.exitcode == 1
    if when == "while saving":  # else the words do not fit on the disk either
        assert "File too large. The disk is full" in said(run)
        assert "unchanged" in said(run) and "Traceback" not in said(run)
    assert tensors(run) == before
    assert not any(run.folder.rglob(".writing-*"))
    done = [r for r in records(finished(longer)) if r["kind"] == "update"]
    assert done == [r for r in records(uninterrupted) if r["kind"] == "update"]


def test_only_one_process_trains_in_a_folder(tmp_path: Path) -> None:
    run = ToyRun(tmp_path / "run", seconds_per_update=0.05)
    process = started(run)
    wait_for(lambda: lines(run) > 0)
    with pytest.raises(RunError, match=rf"in use by another process \(process {process.pid}\)"):
        run.train()
    process.kill()
    process.join()
    finished(replace(run, seconds_per_update=0.0))


@pytest.fixture
def copied(tmp_path: Path, uninterrupted: ToyRun) -> ToyRun:
    """A run that came to its end, in a folder of its own."""
    shutil.copytree(uninterrupted.folder, tmp_path / "run")
    return replace(uninterrupted, folder=tmp_path / "run")


def checkpoint_of(run: ToyRun) -> Path:
    return next(run.folder.glob("training/checkpoint-*"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    """Change one bit, late in the file: a weight that is another number."""
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, cut, flip])
@pytest.mark.parametrize("name", ["weights", "first", "second", "ema"])
def test_a_file_of_a_checkpoint_that_is_not_as_it_was_ends_the_resume(
    copied: ToyRun, name: str, damage: Callable[[Path], None]
) -> None:
    folder = checkpoint_of(copied)
    damage(folder / f"{name}.safetensors")
    what = "missing" if damage is Path.unlink else "damaged"
    with pytest.raises(RunError) as caught:
        Checkpoints(copied.folder / "training").latest()
    told = str(caught.value)
    assert f"{folder / name}.safetensors is {what}" in told
    assert "start a new run" in told and f"dragoman train FILES --from {copied.folder}" in told
    # What a kill left between two checkpoints is a way out.
    shutil.copytree(folder, folder.with_name("checkpoint-00000004-0"))
    with pytest.raises(RunError, match=f"Remove {folder}: dragoman resume {copied.folder} then"):
        Checkpoints(copied.folder / "training").latest()


def rewritten_as(run: ToyRun, written: int) -> None:
    """The state as an earlier version wrote it."""
    path = checkpoint_of(run) / "state.json"
    content = json.loads(path.read_text()) | {"format": written}
    del content["files"], content["snapshots"]
    path.write_text(json.dumps(content))


def test_a_checkpoint_of_before_goes_on_with_one_warning(
    tmp_path: Path, uninterrupted: ToyRun
) -> None:
    run = finished(replace(uninterrupted, folder=tmp_path / "run", updates=20))
    rewritten_as(run, 4)
    assert said(finished(replace(run, updates=40))).count("older version") == 1
    before, after = records(uninterrupted), records(run)
    updates = [[r for r in found if r["kind"] == "update"] for found in (before, after)]
    assert updates[0] == updates[1]
    rewritten_as(run, 4)
    (checkpoint_of(run) / "second.safetensors").unlink()
    with pytest.raises(RunError, match=r"second\.safetensors is missing"):
        Checkpoints(run.folder / "training").latest()


@pytest.mark.parametrize("damage", [Path.unlink, flip])
def test_the_average_is_not_made_of_other_snapshots(
    tmp_path: Path, uninterrupted: ToyRun, damage: Callable[[Path], None]
) -> None:
    run = finished(replace(uninterrupted, folder=tmp_path / "run", updates=20))
    snapshots = Checkpoints(run.folder / "training")
    snapshots.check_snapshots(2)
    path = run.folder / "training" / "snapshots" / "00000010.safetensors"
    damage(path)
    what = "missing" if damage is Path.unlink else "damaged"
    with pytest.raises(RunError, match=f"{path} is {what}.* one of the last 2 snapshots"):
        snapshots.check_snapshots(2)
    process = started(replace(run, updates=30))
    process.join(60)
    assert process.exitcode == 1 and f"{path} is {what}" in said(run)
    # One that went to make room for a snapshot behind the checkpoint is not missed.
    snapshots.snapshot(30, load_weights(path.with_name("00000020.safetensors")).tensors, keep=2)
    assert not path.exists()
    snapshots.check_snapshots(2)


def test_a_run_copied_by_half_says_what_is_lost(copied: ToyRun, uninterrupted: ToyRun) -> None:
    """Weights of an earlier moment beside the newest checkpoint, and records that end too soon."""
    before = uninterrupted.folder / "training" / "snapshots" / "00000010.safetensors"
    shutil.copy(before, copied.folder / "model.safetensors")
    cut(copied.folder / "metrics.jsonl")
    finished(replace(copied, updates=44))
    assert "model.safetensors is older than the weights of update" in said(copied)
    assert "metrics.jsonl is shorter than when this checkpoint was saved" in said(copied)
    assert [r["update"] for r in records(copied) if r["kind"] == "update"][-5:] == [*range(40, 45)]


def test_damaged_states_are_told_in_words(copied: ToyRun) -> None:
    path = checkpoint_of(copied) / "state.json"
    whole = path.read_text()

    def told(text: str) -> str:
        path.write_text(text)
        with pytest.raises(RunError) as caught:
            Checkpoints(copied.folder / "training").latest()
        return str(caught.value)

    def of_format(number: int) -> str:
        return re.sub('"format": [0-9]+', f'"format": {number}', whole)

    for damaged in (whole[:-7], of_format(0), whole.replace('"steps": ', '"steps": -')):
        assert "is damaged" in told(damaged) and "start a new run" in told(damaged)
    assert "newer version" in told(of_format(99))
    assert "before 0.1.0" in told(of_format(3))
    assert "dragoman train FILES --from RUN" in told(of_format(3))
    path.unlink()
    with pytest.raises(RunError, match=r"state\.json is missing, so training cannot be resumed"):
        Checkpoints(copied.folder / "training").latest()
    shutil.rmtree(path.parent)
    with pytest.raises(RunError, match="has no checkpoint"):
        Checkpoints(copied.folder / "training").latest()


def test_masks_come_from_where_they_came_when_the_run_began(tmp_path: Path) -> None:
    """A run that began without kernels cuts all from the pool; kernels make them otherwise."""
    state = TrainingState()
    settings = TrainingSettings.model_validate({"precision": "fp32"})
    model = Toy(rate=0.5)
    updater = Updater(model, toy_objective(model, 0.0), settings, lambda _: 0.1, Ranks())

    def gradients(state: TrainingState) -> Tensor:
        updater.repeat_choices(state)
        found = updater.gradients(1, Splits(tmp_path / "splits"), lambda _: None)
        found.accumulate(3, toy_batches(3))
        return found.buffer.clone()

    now = gradients(state)
    if state.kernels == "plain":
        pytest.skip("this machine has no native kernels")
    assert state.masks == "kernels" and torch.equal(gradients(state), now)
    older = replace(state, masks="pool")
    before = gradients(older)
    assert not torch.allclose(before, now, rtol=0.01)
    assert torch.equal(gradients(TrainingState.from_json(older.to_json(), tmp_path)), before)


def test_weights_at_the_end_say_which_they_are(uninterrupted: ToyRun) -> None:
    metadata = load_weights(uninterrupted.folder / "model.safetensors").metadata
    assert metadata["weights"] in ("best", "average")
    best = [r for r in records(uninterrupted) if r["kind"] == "validation" and r["best"]][-1]
    assert metadata["update"] == str(best["update"])
    assert float(metadata["value"]) == best["scores"]["loss"]


def test_an_ended_run_without_its_weights_validates_the_last_again(tmp_path: Path) -> None:
    run = finished(ToyRun(tmp_path / "run", updates=20, settings={"average_last": 0}))
    path = run.folder / "model.safetensors"
    path.unlink()
    finished(run)
    told = said(run)
    assert "is missing or damaged" in told and "no validation gave a finite" not in told
    metadata = load_weights(path).metadata
    assert (metadata["weights"], metadata["update"]) == ("best", "20")
