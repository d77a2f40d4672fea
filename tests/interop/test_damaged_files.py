"""Files of strangers: whatever stands in them, the answer is one line, and nothing is written."""

from __future__ import annotations

import io
import json
import os
import pickle  # noqa: TID251  (it writes here, and loads nothing)
import random
import shutil
import signal
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Dragoman
from foreign_models import (
    ctranslate2_folder,
    marian_folder,
    model_bin,
    quantised,
    saved_by_torch,
    transformer_variables,
)

from dragoman.base.errors import DragomanError, RunError
from dragoman.forms.subwords.text import field_bytes
from dragoman.interop.archives import open_npz, open_pickled
from dragoman.interop.ctranslate2 import ModelBin
from dragoman.interop.folder import import_model
from dragoman.interop.vocabulary import from_sentencepiece
from dragoman.tasks.catalogue import Run


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
        (b"\x80\x02ccollections\nOrderedDict\nX\x01\x00\x00\x001\x85R.", "it calls"),
        (b"\x80\x02}(K\x01K\x02u.", "dict with names as keys"),
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


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


@pytest.mark.parametrize(
    ("of", "name"),
    [("hf", "model.safetensors"), ("hf", "vocab.json"), ("hf", "source.spm"), ("hf", "config.json"),
     ("bin", "pytorch_model.bin"), ("ct2", "model.bin"), ("ct2", "source_vocabulary.txt")],
)  # fmt: skip
def test_any_change_of_a_file_gives_a_run_or_one_error(
    folders: dict[str, Path], tmp_path: Path, of: str, name: str
) -> None:
    folder = copied(folders[of], tmp_path / "model")
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
    with pytest.raises(RunError, match=r"more than 2,.* bytes when unpacked"):
        import_model(bomb, tmp_path / "run", None)
    with zipfile.ZipFile(outside, "w") as archive:
        archive.writestr("../model.bin", b"")
    with pytest.raises(RunError, match="leads out"):
        import_model(outside, tmp_path / "run", None)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(zipped(folders["ct2"], tmp_path / "whole.zip").read_bytes()[:-900])
    with pytest.raises(RunError, match=r"neither a folder nor a ZIP file|damaged"):
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
        ((folders["ct2"], "--to", tmp_path / "b", "--languages", "german"), "such as en-de"),
        ((folders["ct2"], "--to", tmp_path / "b", "--languages", "en-../x"), "language codes"),
        ((tmp_path / "nothing", "--to", tmp_path / "b"), "does not exist"),
    ):
        wrong = dragoman("import", *given)
        assert wrong.code == 1
        assert message in wrong.err
        assert wrong.err.count("\n") == 1


def with_layers(folder: Path, layers: int) -> Path:
    """Make the model of a folder one layer of int8 whose weights have the names of many."""
    made = quantised(transformer_variables((12, 12), width=512, layers=1), "int8")
    aliases = {
        name.replace("/layer_0/", f"/layer_{number}/"): name
        for name in made
        for number in range(1, layers)
        if "/layer_0/" in name
    }
    (folder / "model.bin").write_bytes(model_bin(made, aliases=aliases))
    return folder


@pytest.mark.parametrize(
    ("layers", "message"), [(12, "would grow from 3,.* bytes"), (300, "more than 256 layers")]
)
def test_a_weight_of_many_names_is_refused_before_it_is_read(
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    layers: int,
    message: str,
) -> None:
    folder = with_layers(copied(folders["ct2"], tmp_path / "model"), layers)
    monkeypatch.delattr(ModelBin, "read")
    with pytest.raises(RunError, match=message):
        import_model(folder, tmp_path / "run", ("en", "de"))


def test_tensors_may_share_their_numbers_a_few_times(tmp_path: Path) -> None:
    held = torch.zeros(1 << 20)
    tied = {f"tied.{number}": held for number in range(4)}
    with open_pickled(saved_by_torch(tmp_path / "tied.bin", tied)) as file:
        assert len(file.shapes) == 4
    parts = {f"part.{number}": held[number : number + 5] for number in range(40)}
    with (
        pytest.raises(RunError, match="would grow from 4,"),
        open_pickled(saved_by_torch(tmp_path / "parts.bin", parts)),
    ):
        pass


