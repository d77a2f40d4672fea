"""Translation speed beside CTranslate2 and Hugging Face: same weights, same sentences, one run.

    python benchmarks/translate.py                       random weights, forced lengths
    python benchmarks/translate.py --run RUN --source test.en --reference test.de
                                                         a trained run: text in, text out, BLEU too

Each system runs in a process and an environment of its own. First every setting of a system is
tried once, then the best setting of each is timed in turns, several rounds, so that a busy machine
slows all of them alike; the table shows medians and ratios. Results go to
``benchmarks/results/translate.json`` (``--results`` names another file), rows of the same work and
system replacing older ones.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from environments import environment
from safetensors.torch import save_file

from dragoman.models.transformer import Transformer, TransformerSettings
from dragoman.nn.positions import sinusoidal
from dragoman.tasks.run import Run

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "translate.json"
CORES = len(os.sched_getaffinity(0))

SMALL = {"model_dim": 256, "ffn_dim": 1024, "encoder_layers": 3, "decoder_layers": 3}
BASE = {"model_dim": 512, "ffn_dim": 2048, "encoder_layers": 6, "decoder_layers": 6}
SIZES: dict[str, tuple[dict[str, int], int, int]] = {
    "d256": (SMALL, 8000, 14),
    "d512": (BASE, 32000, 30),
}
"""Model, vocabulary, tokens that each sentence gets."""


@dataclass
class System:
    """One program under one kind of settings."""

    name: str
    kind: str
    precision: str
    settings: list[dict[str, Any]]
    """What is tried; ``best`` is the fastest of them."""
    process: subprocess.Popen[str]
    version: str
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    memory_mb: float = 0.0
    outputs: list[Any] = field(default_factory=list)

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(job), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} stopped while it did {job}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def begin(script: str, python: Path | str, folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a translator and wait until it has loaded."""
    environment_of = os.environ | {"PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        [str(python), str(HERE / "translating" / script), str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment_of,
    )  # fmt: skip
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["version"]


def random_model(folder: Path, size: str) -> int:
    """Fresh weights whose end symbol never wins -> tokens that each sentence is to have."""
    changes, vocabulary, length = SIZES[size]
    settings = TransformerSettings.model_validate(changes)
    torch.manual_seed(0)
    model = Transformer(settings, vocabulary, vocabulary)
    with torch.no_grad():
        model.source_embedding.weight[2] = 0.0
    write_model(folder, settings, model)
    return length


def write_model(folder: Path, settings: TransformerSettings, model: Transformer) -> None:
    """What every system reads: settings, weights under our names, the table of positions."""
    (folder / "model.json").write_text(settings.model_dump_json(), encoding="utf-8")
    state = {name: value.float().contiguous() for name, value in model.state_dict().items()}
    save_file(state, folder / "model.safetensors")
    table = sinusoidal(torch.arange(1024), settings.model_dim).float()
    arrays = {name: value.numpy() for name, value in state.items()} | {"positions": table.numpy()}
    np.savez(folder / "weights.npz", **arrays)


