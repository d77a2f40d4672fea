"""The int8 kernels for ARM, compiled for it and run in an emulator: nobody has such a machine here.

``emulated.cpp`` calls them as a file of cases says. What they compute is compared with the kernels
of this machine on the same weights, whose integers are the same, and with plain torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from emulator import COMPILERS, MARKS, build, emulate

from dragoman.models.settings import TransformerSettings
from dragoman.models.transformer.int8_weights import Int8Model, PositionTable, in_order, sizes
from dragoman.models.transformer.model import Transformer
from dragoman.native import library
from dragoman.native.decoder import NativeState
from dragoman.nn.layout import Sequences

Array = npt.NDArray[Any]

HERE = Path(__file__).parent
OF_WHOLE_BYTES = ("avx512vnni", "avxvnni")
"""Instruction sets of this machine that multiply all weights as bytes, in the order of sums that
NEON has: AVX2 gives up some of them, AVX512-BF16 rounds otherwise."""


pytestmark = MARKS


@pytest.fixture(scope="module", params=[*COMPILERS] or ["none"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(request.param, HERE / "emulated.cpp", tmp_path_factory.mktemp("emulated"))


def test_a_processor_without_dot_products_is_known(program: Path) -> None:
    assert emulate(program) == "neon"
    assert emulate(program, processor="cortex-a53") == ""


# ---- cases


@dataclass(frozen=True)
class Sources:
    tokens: list[list[int]]
    hidden: bool = False
    """Whether some positions may not be attended to."""


@dataclass(frozen=True)
class Step:
    tokens: list[list[int]]
    k: int = 0
    """0: all logits."""


@dataclass(frozen=True)
class Select:
    rows: list[int]


@dataclass(frozen=True)
class Shortlist:
    always: list[int]
    offsets: list[int]
    candidates: list[int]


Act = Sources | Step | Select | Shortlist


def numbers(*values: int) -> bytes:
    return np.array(values, np.int64).tobytes()


class Case:
    """A model, and what is done with it, here and there."""

    def __init__(self, changes: dict[str, Any], vocabulary: int, acts: Sequence[Act]) -> None:
        defaults = {"model_dim": 48, "ffn_dim": 70, "encoder_layers": 1, "decoder_layers": 2,
                    "attention": {"num_heads": 4}}  # fmt: skip
        self.settings = TransformerSettings.model_validate(defaults | changes)
        self.target = vocabulary if self.settings.tie == "all" else vocabulary + 13
        self.source = vocabulary
        torch.manual_seed(3)
        self.plain = Transformer(self.settings, vocabulary, self.target).eval()
        with torch.no_grad():
            for name, parameter in self.plain.named_parameters():
                if name.endswith("bias"):
                    parameter.normal_(0.0, 0.2)
                elif "norm" in name:
                    parameter.uniform_(0.7, 1.3)
        self.named = {name: w.detach().numpy() for name, w in self.plain.named_parameters()}
        self.acts = acts

    def positions(self, side: str, width: int) -> Array:
        learned = self.named.get(f"{side}_positions.table")
        table = PositionTable(self.settings.positions, learned, self.settings.model_dim, width)
        return table.reach(40)[0]

    def visible(self, act: Sources) -> Array | None:
        total = sum(map(len, act.tokens))
        return (np.arange(total) % 3 != 1).astype(np.uint8) if act.hidden else None

    def here(self) -> list[Array]:
        """What the kernels of this machine make of it."""
        packed = Int8Model.of(self.settings, self.source, self.target, self.named)
        model = packed.native
        found = [part.copy() for part in model.parts]
        state = NativeState(model)
        for act in self.acts:
            if isinstance(act, Sources):
                tokens = np.concatenate([np.array(one, np.int64) for one in act.tokens])
                lengths = np.array(list(map(len, act.tokens)), np.int32)
                rows = np.empty((len(tokens), self.settings.model_dim), np.float32)
                table, visible = self.positions("source", model.width), self.visible(act)
                assert model.encode(tokens, lengths, visible, table.ctypes.data, rows)
                state.admit(rows, lengths, visible, tokens)
                found.append(rows)
            elif isinstance(act, Step):
                given = np.array(act.tokens, np.int64)
                table = self.positions("target", model.width)
                width = act.k or self.target
                values = np.empty((len(given), width), np.float32)
                where = table.ctypes.data, len(table)
                found.append(values)
                if act.k:
                    found.append(np.empty((len(given), act.k), np.int64))
                    assert state.best(given, *where, values, found[-1]) == 0
                else:
                    assert state.step(given, *where, values) == 0
            elif isinstance(act, Select):
                assert state.select(np.array(act.rows, np.int64))
            else:
                model.use_shortlist(*(np.array(one, np.int32) for one in vars(act).values()))
        return found

    def script(self) -> Iterator[bytes]:
        """The same for ``emulated.cpp``."""
        shape, factors = sizes(self.settings, self.source, self.target)
        weights = in_order(self.settings, self.named)
        width = Int8Model(self.settings, self.source, self.target).native.width
        yield numbers(1) + bytes(shape) + bytes(factors) + numbers(len(weights))
        for one in weights:
            yield numbers(-1) if one is None else numbers(one.size) + one.tobytes()
        yield numbers(2)
        for act in self.acts:
            if isinstance(act, Sources):
                tokens = np.concatenate([np.array(one, np.int64) for one in act.tokens])
                table, visible = self.positions("source", width), self.visible(act)
                yield numbers(4, len(act.tokens), len(tokens), visible is not None, table.size)
                yield np.array(list(map(len, act.tokens)), np.int32).tobytes() + tokens.tobytes()
                yield (b"" if visible is None else visible.tobytes()) + table.tobytes()
            elif isinstance(act, Step):
                given, table = np.array(act.tokens, np.int64), self.positions("target", width)
                yield numbers(5, *given.shape, len(table), table.size, act.k)
                yield given.tobytes() + table.tobytes()
            elif isinstance(act, Select):
                yield numbers(6, len(act.rows), *act.rows)
            else:
                yield numbers(3, len(act.always), len(act.candidates))
                yield from (np.array(one, np.int32).tobytes() for one in vars(act).values())

    def there(self, program: Path, folder: Path, like: Sequence[Array]) -> list[Array]:
        (folder / "what").write_bytes(b"".join(self.script()))
        emulate(program, str(folder / "what"), str(folder / "found"))
        whole, found, at = (folder / "found").read_bytes(), [], 0
        for one in like:
            part = np.frombuffer(whole, one.dtype, one.size, at).reshape(one.shape)
            found.append(part)
            at += part.nbytes
        assert at == len(whole)
        return found


STEPS: list[Act] = [
    Sources([[3, 9, 4, 17, 30, 2], [5, 2], [7, 8, 9, 10, 11, 12, 13, 14, 2]]),
    Step([[1], [1], [1]], k=4),
    Select([0, 0, 1, 2, 2, 2, 1]),
    Step([[5, 8], [6, 9], [4, 4], [40, 3], [7, 7], [11, 12], [13, 14]]),
    Sources([[20, 21, 22, 2]]),
    Select([7, 6, 2, 0]),
    Step([[1], [9], [10], [11]], k=17),
    Step([[1], [9], [10], [11]]),
]
CASES: dict[str, Callable[[], Case]] = {
    "as usual": lambda: Case({}, 50, STEPS),
    "pre-norm, three matrices": lambda: Case({"norm": "pre", "tie": "none"}, 50, STEPS),
    "widths of no whole vector": lambda: Case(
        {"model_dim": 33, "ffn_dim": 65,
         "attention": {"num_heads": 3, "key_width": 5, "value_width": 7}}, 129, STEPS
    ),
    "eight heads of 64": lambda: Case(
        {"model_dim": 512, "ffn_dim": 132, "decoder_layers": 1, "attention": {"num_heads": 8}},
        70, STEPS,
    ),
    "one head, learned positions": lambda: Case(
        {"attention": {"num_heads": 1}, "positions": {"kind": "learned", "maximum": 40}}, 50, STEPS
    ),
    "hidden words": lambda: Case(
        {"attend_unknown": False}, 50,
        [Sources([[3, 0, 4, 2], [5, 2], [6, 7, 2]], hidden=True), *STEPS[1:]],
    ),
    "Marian's": lambda: Case(
        {"activation": "swish", "output_bias": True, "zero_start": True, "norm_epsilon": 1e-6,
         "positions": {"kind": "marian"}}, 50, STEPS,
    ),
    "gelu": lambda: Case({"activation": "gelu", "scale_embeddings": False}, 50, STEPS),
    "many rows": lambda: Case(
        {}, 50, [Sources([[3 + i % 40, 5, 2] for i in range(130)]), Step([[1]] * 130, k=3),
                 Step([[i % 50] for i in range(130)])],
    ),
    "a shortlist": lambda: Case(
        {}, 50, [Shortlist([2, 3, 9], [0] * 10 + [2] * 41, [30, 44]), *STEPS]
    ),
}  # fmt: skip


def distance(found: Array, expected: Array) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.fixture
def whole_bytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """This machine's kernels at a level of ``OF_WHOLE_BYTES``."""
    for level in OF_WHOLE_BYTES:
        monkeypatch.setenv("DRAGOMAN_NATIVE", level)
        library.reset()
        if library.available():
            yield level
            break
    else:
        monkeypatch.undo()
        library.reset()
        pytest.skip(f"this machine has none of {', '.join(OF_WHOLE_BYTES)}")
    monkeypatch.undo()
    library.reset()


