"""The stages of a plan, and functions that read the results of complete stages.

fingerprints   corpora -> a hash of each
read           lines -> examples that pass the filters, and a hash of each
duplicates     hashes of one range, of all parts -> the places of repeated examples
lines          examples -> those that are kept, by side, and the lines of each vocabulary
shards         training examples of several parts -> the files of one shard of the store, with
               vocabularies that were learned from a sample before

A stage is ``Work`` of ``cluster/work.py``: its parts are numbered, each worker calls ``begun`` once
and then ``do`` for one part after another, and a part is done when the object ``name`` is stored. A
stage defines only ``result``, the objects that a part gives, from what earlier stages have stored.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dragoman.cluster.work import NOTES, Way, Work
from dragoman.data.cleaning import Cleaner, CleaningReport, pair_hash
from dragoman.data.files.corpora import corpus_fingerprint
from dragoman.data.split import Side, side_of_pair
from dragoman.data.store_writer import SHARD_EXAMPLES, write_shard
from dragoman.forms.form import Form, Pair
from dragoman.prepare.data_plan import DataPlan, check_versions
from dragoman.runs.corpora import lines_of_text, moses_of, sides_of_vocabularies
from dragoman.runs.prepared import TOKENS, with_checksum
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import load_forms
from dragoman.stores import BLOCK, Content, Store, StoreError

FINGERPRINTS, READ, DUPLICATES = "fingerprints", "read", "duplicates"
LINES, SHARDS = "lines", "shards"
MOSES = "moses"
"""The ending of the object with a part's examples as Moses prepares them."""
VOCABULARIES = f"{NOTES}/vocabularies.json"
"""The names of the files that were learned; the files themselves are next to the token store."""
HELD: tuple[Side, ...] = ("dev", "test")
LEARNED = "learned"
"""The ending of the object with the training examples of a part, as they are learned."""
_PLACE = np.dtype(np.uint32)
_HASH = np.dtype([("hash", np.uint64), ("place", _PLACE)])
"""The hash of an example, and its place in its part."""
Places = npt.NDArray[np.uint32]
Forms = Mapping[str, Form]
"""The form of each side that the store has."""


@dataclass(frozen=True)
class PlanStage(Work):
    """One stage of a plan. A part of it is several objects; the last one shows that it is done. The
    same part gives the same bytes, so it does not matter which worker wrote which."""

    plan: DataPlan

    folder: ClassVar[str]
    last: ClassVar[str] = "json"
    """The ending of the object that is written last."""

    @property
    def parts(self) -> int:
        """The number of parts of the stage."""
        return len(self.plan.parts)

    @abstractmethod
    def result(self, number: int, tools: Any) -> Iterator[tuple[str, Content]]:
        """Yield the name and the content of each object of a part, the last one last."""

    def name(self, number: int) -> str:
        return object_name(self.folder, number, self.last)

    def place(self, number: int) -> str:
        return self.plan.place(number)

    def lines(self, number: int) -> int:
        return self.plan.lines_of(number)

    def tools(self) -> Any:
        """The tools that a worker needs for all its parts."""
        return None

    def begin(self) -> tuple[Any, Way, str]:
        check_versions(self.plan, self.to)
        return self.tools(), Way(), self.folder

    def do(self, number: int, tools: Any, way: Way) -> tuple[None, bool]:
        own = False
        for name, content in self.result(number, tools):
            own = self.store.create(name, content)
        return None, own


def object_name(folder: str, number: int, ending: str) -> str:
    """The name of one object of a part."""
    return f"{NOTES}/{folder}/{number:07}.{ending}"


class Fingerprints(PlanStage):
    """A hash of each corpus, which identifies the store of its tokens."""

    folder = FINGERPRINTS
    last: ClassVar[str] = "txt"

    @property
    def parts(self) -> int:
        return len(self.plan.files)

    def place(self, number: int) -> str:
        return self.plan.names[number]

    def lines(self, number: int) -> int:
        return 0

    def result(self, number: int, tools: None) -> Iterator[tuple[str, Content]]:
        fingerprint = corpus_fingerprint(self.plan.recipe.data.train[number])
        yield self.name(number), fingerprint.encode()


class PartReading(PlanStage):
    """The examples of a part that pass all filters except that of duplicates, and their hashes."""

    folder = READ
    last: ClassVar[str] = "hashes"

    def result(self, number: int, tools: None) -> Iterator[tuple[str, Content]]:
        recipe = self.plan.recipe
        settings = recipe.data.cleaning.model_copy(update={"duplicates": False})
        cleaner = Cleaner(settings, recipe.spec.texts)
        name = self.plan.names[self.plan.parts[number].corpus]
        pairs = list(cleaner.some_pairs(self.plan.pairs(number), name))
        hashes = np.fromiter(map(pair_hash, pairs), np.uint64, len(pairs))
        yield object_name(READ, number, "pairs"), encode_pairs(pairs)
        prepared = moses_of(recipe)
        if prepared is not None:
            yield object_name(READ, number, MOSES), encode_pairs([*map(prepared, pairs)])
        yield object_name(READ, number, "json"), json.dumps(cleaner.report.to_dict()).encode()
        yield self.name(number), by_range(hashes, self.plan.partitions)


