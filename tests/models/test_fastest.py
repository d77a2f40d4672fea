"""The int8 path equals the plain one within what int8 can hold, and itself exactly however cut."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from native_levels import kernels_of
from random_transformer import distance, random_sources, random_transformer
from searching import search
from torch import Tensor

from dragoman.base.errors import SearchError
from dragoman.models.catalogue.fastest import fastest, summary
from dragoman.models.interface import Memory
from dragoman.models.prepared import PreparedNetwork
from dragoman.models.searched import Floats32
from dragoman.models.shortlist import Shortlist
from dragoman.models.transformer.fast_paths import UNITS
from dragoman.models.transformer.int8 import Int8State, Int8Transformer, why_not
from dragoman.native import decoder, library, loader
from dragoman.native.decoder import NativeModel
from dragoman.nn.layout import Sequences
from dragoman.nn.settings import PositionSettings
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings

needs_native = pytest.mark.skipif(
    not library.available(), reason=f"no native kernels: {library.status().reason}"
)

WITHIN = 0.03
"""Distance of logits from the plain ones, as a share of their length: int8 rounds each activation
to one part in 254 of the largest of its row, and a few layers add that up."""

BOS = 1


def follow(model: Any, memory: Memory, tokens: Tensor, cut: int = 1) -> Tensor:
    """Logits after each of ``tokens`` (N, T), fed ``cut`` at a time: (N, T / cut, V)."""
    state = model.start(memory)
    parts = [model.step(part, state) for part in tokens.split(cut, dim=1)]
    return torch.stack(parts, dim=1)


SHAPES: dict[str, dict[str, Any]] = {
    "even": {"model_dim": 64, "ffn_dim": 128, "attention": {"num_heads": 8}},
    "pre-norm": {"norm": "pre"},
    "odd width": {"model_dim": 33, "ffn_dim": 67, "attention": {"num_heads": 3}},
    "six heads": {"model_dim": 66, "attention": {"num_heads": 6}},
    "twelve heads": {"model_dim": 96, "attention": {"num_heads": 12}, "encoder_layers": 1},
    "wide heads": {"model_dim": 64, "attention": {"num_heads": 8, "key_width": 64}},
    "one head, free widths": {"attention": {"num_heads": 1, "key_width": 5, "value_width": 19}},
    "unscaled, sliced": {"attention": {"num_heads": 4, "scaled": False, "whole_input": False}},
    "untied": {"tie": "none", "decoder_layers": 3},
    "target tied": {"tie": "target", "positions": {"kind": "learned"}},
    "no positions": {"positions": {"kind": "none"}, "encoder_layers": 1},
    "unknown hidden": {"attend_unknown": False, "norm": "pre"},
}


@needs_native
@pytest.mark.parametrize("name", SHAPES)
def test_equals_plain(name: str) -> None:
    model = random_transformer(**SHAPES[name])
    fast = Int8Transformer(model)
    source = Sequences.of(random_sources((1, 7, 40, 2, 17, 33)))
    plain_memory, fast_memory = model.encode(source), fast.encode(source)
    assert distance(fast_memory.rows, plain_memory.rows) < WITHIN
    tokens = torch.stack(random_sources([9] * 6, vocabulary=50, seed=1))
    expected = follow(model, plain_memory, tokens)
    assert distance(follow(fast, fast_memory, tokens), expected) < WITHIN


@needs_native
@pytest.mark.parametrize("level", loader.LEVELS)
def test_every_instruction_set_agrees(level: str) -> None:
    model = random_transformer(model_dim=64, attention={"num_heads": 8})
    source = Sequences.of(random_sources((5, 21, 1)))
    tokens = torch.stack(random_sources([6] * 3, seed=1))
    best = Int8Transformer(model)
    expected = follow(best, best.encode(source), tokens)
    levels = (level, library.status().level)
    with kernels_of(level):
        forced = Int8Transformer(model)
        found = follow(forced, forced.encode(source), tokens)
        # Integer products are exact everywhere; only the order of fp32 sums differs, which now
        # and then moves an activation to the next of its 255 steps. On AVX2 alone weights have
        # fewer steps, so that their products cannot overflow.
        assert distance(found, expected) < (WITHIN if "avx2" in levels else WITHIN / 2)
        state = forced.start(forced.encode(source))
        scores, ids = forced.best(tokens[:, :1], state, 20)
        check = torch.log_softmax(
            forced.step(tokens[:, :1], forced.start(forced.encode(source))), -1
        )
        torch.testing.assert_close(scores, check.gather(1, ids), atol=1e-4, rtol=0)


@needs_native
@pytest.mark.parametrize(("tiles", "registers"), [("amx", "avx512"), (loader.TWIN, "avx2")])
@pytest.mark.parametrize("name", ["even", "odd width", "six heads"])
@pytest.mark.parametrize("count", [1, 4, 16, 17, 33, 130])
def test_tiles_and_registers_compute_the_same_bits(
    tiles: str, registers: str, name: str, count: int
) -> None:
    """Sums of bytes are exact, and one code makes numbers of them: for every number of rows."""
    model = random_transformer(**SHAPES[name])
    source = Sequences.of(random_sources([1 + i % 3 for i in range(count)]))
    tokens = torch.stack(random_sources([2] * count, seed=1))
    found = []
    for level in (tiles, registers):
        with kernels_of(level):
            forced = Int8Transformer(model)
            memory = forced.encode(source)
            best = forced.best(tokens[:, :1], forced.start(memory), 4)
            found.append([memory.rows, follow(forced, memory, tokens), *best])
    for by_tiles, by_registers in zip(*found, strict=True):
        assert torch.equal(by_tiles, by_registers)


@needs_native
@pytest.mark.parametrize("level", loader.LEVELS)
def test_weights_of_one_sign_do_not_overflow(level: str) -> None:
    """Where products are added in 16 bits, weights that all pull one way are the worst of cases."""
    model = random_transformer(model_dim=64, ffn_dim=128)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "embedding" not in name:
                parameter.abs_()
                parameter[::2].neg_()
    source = Sequences.of(random_sources((5, 21, 1)))
    tokens = torch.stack(random_sources([6] * 3, seed=1))
    expected = follow(model, model.encode(source), tokens)
    with kernels_of(level):
        forced = Int8Transformer(model)
        assert distance(follow(forced, forced.encode(source), tokens), expected) < 2 * WITHIN


@needs_native
def test_however_the_prefix_is_cut() -> None:
    fast = Int8Transformer(random_transformer())
    memory = fast.encode(Sequences.of(random_sources((3, 12, 7))))
    tokens = torch.stack(random_sources([12] * 3, seed=1))
    whole = follow(fast, memory, tokens)
    for cut in (2, 3, 12):
        assert torch.equal(follow(fast, memory, tokens, cut), whole[:, cut - 1 :: cut])


@needs_native
@pytest.mark.parametrize("seed", range(6))
def test_neighbours_change_nothing(seed: int) -> None:
    """Hypotheses that are repeated, reordered, dropped and joined get what they get alone."""
    fast = Int8Transformer(random_transformer(attend_unknown=seed % 2 == 0))
    generator = torch.Generator().manual_seed(seed)
    sources = random_sources([int(n) for n in torch.randint(1, 40, (30,), generator=generator)])
    waiting = list(range(len(sources)))
    under_way: list[tuple[int, list[int]]] = []  # of each row: its source, its tokens
    state = fast.start(fast.encode(Sequences.of([sources[i] for i in waiting[:3]])))
    under_way = [(i, []) for i in waiting[:3]]
    del waiting[:3]
    for _ in range(24):
        if under_way:
            tokens = torch.randint(0, 50, (len(under_way), 1), generator=generator)
            logits = fast.step(tokens, state)
            for row, (_, past) in enumerate(under_way):
                past.append(int(tokens[row, 0]))
            row = int(torch.randint(0, len(under_way), (1,), generator=generator))
            source, past = under_way[row]
            alone = fast.start(fast.encode(Sequences.of([sources[source]])))
            assert torch.equal(fast.step(torch.tensor([past]), alone)[0], logits[row])
            assert state.lengths.tolist() == [len(past) for _, past in under_way]
        # Rows of one source stay together, as the contract has it.
        kept = torch.randint(0, max(1, len(under_way)), (min(9, 2 * len(under_way)),),
                             generator=generator).sort().values  # fmt: skip
        kept = kept[:: 1 + int(torch.randint(0, 3, (1,), generator=generator))]
        state.select(kept)
        under_way = [(under_way[i][0], list(under_way[i][1])) for i in kept.tolist()]
        if waiting:
            count = min(len(waiting), int(torch.randint(0, 3, (1,), generator=generator)))
            if count:
                state.admit(fast.encode(Sequences.of([sources[i] for i in waiting[:count]])))
                under_way += [(i, []) for i in waiting[:count]]
                del waiting[:count]
        assert len(state.lengths) == len(under_way)


@pytest.mark.system
@needs_native
def test_a_long_sentence_beside_short_ones() -> None:
    model = random_transformer(encoder_layers=1, decoder_layers=1)
    fast = Int8Transformer(model)
    source = Sequences.of(random_sources((3, 2000, 1)))
    memory = fast.encode(source)
    assert distance(memory.rows, model.encode(source).rows) < WITHIN
    alone = fast.encode(Sequences.of([source.values[:3]]))
    assert torch.equal(memory.rows[:3], alone.rows)
    tokens = torch.stack(random_sources([70] * 3, seed=1))  # more than one page of slots
    expected = follow(model, model.encode(source), tokens)
    assert distance(follow(fast, memory, tokens), expected) < WITHIN


@needs_native
@pytest.mark.parametrize("k", [1, 4, 16, 17, 64, 200])
@pytest.mark.parametrize("vocabulary", [50, 300])
def test_best_is_step_and_the_k_best(k: int, vocabulary: int) -> None:
    model = random_transformer(vocabulary=vocabulary)
    with torch.no_grad():
        model.source_embedding.weight.mul_(4.0)  # sharper than fresh logits are
    fast = Int8Transformer(model)
    memory = fast.encode(Sequences.of(random_sources((4, 9, 2, 30, 8, 1, 6, 5), vocabulary)))
    tokens = torch.full((8, 1), BOS)
    expected = torch.log_softmax(fast.step(tokens, fast.start(memory)), -1)
    scores, ids = fast.best(tokens, fast.start(memory), k)
    assert scores.shape == ids.shape == (8, min(k, vocabulary))
    torch.testing.assert_close(scores, expected.topk(scores.shape[1]).values, atol=2e-4, rtol=0)
    torch.testing.assert_close(scores, expected.gather(1, ids), atol=2e-4, rtol=0)
    assert all(len(set(row)) == len(row) for row in ids.tolist())


@needs_native
def test_a_memory_whose_words_are_hidden() -> None:
    model = random_transformer()
    fast = Int8Transformer(model)
    source = Sequences.of(random_sources((4, 9, 3)))
    key_mask = torch.ones(16, dtype=torch.bool)
    key_mask[5] = False
    key_mask[13:] = False  # the last sentence whole
    tokens = torch.stack(random_sources([4] * 3, seed=1))
    plain, quick = model.encode(source), fast.encode(source)
    expected = follow(model, Memory(plain.rows, plain.layout, key_mask), tokens)
    found = follow(fast, Memory(quick.rows, quick.layout, key_mask), tokens)
    assert distance(found, expected) < WITHIN
    assert distance(found, follow(fast, quick, tokens)) > WITHIN


@needs_native
def test_one_model_in_several_threads() -> None:
    fast = Int8Transformer(random_transformer())
    tokens = torch.stack(random_sources([20] * 3, seed=1))

    def run(seed: int) -> Tensor:
        source = Sequences.of(random_sources((3, 11, 6), seed=seed))
        return follow(fast, fast.encode(source), tokens)

    expected = [run(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as threads:
        for found, wanted in zip(threads.map(run, range(8)), expected, strict=True):
            assert torch.equal(found, wanted)


@needs_native
def test_an_empty_state_is_filled_again() -> None:
    fast = Int8Transformer(random_transformer())
    memory = fast.encode(Sequences.of(random_sources((4, 9))))
    tokens = torch.full((2, 1), BOS)
    state = fast.start(memory)
    expected = fast.step(tokens, state)
    state.select(torch.zeros(0, dtype=torch.int64))
    assert (
        not len(state.lengths)
        and fast.step(torch.zeros(0, 1, dtype=torch.int64), state).shape[0] == 0
    )
    state.admit(memory)
    assert torch.equal(fast.step(tokens, state), expected)


@needs_native
def test_what_does_not_exist_is_refused() -> None:
    fast = Int8Transformer(random_transformer(positions={"kind": "learned", "maximum": 10}))
    state = fast.start(fast.encode(Sequences.of(random_sources((4, 9)))))
    with pytest.raises(IndexError, match="select"):
        state.select(torch.tensor([0, 2]))
    with pytest.raises(IndexError, match="target vocabulary"):
        fast.step(torch.tensor([[3], [50]]), state)
    with pytest.raises(IndexError, match="source vocabulary"):
        fast.encode(Sequences.of([torch.tensor([3, -1])]))
    assert state.lengths.tolist() == [0, 0]
    fast.step(torch.full((2, 10), BOS), state)
    with pytest.raises(SearchError, match="learned table of 10"):
        fast.step(torch.full((2, 1), BOS), state)
    with pytest.raises(SearchError, match="learned table of 10"):
        fast.encode(Sequences.of(random_sources((11,))))


@pytest.fixture
def without_native() -> Iterator[None]:
    with kernels_of("off"):
        yield


@needs_native
def test_kernels_that_differ_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_transformer()
    assert why_not(model.settings) is None
    monkeypatch.setattr("dragoman.models.transformer.int8._agrees", lambda _: False)
    path = fastest(model)
    assert isinstance(path.model, PreparedNetwork) and "do not agree" in path.reason


@pytest.mark.usefixtures("without_native")
def test_without_kernels_plain_torch_does_the_work() -> None:
    model = random_transformer()
    path = fastest(model, "int8")
    assert isinstance(path.model, PreparedNetwork) and path.precision in ("bf16", "fp32")
    assert "no int8" in path.reason and "\n" not in path.reason


def test_the_reference_when_asked_for() -> None:
    model = random_transformer()
    source = Sequences.of(random_sources((4, 9)))
    expected = model.encode(source).rows
    path = fastest(model, "fp32")
    assert path.model is model and path.precision == "fp32"
    assert torch.equal(model.encode(source).rows, expected)


@needs_native
def test_fastest_says_what_it_chose() -> None:
    path = fastest(random_transformer())
    assert path.precision == "int8" and loader.decoding_levels()[0] in path.reason
    concatenated = random_transformer(
        model_dim=32, tie="none", positions={"combine": "concatenate", "width": 8}
    )
    path = fastest(concatenated)
    assert isinstance(path.model, PreparedNetwork) and "positions" in path.reason
    for changes in ({"norm": "none"}, {"residual": False}):
        path = fastest(random_transformer(**changes))
        assert isinstance(path.model, PreparedNetwork) and "residual connections" in path.reason


def test_every_instruction_set_has_its_words() -> None:
    assert set(UNITS) == {*loader.LEVELS, loader.TWIN}
    assert ("int8 on" in summary()) is library.available()


@pytest.mark.usefixtures("without_native")
def test_in_words_without_kernels() -> None:
    assert "plain torch: no int8, because" in summary()


def shortlist_of(vocabulary: int, seed: int = 0) -> Shortlist:
    """Some tokens for everyone, up to three for each source token."""
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 4, vocabulary)
    candidates = generator.integers(0, vocabulary, counts.sum())
    return Shortlist(
        np.array([0, 2, 7], np.int32),
        np.concatenate([[0], counts.cumsum()]).astype(np.int32),
        candidates.astype(np.int32),
    )


@needs_native
@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("biased", [False, True])
def test_a_shortlist_is_a_softmax_over_what_it_allows(k: int, biased: bool) -> None:
    """Each row sees the tokens of its own source alone, whatever its neighbours brought."""
    model = random_transformer(vocabulary=300, output_bias=biased)
    shortlist = shortlist_of(300)
    if model.output_bias is not None:
        model.output_bias.data.normal_(0.0, 2.0)
    full, short = Int8Transformer(model), Int8Transformer(model, shortlist)
    sources = random_sources((4, 9, 2, 30, 8), 300)
    tokens = torch.full((5, 1), BOS)
    logits = full.step(tokens, full.start(full.encode(Sequences.of(sources))))
    state = short.start(short.encode(Sequences.of(sources[:2])))
    state.admit(short.encode(Sequences.of(sources[2:])))
    scores, ids = short.best(tokens, state, k)
    for row, source in enumerate(sources):
        allowed = torch.from_numpy(shortlist.tokens_for(source.numpy())).long()
        expected = torch.log_softmax(logits[row, allowed], -1)
        count = min(k, len(allowed))
        torch.testing.assert_close(
            scores[row, :count], expected.topk(count).values, atol=2e-4, rtol=0
        )
        assert set(ids[row, :count].tolist()) <= set(allowed.tolist())
        assert (scores[row, count:] == -torch.inf).all()
    again = short.start(short.encode(Sequences.of(sources)))
    assert torch.equal(short.step(tokens, again), logits)  # here all tokens are


@needs_native
@pytest.mark.parametrize(
    "wrong",
    [
        {"activation": "relu"},
        {"activation": "gelu"},
        {"zero_start": False},
        {"norm_epsilon": 1e-5},
        {"scale_embeddings": False},
        {"positions": PositionSettings()},
    ],
)
def test_kernels_that_are_handed_a_wrong_setting_compute_something_else(
    wrong: dict[str, Any],
) -> None:
    """The contract compares the kernels with a model of the same settings; each of them counts."""
    model = random_transformer(
        activation="swish", zero_start=True, norm_epsilon=1.0, positions={"kind": "marian"}
    )
    for layer in (*model.encoder, *model.decoder):
        layer.feed_forward.inner.weight.data.mul_(3.0)
    source, tokens = Sequences.of(random_sources((4, 9))), torch.tensor([[BOS, 5], [BOS, 9]])
    expected = model.step(tokens, model.start(model.encode(source)))

    def distance() -> float:
        fast = Int8Transformer(model)
        found = fast.step(tokens, fast.start(fast.encode(source)))
        return float((found - expected).norm() / expected.norm())

    right = distance()
    model.settings = model.settings.model_copy(update=wrong)
    assert right < 0.05 < distance()


@needs_native
def test_constraints_on_a_shortlist() -> None:
    """The probabilities stay those of ``best`` without constraints, and the list holds; but what a
    constraint leaves as the only token is taken although it is not on the list."""
    model, shortlist = random_transformer(vocabulary=300), shortlist_of(300)
    short = Int8Transformer(model, shortlist)
    sources = random_sources((4, 9, 2), 300)
    memory, tokens = short.encode(Sequences.of(sources)), torch.full((3, 1), BOS)
    free = short.best(tokens, short.start(memory), 5)
    missing = next(t for t in range(300) if t not in shortlist.tokens_for(sources[1].numpy()))

    def only(log_probabilities: Floats32) -> Floats32:
        value = log_probabilities[1, missing].copy()
        log_probabilities[1] = -torch.inf
        log_probabilities[1, missing] = value
        log_probabilities[2, int(free[1][2, 0])] = -torch.inf
        return log_probabilities

    scores, ids = short.best(tokens, short.start(memory), 5, only)
    torch.testing.assert_close(scores[0], free[0][0], atol=2e-4, rtol=0)
    assert torch.equal(ids[0], free[1][0])
    assert int(ids[1, 0]) == missing and -torch.inf < float(scores[1, 0]) < 0
    torch.testing.assert_close(scores[2, :4], free[0][2, 1:], atol=2e-4, rtol=0)
    allowed = set(shortlist.tokens_for(sources[2].numpy()).tolist())
    assert set(ids[2, scores[2].isfinite()].tolist()) <= allowed
    many, _ = short.best(tokens, short.start(memory), 100)  # more than the kernel keeps
    torch.testing.assert_close(many[:, :5], free[0], atol=2e-4, rtol=0)
    assert int(many[2].isfinite().sum()) == len(allowed)


@needs_native
def test_a_search_that_is_done_leaves_its_memory_to_the_next() -> None:
    fast = Int8Transformer(random_transformer())
    memory = fast.encode(Sequences.of(random_sources((4, 9))))
    tokens = torch.full((2, 1), BOS)
    state = fast.start(memory)
    expected, handle = fast.step(tokens, state), state.searching.state.handle
    del state
    again = fast.start(memory)
    assert again.searching.state.handle == handle and torch.equal(
        fast.step(tokens, again), expected
    )
    many = [fast.start(memory) for _ in range(20)]
    assert len({state.searching.state.handle for state in (again, *many)}) == 21


@needs_native
def test_a_search_goes_before_its_model_where_both_are_garbage_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The native state points into the native model, and a collector knows no order."""
    gc.collect()
    gone: list[str] = []
    free, leave = decoder._free_model, NativeModel.leave_state
    monkeypatch.setattr(decoder, "_free_model", lambda *x: (gone.append("model"), free(*x)))
    monkeypatch.setattr(NativeModel, "leave_state", lambda *x: (gone.append("state"), leave(*x)))
    fast = Int8Transformer(random_transformer())
    state = fast.start(fast.encode(Sequences.of(random_sources((4,)))))
    circle: list[object] = [fast, state]
    circle.append(circle)
    del fast, state, circle
    gc.collect()
    assert gone == ["state", "model"]


