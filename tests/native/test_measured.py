"""What was measured of a machine is measured once, and wrong or missing memories do no harm."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from dragoman.models.catalogue.fastest import fastest
from dragoman.models.catalogue.networks import fast_paths
from dragoman.models.fast_path import AMOUNTS
from dragoman.models.settings import DEFAULT, TransformerSettings
from dragoman.models.transformer.model import Transformer
from dragoman.native import library, loader, measured, processor
from dragoman.native.measured import Trial, machine_key, microseconds


class Counting:
    """A trial that takes some time, and knows how often it was made and run."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.made, self.run = seconds, 0, 0

    def __call__(self) -> Trial:
        self.made += 1

        def work() -> None:
            self.run += 1
            end = time.process_time() + self.seconds
            while time.process_time() < end:
                pass

        return work


def test_it_is_measured_once(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    trials = {"a": Counting(0.0001), "b": Counting(0.01)}
    found = microseconds(folder, trials)
    assert found["a"] < found["b"] and found["b"] >= 10_000
    assert microseconds(folder, trials) == found
    assert [trial.made for trial in trials.values()] == [1, 1]
    assert trials["a"].run == trials["b"].run > 1
    assert microseconds(folder, {"a": trials["a"]}) == {"a": found["a"]}
    more = trials | {"c": Counting(0.0)}
    assert set(microseconds(folder, more)) == {"a", "b", "c"} and more["c"].made == 1


@pytest.mark.parametrize("text", ["", "not JSON", "[1]", '{"x": 3}', '{"KEY": {"a": "slow"}}'])
def test_a_damaged_memory_is_made_anew(text: str, tmp_path: Path) -> None:
    path = tmp_path / measured.NAME
    path.write_text(text.replace("KEY", machine_key()), encoding="utf-8")
    trial = Counting(0.0)
    microseconds(tmp_path, {"a": trial})
    assert trial.made == 1
    assert set(json.loads(path.read_text(encoding="utf-8"))[machine_key()]) == {"a"}


def test_another_machine_is_measured_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Counting(0.0)
    microseconds(tmp_path, {"a": trial})
    monkeypatch.setattr(measured, "_processor", lambda: "another")
    microseconds(tmp_path, {"a": trial})
    assert trial.made == 2
    assert len(json.loads((tmp_path / measured.NAME).read_text(encoding="utf-8"))) == 2


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    trial = Counting(0.0)
    for count in (1, 2):
        assert set(microseconds(tmp_path / "file", {"a": trial})) == {"a"}
        assert trial.made == count


def tiny() -> Transformer:
    return Transformer(
        TransformerSettings.model_validate(
            {"model_dim": 32, "ffn_dim": 32, "encoder_layers": 1, "decoder_layers": 1,
             "attention": {"num_heads": 2}}
        ), 20, 20,
    )  # fmt: skip


def test_the_fastest_is_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"int8": 10, "bf16": 300, "fp32": 40}

    def remembered(folder: Path, trials: Mapping[str, object]) -> dict[str, int]:
        assert folder == tmp_path
        return {name: times[name.split(",")[0].split()[0]] for name in trials}

    monkeypatch.setattr("dragoman.models.catalogue.fastest.microseconds", remembered)
    monkeypatch.setattr(processor, "cpu_flags", lambda: {"avx512_bf16"})
    path = fastest(tiny(), remembered=tmp_path)
    if library.available():
        assert path.precision == "int8" and "4 times as fast here as fp32" in path.reason
        times["int8"] = 80
        path = fastest(tiny(), remembered=tmp_path)
        assert path.precision == "fp32" and "faster here than int8 (2.0 times)" in path.reason
        assert fastest(tiny(), "int8", remembered=tmp_path).precision == "int8"
    else:
        assert path.precision == "fp32" and "no int8" in path.reason
    assert fastest(tiny(), "bf16", remembered=tmp_path).precision == "bf16"


@pytest.mark.parametrize(("of_128", "rows"), [(1900, 128), (1960, 64), (2300, 64)])
def test_more_rows_where_they_are_faster(
    of_128: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By more than 3 % a row."""

    def remembered(_: Path, trials: Mapping[str, object]) -> dict[str, int]:
        times = {"64 rows": 1000, "128 rows": of_128}
        return {name: times.get(name.partition(", ")[2], 100) for name in trials}

    monkeypatch.setattr("dragoman.models.catalogue.fastest.microseconds", remembered)
    monkeypatch.setenv("DRAGOMAN_MEASURE", "auto")
    path = fastest(tiny(), "int8", remembered=tmp_path)
    assert path.rows == (rows if library.available() else 64)
    assert fastest(tiny(), "int8").rows == 64
    monkeypatch.setenv("DRAGOMAN_MEASURE", "off")
    assert fastest(tiny(), "int8", remembered=tmp_path).rows == 64


def test_trials_run_here(tmp_path: Path) -> None:
    if sum(path.why_not(None) is None for path in fast_paths(DEFAULT)) < 2:
        pytest.skip("one way to translate, or none: nothing is measured")
    path = fastest(tiny(), remembered=tmp_path)
    assert "\n" not in path.reason
    found = json.loads((tmp_path / measured.NAME).read_text(encoding="utf-8"))[machine_key()]
    by = {name.split()[0].strip(",") for name in found}
    assert {"fp32, one", "fp32, many"} <= found.keys()
    assert ("int8" in by) is library.available()


@pytest.mark.skipif(len(loader.decoding_levels()) < 2, reason="one instruction set, or none")
@pytest.mark.parametrize("fastest_level", loader.decoding_levels())
def test_the_fastest_instruction_set_is_taken_whatever_flags_say(
    fastest_level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_MEASURE", "auto")
    times = {
        f"int8 {level}, {amount}": 100 for level in loader.decoding_levels() for amount in AMOUNTS
    }
    times |= {f"int8 {one}, {n} rows": 1 for one in loader.decoding_levels() for n in (64, 128)}
    for precision in ("bf16", "fp32"):
        times |= {f"{precision}, one": 500, f"{precision}, many": 600}
    times[f"int8 {fastest_level}, one"] = 50
    times[f"int8 {fastest_level}, many"] = 90
    measured.remember(tmp_path, times)
    for precision in ("auto", "int8"):
        path = fastest(tiny(), precision, remembered=tmp_path)
        assert re.search(rf"native kernels for {fastest_level}\b", path.reason)
    # One sentence and many count alike: here what many lose is less than what one gains.
    times[f"int8 {fastest_level}, many"] = 150
    measured.remember(tmp_path, times)
    assert f"for {fastest_level}," in fastest(tiny(), remembered=tmp_path).reason
    times[f"int8 {fastest_level}, many"] = 300
    measured.remember(tmp_path, times)
    assert f"for {fastest_level}," not in fastest(tiny(), remembered=tmp_path).reason
    monkeypatch.setenv("DRAGOMAN_MEASURE", "off")
    best = loader.decoding_levels()[0]
    assert f"for {best}," in fastest(tiny(), remembered=tmp_path).reason
