"""What another client notices while one asks for as much as it may, or for more.

    python benchmarks/neighbour.py --run runs/demo --seconds 15
    python benchmarks/neighbour.py --run runs/demo runs/demo-parse --against OTHER/src
    python benchmarks/neighbour.py --run runs/demo --keyless --repeat 5

One server for all attacks of a run. A neighbour at 127.0.0.1 asks for ``/health`` and for a
single sentence (or a small text of the run's task), over and over; the attacker sits at 127.0.0.2,
in a process of its own, and sends one request from several connections at once. Told are the
neighbour's times alone and under each attack, and what the attacker was answered. A run that does
not translate has attacks of its own; ``--beside RUN`` serves that run too, and attacks it.
``--keyless``: the server asks for keys and has its default limits, the neighbour has a key, and the
attacker has none; it asks for what the server tells everybody, over one connection and over 60.
``--tree`` attacks the server of another tree; ``--against`` attacks one server of each tree, attack
by attack, the other tree's first. ``benchmarks/serve.py`` does it too, beside its other figures.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import io
import itertools
import json
import math
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import wave
from collections import Counter
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from provenance import Watch

FREE = ("limits.requests_per_minute=1000000", "limits.burst=100000")
AIM = {"health_ms": 50, "sentence_ms": 500}
"""Milliseconds that 99 of 100 answers to the neighbour may take at most."""
CONNECTIONS = 8
"""Of the attacker at once."""
KEY = "0123456789abcdef"
"""Of the neighbour, where keys are needed."""
PAUSE = {"health_ms": 0.12, "sentence_ms": 0.02}
"""Seconds between two questions of the neighbour. Whose probes come oftener than that has them
answered a second later each, as any other address."""

Body = dict[str, Any]
Question = tuple[str, Body | bytes | None]
"""A path and what is asked there: bytes are a form, one of ``file_form`` or another; None: GET."""
_BOUNDARY = "file-of-the-attacker"


def file_form(name: str, content: bytes, fields: dict[str, str]) -> bytes:
    """A form with a file, as browsers send it (RFC 7578)."""
    parts = [
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
        for key, value in fields.items()
    ]
    parts.append(
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    )
    return "".join(parts).encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()


def recording(seconds: float, rate: int = 8_000) -> bytes:
    """Rising tones of half a second, with noise after every third, as WAV."""
    half = [round(9_000 * math.sin(n * (0.1 + n * 1e-5))) for n in range(rate // 2)]
    noise = [(n * 7_919) % 61 - 30 for n in range(rate // 2)]
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(rate)
        for number in range(round(seconds * 2)):
            samples = noise if number % 4 == 3 else half
            written.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return file.getvalue()


def picture(kind: str, side: int, mode: str = "L", **how: Any) -> bytes:
    """A square picture of rising greys in a file."""
    from PIL import Image

    file = io.BytesIO()
    row = bytes(n % 256 for n in range(side))
    Image.frombytes("L", (side, side), row * side).convert(mode).save(file, kind, **how)
    return file.getvalue()


def animated(frames: int) -> bytes:
    """A GIF of so many small pictures."""
    from PIL import Image

    file, every = io.BytesIO(), [Image.new("L", (64, 64), n % 256) for n in range(frames)]
    every[0].save(file, "GIF", save_all=True, append_images=every[1:])
    return file.getvalue()


def attacks(sentences: list[str], languages: tuple[str, str]) -> dict[str, Question]:
    """Name -> path and body. Whatever is allowed by default, and what once was."""
    source, target = languages
    into = {"source": source, "target": target}

    def text(characters: int, most: int) -> str:
        """So many characters, cut at sentences, of at most so many sentences."""
        found, number = "", 0
        while number < most:
            following = sentences[number % len(sentences)] + " "
            if len(found) + len(following) > characters:
                break
            found, number = found + following, number + 1
        return found

    def page(paragraphs: int) -> str:
        words = [sentences[n % len(sentences)].split(" ", 1) for n in range(paragraphs)]
        marked = [f"<p><b>{first}</b> {''.join(rest)[:16]}" for first, *rest in words]
        return "".join(marked)[:20_000]

    whole, fits = text(20_000, 10_000), text(20_000, 250)
    long = text(1_500, 40)
    best = {"beam": 16, "n_best": 16}
    return {
        "20,000 characters, 16 best": ("/v1/translate", {"text": whole, **best}),
        "250 sentences, 16 best": ("/v1/translate", {"text": fits, **best}),
        "250 sentences, 16 best, streamed": (
            "/v1/translate",
            {"text": fits, **best, "stream": True},
        ),
        "20,000 characters": ("/translate", {"q": whole, **into}),
        "HTML, 555 paragraphs, 16 of each": (
            "/translate",
            {"q": page(555), **into, "format": "html", "alternatives": 15},
        ),
        "HTML, 250 paragraphs, 16 of each": (
            "/translate",
            {"q": page(250), **into, "format": "html", "alternatives": 15},
        ),
        "HTML, 5,000 open tags": (
            "/translate",
            {"q": "x<b>" * 5_000, **into, "format": "html"},
        ),
        "256 texts of unknown language": (
            "/translate",
            {"q": [whole[n * 78 : n * 78 + 78] for n in range(256)], "target": target},
        ),
        "a megabyte of lists": ("/translate", {"q": [[0] * 9] * 30_000}),
        "looking at a long text": ("/v1/look", {"text": long, "beam": 16, "attention_within": 0}),
        "256 texts made 1,000 tokens long": (
            "/v1/translate",
            {"text": ["a"] * 256, **into, "beam": 16, "min_length": 1000, "max_length": 1000},
        ),
        "as many of them as are allowed": (
            "/v1/translate",
            {"text": ["a"] * 100, **into, "beam": 16, "min_length": 1000, "max_length": 1000},
        ),
        "warnings of 20,000 characters": (
            "/v1/translate",
            {"text": fits, **into, "warnings": True},
        ),
        "100 texts that begin with 1,000 tokens": (
            "/v1/translate",
            {"text": ["a"] * 100, **into, "prefix_tokens": [5] * 1000, "max_length": 1000},
        ),
        "60 texts, 16 samples of 900 tokens": (
            "/v1/translate",
            {
                "text": ["a"] * 60,
                **into,
                "n_best": 16,
                "sampling": {"top_p": 0.9},
                "min_length": 900,
                "max_length": 900,
            },
        ),
        "a word of 20,000 letters, 16 best": ("/v1/translate", {"text": "a" * 20_000, **best}),
        "a look with 400,000 wrong heads": ("/v1/look", {"text": "a", "heads_off": [1] * 400_000}),
        "a form of a megabyte": ("/translate", b"&" * 990_000),
        "a document of 990,000 characters": (
            "/translate_file",
            file_form("a.txt", text(990_000, 1_000_000).encode(), into),
        ),
        "an HTML file of 9 MB, nearly all tags": (
            "/translate_file",
            file_form("a.html", b"<b></b>" * 1_300_000 + b"<p>a dog.</p>", into),
        ),
        "an HTML file of 9 MB, 480,000 tags": (
            "/translate_file",
            file_form("a.html", b"<b>a</b> <i> </i>\n" * 120_000 + b" " * 6_900_000, into),
        ),
    }


def attacks_of_task(task: str) -> dict[str, Question]:
    """The same for runs that do not translate."""
    words = " ".join(["the", "animal", "eats", "a", "soup", "because", "it", "sleeps"] * 15)
    blanks = " ".join(["___ the animal"] * 20)
    return {
        "classification": {
            "20,000 spaces": ("/v1/classify", {"text": " " * 20_000, "why": True}),
            "256 texts, why": ("/v1/classify", {"text": [words[:78]] * 256, "why": True}),
        },
        "masked": {
            "20 blanks of 8 pieces": ("/v1/fill", {"text": blanks, "pieces": 8, "top": 16}),
            "32 blanks, 100 candidates": ("/v1/fill", {"text": "___ the " * 32, "top": 100}),
            "5 blanks of 8 pieces": (
                "/v1/fill",
                {"text": " ".join(["___ the animal"] * 5), "pieces": 8, "top": 16},
            ),
        },
        "parsing": {
            "20 sentences of 120 words": ("/v1/parse", {"text": [words] * 20, "beam": 16}),
            "256 words, 16 best": ("/v1/parse", {"text": ["a"] * 256, "beam": 16, "n_best": 16}),
            "256 sentences, attention": (
                "/v1/parse",
                {"text": [words[:78]] * 256, "attention": True},
            ),
        },
        "detection": {
            "24 million pixels": ("/v1/detect", file_form("a.jpg", picture("JPEG", 4_900), {})),
            "24 million pixels, RGBA": (
                "/v1/detect",
                file_form("a.png", picture("PNG", 4_900, "RGBA", compress_level=1), {}),
            ),
            "200 pictures, beam 16": (
                "/v1/detect",
                {"file": [base64.b64encode(picture("PNG", 64)).decode()] * 200, "beam": 16},
            ),
            "a GIF of 3,000 pictures": ("/v1/detect", file_form("a.gif", animated(3_000), {})),
            "9 MB of comments in a GIF": (
                "/v1/detect",
                file_form("a.gif", b"GIF89a@\0@\0\0\0\0" + b"\x21\xfe\x01a\0" * 1_900_000, {}),
            ),
            "9 MB of bytes that fill up a JPEG": (
                "/v1/detect",
                file_form("a.jpg", b"\xff\xd8" + b"\xff" * 9_500_000, {}),
            ),
            "200 damaged pictures": (
                "/v1/detect",
                {"file": [base64.b64encode(picture("JPEG", 300)[:-900]).decode()] * 200},
            ),
        },
        "transcription": {
            "ten minutes of sound": (
                "/v1/audio/transcriptions",
                file_form("a.wav", recording(599), {"response_format": "verbose_json"}),
            ),
            "ten minutes of sound, beam 16": (
                "/v1/audio/transcriptions",
                file_form("a.wav", recording(599), {"beam": "16"}),
            ),
            "19 seconds of sound, beam 16": (
                "/v1/audio/transcriptions",
                file_form("a.wav", recording(19), {"beam": "16"}),
            ),
            "25 MB that are no sound": (
                "/v1/audio/transcriptions",
                file_form("a.wav", b"RIFF\xff\xff\xff\xffWAVE" + bytes(26_000_000), {}),
            ),
        },
        "language-model": {
            "1,000 tokens written": ("/v1/write", {"text": "Der", "longest": 1000}),
            "20,000 characters read": ("/v1/surprise", {"text": "Der Hund. " * 2_000}),
            "256 texts read": ("/v1/surprise", {"text": ["Der Hund. " * 7] * 256}),
        },
    }[task]


def keyless_attacks(run: str) -> dict[str, tuple[list[Question], int]]:
    """Name -> what somebody without a key asks for in turn, and over how many connections."""
    alike = ["/openapi.json", "/docs", "/v1/info", "/"]
    more = ["/languages", "/frontend/settings", "/docs.css", "/v1/figures", f"/v1/runs/{run}"]
    more += ["/metrics", "/assets/none.js", "/nothing"]
    every: dict[str, list[Question]] = {path: [(path, None)] for path in alike}
    every["all of them and more"] = [(path, None) for path in alike + more]
    every["a sentence"] = [("/translate", {"q": "a dog.", "source": "en", "target": "de"})]
    return {
        f"{name}, {count} connection{'s' * (count > 1)}": (questions, count)
        for name, questions in every.items()
        for count in (1, 60)
    }


SINGLE: dict[str, Question] = {
    "classification": ("/v1/classify", {"text": "The animal was too tired."}),
    "masked": ("/v1/fill", {"text": "The ___ was too tired."}),
    "parsing": ("/v1/parse", {"text": "the animal sleeps ."}),
    "language-model": ("/v1/write", {"text": "Der", "longest": 30}),
    "detection": ("/v1/detect", {"file": base64.b64encode(picture("PNG", 64)).decode()}),
    "transcription": (
        "/v1/audio/transcriptions",
        {"file": base64.b64encode(recording(1.5)).decode()},
    ),
}
"""What the neighbour of a run that does not translate asks for."""


def measure(
    run: Path,
    sentences: list[str],
    languages: tuple[str, str],
    seconds: float,
    trees: dict[str, Path | None] | None = None,
    task: str = "translation",
    only: list[str] | None = None,
    beside: tuple[Path, str] | None = None,
    *,
    keyless: bool = False,
) -> list[dict[str, Any]]:
    """One row of the table for each attack (or for ``only`` some), and each of the ``trees``, whose
    servers are attacked one after the other; the first is without any attack. ``beside``: another
    run of the same server and its task, which the attacks are on. ``keyless``: the attacks of
    somebody without a key, on servers that ask for one."""
    servers: dict[str, tuple[subprocess.Popen[str], int]] = {}
    whole: Body = {"q": sentences[0], "source": languages[0], "target": languages[1]}
    single: Question = ("/translate", whole)
    every = attacks(sentences, languages)
    if task != "translation":
        single, every = SINGLE[task], attacks_of_task(task)
    if beside is not None:
        every = attacks_of_task(beside[1])
    asked = {name: ([question], CONNECTIONS) for name, question in every.items()}
    if keyless:
        asked = keyless_attacks(run.name)
    rows = []
    try:
        for name, tree in (trees or {"now": None}).items():
            folders = [run] if beside is None else [run, beside[0]]
            servers[name] = _start(folders, tree, keyless=keyless)
            _watched(servers[name][1], single, min(5, seconds))  # warms up
        for attack, (questions, connections) in {"nobody": ([], 0), **asked}.items():
            if only is not None and attack not in only and questions:
                continue
            for name, (_, port) in servers.items():
                row = {"task": task, "attack": attack, "tree": name}
                if questions:
                    row |= _attacked(port, questions, connections, single, seconds)
                else:
                    row |= _watched(port, single, seconds)
                rows.append({**row, "load": round(os.getloadavg()[0], 1)})
    finally:
        for server, _ in servers.values():
            server.terminate()
        for server, _ in servers.values():
            server.wait(90)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    columns = f"{'p50':>8}{'p99 ms':>10}"
    lines = [
        f"{'':48}{'/health':^18}{'a sentence':^18}",
        f"{'attack':40}{'tree':8}{columns}{columns}{'load':>6}  attacker's answers",
    ]
    for row in rows:
        health, single = row["health_ms"], row["sentence_ms"]
        figures = f"{health[0]:8.0f}{health[1]:10.0f}{single[0]:8.0f}{single[1]:10.0f}"
        answers = row.get("answers", "")
        missed = "" if all(row[name][1] <= most for name, most in AIM.items()) else " AIM MISSED"
        lines.append(
            f"{row['attack']:40}{row['tree']:8}{figures}{row['load']:6}  {answers}{missed}"
        )
    return "\n".join(lines)


def medians(repeated: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of several runs -> one row of each attack, with the median of every figure."""
    return [
        {**same[-1]}
        | {
            name: [statistics.median(one) for one in zip(*(row[name] for row in same), strict=True)]
            for name in AIM
        }
        | {"load": max(row["load"] for row in same)}
        for same in zip(*repeated, strict=True)
    ]


