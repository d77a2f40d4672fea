"""The fastest way to train is the one that was measured, whatever the processor's flags say."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from training_toy import Toy, toy_batch, toy_batches, toy_objective

from dragoman.base.errors import DragomanError
from dragoman.native import library, loader, processor
from dragoman.native.linear import PackedWeights, forward_rows
from dragoman.native.measured import measures
from dragoman.training import fastest_way
from dragoman.training.arithmetic import note, way_of_run, ways_here
from dragoman.training.checkpoint import TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.fastest_way import Timing, choose, time_ways
from dragoman.training.settings import TrainingSettings, TrainingWay, this_machine

CPU = torch.device("cpu")


def way(kernels: str, precision: str, threads: int = 2) -> TrainingWay:
    return TrainingWay.model_validate(
        {"kernels": kernels, "precision": precision, "threads": threads, "machine": this_machine()}
    )


FP32, LOW, PLAIN, PLAIN_LOW = (
    way(kernels, precision) for kernels in ("avx512", "plain") for precision in ("fp32", "bf16")
)
OLD = way("avx2", "fp32")
EVERY = [FP32, OLD, PLAIN, LOW, PLAIN_LOW]


def timed(
    seconds: dict[TrainingWay, float],
    noise: Callable[[TrainingWay, int], float] = lambda *_: 1.0,
    turns: int = 99,
) -> tuple[dict[TrainingWay, float], list[TrainingWay]]:
    """What is found where ``seconds`` are the true times, and in which order ways were timed."""
    asked: list[TrainingWay] = []

    def seconds_of(one: TrainingWay) -> float:
        asked.append(one)
        return seconds.get(one, 10.0) * noise(one, asked.count(one))

    return time_ways(EVERY, seconds_of, lambda: len(asked) < turns), asked


@pytest.mark.parametrize("fastest", EVERY)
@pytest.mark.parametrize("flags", [set(), {"avx512_bf16", "amx_bf16"}])
def test_the_fastest_is_taken_whatever_flags_say(
    fastest: TrainingWay, flags: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "cpu_flags", lambda: flags)
    seconds = dict.fromkeys(EVERY, 2.0) | {fastest: 1.0}
    assert choose(timed(seconds)[0]) == fastest


def test_bf16_must_be_worth_more_than_a_tenth() -> None:
    """It gives other results, so it is not taken for nothing."""
    assert choose({FP32: 1.09, PLAIN: 2.0, LOW: 1.0, PLAIN_LOW: 1.05}) == FP32
    assert choose({FP32: 1.11, PLAIN: 2.0, LOW: 1.0, PLAIN_LOW: 1.05}) == LOW
    assert choose({LOW: 3.0, PLAIN_LOW: 1.0}) == PLAIN_LOW


def test_a_noisy_neighbour_does_not_choose() -> None:
    """Whoever it disturbs at first is timed again, and its least time counts."""
    seconds = dict.fromkeys(EVERY, 1.5) | {OLD: 1.0}

    def disturbs(one: TrainingWay, turn: int) -> float:
        return 1.9 if one == OLD and turn < 3 else 1.0

    found, asked = timed(seconds, disturbs)
    assert choose(found) == OLD and found[OLD] == 1.0
    # In turns, not one after the other.
    assert asked[: len(EVERY)] == EVERY


def test_what_is_far_behind_is_left_alone_and_what_is_near_is_timed_again() -> None:
    _, asked = timed({FP32: 1.0, OLD: 1.1, PLAIN: 3.0, LOW: 5.0, PLAIN_LOW: 9.0})
    assert asked.count(OLD) == asked.count(FP32) > 4
    assert asked.count(PLAIN) == asked.count(LOW) == asked.count(PLAIN_LOW) == 1


def test_fewer_threads_are_tried_where_that_is_faster() -> None:
    eight = {one: one.on(8) for one in EVERY}
    asked: list[TrainingWay] = []

    def seconds_of(one: TrainingWay) -> float:
        asked.append(one)
        return {8: 2.0, 4: 1.5, 2: 1.0, 1: 1.9}[one.threads] * (1 if one.kernels == "avx512" else 4)

    found = time_ways([*eight.values()], seconds_of, lambda: True)
    assert choose(found) == FP32.on(2)
    assert {one.threads for one in asked if one.kernels == "avx2"} == {8}


def test_little_time_is_kept_to() -> None:
    seconds = dict.fromkeys(EVERY, 1.0)
    _, asked = timed(seconds, turns=1)
    assert len(asked) == 2 * len(EVERY)


# ---- on this machine


def measured(model: Toy, folder: Path | None = None, **settings: Any) -> fastest_way.MeasuredWays:
    return fastest_way.fastest_way(
        model, toy_objective(model, 0.1), TrainingSettings(**settings), toy_batches,
        remembered=folder, work="toy",
    )  # fmt: skip


@pytest.fixture(autouse=True)
def unforced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever runs the tests may force one set of kernels, which leaves has only one value."""
    forced = os.environ.get("DRAGOMAN_NATIVE", "auto") != "auto"
    if forced:
        monkeypatch.delenv("DRAGOMAN_NATIVE")
        library.reset()
    yield
    if forced:
        monkeypatch.undo()
        library.reset()


