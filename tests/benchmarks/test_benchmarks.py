"""The rules that ``benchmarks/`` states for its figures, held without any of the peers."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import decoding_limits  # noqa: E402
import limits  # noqa: E402
import peak  # noqa: E402
import provenance  # noqa: E402
import tables  # noqa: E402
import train  # noqa: E402
import translate  # noqa: E402
from choosing import fastest  # noqa: E402
from results import Results  # noqa: E402
from training import systems  # noqa: E402
from translating import works  # noqa: E402
from turns import MOST, Timed, is_flat, take_turns  # noqa: E402

from dragoman.engine.ways import SHAPES, batches_of  # noqa: E402
from dragoman.models.transformer.model import Transformer  # noqa: E402
from dragoman.native import library, loader, processor  # noqa: E402
from dragoman.native.abi import FUNCTIONS  # noqa: E402

TINY = {"model_dim": 32, "ffn_dim": 64, "encoder_layers": 1, "decoder_layers": 1}
ORIGIN = {"commit": "abc", "machine": "M; 2 cores", "load": 0.0, "date": "2026-01-02"}


# ---- warming up


@pytest.mark.parametrize(
    ("rates", "flat"),
    [
        ([516, 714, 916], False),
        ([516, 714, 916, 940], False),
        ([516, 714, 916, 940, 930], True),
        ([100, 100], False),
        ([100, 60, 80], True),  # a machine that grows slower is no program that warms up
        ([100 * 1.04**n for n in range(20)], False),
    ],
)
def test_rates_are_flat_once_two_turns_bring_nothing(rates: list[float], flat: bool) -> None:
    assert is_flat(rates) is flat


def _program(rates: Sequence[float], log: list[str], name: str) -> Callable[[], float]:
    """Works at these rates, then at the last of them."""
    coming = iter(rates)

    def turn() -> float:
        log.append(name)
        return next(coming, rates[-1])

    return turn


def test_both_warm_up_alike_until_the_slower_to_do_so_is_warm() -> None:
    log: list[str] = []
    rising = [516.0, 714.0, 916.0, 940.0, 930.0]
    found = take_turns([_program([1000.0], log, "a"), _program(rising, log, "b")], timed=5)
    assert found.flat
    assert found.warming == [[1000.0] * 5, rising]
    assert found.rates == [[1000.0] * 5, [930.0] * 5]
    assert log == ["a", "b"] * 10


def test_a_program_that_goes_on_rising_is_timed_and_told() -> None:
    log: list[str] = []
    endless = [1.1**n for n in range(30)]
    found = take_turns([_program(endless, log, "a")], timed=5)
    assert len(found.warming[0]) == MOST and not found.flat


def test_something_else_is_looked_at_behind_every_timed_round() -> None:
    log: list[str] = []
    take_turns([_program([1.0], log, "a")], timed=2, then=lambda: log.append("then"))
    assert log == ["a", "a", "a", "a", "then", "a", "then"]


def test_the_ratio_is_of_neighbouring_turns() -> None:
    # The machine's speed changes between turns, and once within one: 60 / 15 is not the answer.
    found = Timed([[], []], [[90.0, 30.0, 60.0], [45.0, 15.0, 10.0]])
    assert found.faster_by() == 2.0


# ---- settings


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=3))
def test_the_fastest_settings_are_found_where_each_counts_by_itself(costs: list[list[int]]) -> None:
    options = [[{str(i): j} for j in range(len(column))] for i, column in enumerate(costs)]
    runs: dict[str, int] = {}

    def seconds(setting: dict[str, Any]) -> float:
        name = json.dumps(setting)
        runs[name] = runs.get(name, 0) + 1
        return sum(costs[int(i)][j] for i, j in setting.items())

    chosen = fastest(options, seconds)
    assert sum(costs[int(i)][j] for i, j in chosen.items()) == sum(map(min, costs))
    assert max(runs.values(), default=0) <= 2


def test_what_is_slow_only_the_first_time_is_chosen_and_what_is_hopeless_runs_once() -> None:
    cold = {"a": [2.0, 2.0], "b": [2.5, 1.0], "c": [9.0]}
    options = [[{"name": name} for name in cold]]
    assert fastest(options, lambda setting: cold[setting["name"]].pop(0)) == {"name": "b"}


def test_what_is_too_slow_gets_a_fixed_part_from_first_to_last() -> None:
    counts = [3003, *translate.COUNTS]
    given_seconds = [translate.LONGEST_TURN / n for n in (4000, 3003, 1024, 500, 100, 1)]
    assert [translate.affordable(s, counts) for s in given_seconds] == [
        3003, 3003, 1024, 128, 128, 128,
    ]  # fmt: skip
    assert translate.spread(list(range(10)), 4) == [0, 2, 5, 7]
    assert translate.spread(list(range(10)), 10) == list(range(10))


def test_others_are_timed_with_the_penalty_whose_outputs_are_as_long_as_ours() -> None:
    assert translate.as_long({0.0: 900, 0.4: 1010, 0.6: 1100}, wanted=1000) == 0.4


def test_a_trained_run_does_not_take_the_name_of_a_work_of_random_weights(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["translate.py", "--run", "run", "--source", __file__, "--name", "d256"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        translate.main()
    assert "random weights" in capsys.readouterr().err


# ---- training


def test_turns_are_alike_each_has_short_and_long_sentences() -> None:
    updates = [[[[0] * n], [[0] * n]] for n in range(1, 14)]
    random.Random(1).shuffle(updates)
    found = train.alike(updates, 4, random.Random(0))
    lengths = [len(update[1][-1]) for update in found]
    assert len(set(lengths)) == 12
    for turn in (lengths[0:4], lengths[4:8], lengths[8:12]):
        assert [1 + (length - 1) // 3 for length in turn] == [1, 2, 3, 4]


@pytest.mark.parametrize("flags", ["avx2 fma", "avx512f avx512_vnni"])
def test_without_bf16_instructions_training_is_measured_in_fp32(
    monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    monkeypatch.setattr(processor, "cpu_flags", lambda: set(flags.split()))
    monkeypatch.setattr(systems, "is_supported", lambda *sizes: False)
    found = systems.programs(SimpleNamespace(device="cpu", peer_python=None))  # type: ignore[arg-type]
    assert {program.precision for program in found} == {"fp32"}
    labels = [program.label for program in found]
    assert labels[0] == "dragoman:ours:fp32"
    assert not any("plain torch" in label for label in labels)  # it is what ours does there
    assert "fairseq:shipped:fp32" in labels and "hugging-face-marian:tuned:fp32" in labels


def test_every_instruction_set_that_trains_in_bf16_has_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside the best one, which is what ours takes: units of one processor may differ in speed."""
    monkeypatch.setattr(processor, "cpu_flags", lambda: {"avx2", "avx512_bf16", "amx_bf16"})
    monkeypatch.setattr(systems, "is_supported", lambda *sizes: True)
    monkeypatch.setattr(loader, "levels_offered", lambda: ("amx", "avx512", "avx2"))
    own = {"amx": "amx", "avx512": "avx512", "avx2": None}
    monkeypatch.setattr(loader, "training_level", lambda level, precision: own[level])
    found = systems.programs(SimpleNamespace(device="cpu", peer_python=None))  # type: ignore[arg-type]
    ours = [(program.label, program.level) for program in found if program.kind == "ours"]
    assert ours == [
        ("dragoman:ours:bf16", None),
        ("dragoman, avx512 kernels:ours:bf16", "avx512"),
        ("dragoman, plain torch:ours:bf16", None),
        ("dragoman:ours:fp32", None),
        ("dragoman, plain torch:ours:fp32", None),
    ]


