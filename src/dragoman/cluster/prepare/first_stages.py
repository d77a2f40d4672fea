"""The stages that need no vocabulary: fingerprints, reading and cleaning, duplicates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dragoman.cluster.prepare.data_plan import DataPlan, PlanStage, object_name
from dragoman.data.cleaning import Cleaner, CleaningReport, nothing_left, pair_hash
from dragoman.data.files.corpora import corpus_fingerprint
from dragoman.data.split import Side, side_of_pair
from dragoman.forms.form import Pair
from dragoman.runs.corpora import moses_of
from dragoman.stores.store import Content, Store, StoreError

FINGERPRINTS, READ, DUPLICATES = "fingerprints", "read", "duplicates"
MOSES = "moses"
"""The ending of what Moses makes of the examples of a part."""
Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.uint32]


class Fingerprints(PlanStage):
    """Of each corpus, by which a store of its tokens is found again."""

    folder = FINGERPRINTS
    last: ClassVar[str] = "txt"

    @property
    def parts(self) -> int:
        return len(self.plan.files)

    def place(self, number: int) -> str:
        return self.plan.names[number]

    def lines(self, number: int) -> int:
        return 0

    def result(self, number: int, tools: None) -> Mapping[str, Content]:
        found = corpus_fingerprint(self.plan.recipe.data.train[number])
        return {self.name(number): found.encode()}


class PartReading(PlanStage):
    """The examples of a part that pass all filters but that of duplicates, and their hashes."""

    folder = READ
    last: ClassVar[str] = "hashes"

    def result(self, number: int, tools: None) -> Mapping[str, Content]:
        recipe = self.plan.recipe
        settings = recipe.data.cleaning.model_copy(update={"duplicates": False})
        cleaner = Cleaner(settings, recipe.spec.texts)
        name = self.plan.names[self.plan.parts[number].corpus]
        pairs = list(cleaner.some_pairs(self.plan.pairs(number), name))
        hashes = np.fromiter(map(pair_hash, pairs), np.uint64, len(pairs))
        found: dict[str, Content] = {object_name(READ, number, "pairs"): written(pairs)}
        prepared = moses_of(recipe)
        if prepared is not None:
            found[object_name(READ, number, MOSES)] = written([*map(prepared, pairs)])
        found[object_name(READ, number, "json")] = json.dumps(cleaner.report.to_dict()).encode()
        found[self.name(number)] = by_partition(hashes, self.plan.partitions)
        return found


class Duplicates(PlanStage):
    """Which examples of each part have a hash, of one range, that an earlier one has."""

    folder = DUPLICATES
    last: ClassVar[str] = "places"

    @property
    def parts(self) -> int:
        return self.plan.partitions

    def place(self, number: int) -> str:
        return f"range {number + 1} of {self.parts} of all hashes"

    def lines(self, number: int) -> int:
        return 0

    def result(self, number: int, tools: None) -> Mapping[str, Content]:
        found = [
            read_partition(self.store, part, number, self.plan.partitions)
            for part in range(len(self.plan.parts))
        ]
        hashes = np.concatenate([hashes for hashes, _ in found])
        _, first = np.unique(hashes, return_index=True)  # the first of equals
        again = np.ones(len(hashes), np.bool_)
        again[first] = False
        ends = np.cumsum([len(places) for _, places in found])
        places = [
            places[again[end - len(places) : end]]
            for (_, places), end in zip(found, ends.tolist(), strict=True)
        ]
        return {self.name(number): offsets_before(places)}


def written(pairs: list[Pair]) -> bytes:
    """Examples as JSON Lines."""
    lines = [json.dumps(list(pair), ensure_ascii=False) for pair in pairs]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def read_examples(data: bytes) -> Iterator[Pair]:
    """What ``written`` wrote."""
    for line in data.decode("utf-8", "surrogatepass").split("\n")[:-1]:
        yield Pair(*json.loads(line))


def by_partition(hashes: Hashes, partitions: int) -> bytes:
    """Hashes in their ranges, each with its place: where each range begins, all hashes, all
    places."""
    if not partitions:
        return b""
    ranges = hashes % np.uint64(partitions)
    order = np.argsort(ranges, kind="stable")
    begins = np.searchsorted(ranges[order], np.arange(partitions + 1, dtype=np.uint64))
    places = order.astype(np.uint32)
    return begins.astype(np.int64).tobytes() + hashes[order].tobytes() + places.tobytes()


def read_partition(store: Store, part: int, number: int, partitions: int) -> tuple[Hashes, Places]:
    """The hashes of one range in a part, and their places in it."""
    name = object_name(READ, part, PartReading.last)
    head = 8 * (partitions + 1)
    begins = np.frombuffer(read_range(store, name, 0, head), np.int64)
    first, last, total = (int(begins[n]) for n in (number, number + 1, partitions))
    hashes = read_range(store, name, head + 8 * first, 8 * (last - first))
    places = read_range(store, name, head + 8 * total + 4 * first, 4 * (last - first))
    return np.frombuffer(hashes, np.uint64), np.frombuffer(places, np.uint32)


def offsets_before(arrays: list[Places]) -> bytes:
    """Where each array begins, and where the last one ends; then all of them."""
    offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
    return offsets.tobytes() + b"".join(array.tobytes() for array in arrays)


def duplicates_of(store: Store, plan: DataPlan, part: int) -> Places:
    """The places of the examples of a part that were there before, in order."""
    found = []
    for number in range(plan.partitions):
        name = object_name(DUPLICATES, number, Duplicates.last)
        first, last = np.frombuffer(read_range(store, name, 8 * part, 16), np.int64).tolist()
        head = 8 * (len(plan.parts) + 1)
        data = read_range(store, name, head + 4 * first, 4 * (last - first))
        found.append(np.frombuffer(data, np.uint32))
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.uint32)


def examples(store: Store, part: int, ending: str = "pairs") -> list[Pair]:
    """All that ``PartReading`` kept of a part; ``MOSES``: as Moses prepares it."""
    return list(read_examples(read(store, object_name(READ, part, ending))))


def kept(store: Store, plan: DataPlan, part: int) -> Iterator[tuple[Side, Pair, Pair]]:
    """The examples of a part without duplicates: the side of the split of each, what was read, and
    what is learned from, which is the same unless Moses prepares it."""
    again = set(duplicates_of(store, plan, part).tolist())
    pairs = examples(store, part)
    learned = examples(store, part, MOSES) if plan.recipe.data.moses else pairs
    for place, (pair, prepared) in enumerate(zip(pairs, learned, strict=True)):
        if place not in again:
            yield side_of_pair(pair, plan.recipe.data.split), pair, prepared


def report_of(store: Store, plan: DataPlan) -> CleaningReport:
    """What was dropped, as one process would tell it. Errors: ``DataError`` for a corpus of which
    nothing is left."""
    cleaner = Cleaner(plan.recipe.data.cleaning, plan.recipe.spec.texts)
    corpus = before = 0
    for number, part in enumerate(plan.parts):
        if part.corpus != corpus:
            if cleaner.report.kept == before:
                raise nothing_left(cleaner.report, plan.names[corpus])
            corpus, before = part.corpus, cleaner.report.kept
        found = json.loads(read(store, object_name(READ, number, "json")))
        cleaner.report.add(CleaningReport.from_dict(found))
        again = duplicates_of(store, plan, number)
        if not len(again):
            continue
        dropped = cleaner.report.filters["duplicates"]
        cleaner.report.kept -= len(again)
        total = dropped.count + len(again)
        if dropped.has_room:
            pairs = examples(store, number)
            for place in again.tolist():
                cleaner.drop("duplicates", pairs[place], plan.names[part.corpus])
                if not dropped.has_room:
                    break
        dropped.count = total
    if cleaner.report.kept == before:
        raise nothing_left(cleaner.report, plan.names[corpus])
    return cleaner.report


def read(store: Store, name: str) -> bytes:
    """All of an object. Errors: ``StoreError`` where there is none."""
    data = store.content(name)
    if data is None:
        raise StoreError(f"{store.place(name)} is not there any more: give the same command again")
    return data


def read_range(store: Store, name: str, start: int, length: int) -> bytes:
    """Some bytes of an object. Errors: ``StoreError`` where there are fewer."""
    data = store.read(name, start, length) if length else b""
    if len(data) != length:
        raise StoreError(f"{store.place(name)} is damaged: it ends too early")
    return data
