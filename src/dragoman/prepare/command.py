"""``dragoman prepare``: it does stage after stage, until a run can be trained on the folder.

The vocabularies are learned from the text that cleaning kept, as ``dragoman train`` learns them.
One process reads all their lines and draws the sample, and holds only the sample in memory
(``text.sample_sentences``): the draw of a line depends on the number of lines before it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dragoman.base.errors import DataError
from dragoman.base.wording import plural
from dragoman.cluster.driver import Command, Driver
from dragoman.cluster.plan import stored_plan
from dragoman.cluster.work import NOTES
from dragoman.data import store_writer
from dragoman.data.chunks import ChunkSums, CorpusRange
from dragoman.data.cleaning import CleaningReport, nothing_left
from dragoman.data.corpus_checks import Doubt, find_doubts
from dragoman.data.correspondence import sample_blocks
from dragoman.data.store import SUMS
from dragoman.data.store_writer import ABOUT, NOTHING_LEFT, about_store
from dragoman.forms.form import Pair
from dragoman.prepare import stages
from dragoman.prepare.data_plan import DATA_PLANS, DataPlan, check_same, make_plan
from dragoman.runs.corpora import learn_vocabularies
from dragoman.runs.prepare import key_of
from dragoman.runs.prepared import FILE, FORMAT, SUMS_OF_FILES, TOKENS, sums_file, with_checksum
from dragoman.stores import Store
from dragoman.tasks.catalogue import Recipe

_SAMPLED = 128
"""The most parts of a corpus that are checked for problems."""
_FIRST = 32
"""The examples that are checked of each part, if there are more parts than that."""


def run(command: Command, recipe: Recipe, lines: int) -> None:
    """Prepare the text of a recipe, or continue. ``lines``: the most lines of a part.

    Errors: ``DragomanError``, also if parts were given up.
    """
    to, store, say = command.to, command.store, command.console.say
    plan, is_new = stored_plan(
        store, DATA_PLANS, lambda: make_plan(recipe, lines),
        lambda plan: check_same(plan, recipe, lines, store.address),
    )  # fmt: skip
    if is_new:
        say(f"{plural(len(plan.parts), 'part')} of {plural(len(plan.files), 'corpus', 'corpora')}")
    if command.share.number == 0:
        return
    if store.stat(FILE) is not None:
        say(f"{to} is prepared already. There is nothing to do")
        return
    _do(command, stages.Fingerprints(to, plan))
    _do(command, stages.PartReading(to, plan))
    if plan.partitions:
        _do(command, stages.Duplicates(to, plan))
    _do(command, stages.Lines(to, plan))
    report = report_of(store, plan)
    say(f"kept {report.kept:,} of {plural(report.read, 'example')}: {report.summary()}")
    learn(store, plan, say)
    of_parts = stages.read_parts(store, stages.LINES, len(plan.parts), "counts")
    counts = [*map(json.loads, of_parts)]
    examples = tuple(of_part["train"] for of_part in counts)
    if not any(examples):
        raise DataError(NOTHING_LEFT)
    shards = stages.Shards(to, plan, examples, store_writer.SHARD_EXAMPLES)
    _do(command, shards)
    _finish(command, shards, report)
    held = ", ".join(f"{sum(of_part[side] for of_part in counts):,} {side}" for side in stages.HELD)
    say(f"{plural(sum(examples), 'example')} to train on, {held}: {to}")


def _do(command: Command, stage: stages.PlanStage) -> None:
    """Do all parts of a stage: those of this share first, then those that are still missing."""
    listed = {name for name, _ in stage.store.names(f"{NOTES}/{stage.folder}/")}
    missing = [number for number in range(stage.parts) if stage.name(number) not in listed]
    if not missing:
        return
    own = [number for number in missing if command.share.has(number)]
    others = [number for number in missing if not command.share.has(number)]
    random.shuffle(others)  # so that two shares do not do the same parts in the same order
    Driver(command, stage, [*own, *others], range(stage.parts)).run()


def report_of(store: Store, plan: DataPlan) -> CleaningReport:
    """The report of the cleaning, as one process would make it; ``Lines`` must be complete.

    Errors: ``DataError`` for a corpus of which no example is left.
    """
    report = CleaningReport()
    for corpus, parts in groupby(enumerate(plan.parts), key=lambda part: part[1].corpus):
        before = report.kept
        for number, _ in parts:
            report.add(stages.report_in(store, stages.LINES, number))
        if report.kept == before:
            raise nothing_left(report, plan.names[corpus])
    return report


def learn(store: Store, plan: DataPlan, say: Callable[[str], None]) -> None:
    """Learn the vocabularies and other files that ``dragoman train`` learns first, and write them
    next to the tokens; ``Lines`` must be complete.

    Errors: as ``learn_vocabularies``.
    """
    if store.stat(stages.VOCABULARIES) is not None:
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
    store.create(stages.VOCABULARIES, json.dumps(files).encode())


def named_examples(store: Store, plan: DataPlan) -> Iterator[tuple[str, Pair]]:
    """The training examples of all parts in order, each with the name of its corpus."""
    for number, part in enumerate(plan.parts):
        for pair in stages.examples(store, stages.LINES, number, stages.LEARNED):
            yield plan.names[part.corpus], pair


def training_lines(store: Store, plan: DataPlan, name: str) -> Iterator[str]:
    """The lines from which a vocabulary is learned, as in ``runs.corpora``."""
    for data in stages.read_parts(store, stages.LINES, len(plan.parts), name):
        yield from data.decode("utf-8", "surrogatepass").split("\n")[:-1]


def _finish(command: Command, shards: stages.Shards, report: CleaningReport) -> None:
    """Write what one process makes after all shards, ``FILE`` last."""
    store, plan, sums = command.store, shards.plan, shards.sums()
    forms, ranges = stages.forms_of(store, plan), _ranges(plan, shards.counts)

    def write(name: str, blocks: Iterable[bytes]) -> None:
        store.create(name, with_checksum(sums, name, blocks))

    def lengths_of(side: str) -> Iterator[bytes]:
        return stages.read_parts(store, stages.SHARDS, shards.parts, f"{side}.lengths")

    for side in forms:
        write(f"{TOKENS}/{side}.lengths", lengths_of(side))
    blocks = (
        np.stack([np.frombuffer(data, np.int32) for data in of_shard])
        for of_shard in zip(*map(lengths_of, forms), strict=True)
    )
    write(f"{TOKENS}/{SUMS}", [ChunkSums.of(ranges, blocks).to_bytes()])
    for side in stages.sides_as_text(plan.recipe):
        write(f"{side}.jsonl", stages.read_parts(store, stages.LINES, len(plan.parts), side))
    write(f"{TOKENS}/{ABOUT}", [about_store(forms, ranges, {"cleaning": report.to_dict()})])
    learned = json.loads(stages.read(store, stages.VOCABULARIES))
    for name in learned:
        write(name, [stages.read(store, name)])
    store.create(SUMS_OF_FILES, sums_file(sums))
    corpora = [
        (corpus.name, stages.fingerprint_of(store, number), corpus.weight)
        for number, corpus in enumerate(plan.recipe.data.train)
    ]
    doubts = _doubts(plan)
    for doubt in doubts:
        command.console.say(f"warning: {doubt}")
    done = {
        "format": FORMAT,
        "recipe": plan.recipe.model_dump(mode="json", exclude_none=True),
        "key": key_of(plan.recipe, forms, corpora),
        "corpora": corpora,
        "learned": learned,
        "doubts": [doubt.to_dict() for doubt in doubts],
    }
    store.create(FILE, json.dumps(done, indent=1, ensure_ascii=False).encode())
    store.sweep()


def _ranges(plan: DataPlan, counts: Sequence[int]) -> list[CorpusRange]:
    """The range of examples of each corpus."""
    by_corpus = [0] * len(plan.files)
    for part, count in zip(plan.parts, counts, strict=True):
        by_corpus[part.corpus] += count
    ends = list(accumulate(by_corpus))
    return [
        CorpusRange(end - count, end, corpus.weight, corpus.name)
        for corpus, count, end in zip(plan.recipe.data.train, by_corpus, ends, strict=True)
    ]


def _doubts(plan: DataPlan) -> list[Doubt]:
    """Warnings about the corpora: as ``dragoman train`` finds them, but from the first lines of
    many parts if there are too many parts to read again."""
    recipe, doubts = plan.recipe, list[Doubt]()
    if len(recipe.spec.texts) < 2:
        return []
    languages = recipe.languages.source, recipe.languages.target
    for number, corpus in enumerate(recipe.data.train):
        parts = [n for n, part in enumerate(plan.parts) if part.corpus == number]
        if len(parts) <= _SAMPLED:
            blocks = sample_blocks(chain.from_iterable(map(plan.pairs, parts)))
        else:
            step = len(parts) / _SAMPLED
            some = [parts[int(place * step)] for place in range(_SAMPLED)]
            blocks = [
                [pair for pair, _ in zip(plan.pairs(part), range(_FIRST), strict=False)]
                for part in some
            ]
        doubts += find_doubts(corpus, blocks, languages)
    return doubts