def test_the_peak_of_tiles_is_measured_where_there_are_some() -> None:
    rate = peak.tiles_rate(1)
    if rate is None:
        pytest.skip("no tiles here")
    assert rate > 0


@pytest.mark.slow  # it starts three processes with torch
def test_kept_to_fewer_instructions_everything_starts_anew_with_them(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"""import sys; sys.path.insert(0, {str(BENCHMARKS)!r})
from instructions import keep_to, results_file
keep_to("avx2")
import torch
from pathlib import Path
from provenance import machine
from training.systems import precisions
from dragoman.native import library
print(torch.backends.cpu.get_cpu_capability(), library.status().level or "avx2")
print(precisions("cpu"), "kept to AVX2" in machine(), results_file(Path("a.json"), "avx2"))
""",
        encoding="utf-8",
    )
    said = subprocess.check_output([sys.executable, script], text=True).split("\n")
    assert said == ["AVX2 avx2", "('fp32',) True a-avx2.json", ""]


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_products_are_measured_in_the_precision_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    seen = set()
    mm = train.torch.mm

    def watched(x: Any, weight: Any, out: Any) -> Any:
        seen.update({x.dtype, weight.dtype, out.dtype})
        return mm(x, weight, out=out)

    monkeypatch.setattr(train.torch, "mm", watched)
    monkeypatch.setattr(train, "cores", lambda: 1)
    work = {"tokens": 8, "model": {"model_dim": 8, "ffn_dim": 16}}
    assert train.matrix_rate(work, "cpu", name) > 0
    assert seen == {getattr(train.torch, train.PRECISIONS[name])}


