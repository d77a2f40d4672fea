"""A server attacked as a stranger, a careless client and an operator would, for a bounded time.

    python benchmarks/attack.py --run runs/demo
    python benchmarks/attack.py --run runs/demo --only headers idle

Each attack has a server of its own on the loopback address, lasts less than a minute, and gives one
line of the table: the attack, and what was seen. Attackers sit at 127.0.0.2 and above, the others
at 127.0.0.1, so that limits tell them apart (Linux has the whole of 127.0.0.0/8). With PYTHONPATH
the server of another tree is attacked.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import resource
import select
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ATTACKER = "127.0.0.2"
SENTENCE = "The animal didn't cross the street because it was too tired. "
FREE = ("limits.requests_per_minute=1000000", "limits.burst=100000")
"""For attacks on something else than the rate of requests."""
KEY = "0123456789abcdef0123456789abcdef"


@dataclass
class Server:
    """A server under attack."""

    process: subprocess.Popen[str]
    port: int
    log: list[str] = field(default_factory=list)

    def connect(self, source: str = ATTACKER, receive_buffer: int = 0) -> socket.socket:
        """A connection from one of this machine's addresses."""
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.bind((source, 0))
        connection.settimeout(10)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        source: str = ATTACKER,
        seconds: float = 60,
        **headers: str,
    ) -> tuple[int, str, http.client.HTTPMessage]:
        """Status, text and headers of one answer; ``body`` is sent as JSON, or as it is."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=seconds, source_address=(source, 0)
        )
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        with contextlib.closing(connection):
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace"), answer.headers

    def memory(self) -> float:
        """Resident MiB."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def logged(self) -> str:
        """How much it wrote since it was up."""
        return f"log of {sum(map(len, self.log)):,} bytes"


class Others:
    """Another client meanwhile: ``/health`` or a sentence, again and again, on new connections."""

    def __init__(self, server: Server, pause: float = 0.25, path: str = "/health") -> None:
        self._server, self._pause, self._path = server, pause, path
        self.seconds: list[float] = []
        self.failed = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Others:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stop.wait(self._pause):
            began = time.perf_counter()
            try:
                status, _, _ = self._server.ask("GET", self._path, source="127.0.0.1", seconds=5)
                assert status == 200
            except (OSError, http.client.HTTPException, AssertionError):
                self.failed += 1
            else:
                self.seconds.append(time.perf_counter() - began)

    def __str__(self) -> str:
        asked = len(self.seconds) + self.failed
        if not self.seconds:
            return f"none of {asked} other requests answered"
        worst = 1000 * max(self.seconds)
        middle = 1000 * statistics.median(self.seconds)
        return (
            f"{len(self.seconds)} of {asked} other requests answered, "
            f"median {middle:.0f} ms, worst {worst:,.0f} ms"
        )


@contextlib.contextmanager
def served(
    run: Path, *changes: str, host: str = "127.0.0.1", descriptors: int = 0, **settings: object
) -> Iterator[Server]:
    """``dragoman serve`` of a run; ``descriptors``: how many files it may have open."""
    command = [sys.executable, "-m", "dragoman", "serve", str(run), "--port", "0", "--host", host]
    for name, value in settings.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    for change in changes:
        command += ["--set", change]

    def limit() -> None:
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    assert process.stderr is not None
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(process.stderr or ()))
    try:
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"http://\S+:(\d+)", line):
                break
        else:
            raise SystemExit("".join(said))
        said.clear()
        reader.start()
        yield Server(process, int(found[1]), said)
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if reader.ident is not None:
            reader.join()
        process.stderr.close()


def still_open(connections: list[socket.socket]) -> int:
    """How many the server has not closed."""
    if not connections:
        return 0
    poll = select.poll()
    for connection in connections:
        poll.register(connection, select.POLLIN | select.POLLHUP | select.POLLERR)
    ended = 0
    numbers = {connection.fileno(): connection for connection in connections}
    for number, _ in poll.poll(0):
        with contextlib.suppress(BlockingIOError):
            numbers[number].setblocking(False)
            try:
                ended += not numbers[number].recv(1, socket.MSG_PEEK)
            except ConnectionError:
                ended += 1
    return len(connections) - ended


def close(connections: list[socket.socket]) -> None:
    for connection in connections:
        connection.close()


# ---- the attacks: each returns what was seen


def headers(run: Path) -> str:
    """200 connections send a byte of a header now and then; the server has 64 descriptors."""
    with served(run, descriptors=64) as server, Others(server) as others:
        held: list[socket.socket] = []
        end = time.monotonic() + 40
        while time.monotonic() < end:
            while len(held) < 200:
                try:
                    held.append(server.connect())
                    held[-1].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
                except OSError:
                    break
            time.sleep(1)
            alive = []
            for connection in held:
                try:
                    connection.sendall(b"x")
                    alive.append(connection)
                except OSError:
                    connection.close()
            held = alive
        seen = f"{others}; {server.logged}"
        close(held)
    return seen