@pytest.fixture
def shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time for more than two turns."""
    monkeypatch.setattr(fastest_way, "Timing", partial(Timing, most=0.0))


def test_every_way_of_this_machine_is_timed_and_weights_stay(shortly: None, tmp_path: Path) -> None:
    model = Toy()
    before = [one.detach().clone() for one in model.parameters()]
    found = measured(model, tmp_path)
    ways = ways_here(model, TrainingSettings(), CPU)
    assert set(found.rates) >= set(ways) and found.way in found.rates
    assert {one.kernels for one in ways} >= {
        "plain",
        *filter(None, [library.status().level and "avx2"]),
    }
    assert all(rate > 0 for rate in found.rates.values())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    told = found.to_dict()
    assert told["chosen"] == found.way.model_dump()
    assert f"{found.way.threads} thread" in found.summary("tokens")


def test_what_was_measured_is_not_measured_again(
    shortly: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measured(Toy(), tmp_path)
    monkeypatch.setattr(fastest_way, "time_ways", None)
    again = measured(Toy(), tmp_path)
    assert again.way == first.way and again.rates == pytest.approx(first.rates, rel=1e-3)
    monkeypatch.setattr(processor, "all_cores", lambda: 77)
    with pytest.raises(TypeError):  # another machine
        measured(Toy(), tmp_path)


def test_on_a_gpu_first_passes_do_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They load code. What is fastest there is remembered beside what is fastest on the CPU."""
    ways = [
        one.model_copy(update={"machine": this_machine("Some GPU")}) for one in (PLAIN, PLAIN_LOW)
    ]
    runs: list[TrainingWay] = []

    def run(self: Any, one: TrainingWay, passes: int) -> tuple[float, float]:
        seconds = 30.0 if one not in runs else 1.0 if one.precision == "fp32" else 0.5
        runs.append(one)
        self._tokens = 9.0
        return seconds, seconds

    with monkeypatch.context() as patched:
        patched.setattr(fastest_way, "ways_here", lambda *_: ways)
        patched.setattr(fastest_way._Trials, "_run", run)
        found = measured(Toy(), tmp_path)
        assert found.way == ways[1] and set(found.rates) == set(ways)
        assert found.summary("tokens").startswith("Some GPU in bf16: ")
        assert "2.0 times Some GPU in fp32" in found.summary("tokens")
        patched.setattr(fastest_way._Trials, "_run", None)
        assert measured(Toy(), tmp_path).way == ways[1]
    monkeypatch.setattr(fastest_way, "ways_here", lambda *_: [PLAIN, PLAIN_LOW])
    monkeypatch.setattr(fastest_way, "time_ways", None)
    with pytest.raises(TypeError):
        measured(Toy(), tmp_path)


