"""Named downloads, against a server on this machine that can misbehave in every way."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import resource
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dragoman.base.errors import DataError, FileError
from dragoman.data.download import (
    DOWNLOADS,
    MULTI30K,
    Download,
    RemoteFile,
    fetch,
    find_download,
)

ENGLISH = b"a small dog\n" * 20_000  # several pieces
GERMAN = "ein kleiner Hund mit Ümläuten\n".encode() * 50


class Server:
    """Serves bytes by path, or half of them where ``broken`` or ``stuck`` (and then waits)."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"/train.en.gz": ENGLISH, "/train.de.gz": GERMAN}
        self.broken: set[str] = set()
        self.stuck: set[str] = set()
        self.closing = threading.Event()
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                half = self.path in outer.broken | outer.stuck
                self.wfile.write(content[: len(content) // 2] if half else content)
                if self.path in outer.stuck:
                    outer.closing.wait()

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    running = Server()
    yield running
    running.close()


def download(address: str) -> Download:
    return Download(
        name="tiny",
        description="",
        licence="",
        files=tuple(
            RemoteFile(name, f"{address}/{name}", len(content), hashlib.sha256(content).hexdigest())
            for name, content in (("train.en.gz", ENGLISH), ("train.de.gz", GERMAN))
        ),
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_arrive_whole_with_progress(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    paths = fetch(
        download(server.address),
        tmp_path / "new" / "folder",
        progress=lambda name, done, total: seen.append((name, done, total)),
    )
    assert [path.name for path in paths] == ["train.en.gz", "train.de.gz"]
    assert paths[0].read_bytes() == ENGLISH
    assert paths[1].read_bytes() == GERMAN
    assert names(tmp_path / "new" / "folder") == ["train.de.gz", "train.en.gz"]
    sizes = {"train.en.gz": len(ENGLISH), "train.de.gz": len(GERMAN)}
    assert seen == [(name, size, size) for name, size in sizes.items()]
    assert os.stat(paths[0]).st_mode & 0o444 == 0o444  # not private like a temporary file


def test_what_is_there_is_checked_and_not_fetched_again(server: Server, tmp_path: Path) -> None:
    fetch(download(server.address), tmp_path)
    (tmp_path / "train.de.gz").unlink()
    server.asked.clear()
    fetch(download(server.address), tmp_path)
    assert server.asked == ["/train.de.gz"]


def test_another_file_in_its_place_is_never_overwritten(server: Server, tmp_path: Path) -> None:
    mine = tmp_path / "train.en.gz"
    mine.write_bytes(b"x" * len(ENGLISH))  # right size, other content
    with pytest.raises(DataError, match=r"train\.en\.gz already exists"):
        fetch(download(server.address), tmp_path)
    assert mine.read_bytes() == b"x" * len(ENGLISH)
    assert server.asked == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ENGLISH[:-1] + b"!", "has the SHA-256 .* where .* is expected"),
        (ENGLISH[:-7], "ended after 239,993 of 240,000 bytes"),
        (ENGLISH + b"!", "longer than the 240,000 bytes"),
        (b"", "ended after 0 of"),
    ],
)
def test_a_file_that_is_not_the_pinned_one_is_refused(
    server: Server, tmp_path: Path, content: bytes, message: str
) -> None:
    server.files["/train.en.gz"] = content
    with pytest.raises(DataError, match=message) as caught:
        fetch(download(server.address), tmp_path)
    assert f"{server.address}/train.en.gz" in str(caught.value)
    assert names(tmp_path) == []


def test_a_broken_connection_leaves_nothing_and_can_be_taken_up(
    server: Server, tmp_path: Path
) -> None:
    server.broken.add("/train.de.gz")
    with pytest.raises(DataError, match=r"ended after|no connection"):
        fetch(download(server.address), tmp_path)
    assert names(tmp_path) == ["train.en.gz"]
    server.broken.clear()
    server.asked.clear()
    fetch(download(server.address), tmp_path)
    assert server.asked == ["/train.de.gz"]
    assert names(tmp_path) == ["train.de.gz", "train.en.gz"]


def test_a_silent_server_is_given_up(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.data.download._TIMEOUT_SECONDS", 0.2)
    server.stuck.add("/train.en.gz")
    with pytest.raises(DataError, match=r"no connection \(timed out\)"):
        fetch(download(server.address), tmp_path)
    assert names(tmp_path) == []


def test_no_server_and_no_such_file(server: Server, tmp_path: Path) -> None:
    del server.files["/train.de.gz"]
    with pytest.raises(DataError, match=r"train\.de\.gz: the server answers 404"):
        fetch(download(server.address), tmp_path)
    server.close()
    with pytest.raises(DataError, match=r"no connection .*--from FOLDER"):
        fetch(download(server.address), tmp_path / "other")
    assert names(tmp_path / "other") == []


def test_from_a_folder_without_a_network(tmp_path: Path) -> None:
    origin, folder = tmp_path / "stick", tmp_path / "data"
    origin.mkdir()
    (origin / "train.en.gz").write_bytes(ENGLISH)
    # Port 9 is closed: asking it would fail.
    offline = download("http://127.0.0.1:9")
    with pytest.raises(DataError, match=r"stick/train\.de\.gz: cannot be read: No such file"):
        fetch(offline, folder, origin=origin)
    (origin / "train.de.gz").write_bytes(GERMAN.upper())
    with pytest.raises(DataError, match=r"stick/train\.de\.gz has the SHA-256"):
        fetch(offline, folder, origin=origin)
    (origin / "train.de.gz").write_bytes(GERMAN)
    paths = fetch(offline, folder, origin=origin)
    assert [path.read_bytes() for path in paths] == [ENGLISH, GERMAN]
    assert fetch(offline, origin, origin=origin)[0] == origin / "train.en.gz"


def test_a_full_disk_leaves_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"No space left on device\..* Free some space"):
        fetch(download(server.address), tmp_path)
    assert names(tmp_path) == []


def test_a_write_that_fails_half_way_leaves_nothing(server: Server, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        # The kernel itself refuses to write further than this.
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        with pytest.raises(FileError, match=r"cannot write .*train\.en\.gz: File too large"):
            fetch(download(server.address), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot make this folder"):
        fetch(download(server.address), tmp_path / "file" / "folder")


def test_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(DataError, match=r"'multi30'.*Did you mean multi30k\?"):
        find_download("multi30")
    with pytest.raises(DataError, match="There are: multi30k"):
        find_download("wmt14")


@pytest.mark.parametrize("name", DOWNLOADS)
def test_pins_are_complete(name: str) -> None:
    pinned = find_download(name)
    assert pinned.name == name
    for file in pinned.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.address.startswith("https://") and file.address.endswith("/" + file.name)
        assert file.size > 0
    assert len({file.sha256 for file in pinned.files}) == len(pinned.files)


def test_multi30k_is_pinned_to_a_commit() -> None:
    assert all(re.search(r"/[0-9a-f]{40}/", file.address) for file in MULTI30K.files)
    assert MULTI30K.size == 1_296_271
