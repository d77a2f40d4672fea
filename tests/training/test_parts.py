"""The parts of training against formulas, against torch, and against their own plain versions."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch.nn import functional as F
from training_toy import Toy

from dragoman.base.atomic import creating_folder, replacing_file, sweep
from dragoman.base.errors import FileError, RunError
from dragoman.data.hashing import torch_seed
from dragoman.native import allocator, processor
from dragoman.training.checkpoint import Checkpoints, TrainingState
from dragoman.training.losses.loss import PiecewiseCrossEntropy, smoothed_cross_entropy
from dragoman.training.optimizer import Adam, FlatParameters
from dragoman.training.schedule import ScheduleSettings, make_schedule
from dragoman.training.settings import OptimizerSettings, TrainingSettings
from dragoman.training.weights import (
    MovingAverage,
    average_weights,
    load_weights,
    save_weights,
    swap,
)

# ---- schedules


@given(step=st.integers(1, 200_000), warmup=st.integers(1, 20_000), width=st.integers(1, 4096))
def test_noam_is_equation_3(step: int, warmup: int, width: int) -> None:
    schedule = make_schedule(
        ScheduleSettings(kind="noam", warmup=warmup), model_dim=width, updates=100_000
    )
    paper = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
    assert schedule(step) == pytest.approx(paper, rel=1e-12)


def test_the_base_model_peaks_where_the_paper_does() -> None:
    schedule = make_schedule(ScheduleSettings(), model_dim=512, updates=100_000)
    rates = [schedule(step) for step in range(1, 10_000)]
    assert rates.index(max(rates)) + 1 == 4000
    assert max(rates) == pytest.approx(7e-4, rel=0.01)


@pytest.mark.parametrize("kind", ["inverse_square_root", "cosine", "constant"])
@pytest.mark.parametrize("warmup", [0, 1, 10])
def test_other_schedules_rise_to_their_peak(kind: str, warmup: int) -> None:
    settings = ScheduleSettings.model_validate(
        {"kind": kind, "warmup": warmup, "peak": 0.3, "floor": 0.01}
    )
    schedule = make_schedule(settings, model_dim=8, updates=50)
    rates = [schedule(step) for step in range(1, 51)]
    top = max(warmup, 1)
    assert rates[:top] == pytest.approx([0.3 * n / top for n in range(1, top + 1)], rel=0.01)
    assert max(rates) <= 0.3 + 1e-12
    assert all(
        before >= after for before, after in zip(rates[top:], rates[top + 1 :], strict=False)
    )
    end = {"inverse_square_root": 0.3 * math.sqrt(top / 50), "cosine": 0.01, "constant": 0.3}[kind]
    assert rates[-1] == pytest.approx(end)


# ---- seeds


def test_keys_differ_in_every_part_and_in_order() -> None:
    keys = {torch_seed(a, b, c) for a in range(10) for b in range(10) for c in range(10)}
    assert len(keys) == 1000
    assert all(0 <= k < 2**63 for k in keys)
    assert len({k & 0xFFFFFFFF for k in keys}) == 1000  # torch's CPU generator uses 32 bits


# ---- loss


@given(
    rows=st.integers(1, 9),
    vocabulary=st.integers(2, 30),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    at_once=st.integers(1, 100),
    seed=st.integers(0, 99),
)
def test_loss_and_gradients_are_torchs(
    rows: int, vocabulary: int, smoothing: float, at_once: int, seed: int
) -> None:
    torch.manual_seed(seed)
    hidden = torch.randn(rows, 5, requires_grad=True)
    weight = torch.randn(vocabulary, 5, requires_grad=True)
    unused = torch.randn(3, requires_grad=True)
    targets = torch.randint(vocabulary, (rows,))

    expected = F.cross_entropy(
        hidden @ weight.T, targets, label_smoothing=smoothing, reduction="sum"
    )
    expected_gradients = torch.autograd.grad(expected, (hidden, weight))
    plain = F.cross_entropy(hidden @ weight.T, targets, reduction="sum")

    pieces = PiecewiseCrossEntropy(lambda h: h @ weight.T, [unused, weight], smoothing, at_once)
    loss, nll = pieces(hidden, targets)
    torch.testing.assert_close(loss.float(), expected)
    torch.testing.assert_close(nll.float(), plain)
    assert not nll.requires_grad
    (3 * loss).backward()
    torch.testing.assert_close(hidden.grad, 3 * expected_gradients[0])
    torch.testing.assert_close(weight.grad, 3 * expected_gradients[1])
    assert unused.grad is None

    with torch.no_grad():
        torch.testing.assert_close(pieces(hidden, targets), (loss, nll))
    reference = smoothed_cross_entropy(hidden @ weight.T, targets, smoothing)
    torch.testing.assert_close(reference, (expected, plain))


def test_loss_never_holds_all_logits() -> None:
    rows, vocabulary = 64, 1000
    sizes = []
    weight = torch.randn(vocabulary, 4, requires_grad=True)

    def project(hidden: torch.Tensor) -> torch.Tensor:
        sizes.append(len(hidden))
        return hidden @ weight.T

    loss, _ = PiecewiseCrossEntropy(project, [weight], 0.1, logits_at_once=8 * vocabulary)(
        torch.randn(rows, 4, requires_grad=True), torch.zeros(rows, dtype=torch.long)
    )
    loss.backward()
    assert max(sizes) == 8
    assert sum(sizes) == rows + 1  # one row to see what the projection uses; none twice


# ---- Adam


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_flat_adam_is_torchs_adam(decay: float) -> None:
    ours, theirs = Toy(1), Toy(1)
    flat = FlatParameters(ours.named_parameters())
    settings = OptimizerSettings(weight_decay=decay)
    adam = Adam(flat, settings)
    kind = torch.optim.AdamW if decay else torch.optim.Adam
    reference = kind(
        theirs.parameters(), lr=0.1, betas=(0.9, 0.98), eps=1e-9, weight_decay=decay, fused=False
    )
    for step in range(1, 6):
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            other.grad = torch.randn_like(other)
            assert mine.grad is not None
            mine.grad.copy_(5 * other.grad)
        rate = 0.1 / step
        reference.param_groups[0]["lr"] = rate
        reference.step()
        adam.step(rate, divisor=5.0)
        assert adam.steps == step
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, other)


def test_adam_in_pieces_on_several_threads_is_the_same_to_the_last_bit() -> None:
    def moved(threads: int) -> list[torch.Tensor]:
        torch.manual_seed(0)
        flat = FlatParameters(torch.nn.Linear(1024, 2500).named_parameters())  # three pieces
        adam = Adam(flat, OptimizerSettings())
        for step in range(1, 4):
            flat.gradients.normal_()
            adam.step(0.1 / step, 5.0, threads)
        return [flat.values, flat.gradients, adam.first, adam.second]

    for alone, together in zip(moved(0), moved(3), strict=True):
        assert torch.equal(alone, together)


def test_parameters_are_views_of_one_aligned_buffer() -> None:
    model = Toy()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    flat = FlatParameters(model.named_parameters())
    begin, end = flat.values.data_ptr(), flat.values.data_ptr() + 4 * flat.values.numel()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])
        assert begin <= parameter.data_ptr() < end
        assert (parameter.data_ptr() - begin) % 64 == 0
    (model.project(torch.ones(1, 8)).sum() + model.inner.bias.sum()).backward()
    assert flat.gradients.count_nonzero() == model.embedding.weight.numel() + 16
    flat.values.zero_()
    assert all(p.count_nonzero() == 0 for p in model.parameters())


def test_weights_of_another_model_are_refused() -> None:
    flat = FlatParameters(Toy().named_parameters())
    named = dict(flat.views(flat.values))
    named["inner.weight"] = torch.zeros(3, 3)
    with pytest.raises(RunError, match=r"inner\.weight is \(3, 3\), not \(16, 8\)"):
        flat.fill(flat.values, named)
    del named["inner.weight"]
    with pytest.raises(RunError, match=r"inner\.weight is missing"):
        flat.fill(flat.values, named)


# ---- averages


def test_average_of_weights_is_the_mean(tmp_path: Path) -> None:
    files = []
    for number in range(3):
        files.append(tmp_path / f"{number}.safetensors")
        save_weights(files[-1], {"w": torch.full((2,), float(number**2))}, {})
    assert average_weights(files)["w"].tolist() == pytest.approx([5 / 3, 5 / 3])
    save_weights(files[0], {"w": torch.zeros(3)}, {})
    with pytest.raises(RunError, match="different models"):
        average_weights(files)
    with pytest.raises(RunError, match="no snapshot"):
        average_weights([])


def test_moving_average_and_swap() -> None:
    values = torch.tensor([1.0])
    average = MovingAverage(values, decay=0.5)
    expected = 1.0
    for step in range(1, 30):
        values += 1
        average.follow(values, step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * values.item()
    assert average.values.item() == pytest.approx(expected)
    one, other = torch.tensor([1.0]), torch.tensor([2.0])
    swap(one, other)
    assert (one.item(), other.item()) == (2.0, 1.0)


# ---- files


def test_the_last_snapshots_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for update in (5, 10, 15, 20):
        checkpoints.snapshot(update, {"a": torch.full((2,), float(update))}, keep=2)
    assert [update for update, _ in checkpoints.snapshots()] == [15, 20]
    assert len(list(tmp_path.rglob("*.safetensors"))) == 2
    # A run that goes on from before does not take those behind it for older ones.
    checkpoints.snapshot(12, {"a": torch.zeros(2)}, keep=2)
    assert [update for update, _ in checkpoints.snapshots()] == [12, 15, 20]


def test_a_state_of_another_shape_is_refused() -> None:
    whole, where = TrainingState(update=7), Path("state.json")
    assert TrainingState.from_json(whole.to_json(), where) == whole
    with pytest.raises(RunError, match=r"state\.json is damaged: update: "):
        TrainingState.from_json(whole.to_json().replace('"update": 7', '"update": "x"'), where)


def test_weights_come_back_with_their_metadata(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(path, {"w": torch.arange(6.0).view(2, 3).T}, {"weights": "best", "update": "7"})
    loaded = load_weights(path)
    assert torch.equal(loaded.tensors["w"], torch.arange(6.0).view(2, 3).T)
    assert loaded.metadata == {"weights": "best", "update": "7"}


def test_equal_weights_make_equal_files(tmp_path: Path) -> None:
    metadata = {name: f"é{name}" for name in "abcdefgh"}
    for number in range(4):
        save_weights(tmp_path / str(number), {"w": torch.ones(3), "v": torch.ones(2)}, metadata)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    assert load_weights(tmp_path / "0").metadata == metadata


@pytest.mark.parametrize("length", [0, 5, 40, -1])
def test_weights_cut_short_are_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(path, {"w": torch.zeros(100)}, {})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(RunError, match="damaged or cut short"):
        load_weights(path)
    with pytest.raises(RunError, match="is missing"):
        load_weights(tmp_path / "none")


def test_a_failed_write_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing_file(path) as temporary:
        temporary.write_text(str(1 / 0))
    with (
        pytest.raises(FileError, match=r"No space left.*disk is full.*unchanged"),
        replacing_file(path) as temporary,
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(ZeroDivisionError), creating_folder(tmp_path / "folder") as folder:
        (folder / "part").write_text(str(1 / 0))
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


def test_no_device_and_no_pipe_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), Path("/dev/stdout")):
        before = os.lstat(path).st_ino
        with (
            pytest.raises(FileError, match=f"cannot write {path}: it is a device or a pipe"),
            replacing_file(path) as temporary,
        ):
            raise AssertionError(f"{temporary} would become {path}")
        assert os.lstat(path).st_ino == before
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_a_file_that_safetensors_cannot_write_is_explained(tmp_path: Path) -> None:
    with (
        pytest.raises(FileError, match="No such file or directory"),
        replacing_file(tmp_path / "file") as temporary,
    ):
        save_file({"w": torch.zeros(1)}, temporary.parent / "missing" / "file")


def test_rubbish_is_swept(tmp_path: Path) -> None:
    (tmp_path / ".writing-a").mkdir()
    (tmp_path / ".writing-a" / "b").touch()
    (tmp_path / ".writing-c").touch()
    (tmp_path / "kept").touch()
    sweep(tmp_path)
    assert os.listdir(tmp_path) == ["kept"]


# ---- the machine


def test_the_allocator_is_tuned_once_and_not_against_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in list(os.environ):
        if name.startswith(("MALLOC_", "GLIBC_TUNABLES")):
            monkeypatch.delenv(name)
    calls: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, option: int, value: int) -> int:
            calls.append((option, value))
            return 1

        def malloc_trim(self, pad: int) -> None:
            calls.append((0, pad))

    monkeypatch.setattr(allocator, "_glibc", Library)
    monkeypatch.setattr(allocator, "_kept", False)
    with allocator.returning_memory():
        assert calls == []  # nothing was kept: the process stays as it is
    assert allocator.keep_memory()
    assert dict(calls)[-3] == dict(calls)[-1] == 2**31 - 1  # mmap and trim threshold
    with allocator.returning_memory():
        assert dict(calls)[-3] < 1 << 25  # large blocks are the kernel's
    assert calls[-2:] == [(-3, 2**31 - 1), (0, 0)]
    calls.clear()
    monkeypatch.setattr(allocator, "_kept", False)
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "1")
    assert not allocator.keep_memory()
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_")
    monkeypatch.setattr(allocator, "_glibc", lambda: None)
    assert not allocator.keep_memory()
    with allocator.returning_memory():
        assert calls == []


LARGE_PAGES = """
from dragoman.native.allocator import keep_memory, returning_memory
assert keep_memory()

