"""Weights that were packed before: the same bits, and never those of a file that is cut off."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
from native_levels import kernels_of

from dragoman.base.errors import RunError
from dragoman.models.catalogue import packed_models
from dragoman.models.catalogue.packed_models import HeldWeights, key_of, packed_model, sum_of
from dragoman.models.fast_path import PackedModel, WithoutTorch
from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.fast_paths import paths
from dragoman.models.transformer.int8_weights import Int8Model
from dragoman.models.transformer.model import Transformer
from dragoman.native import library, loader
from dragoman.training.weights import save_weights

pytestmark = pytest.mark.skipif(not library.available(), reason="no native library here")

SMALL: dict[str, Any] = {
    "model_dim": 48, "ffn_dim": 70, "encoder_layers": 1, "decoder_layers": 2,
    "attention": {"num_heads": 4},
}  # fmt: skip
CHANGES: dict[str, dict[str, Any]] = {
    "one matrix": {},
    "pre-norm, three matrices": {"norm": "pre", "tie": "none"},
    "learned positions": {"positions": {"kind": "learned", "maximum": 11}, "tie": "target"},
}
SIZES = (50, 50)


def way() -> WithoutTorch:
    without_torch = paths()[0].without_torch
    assert without_torch is not None
    return without_torch


def settings_of(changes: dict[str, Any]) -> TransformerSettings:
    return TransformerSettings.model_validate(SMALL | changes)


def weights_file(path: Path, settings: TransformerSettings, seed: int = 0) -> Path:
    torch.manual_seed(seed)
    save_weights(path, Transformer(settings, *SIZES).state_dict(), {})
    return path


@pytest.fixture
def settings() -> TransformerSettings:
    return settings_of({})


@pytest.fixture
def weights(tmp_path: Path, settings: TransformerSettings) -> Path:
    return weights_file(tmp_path / "model.safetensors", settings)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "packed"
    made.mkdir()
    return made


def opened(weights: Path, settings: TransformerSettings, folder: Path | None) -> PackedModel:
    found = packed_model(way(), settings, SIZES, HeldWeights(weights, folder), folder)
    assert found is not None
    return found


def content(model: PackedModel) -> bytes:
    return b"".join(part.tobytes() for part in model.parts)


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.packed"))


def never(*_: object, **__: object) -> NoReturn:
    raise AssertionError("packed again")


@pytest.fixture
def packs_no_more(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, packing is an error."""
    return lambda: monkeypatch.setattr(Int8Model, "pack", never)


# ---- the same bits


@pytest.mark.parametrize("level", loader.LEVELS)
@pytest.mark.parametrize("changes", CHANGES.values(), ids=list(CHANGES))
def test_what_is_read_is_what_was_packed(
    changes: dict[str, Any],
    level: str,
    tmp_path: Path,
    folder: Path,
    packs_no_more: Callable[[], None],
) -> None:
    with kernels_of(level):
        settings = settings_of(changes)
        weights = weights_file(tmp_path / "model.safetensors", settings)
        named = HeldWeights(weights).read(way().shapes(settings, *SIZES))
        assert named is not None
        packed = Int8Model.of(settings, *SIZES, named)
        expected = content(packed)
        assert any(expected) and len(expected) > 4 * 48 * 70
        assert content(opened(weights, settings, None)) == expected
        assert content(opened(weights, settings, folder)) == expected
        packs_no_more()
        found = opened(weights, settings, folder)
        assert content(found) == expected and len(kept(folder)) == 1
        for side, table in packed.learned.items():
            assert isinstance(found, Int8Model) and np.array_equal(table, found.learned[side])
            assert np.array_equal(table, named[f"{side}_positions.table"])


def test_a_model_that_is_made_has_room_and_nothing_in_it(settings: TransformerSettings) -> None:
    assert not any(content(Int8Model(settings, *SIZES)))


def test_weights_of_other_shapes_are_not_packed(weights: Path, folder: Path) -> None:
    other = settings_of({"ffn_dim": 72})
    assert packed_model(way(), other, SIZES, HeldWeights(weights, folder), folder) is None
    assert not kept(folder)


