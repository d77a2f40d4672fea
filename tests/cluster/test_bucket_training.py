"""Training on prepared text that lies in an object store: it is fetched, checked, and is the same
text, whatever fails meanwhile."""

from __future__ import annotations

import logging
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from faulty_s3 import BUCKET, FaultySwitch, s3
from inline_workers import InlineWorkers
from recipe_of_files import recipe_of
from tiny_recipe import TINY

from dragoman import stores
from dragoman.base.errors import DataError, DragomanError, RunError
from dragoman.cluster import driver
from dragoman.cluster.driver import Command, ProgressConsole
from dragoman.data import store_writer
from dragoman.prepare import command as prepare_command
from dragoman.runs import prepared
from dragoman.runs.prepared import local_folder
from dragoman.stores import ObjectStore, StoreError, open_store
from dragoman.tasks.catalogue import Recipe, Run
from dragoman.tasks.training import train

ADDRESS = f"s3://{BUCKET}/prepared"
CHANGES = [
    *(one for one in TINY if not one.startswith("text.")),
    "training.updates=8", "training.validate_every=4", "training.precision=fp32",
    "plan.block_examples=60", "plan.tokens_per_update=400",
]  # fmt: skip
QUIET: dict[str, Any] = {"say": lambda line: None, "display": False, "measure": False}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text that was prepared in a folder, in shards of 100 examples."""
    here = tmp_path_factory.mktemp("made")
    draw = random.Random(1)
    words = ["lamak", "toriel", "sipon", "neuir", "akto", "elsi", "onne", "irla"]
    lines = [" ".join(draw.choices(words, k=draw.randint(2, 9))) for _ in range(300)]
    (here / "a.en").write_text("".join(f"{line}\n" for line in lines))
    (here / "a.de").write_text("".join(f"{line[::-1]}\n" for line in lines))
    (here / "small.toml").write_text(
        'name = "small"\n[languages]\nsource = "en"\ntarget = "de"\n[data.split]\ndev = 0.05\n'
        'test = 0.05\n[text]\nvocabulary = 60\nkind = "bpe"\nbyte_fallback = false\n'
        '[[data.train]]\nsource = "a.en"\ntarget = "a.de"\n'
    )
    recipe = Recipe.load(here / "small.toml")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(driver, "workers_at", lambda place: InlineWorkers(1).all)
        patched.setattr(store_writer, "SHARD_EXAMPLES", 100)
        quiet = ProgressConsole(lambda text: None, False)
        prepare_command.run(Command(str(here / "prepared"), None, None, quiet), recipe, 60)
    return here / "prepared"


@pytest.fixture
def bucket(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultySwitch]:
    """One that holds the text; the cache is empty."""
    monkeypatch.setattr(stores, "_PAUSE", 0.001)
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    with s3(monkeypatch) as switch:
        store = open_store(ADDRESS)
        for name, content in files_of(made).items():
            store.create(name, content)
        yield switch


def files_of(folder: Path) -> dict[str, bytes]:
    """All that a training reads."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).as_posix().startswith(("_", ".lock"))
    }


def replace(name: str, content: bytes) -> None:
    store = open_store(ADDRESS)
    store.remove(name)
    store.create(name, content)


