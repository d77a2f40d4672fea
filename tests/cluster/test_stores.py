"""Stores: what a folder does, a bucket does too, and the faults of both harm nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
from asked_parts import asked, joined, run, wanted
from faulty_clouds import OF_PAGE, cloud
from faulty_s3 import BUCKET, FaultySwitch, s3
from inline_workers import InlineWorkers
from loud import loud

from dragoman import stores
from dragoman.base.errors import DragomanError
from dragoman.cluster import driver
from dragoman.cluster.lines import Job
from dragoman.cluster.plan import PartsPlan
from dragoman.cluster.work import Way
from dragoman.stores import (
    FolderStore,
    InputChanged,
    ObjectStore,
    Stat,
    Store,
    StoreError,
    open_store,
)

zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")

TEXT = "".join(f"line {number}\n" for number in range(40)).encode()


SCHEMES = ["s3", "gs", "az"]


def of_scheme(
    scheme: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> AbstractContextManager[FaultySwitch]:
    """A bucket that is empty."""
    return s3(monkeypatch) if scheme == "s3" else cloud(scheme, monkeypatch, folder)


@pytest.fixture
def scheme() -> str:
    """Of the bucket of a test that names no other."""
    return "s3"


@pytest.fixture
def bucket(scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FaultySwitch]:
    monkeypatch.setattr(driver, "workers_at", lambda place: InlineWorkers(1).all)
    monkeypatch.setattr(stores, "_PAUSE", 0.001)
    with of_scheme(scheme, monkeypatch, tmp_path) as switch:
        yield switch


@pytest.fixture(params=["folder", "memory", *SCHEMES])
def store(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Store]:
    """Each kind, empty."""
    if request.param == "folder":
        yield FolderStore(tmp_path)
    elif request.param == "memory":
        yield ObjectStore("memory://")
    else:
        with of_scheme(request.param, monkeypatch, tmp_path):
            yield open_store(f"{request.param}://{BUCKET}")


def test_what_every_store_does(store: Store) -> None:
    assert store.stat("a/x") is None and list(store.names("a/")) == []
    assert store.create("a/x", b"hello") and not store.create("a/x", b"other")
    stat = store.stat("a/x")
    assert stat is not None and stat.size == 5
    assert store.read("a/x", 1, 3, stat.tag) == b"ell"
    assert store.create("a/y", b"") and store.create("b/x", b"1")
    assert [name for name, _ in store.names("a/")] == ["a/x", "a/y"]
    assert dict(store.names(""))["a/x"] == stat
    with pytest.raises(InputChanged, match="has changed"):
        store.read("a/x", 0, 5, "another")
    with pytest.raises(InputChanged, match="no longer exists"):
        store.read("a/none", 0, 5)
    store.remove("a/x")
    assert store.stat("a/x") is None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_names_of_any_letters_are_listed_and_read(scheme: str, bucket: FaultySwitch) -> None:
    store = open_store(f"{scheme}://{BUCKET}")
    names = [f"in & out/{name}" for name in ("a b", "a+b", "a%20b", "a=b", "<x>", "ü", "한국어")]
    for name in names:
        assert store.create(name, name.encode())
    assert [name for name, _ in store.names("in & out/")] == sorted(names)
    for name in names:
        assert store.read(name, 0, len(name.encode())) == name.encode()


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_a_list_of_several_answers_goes_on_where_one_was_cut_short(
    scheme: str, bucket: FaultySwitch
) -> None:
    """Every third answer: a list that began again would meet one in each try."""
    store = open_store(f"{scheme}://{BUCKET}")
    names = [f"in/{number:03}" for number in range(3 * OF_PAGE + 1)]
    for name in names:
        assert store.create(name, b"")
    bucket.every = {"short": 3}
    assert [name for name, _ in store.names("in/")] == names
    assert bucket.injected["short"] in (1, 2)


def parts_of(address: str) -> bytes:
    store = open_store(address.partition("/out")[0])
    return b"".join(
        store.read(name, 0, stat.size) for name, stat in store.names("out/") if "/part-" in name
    )


@pytest.mark.parametrize(
    "fault",
    ["none", *(pytest.param(one, marks=pytest.mark.slow) for one in ("refuse", "lose", "short"))],
)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_bucket_that_fails_gives_what_a_folder_gives(
    fault: str, scheme: str, bucket: FaultySwitch, tmp_path: Path
) -> None:
    address = f"{scheme}://{BUCKET}"
    assert open_store(address).create("in/a.txt", TEXT)
    assert open_store(address).create("in/b.txt.zst", zstandard.compress(TEXT))
    bucket.put.clear()
    bucket.every = {} if fault == "none" else {fault: 7}
    told = run(wanted(asked([f"{address}/in/a*"]), f"{address}/out"))
    assert "all 10 parts are complete" in told
    assert "nothing to do" in run(wanted(asked([f"{address}/in/a*"]), f"{address}/out/"))
    bucket.every = {}
    assert bool(bucket.injected) == (fault != "none")
    assert parts_of(f"{address}/out") == TEXT.upper()
    parts = {name: count for name, count in bucket.put.items() if "/part-" in name}
    assert len(parts) == 10 and set(parts.values()) == {1}  # none twice
    run(wanted(asked([f"{address}/in/"]), tmp_path / "both"))
    packed = sorted((tmp_path / "both").glob("*.zst"))
    assert joined(tmp_path / "both").startswith(TEXT.upper())
    assert b"".join(zstandard.decompress(p.read_bytes()) for p in packed) == TEXT.upper()


def test_a_job_travels_to_other_processes_and_leaves_its_store_behind() -> None:
    job = Job("memory://", PartsPlan(asked(), ()), loud, way=Way("int8"))
    assert job.store.create("x", b"")
    other = ForkingPickler.loads(ForkingPickler.dumps(job))
    assert other == job and other.store.stat("x") is None


@pytest.mark.parametrize(
    ("scheme", "variable"),
    [
        ("s3", "AWS_SESSION_TOKEN"),
        ("gs", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("az", "AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
def test_credentials_that_expire_are_told_and_the_same_command_goes_on(
    scheme: str, variable: str, bucket: FaultySwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{scheme}://{BUCKET}"
    open_store(address).create("in.txt", TEXT)

    def expire(part: int) -> None:
        bucket.denies = part == 3

    workers = InlineWorkers(1, before_part=expire)
    monkeypatch.setattr(driver, "workers_at", lambda place: workers.all)
    with pytest.raises(DragomanError, match=rf"Set valid credentials.*{variable}"):
        run(wanted(asked([f"{address}/in.txt"]), f"{address}/out"))
    bucket.denies = False
    monkeypatch.setattr(driver, "workers_at", lambda place: InlineWorkers(1).all)
    assert "3 of 10 parts are complete" in run(
        wanted(asked([f"{address}/in.txt"]), f"{address}/out")
    )
    assert parts_of(f"{address}/out") == TEXT.upper()


def test_a_bucket_that_lists_late_costs_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "workers_at", lambda place: InlineWorkers(1).all)
    (tmp_path / "in.txt").write_bytes(TEXT)
    what = asked([tmp_path / "in.txt"])
    run(wanted(what, tmp_path / "out", part="1/2"))
    whole = FolderStore.names

    def late(self: FolderStore, below: str) -> Iterator[tuple[str, Stat]]:
        return (one for one in whole(self, below) if not one[0].startswith("part-"))

    monkeypatch.setattr(FolderStore, "names", late)
    told = run(wanted(what, tmp_path / "out", part="2/2"))
    assert "all 10 parts are complete" in told
    workers = InlineWorkers(1)
    monkeypatch.setattr(driver, "workers_at", lambda place: workers.all)
    run(wanted(what, tmp_path / "out"))
    assert workers.given == []
    assert joined(tmp_path / "out") == TEXT.upper()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None: ...


def test_a_server_of_files_that_gives_no_ranges_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "workers_at", lambda place: InlineWorkers(1).all)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "in.txt").write_bytes(TEXT)
    handler = partial(Quiet, directory=str(tmp_path / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        run(wanted(asked([f"{address}/in.txt"]), tmp_path / "out"))
        with pytest.raises(DragomanError, match="does not name a file"):
            asked([f"{address}/none.txt"])
        server.shutdown()
    assert joined(tmp_path / "out") == TEXT.upper()


def test_a_store_whose_answers_are_all_cut_short_is_given_up(
    bucket: FaultySwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "PATIENCE", 0.01)
    store = open_store(f"s3://{BUCKET}")
    assert store.create("x", b"hello")
    bucket.every = {"short": 1}
    with pytest.raises(StoreError, match=r"asked for 0 seconds.*Run the same command again"):
        store.read("x", 0, 5)


@pytest.mark.parametrize(
    ("missing", "what"),
    [
        ("obstore", lambda path: open_store("s3://bucket")),
        ("zstandard", lambda path: asked_zstd(path)),
    ],
)
def test_what_is_not_installed_is_told_in_one_line(
    missing: str, what: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(DragomanError, match=rf"{missing} is not.*pip install .*{missing}"):
        what(tmp_path)


def asked_zstd(folder: Path) -> None:
    (folder / "in.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    run(wanted(asked([folder / "in.zst"]), folder / "out"))


def test_an_address_of_another_kind_is_told() -> None:
    with pytest.raises(StoreError, match=r"ftp:// is not supported. Use one of s3://"):
        asked(["ftp://host/in.txt"])


@pytest.mark.parametrize(
    ("address", "settings", "told"),
    [
        ("az://container", {}, "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"),
        (
            "az://container",
            {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_ACCOUNT_KEY": "no base64!"},
            "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        ),
        (
            "gs://bucket",
            {"GOOGLE_APPLICATION_CREDENTIALS": "/missing.json"},
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
    ],
)
def test_a_store_that_lacks_a_setting_names_its_variables(
    address: str, settings: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=rf"cannot use {address}: .*Set valid credentials.*{told}"):
        open_store(address)
