"""The order of training: every example once an epoch, a pure function of (seed, update)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.data.chunks import ChunkSums, CorpusRange
from dragoman.data.plan import MicroBatchPlan, Plan, PlanSettings, _roughly
from dragoman.runs.recipe.recipe_text import without_gone


@dataclass
class Lengths:
    """A store that is nothing but lengths."""

    source_lengths: npt.NDArray[np.int32]
    target_lengths: npt.NDArray[np.int32]
    corpora: tuple[CorpusRange, ...]

    @property
    def lengths(self) -> dict[str, npt.NDArray[np.int32]]:
        return {"source": self.source_lengths, "target": self.target_lengths}

    def target_tokens(self, batch: MicroBatchPlan) -> int:
        """End symbols counted."""
        return int(self.target_lengths[batch.examples].sum()) + len(batch.examples)


def _lengths(
    sizes: list[int], weights: list[float], seed: int = 0, long_sources: float = 0.0
) -> Lengths:
    random = np.random.default_rng(seed)
    total = sum(sizes)
    targets = random.integers(0, 40, total).astype(np.int32)
    sources = np.maximum(0, targets + random.integers(-5, 6, total)).astype(np.int32)
    sources[random.random(total) < long_sources] = 200
    ends = np.cumsum([0, *sizes]).tolist()
    ranges = [CorpusRange(a, b, w) for a, b, w in zip(ends[:-1], ends[1:], weights, strict=True)]
    return Lengths(sources, targets, tuple(ranges))


def _epoch_and_block(plan: Plan, update: int) -> tuple[int, int]:
    """Where an update stands: its epoch, and its block in that epoch."""
    return divmod(plan.block_of(update), plan._blocks)


def _epochs(plan: Plan, number: int) -> list[list[list[MicroBatchPlan]]]:
    """The updates of the first epochs."""
    out: list[list[list[MicroBatchPlan]]] = [[] for _ in range(number)]
    update = 0
    while (epoch := _epoch_and_block(plan, update)[0]) < number:
        out[epoch].append(plan.update(update))
        update += 1
    return out


def _examples(updates: list[list[MicroBatchPlan]]) -> Counter[int]:
    return Counter(int(e) for update in updates for batch in update for e in batch.examples)


plans = st.builds(
    PlanSettings,
    tokens_per_update=st.one_of(st.integers(1, 60), st.integers(1, 3000)),
    tokens_per_micro_batch=st.one_of(st.integers(1, 60), st.integers(1, 1500)),
    max_source=st.sampled_from([20, 256]),
    block_examples=st.integers(1, 500),
)


@settings(max_examples=40, deadline=None)
@given(plans, st.lists(st.integers(0, 300), min_size=1, max_size=3), st.integers(0, 2**64))
def test_every_example_exactly_once_an_epoch(
    plan_settings: PlanSettings, sizes: list[int], seed: int
) -> None:
    sizes = [*sizes, 50]
    lengths = _lengths(sizes, [1.0] * len(sizes), long_sources=0.1)
    plan = Plan(lengths, plan_settings, seed)
    fits = lengths.source_lengths + 1 <= plan_settings.max_source
    once = Counter(np.flatnonzero(fits).tolist())
    for updates in _epochs(plan, 2):
        assert _examples(updates) == once
        assert all(update and all(len(batch.examples) for batch in update) for update in updates)
    assert plan.left_out.examples == int((~fits).sum())


@settings(max_examples=30, deadline=None)
@given(
    plans,
    st.lists(st.integers(0, 9000), min_size=1, max_size=3),
    st.lists(st.integers(0, 3000), max_size=4),
)
def test_kept_sums_give_the_plan_that_all_lengths_give(
    plan_settings: PlanSettings, sizes: list[int], cuts: list[int]
) -> None:
    lengths = _lengths([*sizes, 5000], [1.0, 0.5, 2.0, 1.0][: len(sizes) + 1], long_sources=0.01)
    both = np.stack([lengths.source_lengths, lengths.target_lengths])
    sums = ChunkSums.of(lengths.corpora, np.split(both, sorted(cuts), axis=1))
    assert sums.to_bytes() == ChunkSums.of(lengths.corpora, [both]).to_bytes()
    read, known = (Plan(lengths, plan_settings, 3, one) for one in (None, sums))
    assert read.left_out == known.left_out
    assert read.updates_per_epoch() == known.updates_per_epoch()
    last = read.updates_per_epoch() - 1
    for update in {0, last, last // 2}:
        expected, found = ([b.examples.tolist() for b in p.update(update)] for p in (read, known))
        assert expected == found


def test_kept_sums_are_used_without_a_look_at_the_lengths(tmp_path: Path) -> None:
    """Where no limit is below what counts as long, only the named examples are looked at."""
    drawn = np.random.default_rng(1).integers(0, 30, (2, 60_000)).astype(np.int32)
    drawn[0, 5::500] = 1000
    corpora = (CorpusRange(0, 20_000), CorpusRange(20_000, 60_000))
    (tmp_path / "sums").write_bytes(ChunkSums.of(corpora, [drawn]).to_bytes())
    sums = ChunkSums.read(tmp_path / "sums", 2, corpora)
    assert sums.holds_for([256, 256]) and not sums.holds_for([256, 12])
    asked: list[int] = []

    class Watched:
        def __init__(self, side: int) -> None:
            self._side = side

        def __len__(self) -> int:
            return int(drawn.shape[1])

        def __getitem__(self, examples: Any) -> npt.NDArray[np.int32]:
            found: npt.NDArray[np.int32] = drawn[self._side, examples]
            asked.append(len(found))
            return found

    class Store:
        lengths: ClassVar = {"source": Watched(0), "target": Watched(1)}

    Store.corpora = corpora  # type: ignore[attr-defined]
    plan = Plan(Store, PlanSettings(), 1, sums)  # type: ignore[arg-type]
    assert plan.updates_per_epoch() and not asked
    assert plan.left_out.examples == 120
    assert sum(asked) < 100
    with pytest.raises(DataError, match="damaged"):
        ChunkSums.read(tmp_path / "sums", 1, corpora)
    with pytest.raises(DataError, match="cannot be read"):
        ChunkSums.read(tmp_path / "none", 2, corpora)


def test_recipes_that_name_slices_are_read() -> None:
    """Runs that were trained before 0.1.0 have ``slices = 1``, which is how all are planned now."""
    values = {"format": 1, "plan": {"slices": 1}}
    assert without_gone(values) == {"format": 1, "plan": {}}
    values["plan"] = {"slices": 2}
    assert without_gone(values) == values


@settings(max_examples=20, deadline=None)
@given(plans, st.integers(0, 2**64), st.lists(st.integers(0, 400), min_size=1, max_size=6))
def test_pure_function_of_seed_and_update(
    plan_settings: PlanSettings, seed: int, asked: list[int]
) -> None:
    """Any order of asking, as after a resume, on any process, gives the same micro-batches."""
    lengths = _lengths([120, 70], [1.0, 2.5])
    uninterrupted = Plan(lengths, plan_settings, seed)
    in_order = {k: uninterrupted.update(k) for k in range(max(asked) + 1)}
    one = Plan(lengths, plan_settings, seed)
    for k in asked:
        for other in (one, Plan(lengths, plan_settings, seed)):
            batches = other.update(k)
            assert len(batches) == len(in_order[k])
            for batch, expected in zip(batches, in_order[k], strict=True):
                assert np.array_equal(batch.examples, expected.examples)
            assert _epoch_and_block(other, k) == _epoch_and_block(uninterrupted, k)


def test_lengths_are_alike_to_within_an_eighth() -> None:
    lengths = np.arange(1, 5_000)
    rough = _roughly(lengths)
    assert (rough <= lengths).all() and (lengths < rough * 9 / 8).all()
    assert np.unique(rough)[12:22].tolist() == [13, 14, 15, 16, 18, 20, 22, 24, 26, 28]


def test_updates_hold_the_tokens_asked_for() -> None:
    lengths = _lengths([20_000], [1.0])
    asked = PlanSettings(tokens_per_update=2000, tokens_per_micro_batch=500, block_examples=6000)
    plan = Plan(lengths, asked, 1)
    for update in _epochs(plan, 1)[0]:
        tokens = sum(map(lengths.target_tokens, update))
        assert 0.9 * 2000 < tokens < 1.05 * 2000
        for batch in update:
            targets = lengths.target_lengths[batch.examples] + 1
            sources = lengths.source_lengths[batch.examples] + 1
            assert max(targets.sum(), sources.sum()) <= 1.25 * 500 + 45


def test_micro_batches_hold_near_equal_lengths_and_updates_mix_them() -> None:
    lengths = _lengths([20_000], [1.0])
    plan = Plan(lengths, PlanSettings(tokens_per_update=8000, tokens_per_micro_batch=1000), 1)
    real = grid = 0
    for update in _epochs(plan, 1)[0]:
        for batch in update:
            targets = lengths.target_lengths[batch.examples] + 1
            real += int(targets.sum())
            grid += len(targets) * int(targets.max())
        means = [lengths.target_lengths[batch.examples].mean() for batch in update]
        assert min(means) < 16 and max(means) > 32
    assert real / grid > 0.93


def test_sources_much_longer_than_targets_are_bounded() -> None:
    lengths = Lengths(
        np.full(1000, 99, np.int32), np.full(1000, 9, np.int32), (CorpusRange(0, 1000),)
    )
    plan = Plan(lengths, PlanSettings(tokens_per_update=1000, tokens_per_micro_batch=500), 1)
    update = plan.update(0)
    assert sum(map(lengths.target_tokens, update)) == 1000
    assert all(100 * len(batch.examples) <= 1.25 * 500 for batch in update)


def test_weights_say_how_often() -> None:
    lengths = _lengths([100, 100, 100], [1.0, 3.0, 0.25])
    plan = Plan(lengths, PlanSettings(tokens_per_update=300, tokens_per_micro_batch=100), 5)
    seen = [_examples(updates) for updates in _epochs(plan, 4)]
    for epoch in seen:
        assert [epoch[e] for e in range(100)] == [1] * 100
        assert [epoch[e] for e in range(100, 200)] == [3] * 100
        assert sum(epoch[e] for e in range(200, 300)) == 25
    assert [sum(seen, Counter())[e] for e in range(200, 300)] == [1] * 100


def test_epochs_and_seeds_differ() -> None:
    lengths = _lengths([500], [1.0])
    asked = PlanSettings(tokens_per_update=500, tokens_per_micro_batch=500)
    first = Plan(lengths, asked, 1)
    orders = [
        [batch.examples.tolist() for update in updates for batch in update]
        for plan in (first, Plan(lengths, asked, 2))
        for updates in _epochs(plan, 2)
    ]
    assert all(orders[a] != orders[b] for a in range(4) for b in range(a))


def test_blocks_mix_distant_examples() -> None:
    """A corpus sorted by subject must not be trained on subject by subject."""
    lengths = _lengths([50_000], [1.0])
    plan = Plan(lengths, PlanSettings(block_examples=5000), 3)
    blocks: dict[tuple[int, int], list[int]] = {}
    update = 0
    while (place := _epoch_and_block(plan, update))[0] < 2:
        held = blocks.setdefault(place, [])
        held.extend(int(e) for batch in plan.update(update) for e in batch.examples)
        update += 1
    assert len(blocks) == 20
    for held in blocks.values():
        parts = Counter(example // 5000 for example in held)
        assert len(parts) == 10 and min(parts.values()) > 300
        assert 4500 < len(held) < 5500
    assert len(set(blocks[0, 0]) & set(blocks[1, 0])) < 1000


def test_only_too_long_pairs_are_an_error() -> None:
    lengths = _lengths([10], [1.0])
    with pytest.raises(DataError, match=r"of 10 examples, 10 are longer.*1 source .*max_source"):
        Plan(
            Lengths(lengths.source_lengths + 5, lengths.target_lengths, lengths.corpora),
            PlanSettings(max_source=1),
            0,
        )


@settings(max_examples=30)
@given(plans, st.integers(1, 5), st.integers(0, 3))
def test_processes_share_every_update_about_equally(
    plan_settings: PlanSettings, ranks: int, seed: int
) -> None:
    lengths = _lengths([150, 37], [1.0, 2.0], seed)
    plan = Plan(lengths, plan_settings, seed)
    for update in range(3):
        whole = plan.update(update)
        shares = [plan.update(update, rank, ranks) for rank in range(ranks)]
        assert _examples(shares) == _examples([whole])
        most = max(len(share) for share in shares)
        assert most <= -(-len(whole) // ranks)  # no more steps for being several
        # An example is the least that can be dealt out, and micro-batches are about equal.
        sizes = [[*map(lengths.target_tokens, share)] for share in shares]
        largest = max(map(lengths.target_tokens, whole))
        assert all(size <= 1.3 * largest + 2 * 41 for share in sizes for size in share)
        if len(whole) == 1:
            fair = largest / ranks
            assert all(sum(size) <= 1.15 * fair + 2 * 41 for size in sizes)


@dataclass
class OneSide:
    """Examples that have one side."""

    lengths: dict[str, npt.NDArray[np.int32]]
    corpora: tuple[CorpusRange, ...]


@pytest.mark.parametrize(("side", "limit"), [("source", "max_source"), ("target", "context")])
def test_examples_of_one_side_are_planned_by_it(side: str, limit: str) -> None:
    random = np.random.default_rng(3)
    sizes = random.integers(0, 60, 2000).astype(np.int32)
    store = OneSide({side: sizes}, (CorpusRange(0, 2000),))
    asked = PlanSettings.model_validate(
        {"tokens_per_update": 900, "tokens_per_micro_batch": 300, limit: 50}
    )
    plan = Plan(store, asked, 1)
    updates = _epochs(plan, 1)[0]
    assert _examples(updates) == Counter(np.flatnonzero(sizes + 1 <= 50).tolist())
    assert plan.left_out.examples == int((sizes + 1 > 50).sum())
    assert plan.left_out.summary().endswith(f"are longer than 50 {side} tokens")
    for update in updates:
        tokens = sum(int(sizes[batch.examples].sum()) + len(batch.examples) for batch in update)
        assert 0.85 * 900 < tokens < 1.1 * 900
