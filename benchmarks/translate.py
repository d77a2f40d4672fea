"""Translation speed beside CTranslate2 and Hugging Face: same weights, same sentences, one run.

    python benchmarks/translate.py                  all that needs no trained run
    python benchmarks/translate.py --run RUN --source test.en --reference test.de
                                                    a trained run too: text in, text out, BLEU

Without more: models of random weights and forced lengths at widths 256 and 512 (token ids in and
out), single sentences, and newstest2014 as text through a base model of random weights, where
``data/newstest2014.en`` (or .gz; ``--news`` names another place) is there. sacreBLEU writes it:
``sacrebleu -t wmt14/full -l en-de --echo src > data/newstest2014.en``.

Each system runs in a process and an environment of its own. First every setting of a system is
tried once, then the best setting of each is timed in turns, several rounds, so that a busy machine
slows all of them alike; the table shows medians and ratios. Results go to
``benchmarks/results/translate.json`` (``--results`` names another file), rows of the same work and
system replacing older ones.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from translating.systems import CORES, Environments, System, start_systems
from translating.works import SIZES, Work, lines_of, random_work, run_work, text_work, words_of

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "translate.json"
NEWS = HERE.parent / "data" / "newstest2014.en"

PART = 128
"""Sentences that settings are tried on, and all that slow systems translate."""

Row = dict[str, Any]


# ---- whole texts


def measure(work: Work, beam: int, systems: list[System], rounds: int) -> list[Row]:
    """Time one kind of work on every system in turns -> rows of the results file."""
    name = f"translate-{work.name}-{'greedy' if beam == 1 else f'beam{beam}'}"
    whole, part = work.folder / f"{name}.json", work.folder / f"{name}.part.json"
    step = max(1, len(work.sources) // PART)
    whole.write_text(json.dumps(work.sources), encoding="utf-8")
    part.write_text(json.dumps(work.sources[::step]), encoding="utf-8")
    job: dict[str, Any] = {"beam": beam, "length": work.length}
    for system in systems:
        system.rates, system.cpu_ms = [], []
        system.chosen = best_setting(system, job | {"sources": str(part)})
    for turn in range(rounds):
        for system in systems:
            if system.slow and turn > 0:
                continue
            sources = part if system.slow else whole
            answer = system.ask(job | system.chosen | {"sources": str(sources)})
            count = len(answer["outputs"])
            system.rates.append(count / answer["seconds"][0])
            system.cpu_ms.append(answer["seconds"][1] / count * 1e3)
            system.memory_mb, system.outputs = answer["memory_mb"], answer["outputs"]
    return [row_of(system, systems[0], name, work, step) for system in systems]


def best_setting(system: System, job: dict[str, Any]) -> dict[str, Any]:
    """Try all settings; the fastest by wall clock."""

    def seconds(setting: dict[str, Any]) -> float:
        answer = system.ask(job | setting)
        return float(sum(answer["seconds"]) if job.get("one_by_one") else answer["seconds"][0])

    if len(system.settings) == 1:
        return system.settings[0]
    return min(system.settings, key=seconds)


def row_of(system: System, ours: System, name: str, work: Work, step: int) -> Row:
    """What was found of one system, as the results file has it; printed too."""
    outputs = ours.outputs[::step] if system.slow else ours.outputs
    same = [a == b for a, b in zip(system.outputs, outputs, strict=True)]
    ratios = [a / b for a, b in zip(ours.rates, system.rates, strict=False)]
    row = head_of(system, name) | {
        "measure": "speed",
        "unit": "sentences/s",
        "median": round(statistics.median(system.rates), 1),
        "runs": [round(rate, 1) for rate in system.rates],
        "bleu": None if system.slow else bleu(system.outputs, work.references),
        "memory_mb": round(system.memory_mb),
        "cpu_ms_per_sentence": round(statistics.median(system.cpu_ms), 3),
        "settings": system.chosen,
        "weights": "random" if work.random_weights else "trained",
        "identical_to_ours": round(sum(same) / len(same), 4),
        "ours_is_faster_by": round(statistics.median(ratios), 2),
    }
    print(
        f"{name:26} {system.name:21} {system.kind:8} {system.vocabulary:9} {row['median']:9} "
        f"sentences/s  ours x {row['ours_is_faster_by']}  cpu {row['cpu_ms_per_sentence']} ms  "
        f"{row['memory_mb']} MB  BLEU {row['bleu']}  same {row['identical_to_ours']}  "
        f"{system.chosen}",
        flush=True,
    )
    return row


def bleu(outputs: list[Any], references: list[str] | None) -> float | None:
    if references is None:
        return None
    from sacrebleu import corpus_bleu

    return round(float(corpus_bleu(outputs, [references]).score), 2)


# ---- one sentence at a time


def measure_latency(work: Work, beam: int, systems: list[System], count: int) -> list[Row]:
    """Sentences of about 20 words, one by one, systems in turns -> median and 95th percentile."""
    name = f"translate-{work.name}-{'greedy' if beam == 1 else f'beam{beam}'}"
    twenty = [x for x in work.sources if 18 <= words_of(x) <= 22][:count]
    if len(twenty) < 10:
        return []
    parts = [work.folder / f"{name}.one.{i}.json" for i in range(5)]
    for i, path in enumerate(parts):
        path.write_text(json.dumps(twenty[i :: len(parts)]), encoding="utf-8")
    job = {"beam": beam, "length": work.length, "one_by_one": True}
    quick = [system for system in systems if not system.slow]
    times: dict[int, list[float]] = {id(system): [] for system in quick}
    for system in quick:
        system.chosen = best_setting(system, job | {"sources": str(parts[0])})
    for path in parts:
        for system in quick:
            answer = system.ask(job | system.chosen | {"sources": str(path)})
            times[id(system)] += [seconds * 1e3 for seconds in answer["seconds"]]
    rows = []
    for system in quick:
        found = sorted(times[id(system)])
        values = {"median": statistics.median(found), "p95": found[int(0.95 * (len(found) - 1))]}
        for which, value in values.items():
            rows.append(
                head_of(system, name)
                | {
                    "measure": f"latency-{which}",
                    "unit": "ms",
                    "median": round(value, 3),
                    "runs": len(found),
                    "bleu": None,
                    "memory_mb": None,
                    "settings": system.chosen,
                }
            )
        print(
            f"{name:26} {system.name:21} {system.kind:8} {system.vocabulary:9} one sentence: "
            f"median {values['median']:.2f} ms, 95 % within {values['p95']:.2f} ms",
            flush=True,
        )
    return rows


# ---- the results file


def head_of(system: System, name: str) -> Row:
    return {
        "work": name,
        "system": system.name,
        "version": system.version,
        "kind": system.kind,
        "precision": system.precision,
        "vocabulary": system.vocabulary,
    }


def machine() -> str:
    """Name and family of the processor, and how many cores are used."""
    wanted = {"model name": "", "cpu family": ""}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key = line.partition(":")[0].strip()
        if wanted.get(key) == "":
            wanted[key] = line.partition(":")[2].strip()
    return f"{wanted['model name'] or 'unknown'} family {wanted['cpu family']}, {CORES} cores"


def store(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add rows to the results; those of the same work, system, kind and measure give way."""

    def name(row: dict[str, Any]) -> tuple[Any, ...]:
        keys = ("work", "system", "kind", "vocabulary", "measure")
        ours = row["precision"] if row["work"].startswith("train") else None
        return (*(row[key] for key in keys), ours)

    results: dict[str, Any] = {"machine": machine(), "rows": []}
    if path.exists():
        results = json.loads(path.read_text(encoding="utf-8")) | {"machine": machine()}
    new = {name(row) for row in rows}
    results["rows"] = [row for row in results["rows"] if name(row) not in new] + rows
    results["load"] = [round(load, 1) for load in os.getloadavg()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


# ---- all of it


def works(arguments: argparse.Namespace) -> Iterator[Work]:
    """Each in a folder of its own, which goes when the next is asked for."""
    for name in arguments.work:
        with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as folder:
            if name in SIZES:
                yield random_work(name, arguments.sentences, Path(folder))
            elif name == "newstest2014":
                found = arguments.news or next(
                    (p for p in (NEWS, NEWS.with_suffix(".en.gz")) if p.exists()), None
                )
                if found is None:
                    print(f"newstest2014 is left out: there is no {NEWS} (see --help)")
                    continue
                yield text_work(name, lines_of(found), Path(folder))
    if arguments.run is not None:
        with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as folder:
            references = lines_of(arguments.reference) if arguments.reference else None
            sources = lines_of(arguments.source)
            yield run_work(arguments.name, arguments.run, sources, references, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    choices = [*SIZES, "newstest2014"]
    parser.add_argument("--work", nargs="*", choices=choices, default=choices)
    parser.add_argument("--news", type=Path, help="English sentences in place of newstest2014")
    parser.add_argument("--run", type=Path, help="a trained run")
    parser.add_argument("--source", type=Path, help="what it translates, a sentence a line")
    parser.add_argument("--reference", type=Path, help="their references, for BLEU")
    parser.add_argument("--name", default="run", help="work name of the run, after translate-")
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--latency", type=int, default=100, help="single sentences; 0: none")
    parser.add_argument("--peers", nargs="*", default=["ctranslate2", "hugging-face"])
    parser.add_argument("--ctranslate2-python", type=Path, help="an environment that is there")
    parser.add_argument("--hugging-face-python", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if (arguments.run is None) != (arguments.source is None):
        parser.error("--run and --source go together")
    environments = Environments(arguments.ctranslate2_python, arguments.hugging_face_python)
    began = time.perf_counter()
    for work in works(arguments):
        systems = start_systems(work, arguments.peers, arguments.rows, environments)
        try:
            for beam in arguments.beam:
                rows = measure(work, beam, systems, arguments.rounds)
                if arguments.latency:
                    rows += measure_latency(work, beam, systems, arguments.latency)
                store(arguments.results, rows)
        finally:
            for system in systems:
                system.end()
    minutes = (time.perf_counter() - began) / 60
    print(f"written to {arguments.results} after {minutes:.1f} minutes")


if __name__ == "__main__":
    main()