def idle(run: Path) -> str:
    """600 connections of one address that say nothing."""
    with served(run) as server, Others(server) as others:
        held = [server.connect() for _ in range(600)]
        time.sleep(2)
        at_once = still_open(held)
        time.sleep(43)
        seen = f"{at_once} open after 2 s, {still_open(held)} after 45 s; {others}"
        close(held)
    return seen


def body(run: Path) -> str:
    """50 requests whose body never ends, sent on after the answer."""
    start = b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n{"
    with served(run) as server:
        held = [server.connect() for _ in range(50)]
        for connection in held:
            connection.sendall(start)
        ended: set[socket.socket] = set()
        for _ in range(45):
            time.sleep(1)
            for connection in held:
                try:
                    connection.sendall(b" ")
                except OSError:
                    ended.add(connection)
        seen = f"{50 - len(ended)} of 50 still held after 45 s"
        close(held)
    return seen


def readers(run: Path) -> str:
    """40 clients ask for megabytes and do not read them."""
    wish = {"text": (SENTENCE * 45).strip(), "beam": 1, "part": "encoder", "layer": 0}
    asked = json.dumps(wish).encode()
    head = posted("/v1/look/attention", asked)
    with served(run, *FREE, "limits.concurrent=100") as server:
        _, answer, _ = server.ask("POST", "/v1/look/attention", wish)  # the look is kept
        before, files = server.memory(), server.descriptors()
        held = []
        for _ in range(40):
            held.append(server.connect(receive_buffer=2048))
            held[-1].sendall(head)
            time.sleep(0.2)
        time.sleep(2)
        grown, at_once = server.memory() - before, server.descriptors() - files
        time.sleep(50)
        left = max(0, server.descriptors() - files)
        seen = (
            f"{left} of {at_once} connections still held after a minute, "
            f"{len(answer):,} bytes each; memory grew by {grown:.0f} MiB"
        )
        close(held)
    return seen


def garbage(run: Path) -> str:
    """Twenty seconds of what is not HTTP."""
    with served(run) as server, Others(server) as others:
        end, sent = time.monotonic() + 20, 0
        while time.monotonic() < end:
            with contextlib.suppress(OSError), contextlib.closing(server.connect()) as connection:
                connection.sendall(b"\x16\x03\x01\x00 not http\r\n\r\n")
                connection.recv(100)
                sent += 1
        seen = f"{sent:,} sent; {others}; {server.logged}"
    return seen


def mapped(run: Path) -> str:
    """Listening on ``::``, one IPv4 user spends the requests of all."""
    changes = ("limits.burst=5", "limits.requests_per_minute=1")
    with served(run, *changes, host="::") as server:
        wish = {"q": "The dog sleeps.", "target": "de"}
        spent = Counter(server.ask("POST", "/translate", wish)[0] for _ in range(10))
        other, _, _ = server.ask("POST", "/translate", wish, source="127.0.0.3")
    return f"the one got {_counted(spent)}; another IPv4 address got {other}"


def assets(run: Path) -> str:
    """``/assets/%00`` and names that are too long, 200 times."""
    names = ["%00", "a" * 5000, "%2e%2e%2f" * 400, "%ff%fe"]
    with served(run) as server:
        seen = together(
            lambda n: server.ask("GET", f"/assets/{names[n % len(names)]}")[0], range(200)
        )
        return f"{_counted(seen)}; {server.logged}"


def figures(run: Path) -> str:
    """40 figures of long sentences are asked for, and not waited for; long texts are cut
    meanwhile."""
    long_text = {"q": SENTENCE * 80, "target": "de"}
    with served(run, *FREE, "limits.concurrent=100") as server:
        began = time.perf_counter()
        server.ask("POST", "/translate", long_text, source="127.0.0.1")
        alone = time.perf_counter() - began
        for number in range(40):
            words = " ".join(["The old animal eats the small apple"] * 8)
            wish = {"name": "heads", "sentence": f"{words} {number}."}
            asked = json.dumps(wish).encode()
            with contextlib.closing(server.connect()) as connection:
                connection.sendall(posted("/v1/figures", asked))
                time.sleep(0.05)
        began = time.perf_counter()
        server.ask("POST", "/translate", long_text, source="127.0.0.1")
        seconds = time.perf_counter() - began
        before = _cpu_seconds(server.process.pid)
        time.sleep(3)
        used = _cpu_seconds(server.process.pid) - before
        threads = len(os.listdir(f"/proc/{server.process.pid}/task"))
    return (
        f"a long text took {seconds:.2f} s ({alone:.2f} s before), then {used:.1f} s of processor "
        f"time in 3 s that nobody waits for; {threads} threads"
    )


def keyless(run: Path) -> str:
    """300 requests without a key, and 300 keys that are guessed."""
    path = Path("/tmp") / f"attack-keys-{os.getpid()}"
    path.write_text(f"{KEY} ada\n")
    wish = {"q": "The dog sleeps.", "target": "de"}
    try:
        with served(run, api_keys=path) as server:
            without = together(lambda _: server.ask("POST", "/translate", wish)[0], range(300))
            guessed = together(
                lambda n: server.ask("POST", "/translate", wish, Authorization=f"Bearer {n:032}")[
                    0
                ],
                range(300),
            )
            ada, _, _ = server.ask(
                "POST", "/translate", wish, "127.0.0.1", Authorization=f"Bearer {KEY}"
            )
    finally:
        path.unlink()
    return f"without: {_counted(without)}; guessed: {_counted(guessed)}; who has a key got {ada}"


def taken(run: Path) -> str:
    """A port that somebody has: how long until it is said."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        command = [sys.executable, "-m", "dragoman", "serve", str(run), "--port", port]
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
    return f"after {seconds:.1f} s: {done.stderr.strip().splitlines()[-1][:60]}…"


def typeless(run: Path) -> str:
    """JSON as curl sends it when nobody says what it is."""
    wish = json.dumps({"q": "The dog sleeps.", "target": "de"}).encode()
    with served(run) as server:
        form = "application/x-www-form-urlencoded"
        status, said, _ = server.ask("POST", "/translate", wish, Content_Type=form)
    return f"{status}: {said.strip()}"


def host(run: Path) -> str:
    """A stranger's Host and X-Forwarded-Proto, and a form of a page of another site."""
    with served(run) as server:
        status, _, answered = server.ask(
            "POST", "/translate/", {"q": "x"}, Host="evil.example", X_Forwarded_Proto="https"
        )
        docs, _, _ = server.ask("GET", "/docs", Host="evil.example")
        form = {"Content_Type": "text/plain", "Origin": "https://evil.example"}
        crossed, _, _ = server.ask("POST", "/v1/translate", b'{"text": "a"}', **form)
    return f"{status}, location: {answered.get('location')}; /docs: {docs}; form: {crossed}"


def damaged(run: Path) -> str:
    """A figure of a run whose recipe was damaged while it is served."""
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "run"
        shutil.copytree(run, copy)
        with served(copy) as server:
            (copy / "recipe.toml").write_text("broken = ", encoding="utf-8")
            status, said, _ = server.ask("POST", "/v1/figures", {"name": "heads"})
    return f"{status}: " + ("the path is told" if folder in said else said[:80])


def search(run: Path) -> str:
    """One legal request: 20,000 characters, beam 16, 16 translations of each sentence."""
    text = (SENTENCE * 400)[:19_000]
    with served(run, *FREE) as server, Others(server, 0.05) as others:
        began = time.perf_counter()
        wish = {"text": text, "beam": 16, "n_best": 16}
        status, said, _ = server.ask("POST", "/v1/translate", wish, seconds=90)
        seconds = time.perf_counter() - began
    return f"{status} after {seconds:.0f} s, {len(said):,} characters; {others}"


def look(run: Path) -> str:
    """One client asks for sixteen looks of a long text at once."""
    wish = {"text": (SENTENCE * 12).strip(), "beam": 16}
    statuses: Counter[int] = Counter()
    with served(run, *FREE) as server:

        def ask(number: int) -> None:
            one = {**wish, "hidden": [number]}
            statuses[server.ask("POST", "/v1/look", one, seconds=90)[0]] += 1

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        began = time.perf_counter()
        other, _, _ = server.ask("POST", "/v1/look", {"text": SENTENCE}, "127.0.0.1", 90)
        seconds = time.perf_counter() - began
        for thread in threads:
            thread.join()
    return f"the one got {_counted(statuses)}; another got {other} after {seconds:.1f} s"


ATTACKS: dict[str, Callable[[Path], str]] = {
    attack.__name__: attack
    for attack in (
        headers, idle, body, readers, garbage, mapped, assets, figures, keyless, taken, typeless,
        host, damaged, search, look,
    )
}  # fmt: skip


def together(ask: Callable[[int], int], numbers: range) -> Counter[int]:
    """The statuses of requests that 60 connections send: who sends too many waits for each."""
    with ThreadPoolExecutor(60) as pool:
        return Counter(pool.map(ask, numbers))


def posted(path: str, body: bytes) -> bytes:
    """A whole request, for connections whose answers are not read."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _counted(statuses: Counter[int]) -> str:
    return ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, default=Path("runs/demo"))
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most), most))
    print("| attack | what was seen |\n|---|---|")
    for name in options.only:
        about = " ".join((ATTACKS[name].__doc__ or "").split()).rstrip(".")
        print(f"| `{name}`: {about} | {ATTACKS[name](options.run)} |", flush=True)


if __name__ == "__main__":
    main()