def test_on_a_gpu_few_examples_do_not_stand_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take it nearly as long, and bf16, which starts more work, longer than fp32."""
    ways = [
        one.model_copy(update={"machine": this_machine("Some GPU")}) for one in (PLAIN, PLAIN_LOW)
    ]
    sizes: list[int] = []

    def run(self: Any, one: TrainingWay, passes: int) -> tuple[float, float]:
        (make,) = self._part
        sizes.append(len(make()))
        start, each = (0.028, 8e-4) if one.precision == "fp32" else (0.033, 3e-4)
        self._tokens = 9.0
        return (start + each * sizes[-1],) * 2

    monkeypatch.setattr(fastest_way, "ways_here", lambda *_: ways)
    monkeypatch.setattr(fastest_way._Trials, "_run", run)
    for sentences, timed_on in ((64, 64), (1024, 256)):  # no pass takes more than 0.25 s
        sizes.clear()
        model, batch = Toy(), toy_batch(1, sentences)
        found = fastest_way.fastest_way(
            model, toy_objective(model, 0.1), TrainingSettings(),
            lambda *_, batch=batch: [lambda: batch],
        )  # fmt: skip
        assert found.way == ways[1] and sizes[-1] == pytest.approx(timed_on, rel=0.1)


def test_settings_and_the_environment_go_on_forcing(monkeypatch: pytest.MonkeyPatch) -> None:
    def kinds(**settings: Any) -> set[tuple[str, str]]:
        model = Toy()
        return {
            (one.kernels, one.precision)
            for one in ways_here(model, TrainingSettings(**settings), CPU)
        }

    assert {precision for _, precision in kinds(precision="fp32")} == {"fp32"}
    assert {precision for _, precision in kinds(precision="bf16")} == {"bf16"}
    assert {kernels for kernels, _ in kinds(kernels="plain")} == {"plain"}
    if library.available():
        try:
            monkeypatch.setenv("DRAGOMAN_NATIVE", "avx2")
            library.reset()
            assert kinds() == {("avx2", "fp32")}
            monkeypatch.setenv("DRAGOMAN_NATIVE", "off")
            library.reset()
            assert {kernels for kernels, _ in kinds()} == {"plain"}
        finally:
            monkeypatch.undo()
            library.reset()
    monkeypatch.setenv("DRAGOMAN_MEASURE", "off")
    assert not measures()
    monkeypatch.setenv("DRAGOMAN_MEASURE", "auto")
    assert measures()
    monkeypatch.setenv("DRAGOMAN_MEASURE", "never")
    with pytest.raises(DragomanError, match="is not one of auto, off"):
        measures()


def test_bf16_that_would_be_imitated_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "cpu_flags", set)
    ways = ways_here(Toy(), TrainingSettings(kernels="plain"), CPU)
    assert [one.precision for one in ways] == ["fp32"]
    asked_for = ways_here(Toy(), TrainingSettings(kernels="plain", precision="bf16"), CPU)
    assert [one.precision for one in asked_for] == ["bf16"]


# ---- what a run keeps


def state_of(one: TrainingWay) -> TrainingState:
    state = TrainingState()
    note(one, state, Ranks())
    return state


def test_a_run_goes_on_by_the_way_that_it_was_begun_with() -> None:
    model, begun = Toy(), way("plain", "bf16", 1)
    other = TrainingSettings(way=way("plain", "fp32", 1))
    assert way_of_run(model, other, state_of(begun), Ranks()) == (begun, None)
    forced = TrainingSettings(precision="fp32")
    assert way_of_run(model, forced, state_of(begun), Ranks())[0].precision == "fp32"


def test_a_way_that_this_machine_has_not_keeps_the_precision_and_says_so() -> None:
    begun = replace(state_of(way("plain", "bf16", 1)), kernels="neon")
    found, warning = way_of_run(Toy(), TrainingSettings(), begun, Ranks())
    assert found.precision == "bf16"
    assert warning is not None and "was begun with neon kernels" in warning
    assert "in the last digits" in warning


def test_a_run_that_moves_between_gpu_and_cpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = replace(state_of(way("plain", "fp32", 1)), gpu="Some GPU")
    found, warning = way_of_run(Toy(), TrainingSettings(), begun, Ranks())
    assert found == ways_here(Toy(), TrainingSettings(precision="fp32"), CPU)[0]
    assert warning is not None and "begun on Some GPU and is resumed on a CPU" in warning
    monkeypatch.setattr("dragoman.training.arithmetic.gpu_name", lambda device: "Some GPU")
    fewer = replace(begun, threads=77, cores=99)
    assert way_of_run(Toy(), TrainingSettings(), fewer, Ranks())[1] is None, "threads are of CPUs"
    _, warning = way_of_run(Toy(), TrainingSettings(), replace(begun, gpu=""), Ranks())
    assert warning is not None and "begun on a CPU and is resumed on Some GPU" in warning


def test_a_way_that_was_measured_on_another_machine_does_not_hold_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.training.arithmetic.no_bf16_units", lambda: None)
    wished = way("plain", "bf16", 1)
    here = TrainingSettings(way=wished)
    assert way_of_run(Toy(), here, TrainingState(), Ranks())[0] == wished
    there = TrainingSettings(way=wished.model_copy(update={"machine": "another"}))
    found, _ = way_of_run(Toy(), there, TrainingState(), Ranks())
    assert found == way_of_run(Toy(), TrainingSettings(), TrainingState(), Ranks())[0] != wished


def test_kernels_that_are_wrong_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Toy()
    monkeypatch.setattr(library, "agrees", lambda level: False)
    assert measured(model).way.kernels == "plain"
    assert way_of_run(model, TrainingSettings(), TrainingState(), Ranks())[0].kernels == ("plain")


# ---- levels of kernels beside each other in one process


def test_weights_are_read_by_the_kernels_that_they_were_packed_for() -> None:
    """Each level lays them out in its own order."""
    x, weight = torch.randn(5, 24), torch.randn(40, 24)
    packed = {}
    for level in loader.levels_offered():
        with loader.using(level):
            packed[level] = PackedWeights([weight], "fp32")
    for level, one in itertools.product(loader.levels_offered(), packed.values()):
        with loader.using(level):
            torch.testing.assert_close(forward_rows(x, one, None), x @ weight.t())


def test_a_level_is_in_use_for_a_while() -> None:
    best = loader.level_in_use()
    for level in loader.levels_offered():
        with loader.using(level):
            assert loader.level_in_use() == level
            with loader.using(None):
                assert loader.level_in_use() == best
    with loader.using("none such"):
        assert loader.level_in_use() == best
    assert loader.level_in_use() == best


# ---- how many cores there are


def group(root: Path, name: str, **files: str) -> None:
    folder = root / "sys/fs/cgroup" / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text, encoding="ascii")


def quota_of_1(quota: str) -> dict[str, str]:
    return {"cpu__cfs_quota_us": f"{quota}\n", "cpu__cfs_period_us": "100000\n"}


@pytest.mark.parametrize(
    ("of", "files", "cores"),
    [
        ("0::/pod/box\n", {"pod/box": {"cpu__max": "150000 100000\n"}}, 2),
        ("0::/pod/box\n", {"pod/box": {"cpu__max": "max 100000\n"}}, 16),
        ("0::/pod/box\n", {"pod/box": {"cpu__max": "max 1"}, "pod": {"cpu__max": "3000 1000"}}, 3),
        ("0::/\n", {"": {"cpu__max": "50000 100000\n"}}, 1),
        ("0::/../of/the/host\n", {"": {"cpu__max": "400000 100000\n"}}, 4),
        ("4:cpu,cpuacct:/b\n1:name=systemd:/\n", {"cpu,cpuacct/b": quota_of_1("250000")}, 3),
        ("4:cpu,cpuacct:/b\n", {"cpu": quota_of_1("-1")}, 16),
        ("4:cpu:/b\n", {"cpu": quota_of_1("100000")}, 1),
        ("", {}, 16),
        ("nonsense\n", {"": {"cpu__max": "a b c"}}, 16),
        ("0::/\n", {"": {"cpu__max": "9900000 100000\n"}}, 16),
    ],
)
def test_the_quota_of_a_container_counts_as_its_cores(
    of: str, files: dict[str, dict[str, str]], cores: int,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(of, encoding="ascii")
    for name, some in files.items():
        group(tmp_path, name, **some)
    monkeypatch.setattr(processor, "_ROOT", tmp_path)
    monkeypatch.setattr(processor, "affinity", lambda: 16)
    assert processor.cores() == cores