def test_a_tokenizer_has_no_more_than_is_needed(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(folders["hf"], tmp_path / "model")
    import_model(folder, tmp_path / "run", ("en", "de"))
    plain = (folder / "source.spm").read_bytes()
    (folder / "source.spm").write_bytes(
        field_bytes(4, b"x" * 9) * 9 + plain + field_bytes(300, b"")
    )
    import_model(folder, tmp_path / "filled", ("en", "de"))
    made = [(tmp_path / run / "source.model").read_bytes() for run in ("run", "filled")]
    assert made[0] == made[1]
    size = len(json.loads((folder / "vocab.json").read_text()))
    for most, message in ((50, "more than 50 pieces"), (size, "and its table have")):
        monkeypatch.setattr("dragoman.interop.vocabulary.MOST_TOKENS", most)
        with pytest.raises(RunError, match=message):
            from_sentencepiece(
                folder / "source.spm", read_names(folder), {"<unk>": 1, "<s>": 2, "</s>": 0}, True
            )


def read_names(folder: Path) -> list[str]:
    return list(json.loads((folder / "vocab.json").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_leaves_nothing(
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dragoman: Dragoman,
    number: signal.Signals,
) -> None:
    def interrupted(*_: object) -> None:
        assert len(list(tmp_path.iterdir())) == 3
        os.kill(os.getpid(), number)

    packed = zipped(folders["ct2"], tmp_path / "model.zip")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("dragoman.interop.model.save_weights", interrupted)
    # A shell's background job ignores SIGINT.
    as_a_program_finds_it = {signal.SIGINT: signal.default_int_handler}.get(number, signal.SIG_IGN)
    before = signal.signal(number, as_a_program_finds_it)
    try:
        assert dragoman("import", packed, "--to", tmp_path / "run").code == 130
    finally:
        signal.signal(number, before)
    assert list(tmp_path.iterdir()) == [packed]


def test_an_interrupted_export_leaves_nothing(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dragoman: Dragoman
) -> None:
    def interrupted(*_: object) -> None:
        assert len(list(tmp_path.iterdir())) == 2
        os.kill(os.getpid(), signal.SIGTERM)

    import_model(folders["hf"], tmp_path / "run", ("en", "de"))
    monkeypatch.setattr("dragoman.interop.to_huggingface.write", interrupted)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        told = dragoman("export", tmp_path / "run", "--to", "huggingface", tmp_path / "made")
        assert told.code == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    assert list(tmp_path.iterdir()) == [tmp_path / "run"]


def test_what_is_no_model_is_named_for_what_it_is(folders: dict[str, Path], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    packed = zipped(folders["ct2"], tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.write(packed, "model.zip")
    locked = tmp_path / "locked.zip"
    locked.write_bytes(
        packed.read_bytes().replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1")
    )
    for given, message in (
        ("/dev/zero", "/dev/zero: it is not a regular file"),
        ("pipe", "pipe: it is not a regular file"),
        ("empty", "empty has neither"),
        ("packed.zip", "packed.zip has neither"),
        ("locked.zip", "locked.zip is encrypted"),
    ):
        with pytest.raises(RunError, match=message):
            import_model(tmp_path / given, tmp_path / "run", None)


def test_names_in_files_move_no_cursor(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = copied(folders["bin"], tmp_path / "model")
    with_pickle(folder / "pytorch_model.bin", b"\x80\x02cos\n\x1b[2J\n.")
    with pytest.raises(RunError, match=r"the name os\.\u241b"):
        import_model(folder, tmp_path / "run", None)


def test_languages_of_no_form_are_not_taken_from_a_file(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = copied(folders["hf"], tmp_path / "opus-mt-en-de")
    named = {"source_lang": "fr", "target_lang": "../de"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    import_model(folder, tmp_path / "run", None)
    assert Run.open(tmp_path / "run").languages == ("en", "de")


def test_text_for_an_imported_run_can_be_named_later(
    folders: dict[str, Path], tmp_path: Path, dragoman: Dragoman
) -> None:
    """Links of words do not need it."""
    run, recipe = tmp_path / "run", tmp_path / "run" / "recipe.toml"
    assert dragoman("import", folders["ct2"], "--to", run).code == 0
    (tmp_path / "a.tsv").write_text("a b\ts t\n")
    aligned = dragoman("align", run, tmp_path / "a.tsv")
    assert aligned.code == 0 and aligned.out.startswith("0-")
    for verb in (("shortlist", run), ("align", run, tmp_path / "a.tsv", "--statistical")):
        refused = dragoman(*verb)
        assert refused.code == 1 and 'train = [{ source = "FILE", target' in refused.err
    (tmp_path / "a.src").write_text("a b c\n" * 9)
    (tmp_path / "a.tgt").write_text("s t u\n" * 9)
    named = 'train = [{ source = "../a.src", target = "../a.tgt" }]'
    recipe.write_text(recipe.read_text().replace("train = []", named))
    assert dragoman("shortlist", run).code == 0