class Duplicates(PlanStage):
    """The duplicates of each part: examples with a hash, of one range, that an earlier one has."""

    folder = DUPLICATES
    last: ClassVar[str] = "places"

    @property
    def parts(self) -> int:
        return self.plan.partitions

    def place(self, number: int) -> str:
        return f"range {number + 1} of {self.parts} of all hashes"

    def lines(self, number: int) -> int:
        return 0

    def result(self, number: int, tools: None) -> Iterator[tuple[str, Content]]:
        parts = len(self.plan.parts)
        names = (object_name(READ, part, PartReading.last) for part in range(parts))
        from_parts = [one_of(self.store, name, number, self.parts, _HASH) for name in names]
        every = np.concatenate([of_part["hash"] for of_part in from_parts])
        _, first = np.unique(every, return_index=True)  # the first of equal hashes
        again = np.ones(len(every), np.bool_)
        again[first] = False
        by_part = np.split(again, np.cumsum([*map(len, from_parts)])[:-1])
        places = [of_part["place"][some] for of_part, some in zip(from_parts, by_part, strict=True)]
        yield self.name(number), join_arrays(places)


def by_range(hashes: npt.NDArray[np.uint64], ranges: int) -> bytes:
    """Hashes grouped by range, each with its place."""
    table = np.empty(len(hashes), _HASH)
    table["hash"], table["place"] = hashes, np.arange(len(hashes))
    return join_arrays([table[hashes % np.uint64(ranges) == number] for number in range(ranges)])


def join_arrays(arrays: Sequence[npt.NDArray[Any]]) -> bytes:
    """Several arrays as bytes: the offsets of their ends, from 0, and then their values."""
    offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
    return offsets.tobytes() + b"".join(array.tobytes() for array in arrays)