@pytest.mark.parametrize("name", CASES)
def test_neon_computes_what_this_machine_does(
    name: str, program: Path, whole_bytes: str, tmp_path: Path
) -> None:
    case = CASES[name]()
    expected = case.here()
    found = case.there(program, tmp_path, expected)
    parts = [one for one in expected if one.dtype == np.uint8]
    weights_agree(case, found[: len(parts)], parts)
    for mine, theirs in zip(found[len(parts) :], expected[len(parts) :], strict=True):
        if theirs.dtype == np.int64:
            assert (mine == theirs).mean() > 0.98
        else:
            assert np.isfinite(theirs).any() and (np.isfinite(mine) == np.isfinite(theirs)).all()
            finite = np.isfinite(theirs)
            assert distance(mine[finite], theirs[finite]) < 2e-3


def weights_agree(case: Case, found: Sequence[Array], expected: Sequence[Array]) -> None:
    """All but what an accumulator begins with, which has 128 times the column's sum more."""
    assert [len(one) for one in found] == [len(one) for one in expected]
    others = 0
    for i, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        if np.array_equal(mine, theirs):
            continue
        others += 1
        columns, starts = len(mine) // 4, [one.view(np.int32) for one in (mine, theirs)]
        weights = found[i - 3].view(np.int8).reshape(columns // 64, -1, 64, 4)
        sums = weights.sum(axis=(1, 3), dtype=np.int64).reshape(-1)
        assert np.array_equal(starts[0], starts[1] + 128 * sums)
    layers = 4 * case.settings.encoder_layers + 6 * case.settings.decoder_layers
    assert others == layers + 2  # keys and values of the sources, and the output layer


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_neon_computes_what_the_model_says(norm: str, program: Path, tmp_path: Path) -> None:
    """Against plain torch, so that what both kernels had wrong would be seen."""
    sources = [[3, 9, 4, 17, 30, 2], [5, 2]]
    tokens = [[1, 5, 9, 8], [1, 40, 3, 3]]
    case = Case({"norm": norm}, 50, [Sources(sources), Step(tokens)])
    *_, rows, logits = case.there(program, tmp_path, case.here())
    with torch.no_grad():
        memory = case.plain.encode(Sequences.of([torch.tensor(one) for one in sources]))
        expected = case.plain.step(torch.tensor(tokens), case.plain.start(memory))
    assert distance(rows, memory.rows.numpy()) < 0.03
    assert distance(logits, expected.numpy()) < 0.03