# ---- results and where they come from


def test_a_row_is_written_at_once_in_the_place_of_its_elder(tmp_path: Path) -> None:
    results = Results(tmp_path / "new" / "rows.json", ("work", "system"))
    rows = [{"work": "w", "system": name, "n": n} for n, name in enumerate("abcb")]
    for row in rows:
        results.store(row)
        assert row in json.loads(results.path.read_text(encoding="utf-8"))["rows"]
    assert [row["n"] for row in results.rows()] == [0, 3, 2]
    assert results.find({"work": "w", "system": "b"}) == rows[3]
    assert results.find({"work": "v", "system": "b"}) is None


def test_resuming_keeps_rows_of_this_commit_and_machine_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, row = Results(tmp_path / "rows.json", ("system",)), {"system": "a"}
    here = {"commit": "abc", "machine": "M"}
    now = dict(here)
    monkeypatch.setattr("results.commit", lambda: now["commit"])
    monkeypatch.setattr("results.machine", lambda: now["machine"])
    results.store(row | here)
    assert results.has(row) and not results.has({"system": "b"})
    for what in here:
        now[what] = "another"
        assert not results.has(row)
        now[what] = here[what]
    now["commit"] = "abc+"
    results.store(row | now)
    assert not results.has(row)  # "+" is no state that one can come back to


