"""Training on prepared text that stays in an object store: the same weights, whatever fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_s3 import BUCKET, FaultySwitch, s3
from inline_workers import InlineWorkers
from tiny_recipe import TINY

from dragoman.cluster.prepare import command
from dragoman.data import chunks, store_writer
from dragoman.data.files.pair import Pair
from dragoman.data.plan import Plan, PlanSettings
from dragoman.data.store import SUMS, TokenStore
from dragoman.data.store_writer import ABOUT, WeightedPairs, build_store
from dragoman.data.units import Remote, Units
from dragoman.errors import DataError, DragomanError, TrainingError
from dragoman.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.sizing.from_files import recipe_of
from dragoman.stores import patient
from dragoman.stores.folder import FolderStore
from dragoman.stores.opened import opened
from dragoman.stores.store import StoreError
from dragoman.tasks.shared.examples import TrainingBatches
from dragoman.tasks.training import resume, train

ADDRESS = f"s3://{BUCKET}/prepared"
CHANGES = [
    *(one for one in TINY if not one.startswith("text.")),
    "training.updates=8", "training.validate_every=4", "training.precision=fp32",
    "plan.block_examples=60", "plan.tokens_per_update=400",
]  # fmt: skip
QUIET: dict[str, Any] = {"say": lambda line: None, "display": False, "measure": False}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Run]]:
    """Text that was prepared in a folder, in units of 16 examples and shards of 100, and a run that
    was trained from there."""
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
        patched.setattr(command, "workers_at", lambda place: InlineWorkers(1))
        patched.setattr(store_writer, "SHARD_EXAMPLES", 100)
        patched.setattr(chunks, "LARGEST", 16)
        wanted = command.Preparation(recipe, str(here / "prepared"), None, None, 60)
        command.run(wanted, lambda line: None, lambda text: None, terminal=False)
        yield here / "prepared", trained(str(here / "prepared"), here / "run")


@pytest.fixture
def expected(made: tuple[Path, Run]) -> Run:
    """Trained from a folder."""
    return made[1]


@pytest.fixture
def bucket(
    made: tuple[Path, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FaultySwitch]:
    """One that holds the text; the cache is empty."""
    monkeypatch.setattr(patient, "FIRST_PAUSE", 0.001)
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    with s3(monkeypatch) as switch:
        store = opened(ADDRESS)
        for path in made[0].rglob("*"):
            name = path.relative_to(made[0]).as_posix()
            if path.is_file() and not name.startswith("_"):
                store.create(name, path.read_bytes())
        yield switch


def trained(place: str, folder: Path, *changes: str) -> Run:
    chosen, _ = recipe_of([place], changes=[*CHANGES, *changes])
    train(chosen, folder, **QUIET)
    return Run.open(folder)


def kept(tmp_path: Path) -> list[Path]:
    return [*(tmp_path / "cache").rglob("*.tokens")]


@pytest.mark.parametrize(
    "fault",
    [pytest.param(one, marks=pytest.mark.slow) for one in ("refuse", "none", "short", "slow")],
)
def test_the_weights_are_those_of_a_folder(
    fault: str, bucket: FaultySwitch, expected: Run, tmp_path: Path
) -> None:
    """One request in fifty fails, is slow, or its answer is cut short."""
    bucket.every = {} if fault == "none" else {fault: 50}
    run = trained(ADDRESS, tmp_path / "run")
    assert run.weights_hash == expected.weights_hash
    assert bool(bucket.injected[fault]) == (fault != "none")
    assert run.recipe.data.prepared == ADDRESS
    notes, others = run.notes(), expected.notes()
    assert {k: v for k, v in notes.items() if k != "machine"} == {
        k: v for k, v in others.items() if k != "machine"
    }
    assert len(kept(tmp_path)) > 10
    # Once it is here, another training asks for nothing but whether it is the same text.
    bucket.every = {}
    before = bucket.injected.copy()
    assert trained(ADDRESS, tmp_path / "again").weights_hash == expected.weights_hash
    assert bucket.injected == before


@pytest.mark.slow  # several trainings from a bucket
def test_what_is_kept_is_bounded_and_the_weights_are_the_same(
    bucket: FaultySwitch, expected: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE_GB", "0")
    most = []
    room = Units._make_room

    def watched(self: Units, new: int) -> None:
        room(self, new)
        in_use = self._in_use["now"] | self._in_use["next"]
        most.append((len(kept(tmp_path)), len(in_use)))

    monkeypatch.setattr(Units, "_make_room", watched)
    run = trained(ADDRESS, tmp_path / "run")
    assert run.weights_hash == expected.weights_hash
    assert most and all(held <= in_use + 8 for held, in_use in most)
    assert max(held for held, _ in most) < 20 - 2
    monkeypatch.setenv("DRAGOMAN_CACHE_GB", "much")
    with pytest.raises(DragomanError, match="DRAGOMAN_CACHE_GB=much is no number"):
        trained(ADDRESS, tmp_path / "other")


def at_second_block(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, do: Callable[[], None]
) -> None:
    """Something happens before the second block, of which nothing was fetched ahead."""
    need, calls = Units.need, []

    def watched(self: Units, *args: Any) -> None:
        calls.append(args)
        if len(calls) == 3:  # twice before the first update: ways are measured
            for path in kept(tmp_path):
                path.unlink()
            do()
        need(self, *args)

    monkeypatch.setattr(Units, "need", watched)
    monkeypatch.setattr(Units, "ahead", lambda self, *args: None)


@pytest.mark.slow  # it waits between tries
def test_credentials_that_expire_are_told_and_the_training_goes_on(
    bucket: FaultySwitch, expected: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_second_block(monkeypatch, tmp_path, lambda: setattr(bucket, "denies", True))
    with pytest.raises(TrainingError, match=r"\A[^\n]*Are there cred[^\n]*resume \S+\Z"):
        trained(ADDRESS, tmp_path / "run")
    with pytest.raises(StoreError, match="AWS_SESSION_TOKEN"):
        resume(tmp_path / "run", **{k: QUIET[k] for k in ("say", "display")})
    bucket.denies = False
    outcome = resume(tmp_path / "run", say=lambda line: None, display=False)
    assert outcome.update == 8
    assert Run.open(tmp_path / "run").weights_hash == expected.weights_hash


@pytest.mark.slow  # it waits until it gives up
def test_a_store_that_stays_silent_ends_it_with_one_line(
    bucket: FaultySwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_second_block(monkeypatch, tmp_path, lambda: bucket.every.update(refuse=1))
    monkeypatch.setattr(patient.PatientStore.__init__, "__defaults__", (0.05,))
    with pytest.raises(TrainingError, match=r"\A[^\n]*asked for 0 seconds[^\n]*resume[^\n]*\Z"):
        trained(ADDRESS, tmp_path / "run")


@pytest.mark.slow  # several trainings; `make test-cluster` runs it
def test_text_that_is_prepared_again_or_not_yet_is_told(
    bucket: FaultySwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again() -> None:
        store = opened(ADDRESS)
        data = store.read("prepared.json", 0, store.stat("prepared.json").size)  # type: ignore[union-attr]
        store.remove("prepared.json")
        store.create("prepared.json", data + b" ")

    at_second_block(monkeypatch, tmp_path, again)
    with pytest.raises(TrainingError, match="was prepared again since this training began"):
        trained(ADDRESS, tmp_path / "run")
    with pytest.raises(DragomanError, match=f"s3://{BUCKET}/none holds no prepared text"):
        recipe_of([f"s3://{BUCKET}/none"])
    with pytest.raises(DragomanError, match="ftp:// is not known"):
        recipe_of(["ftp://host/prepared"])


# ---- what is read


class Counting(FolderStore):
    """A store that knows how many bytes it gave."""

    given = 0

    def read(self, name: str, start: int, length: int, tag: str = "") -> bytes:
        data = super().read(name, start, length, tag)
        self.given += len(data)
        return data


class Characters:
    size = 0x110000

    def encode(self, texts: Any) -> list[Any]:
        return [np.full(len(text), ord(text[0]), np.int32) for text in texts]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty thousand pairs of two corpora."""
    draw = random.Random(1)
    pairs = [Pair(n, "s" * draw.randint(20, 60), "t" * draw.randint(20, 60)) for n in range(20_000)]
    both = [WeightedPairs(pairs[:12_000]), WeightedPairs(pairs[12_000:])]
    sides = {"source": Characters(), "target": Characters()}
    return build_store(both, sides, tmp_path_factory.mktemp("large"), "key").folder


