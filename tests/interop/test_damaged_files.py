"""Files of strangers: whatever stands in them, the answer is one line, and nothing is written."""

from __future__ import annotations

import io
import pickle  # noqa: TID251  (it writes here, and loads nothing)
import random
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Dragoman
from foreign_models import ctranslate2_folder, marian_folder, saved_by_torch

from dragoman.base.errors import DragomanError, RunError
from dragoman.interop.archives import open_npz
from dragoman.interop.folder import import_model
from dragoman.interop.pickled import open_pickled


def with_pickle(path: Path, content: bytes) -> Path:
    """A file of torch with another pickle."""
    saved_by_torch(path, {"a": torch.ones(2, 3)})
    made = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for one in old.infolist():
            new.writestr(one.filename, content if one.filename.endswith(".pkl") else old.read(one))
    path.write_bytes(made.getvalue())
    return path


def test_tensors_are_read_as_torch_wrote_them(tmp_path: Path) -> None:
    tensors = {
        "plain": torch.randn(3, 4),
        "turned": torch.randn(4, 3).T,
        "part": torch.randn(10, 2)[4:7],
        "half": torch.randn(5).half(),
        "brain": torch.randn(5).bfloat16(),
        "learned": torch.nn.Parameter(torch.randn(2)),
    }
    with open_pickled(saved_by_torch(tmp_path / "a.bin", tensors)) as file:
        assert file.shapes == {name: tuple(one.shape) for name, one in tensors.items()}
        for name, tensor in tensors.items():
            assert np.array_equal(file.read(name), tensor.detach().float().numpy())


class Calls:
    """An object whose unpickling would write a file."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path("called-by-the-pickle").write_text, ("called",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(Calls(), 2), "the name"),
        (pickle.dumps({"a": Calls()}, 4), "opcode STACK_GLOBAL"),
        (b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.", "builtins.eval"),
        (b"\x80\x02ccollections\nOrderedDict\nX\x01\x00\x00\x001\x85R.", "a call of"),
        (b"\x80\x02}(K\x01K\x02u.", "dict of names"),
        (b"\x80\x02N.", "no dict"), (b"\x80\x02", "refused"), (b"", "refused"),
        (b"\x80\x02h\x05.", "refused"), (b"\x80\x02(((", "refused"), (b"\x80\x02t.", "refused"),
        (b"garbage" * 99, "refused"),
    ],
)  # fmt: skip
def test_a_pickle_of_more_than_tensors_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with (
        pytest.raises(RunError, match=message),
        open_pickled(with_pickle(tmp_path / "a.bin", content)),
    ):
        pass
    assert not Path("called-by-the-pickle").exists()


def test_old_and_packed_files_of_torch_are_refused(tmp_path: Path) -> None:
    saved_by_torch(tmp_path / "old.bin", {"a": torch.ones(1)}, old=True)
    with pytest.raises(RunError, match=r"torch 1\.6"), open_pickled(tmp_path / "old.bin"):
        pass
    with zipfile.ZipFile(tmp_path / "packed.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"0" * 99)
    with (
        pytest.raises(RunError, match="packed or encrypted"),
        open_pickled(tmp_path / "packed.bin"),
    ):
        pass


def npy(descr: str = "'<f4'", shape: str = "(2, 3)", size: int = 24) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(size)


def test_arrays_are_read_as_numpy_wrote_them(tmp_path: Path) -> None:
    given = {"a": np.ones((2, 3), "f4"), "b": np.arange(4, dtype="i1"), "c": np.float16([1.5])}
    np.savez(tmp_path / "a.npz", **given)
    with open_npz(tmp_path / "a.npz") as file:
        assert all(np.array_equal(file.read(name), array) for name, array in given.items())


@pytest.mark.parametrize(
    "content",
    [npy("'|O'"), npy("'<f4'", "(2, 4)"), npy("'<f4'", "(-2, -3)"), npy("'<f4'", "(2**70,)"),
     npy("'<f4'", "(True, 6)"), npy("[('a', '<f4')]"), npy("'<f4'", "f()"), b"", b"x" * 99,
     npy("(" * 3000)],
)  # fmt: skip
def test_an_array_of_anything_else_is_refused(tmp_path: Path, content: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", content)
    with pytest.raises(RunError, match="damaged"), open_npz(tmp_path / "a.npz"):
        pass


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of each program."""
    root = tmp_path_factory.mktemp("strangers")
    marian = marian_folder(root / "opus-mt-en-de")
    pickled = marian_folder(root / "opus-mt-en-fr")
    (pickled / "model.safetensors").unlink()
    saved_by_torch(pickled / "pytorch_model.bin", {"model.shared.weight": torch.ones(4, 4)})
    return {"hf": marian, "bin": pickled, "ct2": ctranslate2_folder(root / "letters")}