def _start(
    runs: list[Path], tree: Path | None, *, keyless: bool
) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "dragoman", "serve", *map(str, runs), "--port", "0"]
    if keyless:
        with tempfile.NamedTemporaryFile("w", suffix=".keys", delete=False) as keys:
            keys.write(f"{KEY} neighbour requests_per_minute=1000000 burst=100000\n")
        command += ["--api-keys", keys.name]
    else:
        command += [word for change in FREE for word in ("--set", change)]
    other = {} if tree is None else {"PYTHONPATH": str(tree)}
    server = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **other}
    )
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"http://[\d.]+:(\d+)", line):
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, int(found[1])
    raise SystemExit("the server did not start")


def _attacked(
    port: int, questions: list[Question], connections: int, single: Question, seconds: float
) -> dict[str, Any]:
    context = get_context("spawn")
    here, there = context.Pipe()
    asked = (there, port, questions, connections, seconds + 1)
    attacker = context.Process(target=_attack, args=asked)
    attacker.start()
    here.recv()  # it has begun
    time.sleep(1)
    row = _watched(port, single, seconds)
    row["answers"] = here.recv()
    attacker.join()
    _wait_until_idle(port)
    return row


def _attack(
    pipe: Connection, port: int, questions: list[Question], connections: int, seconds: float
) -> None:
    """In a process of its own: the same requests from several connections, over and over. A POST
    has a connection of its own; GETs follow each other on one."""
    answers: Counter[str] = Counter()
    written = [_written(*question) for question in questions]
    end = time.monotonic() + seconds

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, source_address=("127.0.0.2", 0))
        for request in itertools.cycle(written):
            left = end - time.monotonic()
            if left <= 0:
                break
            connection.timeout = max(left, 0.1)
            try:
                connection.request(*request)
                answer = connection.getresponse()
                while answer.read1(1 << 20):
                    if time.monotonic() > end:
                        raise TimeoutError
                answer.close()  # the next request may follow on the same connection
                answers[str(answer.status)] += 1
            except (OSError, http.client.HTTPException):
                answers["unanswered at the end"] += 1
                connection.close()
            if request[0] == "POST":
                connection.close()
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(connections)]
    for thread in threads:
        thread.start()
    pipe.send("begun")
    for thread in threads:
        thread.join()
    pipe.send(dict(answers))