def test_the_key_knows_all_that_packed_weights_depend_on(
    settings: TransformerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [key_of(settings, SIZES, "a"), key_of(settings, SIZES, "b")]
    keys.append(key_of(settings_of({"attend_unknown": False}), SIZES, "a"))
    keys.append(key_of(settings, (50, 51), "a"))
    monkeypatch.setattr(packed_models, "library_hash", lambda _: "another")
    keys.append(key_of(settings, SIZES, "a"))
    monkeypatch.undo()
    monkeypatch.setattr(loader, "load", lambda: (None, loader.Status("another", "")))
    keys.append(key_of(settings, SIZES, "a"))
    assert len(set(keys)) == 6 and {len(key) for key in keys} == {32}


# ---- files that are not whole


def flipped(at: int) -> Callable[[bytes], bytes]:
    """One bit."""
    return lambda whole: whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "half a header": lambda whole: whole[:40],
    "a header alone": lambda whole: whole[:80],
    "cut short": lambda whole: whole[:-1],
    "too long": lambda whole: whole + b"\0",
    "another version": flipped(28),
    "another key": flipped(33),
    "another size": flipped(64),
    "another sum": flipped(72),
    "a weight": flipped(80),
    "the last byte": lambda whole: flipped(len(whole) - 1)(whole),
    "a page of zeros": lambda whole: whole[:4096] + bytes(4096) + whole[8192:],
    "two pages changed": lambda w: w[:4096] + w[8192:12288] + w[4096:8192] + w[12288:],
    "zeros": lambda whole: bytes(len(whole)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_file_is_not_used_and_made_anew(
    damage: Callable[[bytes], bytes],
    weights: Path,
    settings: TransformerSettings,
    folder: Path,
    packs_no_more: Callable[[], None],
) -> None:
    expected = content(opened(weights, settings, folder))
    (path,) = kept(folder)
    whole = path.read_bytes()
    assert damage(whole) != whole
    path.write_bytes(damage(whole))
    assert content(opened(weights, settings, folder)) == expected
    assert path.read_bytes() == whole
    packs_no_more()
    assert content(opened(weights, settings, folder)) == expected


def test_what_is_no_file_is_not_waited_for(
    weights: Path, settings: TransformerSettings, folder: Path
) -> None:
    expected = content(opened(weights, settings, folder))
    (path,) = kept(folder)
    path.unlink()
    os.mkfifo(path)
    assert content(opened(weights, settings, folder)) == expected


def test_each_part_of_all_counts_and_so_does_the_page_where_it_stands() -> None:
    parts = [np.arange(n, dtype=np.uint8) for n in (8, 4096, 13196, 12)]
    whole = sum_of(parts)
    for part in parts:
        for at in (0, len(part) // 2, len(part) - 1):
            part[at] ^= 128
            assert sum_of(parts) != whole
            part[at] ^= 128
    assert sum_of(parts) == whole
    parts[2][:4096] += 1
    moved = parts[2].copy()
    moved[:4096], moved[4096:8192] = parts[2][4096:8192], parts[2][:4096]
    assert sum_of([*parts[:2], moved, parts[3]]) != sum_of(parts)


# ---- where it cannot be kept


@pytest.mark.parametrize("trouble", ["read-only", "full", "fails half way", "nearly full"])
def test_a_folder_that_takes_no_file_is_no_error(
    trouble: str,
    weights: Path,
    settings: TransformerSettings,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(number: int) -> Callable[..., NoReturn]:
        def open_(*_: object, **__: object) -> NoReturn:
            raise OSError(number, os.strerror(number))

        return open_

    expected = content(opened(weights, settings, None))
    if trouble == "read-only":  # root may write wherever it likes
        monkeypatch.setattr(Path, "touch", fails(errno.EROFS))
        monkeypatch.setattr(os, "utime", fails(errno.EROFS))
    elif trouble == "full":
        monkeypatch.setattr(Path, "open", fails(errno.ENOSPC))
    elif trouble == "fails half way":
        monkeypatch.setattr(Path, "replace", fails(errno.EIO))
    else:
        usage = shutil.disk_usage(folder)._replace(free=7 * len(expected))
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert content(opened(weights, settings, folder)) == expected
    monkeypatch.undo()
    assert not list(folder.iterdir())


def test_a_file_is_read_where_nothing_can_be_written(
    weights: Path,
    settings: TransformerSettings,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    packs_no_more: Callable[[], None],
) -> None:
    expected = content(opened(weights, settings, folder))

    def refused(*_: object, **__: object) -> NoReturn:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "utime", refused)
    packs_no_more()
    assert content(opened(weights, settings, folder)) == expected


def test_many_at_once_make_one_file(
    weights: Path, settings: TransformerSettings, folder: Path
) -> None:
    expected = content(opened(weights, settings, None))
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: content(opened(weights, settings, folder)), range(32))
        assert set(found) == {expected}
    (path,) = kept(folder)
    assert path.stat().st_size == len(expected) + 80
    assert not list(folder.glob(".*"))


# ---- what goes


@pytest.fixture
def three(folder: Path) -> list[Path]:
    """Files of 1,000 bytes, the first used last."""
    files = [folder / f"{name}.packed" for name in "abc"]
    now = time.time()
    for days, path in enumerate(files):
        path.write_bytes(bytes(1000))
        os.utime(path, (now - 86400 * days,) * 2)
    return files


def test_what_was_not_used_for_long_goes(
    three: list[Path], weights: Path, settings: TransformerSettings, folder: Path
) -> None:
    old = time.time() - packed_models.MAX_SECONDS - 60
    os.utime(three[1], (old, old))
    rubbish, fresh = folder / ".writing-1", folder / ".writing-2"
    for path in (rubbish, fresh):
        path.touch()
    os.utime(rubbish, (old, old))
    opened(weights, settings, folder)
    left = set(folder.iterdir())
    assert {three[0], three[2], fresh} < left and not {three[1], rubbish} & left
    assert len(kept(folder)) == 3


def test_what_was_used_last_is_kept_where_all_together_are_too_large(
    three: list[Path],
    weights: Path,
    settings: TransformerSettings,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = len(content(opened(weights, settings, None)))
    monkeypatch.setattr(packed_models, "MAX_BYTES", size + 2500)
    opened(weights, settings, folder)
    assert three[0].exists() and three[1].exists() and not three[2].exists()
    # Used now, so it stays when another needs room.
    (mine,) = set(kept(folder)) - set(three)
    os.utime(mine, (0, 0))
    opened(weights, settings, folder)
    assert time.time() - mine.stat().st_mtime < 3600
    monkeypatch.setattr(packed_models, "MAX_BYTES", size - 1)
    mine.unlink()
    opened(weights, settings, folder)
    assert not mine.exists() and three[0].exists()


# ---- the file that they were packed from


def read_anew(*_: object, **__: object) -> NoReturn:
    raise AssertionError("the whole file was read")


def test_the_hash_is_remembered_of_a_file_that_has_settled(
    weights: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = hashlib.sha256(weights.read_bytes()).hexdigest()
    assert HeldWeights(weights, folder).digest == expected
    assert not list(folder.iterdir())  # written a moment ago
    monkeypatch.setattr(packed_models, "SETTLED_SECONDS", -1.0)
    assert HeldWeights(weights).digest == expected
    assert not list(folder.iterdir())
    assert HeldWeights(weights, folder).digest == expected
    (note,) = folder.iterdir()
    monkeypatch.setattr(hashlib, "file_digest", read_anew)
    assert HeldWeights(weights, folder).digest == expected
    for damaged in (b"", b"x" * 64, b"\xff" * 64, expected.encode() * 2):
        note.write_bytes(damaged)
        with pytest.raises(AssertionError, match="the whole file was read"):
            _ = HeldWeights(weights, folder).digest


def test_a_file_that_was_written_over_is_another(
    weights: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is as long as before and pretends to be as old."""
    monkeypatch.setattr(packed_models, "SETTLED_SECONDS", -1.0)
    before, told = HeldWeights(weights, folder).digest, weights.stat()
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    time.sleep(0.02)  # the clock of file systems ticks a hundred times a second
    weights.write_bytes(content)
    os.utime(weights, ns=(told.st_atime_ns, told.st_mtime_ns))
    assert HeldWeights(weights, folder).digest == hashlib.sha256(content).hexdigest() != before


def test_what_was_opened_can_be_read_again(
    weights: Path, settings: TransformerSettings, tmp_path: Path
) -> None:
    held = HeldWeights(weights)
    named = held.read(way().shapes(settings, *SIZES))
    assert named is not None
    weights_file(weights, settings, seed=1)
    again = held.read_again()
    assert again.keys() == named.keys()
    assert all(np.array_equal(again[name], named[name]) for name in named)
    weights.unlink()
    assert held.read_again().keys() == named.keys()
    with pytest.raises(RunError, match="cannot read"):
        HeldWeights(weights)


def test_what_was_written_over_is_not_read_again(
    weights: Path, settings: TransformerSettings, tmp_path: Path
) -> None:
    held = HeldWeights(weights)
    other = weights_file(tmp_path / "other", settings, seed=1).read_bytes()
    time.sleep(0.02)
    weights.write_bytes(other)
    with pytest.raises(RunError, match=r"overwritten while it was in use.*Open the run again"):
        held.read_again()


def test_an_open_file_is_let_go(weights: Path) -> None:
    """One for each run that a server has opened and dropped would end it some day."""
    program = (
        "import os, sys; from pathlib import Path\n"
        "from dragoman.models.catalogue.packed_models import HeldWeights\n"
        "for _ in range(3): held = HeldWeights(Path(sys.argv[1])); held.digest\n"
        "del held; print(len(os.listdir('/proc/self/fd')))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(weights)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) <= 4 and not done.stderr  # three standard ones, and that of the listing
