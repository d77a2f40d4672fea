"""The store: what goes in comes out, once, whole or not at all."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.base.errors import DataError, FileError
from dragoman.data import store_writer
from dragoman.data.store import Tokens, TokenStore
from dragoman.data.store_writer import WeightedPairs, build_store, store_key
from dragoman.forms.form import Pair


class Codepoints:
    """A form without a vocabulary to train."""

    width = None
    encoded_together = 3

    def __init__(self, size: int = 0x110000) -> None:
        self.size = size

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        return [np.array([min(ord(c), self.size - 1) for c in text], np.int32) for text in texts]


WIDE, NARROW = Codepoints(), Codepoints(1000)
BOTH = {"source": WIDE, "target": NARROW}
PAIRS = [Pair(n + 1, f"source {n}" * (n % 4), f"{'x' * (n % 7)}🙂 {n}") for n in range(25)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "SHARD_EXAMPLES", 8)


def _holds(store: TokenStore, pairs: Sequence[Pair]) -> bool:
    expected = WIDE.encode([pair.source for pair in pairs])
    return len(store) == len(pairs) and all(
        np.array_equal(store.tokens("source", n), expected[n])
        and np.array_equal(store.tokens("target", n), NARROW.encode([pair.target])[0])
        and (store.text("source", n), store.text("target", n)) == (pair.source, pair.target)
        and store.lengths["source"][n] == len(pair.source)
        and store.lengths["target"][n] == len(pair.target)
        for n, pair in enumerate(pairs)
    )


texts = st.text(max_size=6)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=30))
def test_what_goes_in_comes_out(
    tmp_path_factory: pytest.TempPathFactory, sides: list[tuple[str, str]]
) -> None:
    pairs = [Pair(n, *side) for n, side in enumerate(sides)]
    folder = tmp_path_factory.mktemp("store")
    store = build_store([WeightedPairs(pairs)], BOTH, folder, "key")
    assert _holds(store, pairs) and _holds(TokenStore(folder / "key"), pairs)


def test_long_texts_are_encoded_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held at once does not grow with the texts."""
    monkeypatch.setattr(store_writer, "_CHARACTERS_TOGETHER", 50)
    together: list[int] = []

    class Counting(Codepoints):
        encoded_together = 1000

        def encode(self, texts: Sequence[str]) -> list[Tokens]:
            together.append(sum(map(len, texts)))
            return super().encode(texts)

    pairs = [Pair(n + 1, "", "x" * (n % 30 + 1)) for n in range(100)]
    store = build_store([WeightedPairs(pairs)], {"target": Counting()}, tmp_path, "key")
    assert [len(store.text("target", n)) for n in range(100)] == [n % 30 + 1 for n in range(100)]
    assert max(together) < 50 + 30 and sum(together) == sum(len(p.target) for p in pairs)
    assert store.tokens("target", 29, slice(3, 7)).tolist() == [ord("x")] * 4


def test_lone_surrogates_are_kept(tmp_path: Path) -> None:
    pairs = [Pair(1, "a\udcff", "\ud83d")]
    assert _holds(build_store([WeightedPairs(pairs)], BOTH, tmp_path, "key"), pairs)


def test_corpora_notes_and_types(tmp_path: Path) -> None:
    corpora = [WeightedPairs(PAIRS[:10], 1.0, "a"), WeightedPairs(PAIRS[10:], 0.5, "b")]
    seen: list[str] = []
    store = build_store(corpora, BOTH, tmp_path, "key", notes=lambda: {"dropped": len(seen)})
    assert [(c.first, c.last, c.weight, c.name) for c in store.corpora] == [
        (0, 10, 1.0, "a"),
        (10, 25, 0.5, "b"),
    ]
    assert store.notes == {"dropped": 0}
    assert store.tokens("source", 3).dtype == store.tokens("target", 3).dtype == np.int32
    for outside in (-1, 25):
        with pytest.raises(IndexError):
            store.tokens("source", outside)


def test_made_once(tmp_path: Path) -> None:
    def once() -> Iterator[Pair]:
        yield from PAIRS

    corpus = WeightedPairs(once())
    assert _holds(build_store([corpus], BOTH, tmp_path, "key"), PAIRS)
    assert _holds(build_store([corpus], BOTH, tmp_path, "key"), PAIRS)
    with pytest.raises(DataError, match="nothing is left to train on"):
        build_store([corpus], BOTH, tmp_path, "other")


def test_keys_name_everything() -> None:
    assert store_key("a", "bc") == store_key("a", "bc") != store_key("ab", "c")


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken() -> Iterator[Pair]:
        yield from PAIRS
        raise DataError("line 26 is bad")

    with pytest.raises(DataError, match="line 26"):
        build_store([WeightedPairs(broken())], BOTH, tmp_path, "key")
    assert [path.name for path in tmp_path.iterdir()] == [".key.lock"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"cannot write .*key: No space left"):
        build_store([WeightedPairs(PAIRS)], BOTH, tmp_path, "key")
    assert [path.name for path in tmp_path.iterdir()] == [".key.lock"]


def test_damaged_stores(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a store"):
        TokenStore(tmp_path)
    folder = build_store([WeightedPairs(PAIRS)], BOTH, tmp_path, "key").folder
    (folder / "00001.target.tokens").unlink()
    store = TokenStore(folder)
    assert len(store.tokens("target", 0)) == store.lengths["target"][0]
    with pytest.raises(DataError, match=r"00001\.target\.tokens: .*damaged; delete .*key"):
        store.tokens("target", 9)
    os.truncate(folder / "00002.source.text", 5)
    with pytest.raises(DataError, match=r"00002.*damaged"):
        store.tokens("target", 17)
    about = json.loads((folder / "store.json").read_text())
    (folder / "store.json").write_text(json.dumps({**about, "format": 99}))
    with pytest.raises(DataError, match="format 99"):
        TokenStore(folder)


def _slow_pairs(folder: Path) -> Iterator[Pair]:
    """Says when it has begun, so that others can come in between."""
    with (folder / "readers").open("a") as file:
        file.write("reader\n")
    for pair in PAIRS:
        time.sleep(0.01)
        yield pair


def _build(folder: Path) -> None:
    store = build_store([WeightedPairs(_slow_pairs(folder))], BOTH, folder, "key")
    assert _holds(store, PAIRS)


def test_processes_that_start_together_share_the_work(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_build, args=(tmp_path,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert (tmp_path / "readers").read_text() == "reader\n"


def test_a_killed_builder_is_no_obstacle(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_build, args=(tmp_path,))
    process.start()
    while not (tmp_path / ".writing-key" / "00000.source.text").exists():
        time.sleep(0.005)
    process.kill()
    process.join(30)
    assert not (tmp_path / "key").exists()
    _build(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".key.lock", "key", "readers"]


def test_a_store_has_the_sides_that_its_task_has(tmp_path: Path) -> None:
    pairs = [Pair(n, "", pair.target) for n, pair in enumerate(PAIRS)]
    store = build_store([WeightedPairs(pairs)], {"target": WIDE}, tmp_path, "texts")
    assert list(store.lengths) == ["target"] and len(store) == len(pairs)
    for n, pair in enumerate(pairs):
        assert np.array_equal(store.tokens("target", n), WIDE.encode([pair.target])[0])
        assert store.text("target", n) == pair.target
    assert not list(store.folder.glob("*source*"))
