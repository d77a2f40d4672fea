"""Without a home, without room, or where others may write: the program does without its cache."""

from __future__ import annotations

import errno
import json
import os
import pwd
from pathlib import Path
from typing import NoReturn

import pytest
from recipe_of_files import recipe_of
from untrained_run import untrained_run

import dragoman
from dragoman.base import atomic
from dragoman.base.errors import FileError
from dragoman.native import measured
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.prepare import Prepared, prepare
from dragoman.runs.user_cache import cache_folder

SMALL = ("text.vocabulary=400",)


def prepared(text: tuple[Path, Path], folder: Path) -> tuple[Prepared, list[str]]:
    """What training takes, and what was said."""
    said: list[str] = []
    recipe, _ = recipe_of([str(path) for path in text], changes=SMALL)
    folder.mkdir()
    learn_vocabularies(recipe, folder, said.append)
    return prepare(recipe, folder, said.append), said


def nobody(*_: object) -> NoReturn:
    raise KeyError("no such user")


@pytest.fixture(params=["no home", "a home that is no folder"])
def homeless(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container with a random user id, or a home that cannot be written to."""
    for name in ("DRAGOMAN_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    if request.param != "no home":
        (tmp_path / "home").write_text("", encoding="utf-8")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.mark.usefixtures("homeless")
def test_a_user_without_a_home_translates_and_trains(
    parallel_text: tuple[Path, Path], tmp_path: Path
) -> None:
    assert cache_folder() is None
    run = tmp_path / "run"
    run.mkdir()
    untrained_run(run, "model.model_dim=16", "model.attention.num_heads=2")
    assert dragoman.load(run)("The dog sleeps.").ids is not None
    found, _ = prepared(parallel_text, tmp_path / "new")
    assert found.train.folder.is_relative_to(tmp_path / "new")
    again = prepare(
        recipe_of([*map(str, parallel_text)], changes=SMALL)[0], tmp_path / "new", print
    )
    assert again.train.folder == found.train.folder


@pytest.mark.parametrize("how", ["for all", "for its group", "another's", "its parent for all"])
def test_nothing_is_taken_from_where_others_may_write(
    how: str,
    parallel_text: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    root = tmp_path / "shared" / "cache"
    monkeypatch.setenv("DRAGOMAN_CACHE", str(root))
    found, _ = prepared(parallel_text, tmp_path / "before")  # as another would leave it
    assert found.train.folder.is_relative_to(root)
    (root / measured.NAME).write_text(json.dumps({measured.machine_key(): {"int8": 10**9}}))
    if how == "another's":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    elif how == "its parent for all":
        root.parent.chmod(0o777)
    else:
        root.chmod(0o777 if how == "for all" else 0o770)
    assert cache_folder() is None and cache_folder("stores") is None
    assert str(root) in caplog.messages[0]
    found, _ = prepared(parallel_text, tmp_path / "after")
    assert found.train.folder.is_relative_to(tmp_path / "after")


def test_a_new_cache_belongs_to_its_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "new"))
    before = os.umask(0)
    try:
        folder = cache_folder("stores")
    finally:
        os.umask(before)
    assert folder == tmp_path / "new" / "stores"
    for path in (folder, folder.parent):
        assert path.stat().st_mode & 0o077 == 0


def test_tokens_go_into_the_run_where_the_cache_is_full(
    parallel_text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "cache"))
    force, full = atomic.force_to_disk, [tmp_path / "cache"]

    def no_room(path: Path) -> None:
        if any(path.is_relative_to(folder) for folder in full):
            raise OSError(errno.ENOSPC, "No space left on device")
        force(path)

    monkeypatch.setattr(atomic, "force_to_disk", no_room)
    found, said = prepared(parallel_text, tmp_path / "run")
    assert found.train.folder.is_relative_to(tmp_path / "run") and len(found.train) > 500
    assert found.train.notes["cleaning"]["read"] == 600  # counted once
    assert any("No space left" in line for line in said)
    full.append(tmp_path / "other")
    with pytest.raises(FileError, match="No space left"):
        prepared(parallel_text, tmp_path / "other")
