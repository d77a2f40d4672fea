"""A folder or a ZIP file with the model of another program: which program's it is, its languages,
and why others are refused."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from dragoman.base.errors import DragomanError, RunError
from dragoman.base.reading import open_regular, zip_errors
from dragoman.interop import ctranslate2, huggingface, marian
from dragoman.interop.model import write_run
from dragoman.pictures.labels import visible

_PROGRAMS: tuple[Any, ...] = (ctranslate2, huggingface, marian)
"""The programs whose models are imported."""
_REFUSED = {
    "dict.*.txt": "fairseq. Convert it with ct2-fairseq-converter, and import that",
    "*.pt": "PyTorch, as fairseq and JoeyNMT write it: a pickle that may hold code. Convert it "
    "with CTranslate2 if that reads it, and import that",
    "*.ckpt": "JoeyNMT or Lightning: a pickle that may hold code",
    "saved_model.pb": "TensorFlow: a graph, and no weights with names",
    "*.index": "TensorFlow. Convert it with CTranslate2, and import that",
    "tf_model.h5": "TensorFlow. Load it in transformers with from_tf=True and save it again",
    "*.gguf": "llama.cpp, a decoder alone",
}
"""Files of programs whose models are not read, and what to do."""
_MOST_MEMBERS, _MOST_BYTES = 2_000, 16 << 30
_SWELLS = 20
"""The most times that an archive may grow when it is unpacked. Weights hardly do."""
_CODE = "[a-z]{2,3}(?:_[A-Za-z]+)?"
_NAMED = re.compile(f"^(?:opus-?mt.*-|translate-|quickmt-)?({_CODE})[-_]({_CODE})(?:-?[0-9._]*)$")


def import_model(
    given: Path, to: Path, languages: tuple[str, str] | None, tag: str | None = None
) -> list[str]:
    """Write the model in a folder or ZIP file as a run. ``tag``: that of the target language, if
    the model has several. Return messages for people.

    Errors: ``RunError`` for what cannot be imported; ``FileError`` if the run cannot be written.
    """
    try:
        with _model_folder(given) as folder:
            return _import(given, folder, to, languages, tag)
    except (DragomanError, OSError) as error:  # names from the files may move a terminal's cursor
        raise RunError(visible(str(error))) from error


def _import(
    given: Path, folder: Path, to: Path, languages: tuple[str, str] | None, tag: str | None
) -> list[str]:
    program = _program_of(folder)
    named = languages or program.languages_of(folder) or _languages_in(given)
    said = []
    if named is None:
        said.append(
            "warning: the languages are not known, so the run has none (und): sentences are "
            "cut as in English. Name them: --languages ar-en"
        )
    with program.open_weights(folder) as file:
        imported = program.take_apart(folder, file)
        said += write_run(imported, file, named or ("und", "und"), to, tag)
    return [*said, *imported.said]


def _program_of(folder: Path) -> Any:
    for program in _PROGRAMS:
        if program.has_written(folder):
            return program
    for pattern, what in _REFUSED.items():
        if (path := next(folder.glob(pattern), None)) is not None:
            raise RunError(f"{path} cannot be imported. It is a file of {what}")
    raise RunError(
        f"{folder} has neither config.json nor model.bin nor an .npz file. Give the folder with "
        "the files of a model of Marian, or of Hugging Face's Marian, or of CTranslate2"
    )


def _languages_in(path: Path) -> tuple[str, str] | None:
    """The languages that a name such as opus-mt-en-de ends with."""
    match = _NAMED.search(path.resolve().name.removesuffix(".zip").removesuffix(".argosmodel"))
    return (match[1], match[2]) if match else None


@contextmanager
def _model_folder(given: Path) -> Iterator[Path]:
    """The folder with the model's files: ``given``, a folder in it, or an unpacked archive."""
    if given.is_dir():
        yield _inner(given)
        return
    if not given.exists():
        raise RunError(f"{given} does not exist. Give the folder or the ZIP file of a model")
    with open_regular(given) as file:
        if not zipfile.is_zipfile(file):
            raise RunError(f"{given} is neither a folder nor a ZIP file. Give a model's folder")
    temporary = Path(tempfile.mkdtemp(prefix="dragoman-import-"))
    try:
        # In a folder of its own: some files of a model are also looked for one folder above.
        inside = temporary / "model"
        inside.mkdir()
        _unpack(given, inside)
        yield _inner(inside)
    except DragomanError as error:
        raise RunError(str(error).replace(str(inside), str(given))) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _inner(folder: Path) -> Path:
    """The folder of the model's own files, at most two folders below: ``model`` in a package of
    argos."""
    for _ in range(2):
        inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
        if (folder / "model" / "model.bin").is_file():
            return folder / "model"
        if len(inside) != 1 or not inside[0].is_dir():
            break
        folder = inside[0]
    return folder


def _unpack(given: Path, into: Path) -> None:
    """Unpack an archive. Errors: ``RunError`` for one that is damaged or a bomb."""
    try:
        with zipfile.ZipFile(given) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            if len(members) > _MOST_MEMBERS:
                raise RunError(
                    f"{given} has {len(members):,} members; a model has at most {_MOST_MEMBERS:,}"
                )
            if any(member.flag_bits & 1 for member in members):
                raise RunError(f"{given} is encrypted. Unpack it, and give the folder")
            most = (1 << 20) + _SWELLS * given.stat().st_size
            room = min(_MOST_BYTES, shutil.disk_usage(into).free, most)
            if sum(member.file_size for member in members) > room:
                raise RunError(f"{given} would have more than {room:,} bytes when unpacked")
            for member in members:
                _extract(archive, member, given, into)
    except zip_errors() as error:
        raise RunError(f"{given} is damaged or cut short ({str(error)[:200]})") from None


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, given: Path, into: Path) -> None:
    name = info.filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or len(parts) > 8:
        raise RunError(f"{given}, member {info.filename[:80]!r}: its name leads out of the archive")
    path = into.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(info) as packed, path.open("xb") as file:
        shutil.copyfileobj(packed, file)  # no more than the archive says