class Bare:
    """Examples whose batches are their numbers, and the tokens of some."""

    def __init__(self, store: TokenStore) -> None:
        self.corpora, self.lengths, self.sums = store.corpora, store.some_lengths, store.sums
        self._store = store

    def stored(self, examples: Any) -> Any:
        return examples

    def batch(self, update: int, examples: Any) -> Any:
        sides = [*self.lengths]
        return [
            (n, *(self._store.tokens(side, n).tolist() for side in (sides if n % 97 == 0 else [])))
            for n in examples
        ]


def epoch(folder: Path, cache: Path, slices: int, rank: int, ranks: int) -> tuple[list[Any], int]:
    """What a host trains on in an epoch, and the bytes that it read."""
    counting = Counting(folder)
    small = cache / "small"
    small.mkdir(parents=True)
    for name in (ABOUT, SUMS):
        stat = counting.stat(name)
        assert stat is not None
        (small / name).write_bytes(counting.read(name, 0, stat.size))
    remote = Remote(counting, counting, "", cache / "units", 10**9, lambda: None)
    store = TokenStore(small, None, remote)
    asked = PlanSettings(tokens_per_update=9000, block_examples=5_000, slices=slices)
    bare = Bare(store)
    plan = Plan(bare, asked, 1, store.sums)
    batches = TrainingBatches(plan, bare, store)
    found = [
        make()
        for update in range(plan.updates_per_epoch())
        for make in batches(update, rank, ranks)
    ]
    for thread in store._units._threads:  # type: ignore[union-attr]
        thread.join()
    return found, counting.given