def random_sources(count: int, vocabulary: int) -> list[list[int]]:
    """Token ids with lengths like those of image captions, end symbol included."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(13.5, 4.0, count).round().astype(int), 4, 40)
    return [[*generator.integers(3, vocabulary, n - 1).tolist(), 2] for n in lengths]


def lines_of(path: Path) -> list[str]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    return text.split("\n")[:-1]


def words_of(source: Any) -> int:
    """Words of a text, or tokens less the end symbol."""
    return len(source.split()) if isinstance(source, str) else len(source) - 1


def systems(arguments: argparse.Namespace, folder: Path) -> list[System]:
    """Everything that is to be compared, started."""
    found = []

    def add(name: str, kind: str, precision: str, script: str, python: Any, settings: Any) -> None:
        process, version = begin(script, python, folder)
        found.append(System(name, kind, precision, settings, process, version))

    rows = [{"rows": n} for n in arguments.rows]
    ours = [{"precision": "int8", "threads": CORES} | r for r in rows]
    add("dragoman", "ours", "int8", "ours.py", sys.executable, ours)
    if "ctranslate2" in arguments.peers:
        python = arguments.ctranslate2_python or environment(
            "ctranslate2", ["ctranslate2>=4.8", "numpy", "sentencepiece"]
        )
        common = {"compute_type": "int8", "batch": 64, "batch_type": "examples"}
        teams = ((CORES, 1), (1, CORES))
        settings = [common | {"workers": w, "threads": t} for w, t in teams]
        for batch, unit in ((32, "examples"), (128, "examples"), (2048, "tokens")):
            settings.append(settings[0] | {"batch": batch, "batch_type": unit})
        settings.append(settings[0] | {"compute_type": "int8_float32"})
        add("ctranslate2", "tuned", "int8", "ctranslate2_peer.py", python, settings)
    if "hugging-face" in arguments.peers:
        version = torch.__version__.split("+")[0]
        python = arguments.hugging_face_python or environment(
            "hugging-face", [f"torch=={version}", "transformers>=5", "sentencepiece", "numpy"]
        )
        settings = [{"precision": p, "threads": CORES, "batch": 64} for p in ("fp32", "bf16")]
        add("hugging-face", "tuned", "best", "hugging_face_peer.py", python, settings)
    return found


def best_setting(system: System, job: dict[str, Any], few: Path) -> dict[str, Any]:
    """Try all settings on a part of the work; the fastest by wall clock."""

    def seconds(setting: dict[str, Any]) -> float:
        answer = system.ask(job | setting | {"sources": str(few)})
        return float(sum(answer["seconds"]) if job.get("one_by_one") else answer["seconds"][0])

    if len(system.settings) == 1:
        return system.settings[0]
    return min(system.settings, key=seconds)


def bleu(outputs: list[Any], references: list[str] | None) -> float | None:
    if references is None:
        return None
    from sacrebleu import corpus_bleu

    return round(float(corpus_bleu(outputs, [references]).score), 2)


def identical(first: list[Any], second: list[Any]) -> float:
    return sum(a == b for a, b in zip(first, second, strict=True)) / len(first)


def measure(
    work: str, beam: int, length: int | None, all_of: list[System], folder: Path,
    sources: list[Any], references: list[str] | None, rounds: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Time one kind of work on every system in turns -> rows of the results file."""
    whole, few = folder / f"{work}.json", folder / f"{work}.few.json"
    whole.write_text(json.dumps(sources), encoding="utf-8")
    few.write_text(json.dumps(sources[:: max(1, len(sources) // 256)]), encoding="utf-8")
    job = {"beam": beam, "length": length}
    chosen = {id(s): best_setting(s, job, few) for s in all_of}
    for system in all_of:
        system.seconds, system.cpu_seconds = [], []
        slow = system.name == "hugging-face"
        system.ask(job | chosen[id(system)] | {"sources": str(few if slow else whole)})
    for turn in range(rounds):
        for system in all_of:
            slow = system.name == "hugging-face"
            if slow and turn > 0:
                continue  # one round: it is far behind
            answer = system.ask(job | chosen[id(system)] | {"sources": str(whole)})
            system.seconds.append(answer["seconds"][0])
            system.cpu_seconds.append(answer["seconds"][1])
            system.memory_mb, system.outputs = answer["memory_mb"], answer["outputs"]
    return [row_of(system, all_of[0], work, chosen[id(system)], references) for system in all_of]


def row_of(
    system: System, ours: System, work: str, setting: dict[str, Any], references: list[str] | None
) -> dict[str, Any]:
    """What was found of one system, as the results file has it; printed too."""
    count = len(system.outputs)
    speeds = [count / s for s in system.seconds]
    pairs = zip(system.seconds, ours.seconds, strict=False)
    row = {
        "work": work,
        "system": system.name,
        "version": system.version,
        "kind": system.kind,
        "precision": setting.get("precision", setting.get("compute_type")),
        "vocabulary": "full",
        "measure": "speed",
        "unit": "sentences/s",
        "median": round(statistics.median(speeds), 1),
        "runs": [round(s, 1) for s in speeds],
        "bleu": bleu(system.outputs, references),
        "memory_mb": round(system.memory_mb),
        "cpu_ms_per_sentence": round(statistics.median(system.cpu_seconds) / count * 1e3, 3),
        "settings": setting,
        "identical_to_ours": round(identical(system.outputs, ours.outputs), 4),
        "ours_is_faster_by": round(statistics.median(a / b for a, b in pairs), 2),
    }
    print(
        f"{work:24} {system.name:13} {row['median']:9} sentences/s"
        f"  ours x {row['ours_is_faster_by']}  cpu {row['cpu_ms_per_sentence']} ms"
        f"  {row['memory_mb']} MB  BLEU {row['bleu']}"
        f"  same {row['identical_to_ours']}  {setting}",
        flush=True,
    )
    return row


def measure_latency(
    work: str, beam: int, length: int | None, all_of: list[System], folder: Path, sources: list[Any]
) -> list[dict[str, Any]]:
    """One sentence at a time, systems in turns -> rows with the median and 95th percentile."""
    rows = []
    parts = [folder / f"{work}.{i}.json" for i in range(5)]
    for i, part in enumerate(parts):
        part.write_text(json.dumps(sources[i :: len(parts)]), encoding="utf-8")
    times: dict[int, list[float]] = {id(system): [] for system in all_of}
    settings: dict[int, dict[str, Any]] = {}
    job = {"beam": beam, "length": length, "one_by_one": True}
    for system in all_of:
        settings[id(system)] = best_setting(system, job, parts[0])
    for part in parts:
        for system in all_of:
            asked = job | settings[id(system)] | {"sources": str(part)}
            times[id(system)] += system.ask(asked)["seconds"]
    for system in all_of:
        found = sorted(t * 1e3 for t in times[id(system)])
        for measure, at in (("latency-median", 0.5), ("latency-p95", 0.95)):
            value = found[min(len(found) - 1, int(at * len(found)))]
            row = {
                "work": work,
                "system": system.name,
                "version": system.version,
                "kind": system.kind,
                "precision": settings[id(system)].get("precision", "int8"),
                "vocabulary": "full",
                "measure": measure,
                "unit": "ms",
                "median": round(value, 2),
                "runs": len(found),
                "bleu": None,
                "memory_mb": None,
                "settings": settings[id(system)],
            }
            rows.append(row)
        print(
            f"{work:24} {system.name:13} one sentence: median {rows[-2]['median']} ms, "
            f"95 % within {rows[-1]['median']} ms  {settings[id(system)]}",
            flush=True,
        )
    return rows


def machine() -> str:
    name = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith(("model name", "cpu family")):
            name = (
                f"{name} family {line.split(':')[1].strip()}"
                if "family" in line
                else line.split(":")[1].strip()
            )
    return f"{name}, {CORES} cores"


def store(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add rows to the results; those of the same work, system and precision give way."""
    results = {"machine": machine(), "rows": []}
    if path.exists():
        results = json.loads(path.read_text(encoding="utf-8")) | {"machine": machine()}
    new = {(r["work"], r["system"], r["precision"], r["vocabulary"], r["measure"]) for r in rows}
    results["rows"] = [
        r for r in results["rows"]
        if (r["work"], r["system"], r["precision"], r["vocabulary"], r["measure"]) not in new
    ] + rows  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=SIZES, action="append", help="default: all")
    parser.add_argument("--run", type=Path, help="a trained run in place of random weights")
    parser.add_argument("--source", type=Path, help="lines to translate (.gz too)")
    parser.add_argument("--reference", type=Path, help="their references, for BLEU")
    parser.add_argument("--name", default="", help="work name of a run, after translate-")
    parser.add_argument("--beam", type=int, action="append", help="default: 1 and 4")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument(
        "--latency", type=int, default=100, help="sentences of 20 words, one by one; 0: none"
    )
    parser.add_argument("--peers", nargs="*", default=["ctranslate2", "hugging-face"])
    parser.add_argument("--ctranslate2-python", type=Path, help="an environment that is there")
    parser.add_argument("--hugging-face-python", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    works = [arguments.name or "run"] if arguments.run else arguments.size or list(SIZES)
    for size in works:
        with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as name:
            folder = Path(name)
            references: list[str] | None = None
            if arguments.run:
                run = Run.open(arguments.run)
                model = run.model()
                write_model(folder, run.recipe.model, model)
                (folder / "run").symlink_to(arguments.run.resolve())
                sources: list[Any] = lines_of(arguments.source)
                references = lines_of(arguments.reference) if arguments.reference else None
                length = None
            else:
                length = random_model(folder, size)
                sources = random_sources(arguments.sentences, SIZES[size][1])
            all_of = systems(arguments, folder)
            for beam in arguments.beam or (1, 4):
                work = f"translate-{size}-{'greedy' if beam == 1 else f'beam{beam}'}"
                rows = measure(
                    work, beam, length, all_of, folder, sources, references, arguments.rounds
                )
                if arguments.latency:
                    twenty = [x for x in sources if 18 <= words_of(x) <= 22][: arguments.latency]
                    rows += measure_latency(work, beam, length, all_of, folder, twenty)
                store(arguments.results, rows)
            for system in all_of:
                system.process.kill()
    print(f"written to {arguments.results}")


if __name__ == "__main__":
    main()
