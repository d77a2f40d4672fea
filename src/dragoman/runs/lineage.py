"""The training texts of a run, and of the runs from which it was begun.

A run begun from another one (``--from``, ``--init-part``) knows the other's training text too, and
that of all before it. Each run keeps hashes of its training texts, and takes over those of the run
that it begins from, so that test texts are looked for in all of them when no text and no other run
is there any more. Sentences are compared but for case, spaces and stops (``data/split.py``).

    data.json          "bases": the runs before this one, the nearest first, by name and fingerprint
    learned/0-source   sorted hashes of what this run reads, 8 bytes each
    learned/1-target   of what the nearest of the bases writes
"""

from __future__ import annotations

import logging
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.base.atomic import replacing_file
from dragoman.base.errors import RunError
from dragoman.base.reading import read_bytes
from dragoman.base.task import ModelPart
from dragoman.base.wording import plural
from dragoman.data.split import find_overlaps, hash_of
from dragoman.forms.form import Pair
from dragoman.runs.corpora import plain_corpora, plain_pairs
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.sources.file_examples import content_of

logger = logging.getLogger("dragoman")

BASES = "bases"
"""Among the notes: the runs that this one was begun from."""
_FOLDER = "learned"
_LETTER = re.compile(r"[^\W\d_]")
_MOST = 1 << 32
"""Bytes of a file of hashes: those of 500 million texts."""

Hashes = Mapping[str, npt.NDArray[np.uint64]]
"""The hashes of the texts of each side."""


@dataclass(frozen=True)
class Learned:
    """Training texts of a run, or of one that it was begun from."""

    base: str
    """The name of that one; empty for the run itself."""
    part: str | None
    """The part of it that was taken; None for all."""
    hashes: Hashes
    unknown: str = ""
    """Why its texts are not known, if they are not."""

    def has(self, pairs: Sequence[Pair]) -> list[bool]:
        """For each pair or text: True if it was learned from.

        That of a run itself, or of a base that read and wrote two texts too, is its source. Any of
        its texts, or half of the lines of one, is, where the base was for another task or only its
        decoder was taken.
        """
        alike = len(self.hashes) > 1 and bool(pairs) and bool(pairs[0].source)
        if not self.base or (alike and self.part != "decoder"):
            side = "source" if "source" in self.hashes else "target"
            return _find([pair.source or pair.target for pair in pairs], self.hashes.get(side))
        return [
            any(answers)
            for answers in zip(
                *(
                    _find_in_lines([getattr(pair, side) for pair in pairs], hashes)
                    for side in ("source", "target")
                    for hashes in self.hashes.values()
                ),
                strict=True,
            )
        ] or [False] * len(pairs)

    def summary(self, name: str, seen: int, of: str) -> str:
        """A warning about the run ``name``. ``of``: all texts, such as "99 test texts"."""
        if self.unknown:
            return f"whether {self._who(name)} has learned from any of the {of} is not known: " + (
                self.unknown
            )
        what = f"{self._who(name)} has learned from {seen:,} of the {of}"
        return f"{what}: the scores of {name} on them may be too high"

    def _who(self, name: str) -> str:
        return f"{self.base}, on which {name} is based," if self.base else name


def _find(texts: Sequence[str], hashes: npt.NDArray[np.uint64] | None) -> list[bool]:
    if hashes is None:
        return [False] * len(texts)
    wanted = np.array([hash_of(text) for text in texts], np.uint64)
    matches: list[bool] = np.isin(wanted, hashes).tolist()
    return matches


def _find_in_lines(texts: Sequence[str], hashes: npt.NDArray[np.uint64]) -> list[bool]:
    """For each text: True if it, or half of its lines, was learned. A base may have read other
    pieces of the same text: lines, passages, documents."""
    lines = [_lines(text) for text in texts]
    matches = iter(_find(list(chain.from_iterable(lines)), hashes))
    seen = [[next(matches) for _ in of_text] for of_text in lines]
    whole = _find(texts, hashes)
    return [
        bool(of_text) and (known or 2 * sum(of_text) >= len(of_text))
        for known, of_text in zip(whole, seen, strict=True)
    ]


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


class _Watch:
    """Hashes of the texts that go by, and of the lines in them."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        # Of files what they hold is known.
        sides = (side for side in recipe.spec.sides if side in ("source", *recipe.spec.texts))
        self._hashes = {side: array("Q") for side in sides}

    def pairs(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        for pair in texts_of(self._recipe, pairs):
            for side, values in self._hashes.items():
                text = getattr(pair, side)
                values.append(hash_of(text))
                if "\n" in text:
                    values.extend(map(hash_of, _lines(text)))
            yield pair

    def hashes(self) -> Hashes:
        return {
            side: np.unique(np.frombuffer(values, np.uint64)) if values else np.empty(0, np.uint64)
            for side, values in self._hashes.items()
        }


def record_learned(
    recipe: Recipe, folder: Path, bases: Sequence[Run], take: ModelPart | None, say: Say
) -> dict[str, Any]:
    """Write down what a new run will learn from, and what the runs before it have, and say how
    much of dev and test is in either -> notes for the run. Reads the training text once.

    ``bases``: the run that it starts from, or its teachers.
    """
    watch = _Watch(recipe)
    train = watch.pairs(chain.from_iterable(c.pairs for c in plain_corpora(recipe, "train")))
    held = {side: list(texts_of(recipe, plain_pairs(recipe, side))) for side in ("dev", "test")}
    warnings = []
    if recipe.data.embedded is None:
        seen = find_overlaps(*_comparable(recipe, train, held))
        warnings = [words for name, overlaps in seen.items() if (words := overlaps.summary(name))]
    else:  # disjoint by construction
        for _ in train:
            pass
    _save(folder, 0, watch.hashes())
    notes: dict[str, Any] = {}
    if bases:
        notes[BASES] = _take_over(bases, take, folder)
        for learned in texts_of_bases(folder, notes[BASES]):
            for side, pairs in held.items():
                count = sum(learned.has(pairs))
                if pairs and (count or learned.unknown):
                    of = plural(len(pairs), f"{side} text")
                    warnings.append(learned.summary(folder.name, count, of))
    for warning in warnings:
        say(f"warning: {warning}")
    return notes | ({"overlap": "; ".join(warnings)} if warnings else {})


def texts_of(recipe: Recipe, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs; where files are read or written, with the content of each instead of its name."""
    known = recipe.spec.as_learned
    for pair in pairs:
        if recipe.spec.reads_files:
            pair = pair._replace(source=content_of(pair.source))
        yield known(pair)


