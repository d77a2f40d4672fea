"""This module encodes corpora into a store (``store.py`` describes the files). The store appears by
one rename, so it is complete or absent."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dragoman.base.atomic import creating_folder
from dragoman.base.errors import DataError, FileError
from dragoman.data.chunks import ChunkSums, CorpusRange
from dragoman.data.store import FORMAT, FORMAT_OF_ROWS, SUMS, TokenStore
from dragoman.forms.form import Form, Pair

ABOUT = "store.json"
SHARD_EXAMPLES = 1 << 18
NOTHING_LEFT = "nothing is left to train on: the corpora are empty, or cleaning dropped them"
_CHARACTERS_TOGETHER = 1 << 20
_LENGTHS_TOGETHER = 1 << 20


@dataclass(frozen=True)
class WeightedPairs:
    """A corpus to be stored; the store takes the sides of its task."""

    pairs: Iterable[Pair]
    weight: float = 1.0
    """The number of times each pair is used in an epoch."""
    name: str = ""


def store_key(*parts: str) -> str:
    """Return a short key of all that a store is made from: fingerprints of corpora, forms,
    settings."""
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()[:24]


def build_store(
    corpora: Sequence[WeightedPairs],
    forms: Mapping[str, Form],
    folder: str | os.PathLike[str],
    key: str,
    *,
    notes: Callable[[], dict[str, Any]] = dict,
) -> TokenStore:
    """Encode corpora into ``folder/key``, or open the existing store.

    ``forms``: the form of each side of the store. The corpora are read only if the store must be
    made; then ``notes`` is called, and its result is kept with the store. A second process waits
    for the first and shares its work.

    Raises DataError if no pair is left, FileError if the disk is full or not writable; nothing
    incomplete is left behind.
    """
    root = Path(folder)
    finished = root / key
    sizes = {side: form.size for side, form in forms.items()}
    if (finished / ABOUT).exists():
        return TokenStore(finished, sizes)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with alone(root / f".{key}.lock"):
            if not (finished / ABOUT).exists():
                with creating_folder(finished) as folder:
                    _write(corpora, forms, folder, notes)
    except OSError as error:
        raise FileError(f"{root}: cannot write the tokens: {error.strerror}") from error
    return TokenStore(finished, sizes)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, even if it crashes."""
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(
    corpora: Sequence[WeightedPairs],
    forms: Mapping[str, Form],
    folder: Path,
    notes: Callable[[], dict[str, Any]],
) -> None:
    ranges: list[CorpusRange] = []
    total = shard = 0

    def count_pairs() -> Iterator[Pair]:
        nonlocal total
        for corpus in corpora:
            first = total
            for pair in corpus.pairs:
                total += 1
                yield pair
            ranges.append(CorpusRange(first, total, corpus.weight, corpus.name))

    pairs = count_pairs()
    with ExitStack() as stack:
        lengths = {
            side: stack.enter_context((folder / f"{side}.lengths").open("wb")) for side in forms
        }
        for first in pairs:
            of_shard = islice(chain([first], pairs), SHARD_EXAMPLES)
            write_shard(of_shard, forms, folder, shard, lengths)
            shard += 1
        if not total:
            raise DataError(NOTHING_LEFT)
    paths = [folder / f"{side}.lengths" for side in forms]
    (folder / SUMS).write_bytes(ChunkSums.of(ranges, _lengths(paths)).to_bytes())
    (folder / ABOUT).write_bytes(about_store(forms, ranges, notes()))


def _lengths(paths: Sequence[Path]) -> Iterator[npt.NDArray[np.int32]]:
    """Yield (sides, some) lengths of all examples."""
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        while blocks := [data for file in files if (data := file.read(4 * _LENGTHS_TOGETHER))]:
            yield np.stack([np.frombuffer(data, np.int32) for data in blocks])


def about_store(
    forms: Mapping[str, Form], ranges: Sequence[CorpusRange], notes: dict[str, Any]
) -> bytes:
    """Return the content of ``store.json``. ``forms``: the form of each side."""
    rows = {side: form.width for side, form in forms.items() if form.width is not None}
    about = {
        "format": FORMAT_OF_ROWS if rows else FORMAT,
        "examples": ranges[-1].last if ranges else 0,
        "shard_examples": SHARD_EXAMPLES,
        "tokens": {side: _type_of(form) for side, form in forms.items()},
        **({"rows": rows} if rows else {}),
        "corpora": [asdict(corpus) for corpus in ranges],
        "notes": notes,
    }
    return json.dumps(about, indent=1).encode()


def write_shard(
    pairs: Iterator[Pair],
    forms: Mapping[str, Form],
    folder: Path,
    shard: int,
    lengths: Mapping[str, BinaryIO],
) -> None:
    """Write the files of one shard, a few thousand sentences or a million characters at a time, and
    add to the ``lengths`` of each side."""
    with ExitStack() as stack:
        files = {
            (side, kind): stack.enter_context((folder / f"{shard:05}.{side}.{kind}").open("wb"))
            for side in forms
            for kind in ("tokens", "offsets", "text", "text-offsets")
        }
        ends = dict.fromkeys(files, 0)
        for side in forms:
            for kind in ("offsets", "text-offsets"):
                files[side, kind].write(np.zeros(1, np.int64).tobytes())
        together = min(form.encoded_together for form in forms.values())
        while some := _some(pairs, together):
            for side, form in forms.items():
                texts = [getattr(pair, side) for pair in some]
                encoded = form.encode(texts)
                written = [text.encode("utf-8", "surrogatepass") for text in texts]
                counts = np.fromiter(map(len, encoded), np.int64, len(encoded))
                lengths[side].write(counts.astype(np.int32).tobytes())
                values = np.concatenate(encoded).astype(_type_of(form))
                files[side, "tokens"].write(values.tobytes())
                files[side, "text"].write(b"".join(written))
                sizes = np.fromiter(map(len, written), np.int64, len(written))
                for kind, added in (("offsets", counts), ("text-offsets", sizes)):
                    offsets = ends[side, kind] + added.cumsum()
                    files[side, kind].write(offsets.tobytes())
                    ends[side, kind] = int(offsets[-1])


def _type_of(form: Form) -> str:
    """Return numpy's name of the type in which the values of a form are stored."""
    if form.width is not None:
        return form.row_type
    return "uint16" if form.size <= 1 << 16 else "int32"


def _some(pairs: Iterator[Pair], together: int) -> list[Pair]:
    """Return the next examples to encode together; the last may be long."""
    some: list[Pair] = []
    characters = 0
    for pair in pairs:
        some.append(pair)
        characters += len(pair.source) + len(pair.target)
        if len(some) >= together or characters >= _CHARACTERS_TOGETHER:
            break
    return some
