"""Translation speed beside CTranslate2 and Hugging Face: same weights, same sentences, one run.

    python benchmarks/translate.py                  all that needs no trained run
    python benchmarks/translate.py --run RUN --source test.en --reference test.de --name multi30k
                                                    a trained run too: text in, text out, BLEU
    python benchmarks/translate.py --resume         goes on where an earlier call ended

Without more: models of random weights and forced lengths at widths 256 and 512 (token ids in and
out), single sentences, and newstest2014 as text through a base model of random weights, where
``data/newstest2014.en`` (or .gz; ``--news`` names another place) is there. sacreBLEU writes it:
``sacrebleu -t wmt14/full -l en-de --echo src > data/newstest2014.en``.

Every program is measured beside ours, each in a process and an environment of its own. Its settings
are chosen first, on the very sentences that are timed (``choosing.py``), and so are ours. Then both
are started anew, warmed up in turns until their rates are flat, and timed in turns (``turns.py``);
the row is written, and the next program follows. A program that would take more than 15 seconds for
all sentences gets 1,024, 512 or 128 of them, spread over the whole, and so does ours beside it.

Formulas of the length penalty differ: ours divides by ((5 + length) / 6)^α, the others by length^α.
Where outputs end by themselves, each is tried with several α. It is timed with the one whose
outputs are as long as ours at 0.6, and BLEU is given there and at its own best.

Results go to ``benchmarks/results/translate.json`` (``--results`` names another file).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from choosing import Setting, fastest
from instructions import LIMITS, keep_to, results_file
from peers import Stopped
from provenance import Watch, machine
from results import Results, Row
from translating.systems import Environments, Program, System, programs
from translating.works import SIZES, Work, lines_of, random_work, run_work, text_work, words_of
from turns import Timed, take_turns

from dragoman.base.errors import DragomanError
from dragoman.tasks.catalogue import Run

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "translate.json"
NEWS = HERE.parent / "data" / "newstest2014.en"
KEY = ("work", "system", "kind", "vocabulary", "measure")

COUNTS = (1024, 512, 128)
"""Of sentences, for programs that are too slow for all of them."""

LONGEST_TURN = 15.0
"""Seconds of a turn that are not too long."""

LEAST = 1.0
"""Seconds of a turn at least: what takes less is done again."""

ALPHA = 0.6
"""The paper's; what ours is timed with."""

ALPHAS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0)


# ---- how much, and with which settings


def affordable(seconds_each: float, counts: Sequence[int]) -> int:
    """The first of ``counts`` (falling) that takes no longer than a turn may; else the last."""
    return next((n for n in counts if n * seconds_each <= LONGEST_TURN), counts[-1])