def _comparable(
    recipe: Recipe, train: Iterable[Pair], held: Mapping[str, Sequence[Pair]]
) -> tuple[Iterable[Pair], Mapping[str, Sequence[Pair]]]:
    """The texts of examples that count as overlap. Shared labels do not, and neither does a number
    that is read from several recordings or pictures."""

    def as_compared(pair: Pair) -> Pair:
        pair = recipe.spec.for_overlap(pair)
        if recipe.spec.reads_files and pair.source and not _LETTER.search(pair.target):
            return pair._replace(target=pair.source)
        return pair

    return map(as_compared, train), {name: list(map(as_compared, held[name])) for name in held}


def _take_over(runs: Sequence[Run], take: ModelPart | None, folder: Path) -> list[dict[str, Any]]:
    """Copies the hashes of runs and of those before them into the folder of a new one -> notes."""
    bases: list[tuple[dict[str, Any], Learned]] = []
    for run in runs:
        notes = run.notes()
        own: dict[str, Any] = {
            "name": run.folder.resolve().name,
            "weights": run.weights_hash,
            "part": take,
            "corpora": [
                {"name": entry["name"], "sha256": entry["sha256"]}
                for entry in notes.get("corpora", [])
            ],
        }
        known = notes.get(BASES, [])
        before = zip(known, texts_of_bases(run.folder, known), strict=True)
        bases += [(own, texts_of_run(run)), *before]
    for number, (note, learned) in enumerate(bases, 1):
        note["unknown"] = learned.unknown
        _save(folder, number, learned.hashes)
    return [note for note, _ in bases]


def texts_of_run(run: Run) -> Learned:
    """The texts from which a run itself has learned, without those of its bases."""
    return _load_learned(run.folder, 0, {})


def texts_of_bases(folder: Path, bases: Sequence[Mapping[str, Any]]) -> Iterator[Learned]:
    """Yields the texts of each base of the run in ``folder``, by its notes."""
    for number, note in enumerate(bases, 1):
        yield _load_learned(folder, number, note)


def _load_learned(folder: Path, number: int, note: Mapping[str, Any]) -> Learned:
    """``number``: that of the hashes; ``note``: on the base, empty for the run itself."""
    hashes, unknown = dict[str, npt.NDArray[np.uint64]](), note.get("unknown", "")
    try:
        hashes = dict(_load(folder, number))
    except RunError as error:
        unknown = str(error)
    if not hashes and not unknown:
        unknown = f"{folder / _FOLDER} has no hashes of its texts"
    return Learned(note.get("name", ""), note.get("part"), hashes, unknown)


def warn_of_learned(run: Run, pairs: Sequence[Pair]) -> None:
    """Log how many of the texts that ``run`` is measured on it has learned from, or those that it
    was begun from."""
    noun = run.recipe.source.raws.removesuffix("s")
    of = plural(len(pairs), f"test {noun}")
    pairs = list(texts_of(run.recipe, pairs))
    before = texts_of_bases(run.folder, run.notes().get(BASES, []))
    kept = (run.folder / _FOLDER).is_dir()  # else compare says that it is not known
    for learned in chain([texts_of_run(run)] if kept else [], before):
        count = sum(learned.has(pairs))
        if count or learned.unknown:
            logger.warning("warning: %s", learned.summary(run.folder.name, count, of))


def watch_texts(run: Run, texts: Iterable[str]) -> Iterator[str]:
    """``texts`` as they are, then what ``warn_of_learned`` says of them."""
    pairs = []
    for number, text in enumerate(texts, 1):
        pairs.append(Pair(number, "", text))
        yield text
    warn_of_learned(run, pairs)


def _save(folder: Path, number: int, hashes: Hashes) -> None:
    (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
    for side, values in hashes.items():
        with replacing_file(folder / _FOLDER / f"{number}-{side}") as path:
            path.write_bytes(values.astype("<u8").tobytes())


def _load(folder: Path, number: int) -> Hashes:
    """Errors: ``RunError`` for a file that is damaged."""
    hashes = {}
    for side in ("source", "target"):
        path = folder / _FOLDER / f"{number}-{side}"
        if path.is_file():
            content = read_bytes(path, _MOST)
            if len(content) % 8:
                raise RunError(f"{path} is damaged: {len(content):,} bytes are not hashes")
            hashes[side] = np.frombuffer(content, "<u8").astype(np.uint64)
    return hashes
