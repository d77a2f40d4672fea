"""Attacks that take long, each on a server of its own; the quick ones are tests of their modules.

Attackers sit at 127.0.0.2 and another client at 127.0.0.1, so that limits tell them apart.
"""

from __future__ import annotations

import resource
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from told_address import address_told

pytestmark = pytest.mark.slow  # two minutes: it is time that the attackers take


class Served:
    """A server under attack, which another client asks for ``/health`` meanwhile."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.log: list[str] = []
        """The lines that it wrote since it was up."""
        self.attack_is_over = threading.Event()
        self.asked = self.answered = 0

    def connect(self) -> socket.socket:
        """An attacker's connection."""
        return socket.create_connection(("127.0.0.1", self._port), 10, ("127.0.0.2", 0))

    def ask_meanwhile(self) -> None:
        """Be the other client."""
        while not self.attack_is_over.wait(0.25):
            other = HTTPConnection("127.0.0.1", self._port, 5, source_address=("127.0.0.1", 0))
            self.asked += 1
            with closing(other), suppress(OSError, HTTPException):
                other.request("GET", "/health")
                self.answered += other.getresponse().status == 200


@contextmanager
def served(run: Path, descriptors: int = 1024) -> Iterator[Served]:
    """``dragoman serve`` of a run, which may have this many files open."""
    limit = (descriptors, descriptors)
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "serve", str(run), "--port", "0"],
        stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
    )  # fmt: skip
    assert process.stderr is not None
    with closing(process.stderr) as lines:
        try:
            server = Served(urlsplit(address_told(lines)).port or 0)
            other = threading.Thread(target=server.ask_meanwhile)
            reader = threading.Thread(target=lambda: server.log.extend(lines))
            other.start()
            reader.start()
            try:
                yield server
            finally:
                server.attack_is_over.set()
                other.join()
        finally:
            process.kill()
            process.wait()
        reader.join()


def still_open(connections: list[socket.socket]) -> int:
    """How many the server has not closed."""
    poll = select.poll()
    for connection in connections:
        poll.register(connection, select.POLLIN | select.POLLHUP | select.POLLERR)
    numbers = {connection.fileno(): connection for connection in connections}
    ended = 0
    for number, _ in poll.poll(0):
        with suppress(BlockingIOError):
            numbers[number].setblocking(False)
            try:
                ended += not numbers[number].recv(1, socket.MSG_PEEK)
            except ConnectionError:
                ended += 1
    return len(connections) - ended


def test_headers_that_never_end_keep_nobody_out(tiny_run: Path) -> None:
    """200 connections send a byte of a header now and then; the server has 64 descriptors."""
    held: list[socket.socket] = []
    with served(tiny_run, descriptors=64) as server:
        end = time.monotonic() + 40
        while time.monotonic() < end:
            with suppress(OSError):
                while len(held) < 200:
                    held.append(server.connect())
                    held[-1].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
            time.sleep(1)
            for connection in list(held):
                try:
                    connection.sendall(b"x")
                except OSError:
                    connection.close()
                    held.remove(connection)
    for connection in held:
        connection.close()
    assert server.answered == server.asked > 50
    assert sum(map(len, server.log)) < 10_000


def test_connections_that_say_nothing_are_closed(tiny_run: Path) -> None:
    with served(tiny_run) as server:
        held = [server.connect() for _ in range(600)]
        time.sleep(45)
        assert still_open(held) == 0
    for connection in held:
        connection.close()
    assert server.answered == server.asked > 50


def test_a_body_that_never_ends_is_not_read_on(tiny_run: Path) -> None:
    """It is sent on after the answer."""
    start = b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n{"
    with served(tiny_run) as server:
        held = [server.connect() for _ in range(50)]
        ended: set[socket.socket] = set()
        for connection in held:
            connection.sendall(start)
        for _ in range(45):
            time.sleep(1)
            for connection in held:
                try:
                    connection.sendall(b" ")
                except OSError:
                    ended.add(connection)
    for connection in held:
        connection.close()
    assert len(ended) == 50


def test_what_is_not_http_disturbs_nobody(tiny_run: Path) -> None:
    with served(tiny_run) as server:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with suppress(OSError), closing(server.connect()) as connection:
                connection.sendall(b"\x16\x03\x01\x00 not http\r\n\r\n")
                connection.recv(100)
    assert server.answered == server.asked > 25
    assert sum(map(len, server.log)) < 10_000
