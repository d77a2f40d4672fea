"""``dragoman prepare``: stage after stage, until the folder can be trained on."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain

import numpy as np

from dragoman.base.errors import DataError
from dragoman.base.wording import plural
from dragoman.catalogue import Recipe
from dragoman.cluster.command import Share, place_of, share_of, workers_at
from dragoman.cluster.driver import Driver
from dragoman.cluster.parts.plan import NOTES
from dragoman.cluster.parts.standing import stored_plan
from dragoman.cluster.prepare.data_plan import (
    DATA_PLANS,
    DataPlan,
    PlanStage,
    check_fits,
    check_same,
    make_plan,
    object_name,
)
from dragoman.cluster.prepare.first_stages import (
    FINGERPRINTS,
    Duplicates,
    Fingerprints,
    PartReading,
    read,
    report_of,
)
from dragoman.cluster.prepare.later_stages import (
    HELD,
    VOCABULARIES,
    Encoding,
    Forms,
    Lines,
    Shards,
    encoded,
    forms_of,
    learn,
    sides_as_text,
)
from dragoman.cluster.workers import Workers
from dragoman.data import store_writer
from dragoman.data.checks.block_sampler import BlockSampler
from dragoman.data.checks.corpus_checks import Doubt, find_doubts
from dragoman.data.chunks import ChunkSums, CorpusRange
from dragoman.data.store import SUMS
from dragoman.data.store_writer import ABOUT, NOTHING_LEFT, about_store, type_of
from dragoman.runs.corpora import sides_of_vocabularies
from dragoman.runs.prepare import key_of
from dragoman.runs.prepared import FILE, FORMAT, SUMS_OF_FILES, TOKENS, listed, summed
from dragoman.stores.folder import FolderStore
from dragoman.stores.opened import opened, whole_address
from dragoman.stores.store import Store

_SAMPLED = 128
"""Parts of a corpus that are looked at for what is wrong with it."""
_FIRST = 32
"""Examples of a part, where there are more parts than that."""


def run(
    recipe: Recipe, to: str, on: str | None, part: str | None, lines: int,
    say: Callable[[str], None], write: Callable[[str], object], *, terminal: bool,
) -> None:  # fmt: skip
    """Prepare the text of a recipe, or go on with it. ``lines`` of a part at most; ``say`` and
    ``write``: as ``cluster.command.run`` has them.

    Errors: ``DragomanError``, also where parts were given up.
    """
    share, place = share_of(part), place_of(on)
    to = whole_address(to)
    store = opened(to)
    plan, is_new = _plan_of(store, recipe, lines)
    if is_new:
        say(f"{plural(len(plan.parts), 'part')} of {plural(len(plan.files), 'corpus', 'corpora')}")
    if share.number == 0:
        return
    if store.stat(FILE) is not None:
        say(f"{to} is prepared already: nothing to do")
        return

    def do(stage: PlanStage) -> None:
        _do(stage, share, workers_at(place), say, write, terminal)

    do(Fingerprints(to, plan))
    do(PartReading(to, plan))
    if plan.partitions:
        do(Duplicates(to, plan))
    report = report_of(store, plan)
    say(f"kept {report.kept:,} of {plural(report.read, 'example')}: {report.summary()}")
    if store.stat(VOCABULARIES) is None and sides_of_vocabularies(plan.recipe):
        do(Lines(to, plan))
    learn(store, plan, say)
    do(Encoding(to, plan))
    counts = [*map(json.loads, encoded(store, len(plan.parts), Encoding.last))]
    examples = tuple(one["train"] for one in counts)
    if not any(examples):
        raise DataError(NOTHING_LEFT)
    forms = forms_of(store, plan)
    types = {side: type_of(form) for side, form in forms.items()}
    shards = Shards(to, plan, examples, tuple(types.items()), store_writer.SHARD_EXAMPLES)
    do(shards)
    ranges = _ranges(plan, examples)
    about = about_store(types, ranges, {"cleaning": report.to_dict()})
    _finish(store, plan, forms, ranges, about, shards.sums(), say)
    held = ", ".join(f"{sum(one[side] for one in counts):,} {side}" for side in HELD)
    say(f"{plural(sum(examples), 'example')} to train on, {held}: {to}")


def _do(
    stage: PlanStage, share: Share, workers: Workers, say: Callable[[str], None],
    write: Callable[[str], object], terminal: bool,
) -> None:  # fmt: skip
    """All parts of a stage: those of this share first, then what others have not done yet."""
    listed = {name for name, _ in stage.store.names(f"{NOTES}/{stage.folder}/")}
    missing = [number for number in range(stage.parts) if stage.name(number) not in listed]
    if not missing:
        return
    own = [number for number in missing if number % share.of == share.number - 1]
    others = [number for number in missing if number % share.of != share.number - 1]
    random.shuffle(others)  # two shares do not do the same ones in the same order
    parts = range(stage.parts)
    Driver(stage, workers, [*own, *others], parts, say, write, terminal=terminal).run()


def _finish(
    store: Store, plan: DataPlan, forms: Forms, ranges: Sequence[CorpusRange], about: bytes,
    sums: dict[str, str], say: Callable[[str], None],
) -> None:  # fmt: skip
    """What one process writes when all shards stand, ``FILE`` last. ``sums``: of their files."""
    parts = len(plan.parts)

    def write(name: str, blocks: Iterable[bytes]) -> None:
        store.create_of(name, summed(sums, name, blocks))

    for side in forms:
        write(f"{TOKENS}/{side}.lengths", encoded(store, parts, f"{side}.lengths"))
    blocks = (
        np.stack([np.frombuffer(data, np.int32) for data in of_part])
        for of_part in zip(
            *(encoded(store, parts, f"{side}.lengths") for side in forms), strict=True
        )
    )
    write(f"{TOKENS}/{SUMS}", [ChunkSums.of(ranges, blocks).to_bytes()])
    for side in sides_as_text(plan.recipe):
        write(f"{side}.jsonl", encoded(store, parts, side))
    write(f"{TOKENS}/{ABOUT}", [about])
    learned = json.loads(read(store, VOCABULARIES))
    for name in learned:
        write(name, [read(store, name)])
    store.create(SUMS_OF_FILES, listed(sums))
    corpora = [
        (corpus.name, read(store, object_name(FINGERPRINTS, number, "txt")).decode(), corpus.weight)
        for number, corpus in enumerate(plan.recipe.data.train)
    ]
    doubts = _doubts(plan)
    for doubt in doubts:
        say(f"warning: {doubt}")
    done = {
        "format": FORMAT,
        "recipe": plan.recipe.model_dump(mode="json", exclude_none=True),
        "key": key_of(plan.recipe, forms, corpora),
        "corpora": corpora,
        "learned": learned,
        "doubts": [doubt.to_dict() for doubt in doubts],
    }
    store.create(FILE, json.dumps(done, indent=1, ensure_ascii=False).encode())
    if isinstance(store, FolderStore):
        store.sweep()


def _plan_of(store: Store, recipe: Recipe, lines: int) -> tuple[DataPlan, bool]:
    """The plan that stands, or a new one, and whether it is new."""

    def made() -> DataPlan:
        check_fits(recipe)
        return make_plan(recipe, lines)

    plan, is_new = stored_plan(store, DATA_PLANS, made)
    if not is_new:
        check_same(plan, recipe, lines, store.address)
    return plan, is_new


def _ranges(plan: DataPlan, counts: Sequence[int]) -> list[CorpusRange]:
    """Which examples came from each corpus."""
    by_corpus = [0] * len(plan.files)
    for part, count in zip(plan.parts, counts, strict=True):
        by_corpus[part.corpus] += count
    ends = list(accumulate(by_corpus))
    return [
        CorpusRange(end - count, end, corpus.weight, corpus.name)
        for corpus, count, end in zip(plan.recipe.data.train, by_corpus, ends, strict=True)
    ]


def _doubts(plan: DataPlan) -> list[Doubt]:
    """What looks wrong with the corpora: as a training finds it, of the first lines of each of many
    parts where there are too many to be read again."""
    recipe, found = plan.recipe, list[Doubt]()
    if len(recipe.spec.texts) < 2:
        return []
    languages = recipe.languages.source, recipe.languages.target
    for number, corpus in enumerate(recipe.data.train):
        parts = [n for n, part in enumerate(plan.parts) if part.corpus == number]
        if len(parts) <= _SAMPLED:
            sampler = BlockSampler()
            for _ in sampler.watch(chain.from_iterable(map(plan.pairs, parts))):
                pass
            blocks = sampler.blocks
        else:
            step = len(parts) / _SAMPLED
            some = [parts[int(place * step)] for place in range(_SAMPLED)]
            blocks = [
                [pair for pair, _ in zip(plan.pairs(part), range(_FIRST), strict=False)]
                for part in some
            ]
        found += find_doubts(corpus, blocks, languages)
    return found
