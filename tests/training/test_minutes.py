"""Minutes turned into updates, and corrected once: in time, and the same when it is repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from follower import Follower
from hypothesis import given
from hypothesis import strategies as st
from training_toy import WIDTH, Toy, toy_batches, toy_trainer, validation_loss

from dragoman.training import trainer as trainer_module
from dragoman.training.minutes import (
    SHARE,
    VALIDATIONS,
    Correction,
    Pace,
    awaits_correction,
    can_correct,
    correct,
    planned_schedule,
    updates_in,
)
from dragoman.training.records import Evaluation
from dragoman.training.settings import TrainingSettings

seconds = st.floats(0.01, 10_000)


@given(seconds, seconds, st.one_of(st.just(0.0), seconds))
def test_a_plan_keeps_to_its_time_and_validations_to_their_share(
    given_time: float, per_update: float, per_validation: float
) -> None:
    updates, validations = updates_in(given_time, per_update, per_validation)
    assert updates >= 1 and 1 <= validations <= VALIDATIONS
    if validations > 1:
        assert validations * per_validation <= SHARE * given_time * (1 + 1e-9)
    if updates > 1:
        assert updates * per_update + validations * per_validation <= given_time * (1 + 1e-9)


def settings(**changes: Any) -> TrainingSettings:
    common = {
        "updates": 1000,
        "minutes": 10.0,
        "validate_every": 50,
        "snapshot_every": 10,
        "schedule": {"kind": "cosine", "warmup": 250, "peak": 0.01},
    }
    return TrainingSettings.model_validate(common | changes)


@given(st.integers(1, 999), st.floats(60, 900), st.floats(0.01, 100), st.floats(0, 100))
def test_a_corrected_plan_keeps_to_what_is_left_of_the_time(
    update: int, elapsed: float, per_update: float, per_validation: float
) -> None:
    plan = settings()
    after = correct(plan, update, elapsed, per_update, per_validation)
    assert after.first_plan is not None and after.first_plan.until == update
    assert after.at(update) == plan.model_copy(update={"first_plan": after.first_plan})
    assert after.at(update + 1) == after
    rest, left = after.updates - update, max(0.0, 600 - elapsed)
    assert rest >= 1
    if after.updates != plan.updates:
        assert rest == 1 or rest * per_update <= left * (1 + 1e-9)
        assert rest // after.validate_every <= VALIDATIONS
        assert rest / after.validate_every * per_validation <= max(per_validation, SHARE * left + 1)
    assert not awaits_correction(after, update)
    # What was changed is whole: a recipe can hold it.
    assert TrainingSettings.model_validate(json.loads(after.model_dump_json())) == after


@pytest.mark.parametrize("faster", [0.2, 3.0])
def test_a_corrected_plan_has_as_many_validations_for_its_time(faster: float) -> None:
    after = correct(settings(), 150 if faster > 1 else 90, 60.0, 0.6 / faster, 0.01)
    assert (after.updates - 90) / after.validate_every == pytest.approx(18, rel=0.1)


def test_a_plan_that_is_nearly_right_stays() -> None:
    plan = settings()
    after = correct(plan, 100, 61.0, 0.59, 0.1)
    assert after == plan.model_copy(update={"first_plan": after.first_plan})


def test_when_a_plan_is_counted_again() -> None:
    pace = Pace()
    for taken in (50.0, 5.0, 5.0, 5.0):
        pace.count_update(taken)
    assert pace.per_update == 5.0  # the first one warms up
    assert can_correct(65.0, pace) and not can_correct(59.0, pace)
    assert not can_correct(65.0, Pace(3, 10.0))
    assert awaits_correction(settings(), 5)
    assert not awaits_correction(settings(minutes=0), 5)
    assert not awaits_correction(settings(), 1000)


def test_the_rate_follows_the_plan_that_was_in_force() -> None:
    plan = settings()
    after = correct(plan, 100, 100.0, 5.0, 0.0)
    assert after.updates == 100 + 90  # what validations take is not known: a tenth
    before, both, alone = (
        planned_schedule(one, 64)
        for one in (plan, after, after.model_copy(update={"first_plan": None}))
    )
    assert [both(step) for step in range(1, 101)] == [before(step) for step in range(1, 101)]
    assert [both(step) for step in range(101, 191)] == [alone(step) for step in range(101, 191)]


class Runs:
    """Toy runs whose 60 planned updates become fewer after the seventh."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.plan = settings(
            updates=60, validate_every=6, snapshot_every=0, average_last=2, metric="loss",
            precision="fp32", checkpoint_every=4, schedule={"kind": "cosine", "warmup": 10},
        )  # fmt: skip
        self.kept: TrainingSettings = self.plan
        self.follower = Follower()

        def due(elapsed: float, pace: Pace) -> bool:
            return pace.updates >= 7

        def fixed(plan: TrainingSettings, update: int, *_: float) -> TrainingSettings:
            return correct(plan, update, 600 - 23.0, 1.0, 0.0)

        monkeypatch.setattr(trainer_module, "can_correct", due)
        monkeypatch.setattr(trainer_module, "correct", fixed)

    def train(
        self, name: str, plan: TrainingSettings, keep: Callable[[TrainingSettings], None]
    ) -> tuple[bytes, list[dict[str, Any]]]:
        """-> weights, and all records but for their times."""
        folder, model = self.folder / name, Toy(rate=0.2)
        folder.mkdir(exist_ok=True)
        toy_trainer(
            model, plan, seed=3, batches=toy_batches, schedule=planned_schedule(plan, WIDTH),
            folder=folder, evaluate=lambda _: Evaluation({"loss": validation_loss(model)}),
            listeners=[self.follower], correction=Correction(keep, WIDTH),
        ).run()  # fmt: skip
        lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
        times = ("seconds", "elapsed", "tokens_per_second")
        records = [{k: v for k, v in line.items() if k not in times} for line in lines]
        return (folder / "model.safetensors").read_bytes(), records

    def keep(self, plan: TrainingSettings) -> None:
        self.kept = plan


@pytest.mark.slow  # a run is trained again and again
def test_a_corrected_run_is_the_same_resumed_or_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(tmp_path, monkeypatch)
    whole = runs.train("whole", runs.plan, runs.keep)
    last = runs.kept.updates
    assert runs.kept.first_plan is not None and runs.kept.first_plan.until == 7 < last < 60
    assert f"plan {last}" in runs.follower.told
    assert whole[1][-1]["update"] == last

    def killed(plan: TrainingSettings) -> None:
        runs.keep(plan)
        raise SystemExit

    with pytest.raises(SystemExit):  # behind its checkpoint of update 4, on disk what was decided
        runs.train("killed", runs.plan, killed)
    assert runs.train("killed", runs.kept, pytest.fail) == whole
    assert runs.train("again", runs.kept, pytest.fail) == whole


def test_a_display_hears_of_a_plan_that_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(tmp_path, monkeypatch)

    def same(plan: TrainingSettings, update: int, *_: float) -> TrainingSettings:
        return correct(plan, update, 0.0, 600 / 60, 0.0).model_copy(update={"updates": 60})

    monkeypatch.setattr(trainer_module, "correct", same)
    runs.train("run", runs.plan, runs.keep)
    assert runs.kept.first_plan is not None and runs.kept.updates == 60
    assert runs.follower.told.count("plan 60") == 1
    assert not any("went faster" in one or "went slower" in one for one in runs.follower.told)