def one_of(store: Store, name: str, number: int, of: int, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Read one of the arrays that ``join_arrays`` wrote. ``of``: their number."""
    first, last = np.frombuffer(read_range(store, name, 8 * number, 16), np.int64).tolist()
    start = 8 * (of + 1) + kind.itemsize * first
    return np.frombuffer(read_range(store, name, start, kind.itemsize * (last - first)), kind)


def read(store: Store, name: str) -> bytes:
    """Read an object. Errors: ``StoreError`` if it does not exist."""
    data = store.content(name)
    if data is None:
        raise StoreError(f"{store.place(name)} no longer exists. Run the same command again")
    return data


def read_range(store: Store, name: str, start: int, length: int) -> bytes:
    """Read some bytes of an object. Errors: ``StoreError`` if it is shorter."""
    data = store.read(name, start, length) if length else b""
    if len(data) != length:
        raise StoreError(f"{store.place(name)} is damaged: it ends too early")
    return data


def fingerprint_of(store: Store, corpus: int) -> str:
    """Read the hash of a corpus that ``Fingerprints`` wrote."""
    return read(store, object_name(FINGERPRINTS, corpus, "txt")).decode()


def encode_pairs(pairs: list[Pair]) -> bytes:
    """Encode pairs as JSON Lines, for ``examples``."""
    lines = [json.dumps(list(pair), ensure_ascii=False) for pair in pairs]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def examples(store: Store, folder: str, part: int, ending: str) -> list[Pair]:
    """Read the examples of one object of a part, which ``encode_pairs`` encoded."""
    lines = read(store, object_name(folder, part, ending)).decode("utf-8", "surrogatepass")
    return [Pair(*json.loads(line)) for line in lines.split("\n")[:-1]]


def report_in(store: Store, folder: str, part: int) -> CleaningReport:
    """Read the report of the cleaning of a part that a stage wrote."""
    return CleaningReport.from_dict(json.loads(read(store, object_name(folder, part, "json"))))


def duplicates_of(store: Store, plan: DataPlan, part: int) -> Places:
    """The places of the duplicates among the examples of a part, in order."""
    places = [
        one_of(store, object_name(DUPLICATES, number, "places"), part, len(plan.parts), _PLACE)
        for number in range(plan.partitions)
    ]
    return np.sort(np.concatenate([np.empty(0, _PLACE), *places]))


class Lines(PlanStage):
    """The examples of a part that are no duplicates, by side of the split, the lines from which
    each vocabulary is learned, and the report of all cleaning."""

    folder = LINES

    def result(self, number: int, tools: None) -> Iterator[tuple[str, Content]]:
        recipe, name = self.plan.recipe, self.plan.names[self.plan.parts[number].corpus]
        cleaner = Cleaner(recipe.data.cleaning, recipe.spec.texts)
        cleaner.report.add(report_in(self.store, READ, number))
        again = set(duplicates_of(self.store, self.plan, number).tolist())
        cleaner.report.kept -= len(again)
        pairs = examples(self.store, READ, number, "pairs")
        prepared = examples(self.store, READ, number, MOSES) if recipe.data.moses else pairs
        by_side: dict[Side, list[Pair]] = {"train": [], "dev": [], "test": []}
        learned: list[Pair] = []
        for place, pair in enumerate(pairs):
            if place in again:
                cleaner.drop("duplicates", pair, name)
                continue
            side = side_of_pair(pair, recipe.data.split)
            by_side[side].append(pair)
            if side == "train":
                learned.append(prepared[place])
        for side in sides_as_text(recipe):
            yield object_name(LINES, number, side), encode_pairs(by_side[side])
        yield object_name(LINES, number, LEARNED), encode_pairs(learned)
        for name, sides in sides_of_vocabularies(recipe).items():
            texts = (getattr(pair, side) for pair in learned for side in sides)
            # Only a line feed ends a line here; no line contains one.
            lines = "".join(f"{line}\n" for text in texts for line in lines_of_text(text))
            yield object_name(LINES, number, name), lines.encode("utf-8", "surrogatepass")
        counts = {side: len(of_side) for side, of_side in by_side.items()}
        yield object_name(LINES, number, "counts"), json.dumps(counts).encode()
        yield self.name(number), json.dumps(cleaner.report.to_dict()).encode()


def sides_as_text(recipe: Recipe) -> tuple[Side, ...]:
    """The sides whose examples are stored as text next to the tokens: those held out, and the
    training examples if the token store has them as Moses prepares them."""
    return ("train", *HELD) if recipe.data.moses else HELD


@dataclass(frozen=True)
class Shards(PlanStage):
    """The files of a shard, from the training examples of the parts that it has."""

    counts: tuple[int, ...] = ()
    """The number of training examples of each part."""
    size: int = SHARD_EXAMPLES
    """The number of examples of a shard."""

    folder = SHARDS

    @property
    def parts(self) -> int:
        return -(-sum(self.counts) // self.size)

    def place(self, number: int) -> str:
        return f"examples from {number * self.size + 1:,} on"

    def lines(self, number: int) -> int:
        return min(self.size, sum(self.counts) - number * self.size)

    def tools(self) -> Forms:
        return forms_of(self.store, self.plan)

    def result(self, number: int, tools: Forms) -> Iterator[tuple[str, Content]]:
        sums: dict[str, str] = {}
        lengths = {side: BytesIO() for side in tools}
        with TemporaryDirectory() as folder:
            write_shard(self._pairs(number), tools, Path(folder), number, lengths)
            for path in sorted(Path(folder).iterdir()):
                name = f"{TOKENS}/{path.name}"
                with path.open("rb") as file:
                    blocks = iter(partial(file.read, BLOCK), b"")
                    yield name, with_checksum(sums, name, blocks)
        for side, written in lengths.items():
            yield object_name(SHARDS, number, f"{side}.lengths"), written.getvalue()
        yield self.name(number), json.dumps(sums).encode()

    def _pairs(self, number: int) -> Iterator[Pair]:
        """Yield the examples of a shard, which are consecutive ones of all parts."""
        begins = [0, *accumulate(self.counts)]
        first = number * self.size
        last = first + self.lines(number)
        for part, (begin, end) in enumerate(pairwise(begins)):
            if max(begin, first) < min(end, last):
                pairs = examples(self.store, LINES, part, LEARNED)
                yield from pairs[max(first - begin, 0) : last - begin]

    def sums(self) -> dict[str, str]:
        """The checksums of the files of all shards, which are complete."""
        sums: dict[str, str] = {}
        for number in range(self.parts):
            sums |= json.loads(read(self.store, self.name(number)))
        return sums


def read_parts(store: Store, folder: str, parts: int, ending: str) -> Iterator[bytes]:
    """Yield one object of a stage, part by part."""
    for part in range(parts):
        yield read(store, object_name(folder, part, ending))


def forms_of(store: Store, plan: DataPlan) -> Forms:
    """The forms of the sides that the store has, with the vocabularies that were learned."""
    recipe = plan.recipe
    with TemporaryDirectory() as folder:
        for name in json.loads(read(store, VOCABULARIES)):
            (Path(folder) / name).write_bytes(read(store, name))
        forms = load_forms(recipe, Path(folder), prepared=True)
    return {side: form for side, form in forms._asdict().items() if side in recipe.spec.sides}