def _written(path: str, body: Body | bytes | None) -> tuple[str, str, bytes | None, dict[str, str]]:
    """The method, the path, the body and the headers of a request."""
    if body is None:
        return "GET", path, None, {"Accept-Encoding": "gzip"}
    if not isinstance(body, bytes):
        kind, body = "application/json", json.dumps(body, separators=(",", ":")).encode()
    elif body.startswith(f"--{_BOUNDARY}".encode()):
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
    else:
        kind = "application/x-www-form-urlencoded"
    return "POST", path, body, {"Content-Type": kind}


def _watched(port: int, single: Question, seconds: float) -> dict[str, Any]:
    """The neighbour's times: median and 99th of a hundred, in milliseconds."""
    method, path, body, headers = _written(*single)
    headers["Authorization"] = f"Bearer {KEY}"  # who serves without keys does not look at it
    questions: dict[str, Callable[[http.client.HTTPConnection], None]] = {
        "health_ms": lambda connection: connection.request("GET", "/health"),
        "sentence_ms": lambda connection: connection.request(method, path, body, headers),
    }
    times: dict[str, list[float]] = {name: [] for name in questions}
    end = time.monotonic() + seconds

    def ask(name: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
        while time.monotonic() < end:
            begin = time.perf_counter()
            questions[name](connection)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, f"{name}: {answer.status}"
            times[name].append(1000 * (time.perf_counter() - begin))
            time.sleep(PAUSE[name])
        connection.close()

    threads = [threading.Thread(target=ask, args=(name,)) for name in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: [_of(found, 0.5), _of(found, 0.99)] for name, found in times.items()}


def _of(times: list[float], share: float) -> float:
    ordered = sorted(times)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)