@pytest.mark.slow  # whole epochs are read
@pytest.mark.parametrize("hosts", [2, 3])
def test_hosts_together_read_an_epoch_once(large: Path, tmp_path: Path, hosts: int) -> None:
    one, bytes_of_one = epoch(large, tmp_path / "one", hosts, 0, 1)
    known = [large / ABOUT, large / SUMS, *large.glob("*.tokens"), *large.glob("*.offsets")]
    stored = sum(path.stat().st_size for path in known)
    assert stored <= bytes_of_one < 1.01 * stored  # units share the offset between them
    of_hosts = [epoch(large, tmp_path / f"host{h}", hosts, h, hosts) for h in range(hosts)]
    assert sum(read for _, read in of_hosts) <= 1.1 * bytes_of_one
    flat = lambda batches: sorted(example for batch in batches for example in batch)  # noqa: E731
    assert flat([b for batches, _ in of_hosts for b in batches]) == flat(one)
    store = TokenStore(large)
    for number, *sides in flat(one)[::97]:
        assert sides == [store.tokens(side, number).tolist() for side in ("source", "target")]


def test_what_is_damaged_in_the_cache_is_fetched_again_and_in_the_store_told(
    large: Path, tmp_path: Path
) -> None:
    remote = Remote(FolderStore(large), FolderStore(large), "", tmp_path / "units", 0, lambda: None)

    def remotely(size: int = 1 << 20) -> TokenStore:
        sizes = {"source": size, "target": size}
        folder = tmp_path / "small"
        folder.mkdir(exist_ok=True)
        for name in (ABOUT, SUMS):
            (folder / name).write_bytes((large / name).read_bytes())
        return TokenStore(folder, sizes, remote)

    whole = TokenStore(large)
    assert remotely().text("target", 19_999) == whole.text("target", 19_999)
    assert remotely().tokens("source", 5).tolist() == whole.tokens("source", 5).tolist()
    path = tmp_path / "units" / "00000000.tokens"
    data = bytearray(path.read_bytes())
    begin = 16 + 8 * (int.from_bytes(data[8:16], "little") + 1)  # of the first side's tokens
    data[begin : begin + 4000] = bytes(4000)
    path.write_bytes(data)
    assert remotely().tokens("source", 5).tolist() == whole.tokens("source", 5).tolist()
    path.unlink()
    with pytest.raises(DataError, match="examples from 1 on are damaged"):
        remotely(50).tokens("source", 5)
