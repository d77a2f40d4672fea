"""The vocabularies, learned of what cleaning has kept, as a training learns them; and the stages
that need them: tokens of each part, and the shards of the store.

A stage writes the lines of each vocabulary. One process reads them all and draws the sample, which
is all that is in memory (``text.sample_sentences``): which lines are drawn depends on how many come
before them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dragoman.cluster.prepare.data_plan import DataPlan, PlanStage, object_name
from dragoman.cluster.prepare.first_stages import kept, read, read_range, written
from dragoman.cluster.work import NOTES
from dragoman.data.store_writer import SHARD_EXAMPLES, type_of
from dragoman.forms.form import Form, Pair
from dragoman.recipe.recipe import Recipe
from dragoman.runs.corpora import (
    learn_vocabularies,
    lines_of_text,
    sides_of_vocabularies,
)
from dragoman.runs.prepared import TOKENS, summed
from dragoman.runs.run import load_forms
from dragoman.stores.store import Content, Store

ENCODED, SHARDS = "encoded", "shards"
VOCABULARIES = f"{NOTES}/vocabularies.json"
"""The names of the files that were learned; they lie beside the store."""
HELD = ("dev", "test")
_BLOCK = 8 << 20
_TOGETHER = 4096

Forms = Mapping[str, Form]
"""Of each side that the store has."""


class Encoding(PlanStage):
    """The tokens and the text of each side, and what is held out."""

    folder = ENCODED

    def tools(self) -> Forms:
        return forms_of(self.store, self.plan)

    def result(self, number: int, tools: Forms) -> Mapping[str, Content]:
        by_side: dict[str, list[Pair]] = {"train": [], "dev": [], "test": []}
        pairs: list[Pair] = []
        for stands, pair, learned in kept(self.store, self.plan, number):
            by_side[stands].append(pair)
            if stands == "train":
                pairs.append(learned)
        found: dict[str, Content] = {}
        for side, form in tools.items():
            raws = [getattr(pair, side) for pair in pairs]
            encoded = [
                values
                for first in range(0, len(raws), _TOGETHER)
                for values in form.encode(raws[first : first + _TOGETHER])
            ]
            texts = [raw.encode("utf-8", "surrogatepass") for raw in raws]
            kind = np.dtype(type_of(form))
            contents = {
                "tokens": b"".join(values.astype(kind).tobytes() for values in encoded),
                "lengths": np.array([*map(len, encoded)], np.int32).tobytes(),
                "text": b"".join(texts),
                "text-lengths": np.array([*map(len, texts)], np.int64).tobytes(),
            }
            for what, content in contents.items():
                found[object_name(ENCODED, number, f"{side}.{what}")] = content
        for side in sides_as_text(self.plan.recipe):
            found[object_name(ENCODED, number, side)] = written(by_side[side])
        counts = {side: len(of_side) for side, of_side in by_side.items()}
        found[self.name(number)] = json.dumps(counts).encode()
        return found


def sides_as_text(recipe: Recipe) -> tuple[str, ...]:
    """The sides whose examples stand beside the store, as they were read: those that are held out,
    and those to train on where the store has them as Moses prepares them."""
    return ("train", *HELD) if recipe.data.moses else HELD


@dataclass(frozen=True)
class Shards(PlanStage):
    """The files of a shard, of the parts whose examples it has."""

    counts: tuple[int, ...] = ()
    """Training examples of each part."""
    types: tuple[tuple[str, str], ...] = ()
    """Of the values of each side."""
    size: int = SHARD_EXAMPLES
    """Examples of a shard."""

    folder = SHARDS

    @property
    def parts(self) -> int:
        return -(-sum(self.counts) // self.size)

    def place(self, number: int) -> str:
        return f"examples from {number * self.size + 1:,} on"

    def lines(self, number: int) -> int:
        return min(self.size, sum(self.counts) - number * self.size)

    def result(self, number: int, tools: None) -> Mapping[str, Content]:
        spans = spans_of(self.counts, number * self.size, self.lines(number))
        found: dict[str, Content] = {}
        sums: dict[str, str] = {}
        for side, kind in self.types:
            name = f"{TOKENS}/{number:05}.{side}"
            for values, lengths, stored, width in (
                ("tokens", "lengths", np.int32, np.dtype(kind).itemsize),
                ("text", "text-lengths", np.int64, 1),
            ):
                sizes = [
                    np.frombuffer(read(self.store, _of(part, side, lengths)), stored)
                    for part, _, _ in spans
                ]
                offsets = "offsets" if values == "tokens" else "text-offsets"
                contents: dict[str, Iterable[bytes]] = {
                    f"{name}.{values}": _joined(self.store, side, values, width, spans, sizes),
                    f"{name}.{offsets}": [_offsets(spans, sizes)],
                }
                for of_file, blocks in contents.items():
                    found[of_file] = summed(sums, of_file, blocks)
        found[self.name(number)] = (
            json.dumps(one).encode() for one in [sums]
        )  # when all are known
        return found

    def sums(self) -> dict[str, str]:
        """The checksums of the files of all shards, which are complete."""
        found: dict[str, str] = {}
        for number in range(self.parts):
            found |= json.loads(read(self.store, self.name(number)))
        return found


Span = tuple[int, int, int]
"""A part, and which of its training examples: from the first to the last, last excluded."""


def spans_of(counts: Sequence[int], first: int, examples: int) -> list[Span]:
    """The parts that some examples, counted over all of them, are in."""
    found, before, last = [], 0, first + examples
    for part, count in enumerate(counts):
        begin, end = max(first - before, 0), min(last - before, count)
        if begin < end:
            found.append((part, begin, end))
        before += count
    return found


def _joined(
    store: Store, side: str, what: str, width: int, spans: Sequence[Span], sizes: Sequence[Any]
) -> Iterator[bytes]:
    for (part, first, last), of_part in zip(spans, sizes, strict=True):
        start = int(of_part[:first].sum()) * width
        end = start + int(of_part[first:last].sum()) * width
        for at in range(start, end, _BLOCK):
            yield read_range(store, _of(part, side, what), at, min(_BLOCK, end - at))


def _offsets(spans: Sequence[Span], sizes: Sequence[Any]) -> bytes:
    found = [of_part[first:last] for (_, first, last), of_part in zip(spans, sizes, strict=True)]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(found))]).tobytes()


def _of(part: int, side: str, what: str) -> str:
    return object_name(ENCODED, part, f"{side}.{what}")


def encoded(store: Store, parts: int, ending: str) -> Iterator[bytes]:
    """One object of ``Encoding``, part by part: the lengths of a side (``source.lengths``), one of
    ``sides_as_text``, or how many examples each side of the split has (``Encoding.last``)."""
    for part in range(parts):
        yield read(store, object_name(ENCODED, part, ending))


def forms_of(store: Store, plan: DataPlan) -> Forms:
    """The forms of the sides that the store has, with what was learned."""
    recipe = plan.recipe
    with TemporaryDirectory() as folder:
        for name in json.loads(read(store, VOCABULARIES)):
            (Path(folder) / name).write_bytes(read(store, name))
        forms = load_forms(recipe, Path(folder), prepared=True)
    return {side: form for side, form in forms._asdict().items() if side in recipe.spec.sides}


LINES = "lines"


class Lines(PlanStage):
    """What each vocabulary is learned from, of the training examples of a part."""

    folder = LINES

    def result(self, number: int, tools: None) -> Mapping[str, Content]:
        pairs = [pair for side, _, pair in kept(self.store, self.plan, number) if side == "train"]
        found: dict[str, Content] = {}
        for name, sides in sides_of_vocabularies(self.plan.recipe).items():
            texts = (getattr(pair, side) for pair in pairs for side in sides)
            # No line has a line feed in it, whatever else ends lines.
            lines = "".join(f"{line}\n" for text in texts for line in lines_of_text(text))
            found[object_name(LINES, number, name)] = lines.encode("utf-8", "surrogatepass")
        found[self.name(number)] = b"{}"
        return found


def learn(store: Store, plan: DataPlan, say: Callable[[str], None]) -> None:
    """Learn what a training learns before it begins, and write it beside the store; ``Lines`` is
    complete.

    Errors: as ``learn_vocabularies``.
    """
    if store.stat(VOCABULARIES) is not None:
        return
    with TemporaryDirectory() as given:
        folder = Path(given)
        learn_vocabularies(
            plan.recipe, folder, say,
            examples=lambda: named_examples(store, plan),
            lines=lambda name: training_lines(store, plan, name),
        )  # fmt: skip
        files = sorted(path.name for path in folder.iterdir())
        for name in files:
            store.create(name, (folder / name).read_bytes())
    store.create(VOCABULARIES, json.dumps(files).encode())


def named_examples(store: Store, plan: DataPlan) -> Iterator[tuple[str, Pair]]:
    """The training examples of all parts in order, each with the name of its corpus."""
    for number, part in enumerate(plan.parts):
        for side, _, pair in kept(store, plan, number):
            if side == "train":
                yield plan.names[part.corpus], pair


def training_lines(store: Store, plan: DataPlan, name: str) -> Iterator[str]:
    """As ``runs.corpora`` has them, for the vocabulary of that name."""
    for number in range(len(plan.parts)):
        data = read(store, object_name(LINES, number, name))
        yield from data.decode("utf-8", "surrogatepass").split("\n")[:-1]