def _wait_until_idle(port: int) -> None:
    """Until the server has given up what the attacker left."""
    for _ in range(600):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        found = re.search(r"^dragoman_requests_under_way (\S+)", text, re.MULTILINE)
        if found is not None and float(found[1]) <= 1:
            return
        time.sleep(0.1)


def of_run(
    run: Path,
    source: Path | None,
    seconds: float,
    trees: dict[str, Path | None] | None = None,
    only: list[str] | None = None,
    beside: Path | None = None,
    *,
    keyless: bool = False,
) -> list[dict[str, Any]]:
    """``measure`` by a run's own task and tests, or the sentences of the file ``source``."""
    from serve import languages_and_sentences

    from dragoman.tasks.catalogue import Run

    def served_as(folder: Path) -> str:
        opened = Run.open(folder)
        hears = opened.recipe.source.kind == "frames" and opened.task.name == "translation"
        return "transcription" if hears else opened.task.name

    task = served_as(run)
    attacked = None if beside is None else (beside, served_as(beside))
    languages, sentences = ("", ""), [""]
    if task == "translation":
        languages, sentences = languages_and_sentences(run, source)
    return measure(run, sentences, languages, seconds, trees, task, only, attacked, keyless=keyless)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, nargs="+", default=[Path("runs/demo")])
    parser.add_argument("--beside", type=Path, help="another run of the server, to be attacked")
    parser.add_argument("--source", type=Path, help="sentences, one a line; else the run's tests")
    parser.add_argument("--seconds", type=float, default=15, help="of each attack")
    parser.add_argument("--tree", type=Path, help="folder src of the program to attack")
    parser.add_argument(
        "--against", type=Path, help="folder src of a program to attack too, before"
    )
    parser.add_argument("--only", nargs="+", help="attacks, by their names")
    parser.add_argument("--keyless", action="store_true", help="attacks of one without a key")
    parser.add_argument("--repeat", type=int, default=1, help="runs whose median is told")
    parser.add_argument("--results", type=Path, help="a file for the figures")
    options = parser.parse_args()
    watch = Watch()
    trees: dict[str, Path | None] = {"now": options.tree}
    if options.against is not None:
        trees = {"before": options.against} | trees
    rows = []
    for run in options.run:
        repeated = [
            of_run(
                run, options.source, options.seconds, trees, options.only, options.beside,
                keyless=options.keyless,
            )
            for _ in range(options.repeat)
        ]  # fmt: skip
        found = medians(repeated)
        print(table(found), flush=True)
        rows += found
        if options.results is not None:
            written = {"neighbour": rows} | watch.stamp()
            options.results.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
