"""Public corpora by name; each file is pinned by address, size and SHA-256.

A file is written under a temporary name, checked, and only then renamed, so that every file in the
folder is complete, however a download ends. Existing files are checked and kept, so that a broken
download continues file by file. The same function takes the files from a folder (``origin``) for
machines without a network.
"""

from __future__ import annotations

import difflib
import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.atomic import write_bytes
from dragoman.base.errors import DataError

Progress = Callable[[str, int, int], None]
"""A callback with the name of a file, its bytes so far, and its bytes in all."""

_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file: its name in the folder, its address, and its expected size and hash."""

    name: str
    address: str
    size: int
    """The size of the file in bytes."""
    sha256: str
    """The SHA-256 hash of the file in hexadecimal."""


@dataclass(frozen=True, slots=True)
class Download:
    """A named set of files that make a parallel corpus."""

    name: str
    description: str
    licence: str
    files: tuple[RemoteFile, ...]

    @property
    def size(self) -> int:
        """The size of all files together, in bytes."""
        return sum(file.size for file in self.files)


def _files(address: str, listing: str) -> tuple[RemoteFile, ...]:
    """Return the files of a folder. ``listing``: a line with the SHA-256, the size in bytes and the
    name of each."""
    rows = (line.split() for line in listing.splitlines())
    return tuple(RemoteFile(name, address + name, int(size), sum_) for sum_, size, name in rows)


MULTI30K = Download(
    name="multi30k",
    description="Image captions, English and German: 29,000 to train, 1,014 dev, 1,000 test",
    licence="captions without a stated licence; images for research and education",
    files=_files(
        "https://raw.githubusercontent.com/multi30k/dataset/"
        "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/",
        """\
d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f  568929 train.en.gz
726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6  637044 train.de.gz
14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28   21650 val.en.gz
f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a   24681 val.de.gz
611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9   21077 test_2016_flickr.en.gz
9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8   22890 test_2016_flickr.de.gz
""",
    ),
)

DOWNLOADS: dict[str, Download] = {MULTI30K.name: MULTI30K}


def find_download(name: str) -> Download:
    """Return the download of that name.

    Raises: DataError if there is none; the message lists all names.
    """
    if name in DOWNLOADS:
        return DOWNLOADS[name]
    near = difflib.get_close_matches(name, DOWNLOADS, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise DataError(f"There is no download {name!r}.{hint} There are: {', '.join(DOWNLOADS)}.")


def fetch(
    download: Download,
    folder: Path,
    origin: Path | None = None,
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Put all files of a download into ``folder``, verified; return their paths in order.

    ``origin`` is a folder that already holds files of these names; nothing is then asked of the
    network. Files of ``folder`` that are right are left as they are.

    Raises:
        DataError: no connection, an answer that is not the file, a file of another size or
            SHA-256, another file in its place. Nothing half-written is left.
        FileError: no room on the disk.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot make this folder: {_reason(error)}.") from error
    paths = []
    for file in download.files:
        paths.append(_fetch_file(file, folder, origin))
        if progress:
            progress(file.name, file.size, file.size)
    return tuple(paths)


def _fetch_file(file: RemoteFile, folder: Path, origin: Path | None) -> Path:
    path = folder / file.name
    if path.exists():
        if _is_right(path, file):
            return path
        raise DataError(
            f"{path} already exists and is not the file of this download (its size or SHA-256 "
            "differs). Move it away, or choose another folder."
        )
    content, source = _content(file, origin)
    if len(content) > file.size:
        raise DataError(f"{source} is longer than the {file.size:,} bytes it should have.{_NOT_IT}")
    if len(content) < file.size:
        raise DataError(
            f"{source} ended after {len(content):,} of {file.size:,} bytes. If the connection "
            "broke, run the same command again to continue the download."
        )
    if (digest := hashlib.sha256(content).hexdigest()) != file.sha256:
        raise DataError(
            f"{source} has the SHA-256 {digest} where {file.sha256} is expected.{_NOT_IT}"
        )
    write_bytes(path, content)
    return path


def _is_right(path: Path, file: RemoteFile) -> bool:
    try:
        if path.stat().st_size != file.size:
            return False
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {_reason(error)}.") from error


def _content(file: RemoteFile, origin: Path | None) -> tuple[bytes, str]:
    """Return the bytes of the file, with one byte more if it is longer than expected, and the
    address or path that they come from."""
    if origin is not None:
        path = origin / file.name
        try:
            with path.open("rb") as stream:
                return stream.read(file.size + 1), str(path)
        except OSError as error:
            raise DataError(
                f"{path}: cannot be read: {_reason(error)}. The folder must contain {file.name}, "
                f"unchanged, from {file.address}"
            ) from error
    try:
        with urllib.request.urlopen(file.address, timeout=_TIMEOUT_SECONDS) as answer:
            return answer.read(file.size + 1), file.address
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(
            f"{file.address}: the server answers {error.code} {error.reason}."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _no_connection(file, error) from error


_NOT_IT = " It is not the file that was pinned: changed, damaged or replaced. Nothing was kept."


def _no_connection(file: RemoteFile, error: Exception) -> DataError:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return DataError(
        f"{file.address}: no connection ({reason}). On a machine without a network, download the "
        "files elsewhere and give their folder (--from FOLDER)."
    )


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
