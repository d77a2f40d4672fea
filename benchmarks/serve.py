"""A server under load: throughput beside offline translation, latency, memory, errors.

    python benchmarks/serve.py --run runs/multi30k-en-de --minutes 5

It starts ``dragoman serve`` and lets 50 clients at once send arrays of 32 sentences, then single
sentences, one client and then eight at a time. Offline translation of the same sentences, by the
same program on the same processor cores, is timed before and after, so that a machine that grows
slower is noticed. Clients share the cores with the server: their own processor time is measured,
and the share of the offline rate is stated as it is and for the cores that the clients left free.
Another server is then attacked, and the times of another client told, alone and under each attack
(``neighbour.py``).
Sentences are those of the run's own test set, or of ``--source``. Results go to
``benchmarks/results/serve.json``; any error ends it with code 1.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import neighbour
from provenance import Watch

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "serve.json"
ARRAY = 32
UNLIMITED = ("limits.requests_per_minute=1000000000", "limits.burst=1000000000")


@dataclass
class Load:
    """What some clients met."""

    clients: int
    sentences_each: int
    seconds: float = 0.0
    answered: int = 0
    """Sentences."""
    errors: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    """Seconds of the requests that were answered."""
    client_cpu: float = 0.0
    """Processor seconds of the clients."""
    server_cpu: float = 0.0
    """Processor seconds of the server meanwhile."""

    def figures(self) -> dict[str, Any]:
        ordered = sorted(self.latencies)

        def percentile(share: float) -> float | None:
            if not ordered:
                return None
            return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)

        return {
            "clients": self.clients,
            "sentences_each": self.sentences_each,
            "seconds": round(self.seconds, 1),
            "requests": len(ordered) + len(self.errors),
            "errors": len(self.errors),
            "sentences_per_second": round(self.rate, 1),
            "p50_ms": percentile(0.50),
            "p95_ms": percentile(0.95),
            "client_cpu_seconds": round(self.client_cpu, 2),
            "server_cpu_seconds": round(self.server_cpu, 2),
        }

    @property
    def rate(self) -> float:
        """Sentences per second."""
        return self.answered / self.seconds

    def free_share(self, cores: int) -> float:
        """The part of all processor time that the clients did not take."""
        return 1 - self.client_cpu / (cores * self.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, default=Path("runs/demo"))
    parser.add_argument("--source", type=Path, help="sentences, one a line; else the run's tests")
    parser.add_argument("--minutes", type=float, default=5, help="of the arrays")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--attack-seconds", type=float, default=15, help="of each; 0: none")
    parser.add_argument(
        "--others", type=Path, nargs="*", default=[], help="runs of other tasks to attack too"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    watch = Watch()
    languages, sentences = languages_and_sentences(options.run, options.source)
    seconds, cores = 60 * options.minutes, len(os.sched_getaffinity(0))

    offline = [offline_rate(options.run, sentences)]
    server, address, log = start(options.run, options.clients)
    try:
        attacked = (server.pid, address, languages, sentences)
        attack(*attacked, clients=4, each=ARRAY, seconds=min(3, seconds))  # warms up
        resident = MemoryWatch(server.pid)
        try:
            arrays = attack(*attacked, clients=options.clients, each=ARRAY, seconds=seconds)
        finally:
            memory = resident.stop()
        single = attack(*attacked, clients=1, each=1, seconds=min(20, seconds))
        eight = attack(*attacked, clients=8, each=1, seconds=min(20, seconds))
    finally:
        server.terminate()
        code = server.wait(60)
    offline.append(offline_rate(options.run, sentences))
    attacked_by = []
    if options.attack_seconds:
        attacked_by = [
            row
            for run in (options.run, *options.others)
            for row in neighbour.of_run(run, options.source, options.attack_seconds)
        ]

    rate = statistics.mean(offline)
    result = {
        "run": options.run.resolve().name,
        "sentences": len(sentences),
        "cores": cores,
        "engine": log,
        "offline_sentences_per_second": [round(value, 1) for value in offline],
        "arrays": arrays.figures(),
        "arrays_share_of_offline": round(arrays.rate / rate, 3),
        "arrays_share_of_offline_on_free_cores": round(
            arrays.rate / rate / arrays.free_share(cores), 3
        ),
        "single": single.figures(),
        "single_eight_clients": eight.figures(),
        "memory_mib": memory,
        "server_exit_code": code,
        "neighbour": attacked_by,
    } | watch.stamp()
    options.results.parent.mkdir(exist_ok=True)
    options.results.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({**result, "neighbour": len(attacked_by)}, indent=1))
    if attacked_by:
        print(neighbour.table(attacked_by))
    errors = [*arrays.errors, *single.errors, *eight.errors]
    for error in errors[:5]:
        print(error, file=sys.stderr)
    sys.exit(1 if errors or code else 0)


def languages_and_sentences(folder: Path, path: Path | None) -> tuple[tuple[str, str], list[str]]:
    """Of a run: its languages, and the sentences of its test set or of a file."""
    from dragoman.runs.corpora import plain_pairs
    from dragoman.tasks.catalogue import Run

    run = Run.open(folder)
    if path is None:
        return run.languages, [pair.source for pair in plain_pairs(run.recipe, "test")]
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return run.languages, [line.strip() for line in lines if line.strip()]


def offline_rate(run: Path, sentences: list[str]) -> float:
    """Sentences per second of the command line's own path, loading not counted."""
    program = (
        "import json, sys, time, dragoman\n"
        "translator = dragoman.load(sys.argv[1])\n"
        "sentences = json.load(sys.stdin)\n"
        "translator.batch(sentences[:64])\n"
        "begin = time.perf_counter()\n"
        "translator.batch(sentences)\n"
        "print(len(sentences) / (time.perf_counter() - begin))\n"
    )
    many = sentences * (-(-2000 // len(sentences)))
    done = subprocess.run(
        [sys.executable, "-c", program, str(run)],
        input=json.dumps(many), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout.split()[-1])


def start(run: Path, clients: int) -> tuple[subprocess.Popen[str], str, str]:
    command = [sys.executable, "-m", "dragoman", "serve", str(run), "--port", "0"]
    for change in (*UNLIMITED, f"limits.concurrent={2 * clients}", "limits.waiting=100000"):
        command += ["--set", change]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    engine = ""
    for line in server.stderr:
        engine = engine or line.strip()
        if found := re.search(r"http://[\d.]+:\d+", line):
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, found[0].removeprefix("http://"), engine
    raise SystemExit("the server did not start")


def attack(
    server: int,
    address: str,
    languages: tuple[str, str],
    sentences: list[str],
    clients: int,
    each: int,
    seconds: float,
) -> Load:
    """Clients in a process of their own, so that their processor time is known."""
    context = get_context("spawn")
    here, there = context.Pipe()
    arguments = (there, address, languages, sentences, clients, each, seconds)
    process = context.Process(target=_clients, args=arguments)
    process.start()
    before = cpu_seconds(server)
    load: Load = here.recv()
    load.server_cpu = cpu_seconds(server) - before
    process.join()
    return load


def _clients(
    pipe: Any,
    address: str,
    languages: tuple[str, str],
    sentences: list[str],
    clients: int,
    each: int,
    seconds: float,
) -> None:
    load = Load(clients, each)
    lock = threading.Lock()
    begin = time.perf_counter()
    end = begin + seconds

    def client(number: int) -> None:
        connection = http.client.HTTPConnection(address, timeout=90)
        place = number * each
        while time.perf_counter() < end:
            texts = [sentences[(place + i) % len(sentences)] for i in range(each)]
            place += each
            body = {"q": texts, "source": languages[0], "target": languages[1]}
            sent = time.perf_counter()
            try:
                connection.request(
                    "POST", "/translate", json.dumps(body), {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                said = json.loads(answer.read())
                problem = "" if answer.status == 200 else str(said)
                if not problem and len(said["translatedText"]) != each:
                    problem = "a translation is missing"
            except (OSError, ValueError, http.client.HTTPException) as error:
                problem = repr(error)
                connection.close()
            with lock:
                if problem:
                    load.errors.append(problem)
                else:
                    load.answered += each
                    load.latencies.append(time.perf_counter() - sent)
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    used = resource.getrusage(resource.RUSAGE_SELF)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = resource.getrusage(resource.RUSAGE_SELF)
    load.seconds = time.perf_counter() - begin
    load.client_cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    pipe.send(load)


class MemoryWatch:
    """Resident memory of a process, every second."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> dict[str, Any]:
        """MiB: twenty moments from the first to the last, and how much the second half grew."""
        self._stop.set()
        self._thread.join()
        seen = self._seen
        quarter = max(1, len(seen) // 4)
        third, fourth = seen[-2 * quarter : -quarter] or seen[:1], seen[-quarter:]
        return {
            "over_time": seen[:: max(1, len(seen) // 20)] + seen[-1:],
            "most": max(seen),
            "last_quarter_over_third": round(
                statistics.median(fourth) / statistics.median(third), 4
            ),
        }

    def _watch(self) -> None:
        while True:
            status = Path(f"/proc/{self._pid}/status").read_text()
            found = re.search(r"VmRSS:\s+(\d+)", status)
            assert found is not None
            self._seen.append(round(int(found[1]) / 1024, 1))
            if self._stop.wait(1):
                return


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
