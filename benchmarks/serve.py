"""A server under load: throughput beside offline translation, latency, memory, errors.

    python benchmarks/serve.py runs/multi30k --source test.en
    python benchmarks/serve.py runs/demo --seconds 60

It starts ``dragoman serve`` and lets 50 clients at once send arrays of 32 sentences for five
minutes, then single sentences, one client and then eight at a time. Offline translation of the same
sentences, by the same program on the same processor cores, is timed before and after, so that a
machine that grows slower is noticed. Clients share the cores with the server: their own processor
time is measured and stated. Results go to ``benchmarks/results/serve.json``.
"""

from __future__ import annotations

import argparse
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
    client_cpu: float = 0.0
    """Processor seconds of the clients."""

    def figures(self) -> dict[str, Any]:
        ordered = sorted(self.latencies)

        def percentile(share: float) -> float:
            return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)

        return {
            "clients": self.clients,
            "sentences_each": self.sentences_each,
            "seconds": round(self.seconds, 1),
            "requests": len(ordered),
            "errors": len(self.errors),
            "sentences_per_second": round(self.answered / self.seconds, 1),
            "p50_ms": percentile(0.50),
            "p95_ms": percentile(0.95),
            "client_cpu_share_of_one_core": round(self.client_cpu / self.seconds, 3),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--source", type=Path, help="sentences, one a line; else the demo's own")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    sentences = sentences_of(options.source)
    languages = languages_of(options.run)

    offline = [offline_rate(options.run, sentences)]
    server, address, log = start(options.run, options.clients)
    try:
        attack(address, languages, sentences, clients=4, each=ARRAY, seconds=3)  # warms up
        watch = MemoryWatch(server.pid)
        arrays = attack(address, languages, sentences, options.clients, ARRAY, options.seconds)
        memory = watch.stop()
        single = attack(address, languages, sentences, 1, 1, min(20, options.seconds))
        eight = attack(address, languages, sentences, 8, 1, min(20, options.seconds))
        server_cpu = cpu_seconds(server.pid)
    finally:
        server.terminate()
        code = server.wait(60)
    offline.append(offline_rate(options.run, sentences))

    rate = statistics.mean(offline)
    result = {
        "run": str(options.run),
        "sentences": len(sentences),
        "cores": len(os.sched_getaffinity(0)),
        "processor": processor(),
        "engine": log,
        "offline_sentences_per_second": [round(value, 1) for value in offline],
        "arrays": arrays.figures(),
        "arrays_share_of_offline": round(arrays.answered / arrays.seconds / rate, 3),
        "single": single.figures(),
        "single_eight_clients": eight.figures(),
        "memory_mib": memory,
        "server_cpu_seconds": round(server_cpu, 1),
        "exit_code": code,
    }
    options.results.parent.mkdir(exist_ok=True)
    options.results.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))
    for error in [*arrays.errors, *single.errors, *eight.errors][:5]:
        print(error, file=sys.stderr)


def sentences_of(path: Path | None) -> list[str]:
    if path is not None:
        return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    from dragoman.data.demo_corpus import demo_corpus

    return [pair.source for pair in demo_corpus().test]


def languages_of(run: Path) -> tuple[str, str]:
    from dragoman.tasks.run import Run

    return Run.open(run).languages


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
    load: Load = here.recv()
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
                load.latencies.append(time.perf_counter() - sent)
                if problem:
                    load.errors.append(problem)
                else:
                    load.answered += each
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

    def stop(self) -> dict[str, float]:
        """MiB: at the beginning, a quarter of the way, and the most in the last quarter."""
        self._stop.set()
        self._thread.join()
        quarter = max(1, len(self._seen) // 4)
        return {
            "first": self._seen[0],
            "after_a_quarter": self._seen[quarter],
            "most_in_last_quarter": max(self._seen[-quarter:]),
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


def processor() -> str:
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(r"model name\s*: (.*)", text)
    return found[1] if found else "unknown"


if __name__ == "__main__":
    main()