def asks() -> bool:
    heap = open("/proc/self/smaps").read().split("[heap]")[1:]
    return any(" hg" in part.split("VmFlags:")[1].splitlines()[0] for part in heap)

before = asks()
with returning_memory():
    pass
print(before, asks())
"""


def test_the_heap_asks_for_large_pages_again_after_memory_was_returned() -> None:
    if not Path("/sys/kernel/mm/transparent_hugepage").exists() or allocator._glibc() is None:
        pytest.skip("no large pages, or no glibc")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", LARGE_PAGES]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


def test_settings_that_contradict_are_refused() -> None:
    with pytest.raises(ValueError, match="keep_snapshots"):
        TrainingSettings(average_last=5, keep_snapshots=4)
    with pytest.raises(ValueError, match="average_last"):
        TrainingSettings(final_weights="average")


# ---- threads that wait


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"GOMP_SPINCOUNT": "1000"}),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE"}),
        ({"GOMP_SPINCOUNT": "7"}, {"GOMP_SPINCOUNT": "7"}),
    ],
)
def test_threads_spin_briefly(before: dict[str, str], after: dict[str, str]) -> None:
    environment = dict(before)
    processor.wait_briefly(environment)
    assert environment == after


def test_onednn_keeps_the_code_of_few_shapes() -> None:
    asked: dict[str, str] = {}
    allocator.keep_few_primitives(asked)
    assert asked == {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}
    asked = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "1024"}
    allocator.keep_few_primitives(asked)
    assert asked == {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "1024"}
    code = "import os; from dragoman.console.output import prepare_process; prepare_process(); "
    code += "print(os.environ['ONEDNN_PRIMITIVE_CACHE_CAPACITY'])"
    unset = {name: value for name, value in os.environ.items() if "ONEDNN" not in name}
    done = subprocess.run([sys.executable, "-c", code], env=unset, capture_output=True, text=True)
    assert done.stdout == "64\n"


def test_torch_gets_no_more_threads_than_a_quota_has_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "affinity", lambda: 64)
    two, nine = {"OMP_NUM_THREADS": "2"}, {"OMP_NUM_THREADS": "9"}
    for quota, before, after in ((64, {}, {}), (2, {}, two), (2, nine, nine)):
        monkeypatch.setattr(processor, "cores", lambda quota=quota: quota)
        environment: dict[str, str] = dict(before)
        processor.keep_to_quota(environment)
        assert environment == after


def test_a_process_is_prepared_before_torch_is_there() -> None:
    code = "import sys; from dragoman.console.output import prepare_process; prepare_process(); "
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