def test_the_commit_is_that_of_the_code_not_of_what_was_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def told() -> str | None:
        provenance.commit.cache_clear()
        return provenance.commit()

    for name in ("src", "benchmarks/results"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    git("init", "-q")
    (tmp_path / "src" / "a.py").write_text("1", encoding="utf-8")
    git("add", ".")
    git("commit", "-qm", "code")
    code = git("rev-parse", "HEAD")[:10]
    assert told() == code
    (tmp_path / "benchmarks" / "results" / "train.json").write_text("{}", encoding="utf-8")
    assert told() == code
    git("add", ".")
    git("commit", "-qm", "results")
    assert told() == code
    (tmp_path / "benchmarks" / "turns.py").write_text("1", encoding="utf-8")
    assert told() == f"{code}+"
    provenance.commit.cache_clear()


def test_load_is_what_others_do_not_what_the_benchmark_and_its_programs_do() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    before = provenance._own_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        assert provenance._own_seconds() - before >= 0.25  # while it runs
        program.communicate("\n")
    assert provenance._own_seconds() - before >= 0.25  # and when it has ended


def test_a_stamp_names_commit_machine_load_and_date() -> None:
    stamp = provenance.Watch().stamp()
    assert stamp.keys() == ORIGIN.keys()
    assert stamp["machine"].endswith(("core", "cores"))
    assert provenance.vector_units()[0] in stamp["machine"]


def test_what_rows_share_is_a_line_and_what_differs_are_columns() -> None:
    alike = [ORIGIN, ORIGIN | {"load": 0.1}]
    origin = tables.Origin(alike)
    assert origin.header == []
    for said in ("abc", "M; 2 cores", "2026-01-02", "0.0 to 0.1 cores"):
        assert said in origin.line
    other = ORIGIN | {"commit": "def+", "machine": "N; 8 cores", "load": 1.5}
    origin = tables.Origin([ORIGIN, other])
    assert origin.header == ["commit", "machine", "load"]
    assert origin.cells(ORIGIN) == ["abc", "A", "0.0"]
    assert origin.cells(other) == ["def+", "B", "1.5"]
    assert "A: M; 2 cores" in origin.line and "B: N; 8 cores" in origin.line
    assert "abc" not in origin.line


def test_a_ratio_shows_its_least_and_greatest_and_whether_it_was_still_warming_up() -> None:
    row = {"ours": {"runs": [30.0, 40.0]}, "runs": [10.0, 20.0], "ours_is_faster_by": 2.5}
    assert tables.faster_by(row | {"flat": True}) == "2.50 (2.00 to 3.00)"
    assert "still warming up" in tables.faster_by(row | {"flat": False})


@pytest.mark.parametrize(
    "path", sorted((BENCHMARKS / "results").glob("*.json")), ids=lambda p: p.stem
)
def test_every_row_that_is_kept_carries_where_it_comes_from(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    for row in found.get("rows", [found]):
        assert row.keys() >= ORIGIN.keys()


@pytest.mark.parametrize("name", tables.TABLES)
def test_the_tables_of_the_page_are_those_of_the_results(name: str) -> None:
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    results = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    assert tables.placed(page, name, tables.TABLES[name](results)) == page


# ---- our own programs, as the benchmarks start them


def _loaded(monkeypatch: pytest.MonkeyPatch, kind: str) -> Any:
    """``training/ours.py`` or ``translating/ours.py``: each has a conversation of its own."""
    monkeypatch.setattr("dragoman.native.allocator.keep_memory", lambda: True)
    monkeypatch.setattr("dragoman.native.allocator.keep_few_primitives", lambda environment: None)
    monkeypatch.setattr("dragoman.native.processor.wait_briefly", lambda environment: None)
    monkeypatch.syspath_prepend(str(BENCHMARKS / kind))
    for name in ("ours", "conversation"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("ours")


def test_ours_translates_what_the_benchmark_asks_of_it(
    monkeypatch: pytest.MonkeyPatch, tiny_run: Path, tmp_path: Path
) -> None:
    ours = _loaded(monkeypatch, "translating")
    monkeypatch.setitem(works.SIZES, "tiny", (TINY, 600, 3))
    for folder in ("ids", "text"):
        (tmp_path / folder).mkdir()
    made = [
        works.random_work("tiny", 2, tmp_path / "ids"),
        works.run_work("run", tiny_run, ["The dog sleeps."], None, tmp_path / "text"),
    ]
    for work in made:
        program = ours.Ours(work.folder)
        for setting in ({}, {"shortlist": True} if work.has_shortlist else {}):
            job = {"beam": 2, "alpha": 0.6, "length": work.length} | setting
            job |= {"precision": "int8", "threads": 1, "rows": 4}
            program.prepare(job)
            outputs = program.translate(job, work.sources)
            assert len(outputs) == len(work.sources)
            assert work.length is None or {len(output) for output in outputs} == {work.length}
        for name, file in (("ctranslate2", "model.bin"), ("hugging-face", "model.safetensors")):
            works.export(work, name)
            assert (work.folder / name / file).is_file()


@pytest.mark.system
def test_ours_trains_what_the_benchmark_asks_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ours = _loaded(monkeypatch, "training")
    monkeypatch.setattr(train, "cores", lambda: 1)
    work = {"model": TINY, "vocabulary": 600, "peak": 1e-2, "warmup": 2, "turn": 2}
    asked = {"dropout": 0.0, "seed": 1, "source": None, "tokens": 200, "turn": 2, "turns": 1}
    train.write_work(tmp_path, SimpleNamespace(device="cpu", **asked), work)  # type: ignore[arg-type]
    updates = json.loads((tmp_path / "updates.json").read_text(encoding="utf-8"))
    assert len(updates) >= 2 * (MOST + 1)
    trainer = ours.Ours(tmp_path, "fp32", "auto")
    trainer.update(*updates[0], 1e-3)
    before = trainer.nll(*updates[0])
    trainer.update(*updates[0], 1e-2)
    assert trainer.nll(*updates[0]) < before


# ---- all of it, ours beside itself


def _run(script: str, *words: str | Path) -> list[dict[str, Any]]:
    subprocess.run([sys.executable, BENCHMARKS / script, *words], check=True, timeout=600)
    rows: list[dict[str, Any]] = json.loads(Path(words[-1]).read_text(encoding="utf-8"))["rows"]
    return rows


@pytest.mark.slow  # starts dragoman six times
def test_training_is_measured_beside_itself(tmp_path: Path) -> None:
    rows = _run(
        "train.py", "--work", "train-d256", "--tokens", "512", "--turn", "1", "--turns", "2",
        "--only", "dragoman:ours:", "--results", tmp_path / "rows.json",
    )  # fmt: skip
    assert [row["system"] for row in rows] == ["dragoman"] * len(rows)
    for row in rows:
        assert len(row["runs"]) == len(row["ours"]["runs"]) == 2
        assert row["updates"] == len(row["warm_up"]) + 2
        assert row["share_of_products"] > 0
        assert row["held_out_nll"] == pytest.approx(row["ours"]["held_out_nll"], abs=0.05)


@pytest.mark.slow  # starts dragoman sixteen times
def test_translating_is_measured_beside_itself(tiny_run: Path, tmp_path: Path) -> None:
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("The dog sleeps.\nWho sees the queen?\n" * 8, encoding="utf-8")
    reference.write_text("Der Hund schläft.\nWer sieht die Königin?\n" * 8, encoding="utf-8")
    rows = _run(
        "translate.py", "--work", "--run", tiny_run, "--source", source, "--reference", reference,
        "--name", "tiny", "--peers", "--turns", "2", "--beam", "2", "--results",
        tmp_path / "rows.json",
    )  # fmt: skip
    assert [row["system"] for row in rows] == ["dragoman", "dragoman, no compiler"]
    for row in rows:
        assert row["sentences"] == row["sentences_in_all"] == 16
        assert row["alpha"] == 0.6 and str(0.6) in row["bleu_by_alpha"]
        assert len(row["runs"]) == 2


def test_attacks_stand_beside_each_other_before_and_now() -> None:
    def row(task: str, attack: str, tree: str, p50: float) -> dict[str, Any]:
        times = {"health_ms": [p50, 9.0], "sentence_ms": [2 * p50, 99.0], "load": 3.0}
        return {"task": task, "attack": attack, "tree": tree, **times}

    rows = [
        row("translation", "nobody", "before", 1),
        row("translation", "nobody", "now", 2),
        row("parsing", "nobody", "before", 3),
        row("parsing", "nobody", "now", 4),
    ]
    stamp = {"commit": "a", "machine": "m", "load": 1.0, "date": "d"}
    told = tables.neighbour({"neighbour": rows, **stamp})
    assert "| nobody | 1 / 9 | 2 / 99 | 2 / 9 | 4 / 99 |" in told
    assert "| parsing: nobody | 3 / 9 | 6 / 99 | 4 / 9 | 8 / 99 |" in told


def test_operations_of_an_update_are_those_of_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOKENS", 0)  # as few updates as there may be
    if not library.available():
        pytest.skip("no native library here")
    (small, *_) = SHAPES
    (make,) = batches_of(small)
    batch = make()
    model = Transformer(small.model, small.vocabulary, small.vocabulary)
    read, written = batch.source.layout.total, batch.target_in.layout.total
    rows = 0
    for name, weight in model.named_parameters():
        if weight.dim() == 2 and "embedding" not in name:
            reads = ("cross_attention.key", "cross_attention.value")
            of_source = name.startswith("encoder") or any(part in name for part in reads)
            rows += weight.numel() * (read if of_source else written)
    seconds, taken = limits.measure(small, "fp32", 1)
    done = {name: one.work.operations for name, one in taken.items()}
    assert done["linear_forward"] + done["linear_relu"] == 2.0 * rows
    assert done["linear_backward_weight"] == 2.0 * rows
    assert done["cross_entropy"] == 6.0 * written * small.vocabulary * small.model.model_dim
    table = limits.rows_of(seconds, taken, 1e12, 1e10)
    assert sum(row[1] for row in table) == pytest.approx(100, abs=0.5)
    assert set(limits.WORK) <= set(FUNCTIONS)


def test_the_work_of_a_decoding_step_is_that_of_its_weights() -> None:
    shape, rows = SHAPES[0], 3
    model = Transformer(shape.model, shape.vocabulary, shape.vocabulary)
    of_source = ("cross_attention.key", "cross_attention.value")
    weights = model.output_layer.weight.numel()
    for name, weight in model.named_parameters():
        if weight.dim() == 2 and "decoder." in name and not any(p in name for p in of_source):
            weights += weight.numel()
    done = decoding_limits.work_of(shape, rows)
    attention = done["attention"].operations
    assert sum(work.operations for work in done.values()) - attention == 2.0 * rows * weights