def spread(sources: list[Any], count: int) -> list[Any]:
    """``count`` of the sources, from the first to the last at equal distances."""
    return [sources[i * len(sources) // count] for i in range(count)]


@dataclass
class Chosen:
    """How a program is timed, and what it wrote at several α."""

    setting: Setting
    alpha: float = ALPHA
    bleu: dict[float, float] = field(default_factory=dict)
    """By α, on the sentences that are timed."""
    letters: dict[float, int] = field(default_factory=dict)
    """Length of all outputs together, likewise."""

    def of(self, job: dict[str, Any]) -> dict[str, Any]:
        """The job as the program is asked."""
        return job | self.setting | {"alpha": self.alpha}


@dataclass
class Task:
    """One work at one width of the beam."""

    work: Work
    beam: int
    ours: Program
    settings: dict[tuple[str, int, bool], Chosen] = field(default_factory=dict)
    """Of ours, as they were chosen: by vocabulary, number of sentences, one by one or not."""

    @property
    def name(self) -> str:
        return f"translate-{self.work.name}-{'greedy' if self.beam == 1 else f'beam{self.beam}'}"

    def job(self, count: int, sentences: list[Any], **more: Any) -> dict[str, Any]:
        """What all programs are asked, but for settings; the sentences go into a file."""
        kind = "one" if more else "all"
        path = self.work.folder / f"{self.name}.{kind}.{count}.{more.pop('part', 0)}.json"
        path.write_text(json.dumps(sentences), encoding="utf-8")
        fixed = {"beam": self.beam, "length": self.work.length, "alpha": ALPHA}
        return fixed | more | {"sources": str(path)}

    @property
    def ends_freely(self) -> bool:
        return self.work.length is None and self.work.references is not None

    def references(self, count: int) -> list[str]:
        assert self.work.references is not None
        return spread(self.work.references, count)


def choose(task: Task, program: Program, job: dict[str, Any], count: int) -> Chosen:
    """The fastest settings and, where outputs end by themselves, what becomes of them by α."""
    one_by_one = "one_by_one" in job
    key = (program.vocabulary, count, one_by_one)
    is_ours = program.name == task.ours.name
    if is_ours and key in task.settings:
        return task.settings[key]
    system = program.start(task.work)

    def seconds(setting: Setting) -> float:
        found = system.ask(job | setting)["seconds"]
        return float(sum(found) if one_by_one else found[0])

    try:
        options = program.one_by_one if one_by_one else program.options
        chosen = Chosen(fastest(options, seconds))
        if task.ends_freely and task.beam > 1 and not one_by_one:
            for alpha in ALPHAS:
                outputs = system.ask(job | chosen.setting | {"alpha": alpha})["outputs"]
                chosen.letters[alpha] = sum(map(len, outputs))
                chosen.bleu[alpha] = bleu(outputs, task.references(count))
    finally:
        system.end()
    if is_ours:
        task.settings[key] = chosen
    elif chosen.letters and program.kind != "ours":
        ours = choose(task, task.ours, job, count)
        chosen.alpha = as_long(chosen.letters, ours.letters[ALPHA])
    return chosen


def as_long(letters: dict[float, int], wanted: int) -> float:
    """The α whose outputs are as long as is wanted, or nearly."""
    return min(letters, key=lambda alpha: abs(letters[alpha] - wanted))


def bleu(outputs: list[str], references: list[str]) -> float:
    from sacrebleu import corpus_bleu

    return round(float(corpus_bleu(outputs, [references]).score), 2)


# ---- whole texts


def measure(task: Task, program: Program, timed: int) -> Row:
    """Time a program and ours in turns -> its row."""
    watch, work = Watch(), task.work
    counts = [len(work.sources), *(n for n in COUNTS if n < len(work.sources))]
    system = program.start(work)
    try:  # a first look at how long it takes
        job = task.job(counts[-1], spread(work.sources, counts[-1]))
        first = {key: value for part in program.options for key, value in part[0].items()}
        each = min(system.ask(job | first)["seconds"][0] for _ in range(2)) / counts[-1]
    finally:
        system.end()
    count = affordable(each, counts)
    job = task.job(count, spread(work.sources, count))
    chosen = [choose(task, one, job, count) for one in (task.ours, program)]
    jobs = [one.of(job) for one in chosen]
    turns, running = side_by_side(task, program, jobs, timed)
    ours, its = running[0], running[-1]
    same = [a == b for a, b in zip(its.outputs, ours.outputs, strict=True)]
    free, its_own = task.ends_freely, chosen[-1].setting
    row = head_of(task, program, its) | {
        "measure": "speed", "unit": "sentences/s",
        "precision": str(its_own.get("precision", its_own.get("compute_type"))),
        "sentences": count, "sentences_in_all": len(work.sources),
        "median": round(statistics.median(turns.rates[-1]), 1),
        "bleu": bleu(its.outputs, task.references(count)) if free else None,
        "alpha": chosen[-1].alpha if task.beam > 1 else None,
        "bleu_by_alpha": {str(alpha): score for alpha, score in chosen[-1].bleu.items()},
        "memory_mb": round(its.memory_mb),
        "cpu_ms_per_sentence": round(statistics.median(its.cpu_ms[-timed:]), 3),
        "settings": its_own, "settings_of_ours": chosen[0].setting,
        "weights": "random" if work.random_weights else "trained",
        "identical_to_ours": round(sum(same) / len(same), 4),
    } | what_turns_say(turns)  # fmt: skip
    print(
        f"{task.name:26} {program.name:21} {program.kind:8} {program.vocabulary:9} "
        f"{row['median']:9} sentences/s ({min(row['runs'])} to {max(row['runs'])})  "
        f"ours x {row['ours_is_faster_by']}{'' if turns.flat else ', NOT FLAT'}  {count} sentences "
        f"{row['memory_mb']} MB  BLEU {row['bleu']}  same {row['identical_to_ours']}  {its_own}",
        flush=True,
    )
    return row | watch.stamp()


def side_by_side(
    task: Task, program: Program, jobs: list[dict[str, Any]], timed: int
) -> tuple[Timed, list[System]]:
    """Start ours and the program anew and let them take turns; -> what they did, and they."""
    running: list[System] = []
    try:
        running.append(task.ours.start(task.work))
        if program != task.ours:
            running.append(program.start(task.work))
        turns = take_turns(
            [lambda s=s, j=j: s.translate(j, LEAST) for s, j in zip(running, jobs, strict=False)],  # type: ignore[misc]
            timed,
        )
    finally:
        for system in running:
            system.end()
    return turns, running


def what_turns_say(turns: Timed) -> Row:
    def rounded(rates: list[float]) -> list[float]:
        return [round(rate, 2) for rate in rates]

    return {
        "runs": rounded(turns.rates[-1]),
        "warm_up": rounded(turns.warming[-1]),
        "ours": {"runs": rounded(turns.rates[0]), "warm_up": rounded(turns.warming[0])},
        "flat": turns.flat,
        "ours_is_faster_by": round(turns.faster_by(), 2),
    }


# ---- one sentence at a time


def measure_latency(task: Task, program: Program, most: int, timed: int) -> list[Row]:
    """Sentences of about 20 words, one by one, in turns with ours -> median, 95th percentile."""
    watch = Watch()
    twenty = [x for x in task.work.sources if 18 <= words_of(x) <= 22][:most]
    if len(twenty) < 2 * timed:
        return []
    job = task.job(len(twenty), twenty, one_by_one=True)
    chosen = [choose(task, one, job, len(twenty)) for one in (task.ours, program)]
    jobs = [one.of(job) for one in chosen]
    running: list[System] = []
    times: list[list[float]] = [[], []]
    parts = [
        task.job(len(twenty), twenty[i::timed], one_by_one=True, part=i + 1)["sources"]
        for i in range(timed)
    ]
    try:
        running.append(task.ours.start(task.work))
        if program != task.ours:
            running.append(program.start(task.work))

        def turn(place: int) -> Any:
            order = cycle(parts)

            def one() -> float:
                found = running[place].ask(jobs[place] | {"sources": next(order)})["seconds"]
                times[place] += found
                return len(found) / sum(found)

            return one

        turns = take_turns([turn(place) for place in range(len(running))], timed)
    finally:
        for system in running:
            system.end()
    place = len(running) - 1
    found = sorted(times[place][-len(twenty) :])  # of the timed turns: every sentence once
    values = {"median": statistics.median(found), "p95": found[int(0.95 * (len(found) - 1))]}
    print(
        f"{task.name:26} {program.name:21} {program.kind:8} {program.vocabulary:9} one sentence: "
        f"median {1e3 * values['median']:.2f} ms, 95 % within {1e3 * values['p95']:.2f} ms",
        flush=True,
    )
    head = head_of(task, program, running[place]) | what_turns_say(turns) | watch.stamp()
    return [
        head
        | {"measure": f"latency-{which}", "unit": "ms", "median": round(1e3 * value, 3)}
        | {"sentences": len(twenty), "settings": chosen[-1].setting}
        for which, value in values.items()
    ]


def head_of(task: Task, program: Program, system: System) -> Row:
    return {
        "work": task.name,
        "system": program.name,
        "version": system.version,
        "kind": program.kind,
        "vocabulary": program.vocabulary,
    }


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
    parser.add_argument("--turns", type=int, default=5, help="timed turns of each program")
    parser.add_argument("--latency", type=int, default=100, help="single sentences; 0: none")
    parser.add_argument("--peers", nargs="*", default=["ctranslate2", "hugging-face"])
    parser.add_argument("--ctranslate2-python", type=Path, help="an environment that is there")
    parser.add_argument("--hugging-face-python", type=Path)
    parser.add_argument("--instructions", choices=LIMITS, help="keep all programs to these")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--resume", action="store_true",
                        help="keep rows of this commit and machine")  # fmt: skip
    arguments = parser.parse_args()
    keep_to(arguments.instructions)
    arguments.results = arguments.results or results_file(RESULTS, arguments.instructions)
    if (arguments.run is None) != (arguments.source is None):
        parser.error("--run and --source go together")
    for path in (arguments.source, arguments.reference, arguments.news):
        if path is not None and not path.exists():
            parser.error(f"there is no {path}")
    if arguments.name in choices:
        parser.error(f"--name {arguments.name} is a work of random weights: take another name")
    if arguments.run is not None:
        try:
            Run.open(arguments.run)
        except DragomanError as error:
            parser.error(str(error))
    environments = Environments(arguments.ctranslate2_python, arguments.hugging_face_python)
    print(machine())
    results, stopped, began = Results(arguments.results, KEY), [], time.perf_counter()
    for work in works(arguments):
        every = programs(work, arguments.peers, environments)
        for beam in arguments.beam:
            task = Task(work, beam, every[0])
            for program in every:
                try:
                    compare(task, program, arguments, results)
                except Stopped as error:
                    stopped.append(str(error))
                    print(error, file=sys.stderr)
    minutes = (time.perf_counter() - began) / 60
    print(f"written to {arguments.results} after {minutes:.1f} minutes")
    if stopped:
        sys.exit("\n".join(["without a row, since a program stopped:", *stopped]))


def compare(task: Task, program: Program, arguments: argparse.Namespace, results: Results) -> None:
    """Measure a program and write its rows; single sentences if it was given all of the text."""
    head = {"work": task.name, "system": program.name, "kind": program.kind,
            "vocabulary": program.vocabulary}  # fmt: skip

    def wanted(measure: str) -> bool:
        return not (arguments.resume and results.has(head | {"measure": measure}))

    if wanted("speed"):
        results.store(measure(task, program, arguments.turns))
    speed = results.find(head | {"measure": "speed"})
    is_quick = speed is not None and speed["sentences"] == speed["sentences_in_all"]
    if arguments.latency and is_quick and wanted("latency-p95"):
        for row in measure_latency(task, program, arguments.latency, arguments.turns):
            results.store(row)


if __name__ == "__main__":
    main()