@needs_native
@pytest.mark.parametrize("beam", [1, 4])
def test_steps_in_one_native_call_are_those_of_python(
    beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_transformer(positions={"kind": "learned", "maximum": 40})
    fast = Int8Transformer(model)
    settings = SearchSettings(beam=beam, max_length=30)
    asked = [Request(source, settings) for source in random_sources((4, 9, 2, 30, 8, 1))]
    together = list(search(fast, asked, bos=BOS, eos=2, capacity_rows=12))
    monkeypatch.setattr(Int8State, "native", lambda *_: None)
    assert together == list(search(fast, asked, bos=BOS, eos=2, capacity_rows=12))
    monkeypatch.undo()
    too_long = Request(asked[0].source, SearchSettings(beam=beam, max_length=60, min_length=60))
    with pytest.raises(SearchError, match="learned table of 40"):
        list(search(fast, [too_long], bos=BOS, eos=2))
    with torch.no_grad():
        model.source_embedding.weight[2] = 0.0  # an end symbol that does not win
    endless = Request(asked[0].source, SearchSettings(beam=beam, max_length=60))
    with pytest.raises(SearchError, match="learned table of 40"):
        list(search(Int8Transformer(model), [endless], bos=BOS, eos=2))


@needs_native
def test_a_shortlist_of_everything_changes_nothing() -> None:
    model = random_transformer()
    everything = Shortlist(
        np.arange(50, dtype=np.int32), np.zeros(51, np.int32), np.zeros(0, np.int32)
    )
    full, short = Int8Transformer(model), Int8Transformer(model, everything)
    sources = Sequences.of(random_sources((4, 9, 2)))
    tokens = torch.full((3, 1), BOS)
    expected = full.best(tokens, full.start(full.encode(sources)), 10)
    found = short.best(tokens, short.start(short.encode(sources)), 10)
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])