@pytest.mark.parametrize(
    ("of", "name"),
    [("hf", "model.safetensors"), ("hf", "vocab.json"), ("hf", "source.spm"), ("hf", "config.json"),
     ("bin", "pytorch_model.bin"), ("ct2", "model.bin"), ("ct2", "source_vocabulary.txt")],
)  # fmt: skip
def test_any_change_of_a_file_gives_a_run_or_one_error(
    folders: dict[str, Path], tmp_path: Path, of: str, name: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for path in folders[of].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    whole, draw = (folder / name).read_bytes(), random.Random(3)
    for number in range(30):
        damaged = bytearray(whole)
        if number % 3 == 0:
            del damaged[draw.randrange(len(damaged)) :]
        for _ in range(number % 3 * 4):
            damaged[draw.randrange(min(len(damaged), 4000))] = draw.randrange(256)
        (folder / name).write_bytes(bytes(damaged))
        to = tmp_path / f"run{number}"
        with suppress(DragomanError):
            import_model(folder, to, ("en", "de"))
        assert not to.exists() or (to / "model.safetensors").is_file()
    assert not list(tmp_path.glob(".writing-*"))


def zipped(folder: Path, path: Path, inside: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in folder.iterdir():
            archive.write(one, inside + one.name)
    return path


@pytest.mark.parametrize("inside", ["", "translate-ab-cd/model/"])
def test_a_zip_file_is_a_folder(folders: dict[str, Path], tmp_path: Path, inside: str) -> None:
    path = zipped(folders["ct2"], tmp_path / "model.zip", inside)
    import_model(path, tmp_path / "run", ("ab", "cd"))
    assert (tmp_path / "run" / "model.safetensors").is_file()


def test_archives_that_do_harm_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    bomb, outside = tmp_path / "bomb.zip", tmp_path / "outside.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.bin", bytes(50 << 20))
    with pytest.raises(RunError, match="as a bomb is"):
        import_model(bomb, tmp_path / "run", None)
    with zipfile.ZipFile(outside, "w") as archive:
        archive.writestr("../model.bin", b"")
    with pytest.raises(RunError, match="leads out"):
        import_model(outside, tmp_path / "run", None)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(zipped(folders["ct2"], tmp_path / "whole.zip").read_bytes()[:-900])
    with pytest.raises(RunError, match=r"not a folder or a ZIP file|damaged"):
        import_model(cut, tmp_path / "run", None)


@pytest.mark.parametrize(
    ("name", "message"),
    [("dict.en.txt", "fairseq"), ("best.ckpt", "JoeyNMT"),
     ("model.index", "TensorFlow"), ("notes.txt", "neither config.json nor model.bin")],
)  # fmt: skip
def test_other_programs_are_refused_with_the_reason(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / name).write_bytes(b"")
    with pytest.raises(RunError, match=message):
        import_model(tmp_path / "model", tmp_path / "run", None)


def test_the_command(folders: dict[str, Path], tmp_path: Path, dragoman: Dragoman) -> None:
    run = tmp_path / "run"
    done = dragoman("import", folders["ct2"], "--to", run)
    assert done.code == 0
    assert "languages are not known" in done.err
    assert f"dragoman translate {run}" in done.out
    again = dragoman("import", folders["ct2"], "--to", run)
    assert again.code == 1
    assert "is already a run" in again.err
    for given, message in (
        ((folders["ct2"],), "--to RUN"),
        ((folders["ct2"], "--to", tmp_path / "b", "--languages", "german"), "such as ar-en"),
        ((tmp_path / "nothing", "--to", tmp_path / "b"), "does not exist"),
    ):
        wrong = dragoman("import", *given)
        assert wrong.code == 1
        assert message in wrong.err
        assert wrong.err.count("\n") == 1