@pytest.mark.slow  # it trains twice
def test_the_weights_are_those_of_a_folder(
    made: Path, bucket: FaultySwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its text in the bucket, another training goes on with what is in the cache."""
    runs = []
    for number, place in enumerate((str(made), ADDRESS, ADDRESS)):
        chosen, _ = recipe_of([place], changes=CHANGES)
        train(chosen, tmp_path / str(number), **QUIET)
        runs.append(Run.open(tmp_path / str(number)))
        for name in files_of(made).keys() - {"prepared.json"} if number else ():
            open_store(ADDRESS).remove(name)
    assert {run.weights_hash for run in runs} == {runs[0].weights_hash}
    assert runs[1].recipe.data.prepared == ADDRESS
    plain = [{k: v for k, v in run.notes().items() if k != "machine"} for run in runs]
    assert plain[0] == plain[1] == plain[2]


@pytest.mark.parametrize("fault", ["refuse", "none", "short"])
def test_the_text_in_the_cache_is_that_of_the_bucket(
    fault: str, made: Path, bucket: FaultySwitch, caplog: pytest.LogCaptureFixture
) -> None:
    """One request in ten fails, or its answer is cut short."""
    bucket.every = {} if fault == "none" else {fault: 10}
    with caplog.at_level(logging.INFO, "dragoman"):
        folder = local_folder(ADDRESS)
    assert bool(bucket.injected[fault]) == (fault != "none")
    content = files_of(folder)
    assert content | {"SHA256SUMS": b""} == files_of(made) | {"SHA256SUMS": b""}
    assert f"fetching {ADDRESS}: {len(content) - 1} files" in caplog.text


def test_the_checksums_are_what_sha256sum_reads(made: Path) -> None:
    found = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=made, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    named = {line.partition(":")[0] for line in found.stdout.splitlines()}
    assert named == files_of(made).keys() - {"prepared.json", "SHA256SUMS"}


def test_a_fetch_that_was_interrupted_goes_on_with_what_is_missing(
    made: Path, bucket: FaultySwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, names = ObjectStore.read, list[str]()

    def watched(self: ObjectStore, name: str, *arguments: Any) -> bytes:
        names.append(name)
        bucket.denies = len(names) == 9
        return read(self, name, *arguments)

    monkeypatch.setattr(ObjectStore, "read", watched)
    monkeypatch.setattr(prepared, "_AT_ONCE", 1)
    with pytest.raises(StoreError, match="AWS_SESSION_TOKEN"):
        local_folder(ADDRESS)
    first = {name.removeprefix("prepared/") for name in names[1:8]}  # behind SHA256SUMS
    bucket.denies = False
    names.clear()
    names.extend([""] * 9)
    folder = local_folder(ADDRESS)
    assert len(first) == 7 and first.isdisjoint({n.removeprefix("prepared/") for n in names[9:]})
    assert files_of(folder).keys() | {"SHA256SUMS"} == files_of(made).keys()


def test_what_is_damaged_in_the_store_is_told_and_not_kept(
    made: Path, bucket: FaultySwitch, tmp_path: Path
) -> None:
    name = "tokens/00001.target.tokens"
    content = files_of(made)[name]
    replace(name, bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(DataError, match=rf"{name} is damaged: it has the SHA-256 \w+ instead of"):
        local_folder(ADDRESS)
    assert not [*tmp_path.rglob("00001.target.tokens")]
    replace("SHA256SUMS", files_of(made)["SHA256SUMS"] + b"0" * 64 + b"  ../out\n")
    with pytest.raises(DataError, match="SHA256SUMS is damaged"):
        local_folder(ADDRESS)
    open_store(ADDRESS).remove("SHA256SUMS")
    with pytest.raises(RunError, match="SHA256SUMS is missing"):
        local_folder(ADDRESS)


def test_more_than_the_disk_holds_is_refused(
    bucket: FaultySwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage(1000))
    with pytest.raises(
        RunError, match=r"GB free\. Set a folder on a larger disk with DRAGOMAN_CACHE"
    ):
        local_folder(ADDRESS)
    assert not [*tmp_path.rglob("*.tokens")]


def test_text_that_is_prepared_again_or_not_yet_is_told(made: Path, bucket: FaultySwitch) -> None:
    before = local_folder(ADDRESS)
    assert local_folder(ADDRESS) == before
    replace("prepared.json", files_of(made)["prepared.json"] + b" ")
    assert local_folder(ADDRESS) != before
    with pytest.raises(DragomanError, match=f"s3://{BUCKET}/none has no prepared text"):
        recipe_of([f"s3://{BUCKET}/none"])
    with pytest.raises(DragomanError, match="ftp:// is not supported"):
        recipe_of(["ftp://host/prepared"])
