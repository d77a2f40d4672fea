"""The training kernels for ARM, compiled for it and run in an emulator.

What Python asks of the kernels of AVX2, whose vectors are as long, is written down call by call,
with all memory that a call sees. ``emulated_calls.cpp`` makes the same calls of the kernels of NEON
on the same bytes, and must leave the same numbers. That AVX2's are right other tests say.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from emulator import COMPILERS, MARKS, build, emulate
from torch import Tensor

from dragoman.native import (
    abi,
    additive,
    attention,
    dropout,
    embedding,
    library,
    linear,
    loader,
    loss,
    lstm,
    norm,
)
from dragoman.native.dropout import Drop

pytestmark = MARKS

Array = npt.NDArray[Any]

HERE = Path(__file__).parent
MODULES = (additive, attention, dropout, embedding, linear, loss, lstm, norm)
KINDS = {torch.float32: np.float32, torch.bfloat16: np.uint16, torch.int32: np.int32,
         torch.int64: np.int64, torch.bool: np.uint8}  # fmt: skip
LIMITS = {torch.float32: 3e-6, torch.bfloat16: 1e-2}
"""How far apart numbers may be, relative to the largest of what a call has written."""


@pytest.fixture(scope="module", params=[*COMPILERS] or ["none"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(request.param, HERE / "emulated_calls.cpp", tmp_path_factory.mktemp("emulated"))


# ---- writing calls down


@dataclass
class Block:
    """Memory that a call sees: all of a tensor's, or a struct."""

    address: int
    before: bytes
    kind: torch.dtype | None
    """None: a struct, or an array of numbers for C."""
    after: bytes = b""


@dataclass
class Call:
    name: str
    blocks: list[Block] = field(default_factory=list)
    arguments: list[tuple[int, int, int]] = field(default_factory=list)
    """0 and a whole number; 1 and the bits of a float; 2, a block and a place in it."""
    addresses: list[tuple[int, int, int, int]] = field(default_factory=list)
    """In a block, at a place: of a block, a place."""
    result: int | None = None

    def script(self) -> Iterator[bytes]:
        """For ``emulated_calls.cpp``."""
        yield _numbers(len(self.name)) + self.name.encode() + _numbers(len(self.blocks))
        for block in self.blocks:
            yield _numbers(len(block.before)) + block.before
        for many in (self.addresses, self.arguments):
            yield _numbers(len(many), *(value for one in many for value in one))


def _numbers(*values: int) -> bytes:
    return struct.pack(f"={len(values)}q", *values)


class Recorder:
    """Stands between Python and the kernels of this machine."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._seen: list[Tensor] = []  # kept, so that nothing else comes to lie where they do
        self._find = loader.function
        self._address = norm.address

    def address(self, tensor: Tensor | None) -> int | None:
        if tensor is not None:
            self._seen.append(tensor.detach())
        return self._address(tensor)

    def function(self, name: str, level: str | None = None) -> Any:
        found = self._find(name, level)
        if found is None:
            return None

        def recorded(*given: Any) -> Any:
            call = Call(name)
            types, _ = abi.signature(name)
            for value, kind in zip(given, types, strict=True):
                call.arguments.append(self._argument(call, value, kind, given))
            for i, block in enumerate(call.blocks):
                if block.kind is None:
                    self._find_addresses(call, i)
            for block in call.blocks:  # with the later ones, which only structs point to
                block.before = ctypes.string_at(block.address, len(block.before))
            result = found(*given)
            call.result = result
            for block in call.blocks:
                block.after = ctypes.string_at(block.address, len(block.before))
            self.calls.append(call)
            return result

        return recorded

    def _argument(
        self, call: Call, value: Any, kind: Any, given: Sequence[Any]
    ) -> tuple[int, int, int]:
        if kind is abi.REAL:
            return 1, struct.unpack("=i", struct.pack("=f", value))[0], 0
        if kind is not abi.POINTER:
            return 0, value - (value >> 63 << 64), 0  # a seed is unsigned
        if value is None:
            return 0, 0, 0
        if isinstance(value, int):
            if (found := self._place(call, value)) is not None:
                return 2, *found
            size = given[5] * ctypes.sizeof(abi.Part)  # linear_backward_weight's parts
            return 2, self._struct(call, value, size), 0
        here = getattr(value, "_obj", value)  # byref, or an array
        return 2, self._struct(call, ctypes.addressof(here), ctypes.sizeof(here)), 0

    def _place(self, call: Call, address: int) -> tuple[int, int] | None:
        """A block of the call and a place in it, where a tensor is known to lie there."""
        for tensor in reversed(self._seen):
            storage = tensor.untyped_storage()
            start, size = storage.data_ptr(), storage.nbytes()
            if start <= address < start + max(size, 1):
                for i, block in enumerate(call.blocks):
                    if block.address == start:
                        return i, address - start
                call.blocks.append(Block(start, bytes(size), tensor.dtype))
                return len(call.blocks) - 1, address - start
        return None

    def _struct(self, call: Call, address: int, size: int) -> int:
        call.blocks.append(Block(address, ctypes.string_at(address, size), None))
        return len(call.blocks) - 1

    def _find_addresses(self, call: Call, i: int) -> None:
        words = struct.unpack(f"={len(call.blocks[i].before) // 8}Q", call.blocks[i].before)
        for at, word in enumerate(words):
            if word and (found := self._place(call, word)) is not None:
                call.addresses.append((i, 8 * at, *found))


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """With the kernels of AVX2 in use."""
    monkeypatch.setenv("DRAGOMAN_NATIVE", "avx2")
    library.reset()
    if not library.available():
        monkeypatch.undo()
        library.reset()
        pytest.skip("this machine has no AVX2, whose calls could be written down")
    made = Recorder()
    monkeypatch.setattr(loader, "function", made.function)
    for module in MODULES:
        monkeypatch.setattr(module, "address", made.address)
    yield made
    monkeypatch.undo()
    library.reset()


# ---- cases


def rows(count: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(count, width).to(dtype).requires_grad_()


def row_keys(count: int) -> Tensor:
    return torch.randint(-(2**31), 2**31, (count,), dtype=torch.int32)


def pull(out: Tensor) -> None:
    """Gradients of everything."""
    (out.float() * torch.randn(out.shape)).sum().backward()


def norms(dtype: torch.dtype) -> None:
    for count, width, rate in ((5, 36, 0.2), (70, 33, 0.0), (1, 7, 0.9), (3, 64, 0.5)):
        gain, bias = torch.rand(width) + 0.5, torch.randn(width)
        gain.requires_grad_(), bias.requires_grad_()
        x, sublayer = rows(count, width, dtype), rows(count, width, dtype)
        told: dict[str, Any] = {"drop": Drop(rate, 2**63 + 5, row_keys(count))}
        pull(norm.layer_norm(x, gain, bias, added=sublayer, **told))
    pull(norm.layer_norm(rows(9, 40, dtype), gain[:1].repeat(40), torch.zeros(40)))


def attentions(dtype: torch.dtype) -> None:
    for lengths, others, heads, width, wide, rate in (
        ([3, 5], None, 2, 4, 10, 0.2), ([1, 40, 17], None, 1, 16, 16, 0.0),
        ([2, 9], [30, 6], 3, 5, 8, 0.3),
    ):  # fmt: skip
        keys = lengths if others is None else others
        starts, key_starts = (
            torch.tensor(np.concatenate([[0], np.cumsum(n)]), dtype=torch.int32)
            for n in (lengths, keys)
        )
        pull(
            attention.attention(
                [rows(sum(lengths), heads * width, dtype), rows(sum(keys), heads * width, dtype),
                 rows(sum(keys), heads * wide, dtype)], starts, key_starts, heads=heads,
                causal=others is None, scale=0.4,
                drop=Drop(rate, 7, row_keys(sum(lengths))),
            )
        )  # fmt: skip


def drops(dtype: torch.dtype) -> None:
    for count, width in ((5, 36), (70, 33)):
        x = rows(count, width, dtype)
        for onto in (rows(count, width, dtype), None):
            pull(dropout.dropout(x, Drop(0.2, 3, row_keys(count)), onto=onto))


def embeddings(dtype: torch.dtype) -> None:
    for vocabulary, width, count, rate in ((4, 20, 3, 0.2), (70, 33, 90, 0.0)):
        matrix, places = torch.randn(vocabulary, width).requires_grad_(), torch.randn(9, width)
        ids, at = torch.randint(vocabulary, (count,)), torch.randint(9, (count,))
        told: dict[str, Any] = {"drop": Drop(rate, 3, row_keys(count))}
        pull(embedding.embed(ids, matrix, places, at, scale=3.0, dtype=dtype, **told))


def layers(_: torch.dtype) -> None:
    # Rows that fill no tile, sums that are cut, columns that fill no panel, weights of one x.
    for count, inputs, sizes in ((7, 24, [70]), (13, 401, [32, 5, 40]), (300, 33, [66])):
        weights = [torch.randn(n, inputs) / inputs**0.5 for n in sizes]
        biases = [torch.randn(n) for n in sizes]
        for one in (*weights, *biases):
            one.requires_grad_()
        packed = linear.PackedWeights(weights, "fp32")
        made = linear.linear(rows(count, inputs), weights, biases, packed)
        pull(made)


def feed_forwards(_: torch.dtype) -> None:
    for count, width, inner, rate in ((7, 24, 70, 0.2), (20, 33, 64, 0.0)):
        shapes = ((inner, width), (inner,), (width, inner), (width,))
        w, b, u, c = (torch.randn(shape).div(6).requires_grad_() for shape in shapes)
        packed = linear.PackedWeights([w], "fp32"), linear.PackedWeights([u], "fp32")
        told: dict[str, Any] = {"drop": Drop(rate, 11, row_keys(count))}
        pull(linear.feed_forward(rows(count, width), (w, b), (u, c), packed, **told))


def losses(_: torch.dtype) -> None:
    for count, width, vocabulary in ((3, 24, 70), (60, 16, 33)):
        weight = torch.randn(vocabulary, width).requires_grad_()
        packed, targets = linear.PackedWeights([weight], "fp32"), torch.randint(3, (count,))
        found, _nll = loss.cross_entropy(rows(count, width), weight, targets, packed, smoothing=0.1)
        found.backward()


def cells(dtype: torch.dtype) -> None:
    for count, width in ((5, 20), (33, 17)):
        gates, again, bias = (
            rows(count, 4 * width, dtype),
            rows(count, 4 * width, dtype),
            rows(1, 4 * width),
        )
        made = lstm.cell(gates, again, bias[0], rows(count, width))
        pull(torch.cat([one.float() for one in made], dim=1))


def additions(dtype: torch.dtype) -> None:
    for batch, queries, source, width in ((2, 4, 3, 20), (1, 7, 9, 33)):
        seen = torch.arange(source).expand(batch, -1) < torch.tensor([[source], [2]])[:batch]
        query, keys = rows(batch * queries, width, dtype), rows(batch * source, width, dtype)
        pull(
            additive.additive_scores(
                query.view(batch, queries, width), keys.view(batch, source, width),
                torch.randn(width).requires_grad_(), seen,
            )
        )  # fmt: skip


CASES: dict[str, tuple[Callable[[torch.dtype], None], torch.dtype]] = {
    "layer norm, fp32": (norms, torch.float32),
    "layer norm, bf16": (norms, torch.bfloat16),
    "dropout, fp32": (drops, torch.float32),
    "dropout, bf16": (drops, torch.bfloat16),
    "attention, fp32": (attentions, torch.float32),
    "attention, bf16": (attentions, torch.bfloat16),
    "embedding, fp32": (embeddings, torch.float32),
    "embedding, bf16": (embeddings, torch.bfloat16),
    "lstm, fp32": (cells, torch.float32),
    "lstm, bf16": (cells, torch.bfloat16),
    "additive attention, fp32": (additions, torch.float32),
    "additive attention, bf16": (additions, torch.bfloat16),
    "linear": (layers, torch.float32),
    "feed-forward": (feed_forwards, torch.float32),
    "cross-entropy": (losses, torch.float32),
}
KERNELS = {
    "layer norm": {"norm_sums", "norm_forward", "norm_backward"},
    "dropout": {"dropout"},
    "attention": {"attention_forward", "attention_backward"},
    "embedding": {"embedding_forward", "embedding_backward"},
    "lstm": {"lstm_forward", "lstm_backward"},
    "additive attention": {"additive_forward", "additive_backward"},
    "linear": {"linear_forward", "linear_backward_input", "linear_backward_weight"},
    "feed-forward": {"packed_words", "pack_weights", "linear_relu", "linear_backward_input"},
    "cross-entropy": {"cross_entropy_slopes", "cross_entropy"},
}


@pytest.mark.parametrize("case", CASES)
def test_neon_computes_what_avx2_does(
    case: str, program: Path, recorder: Recorder, tmp_path: Path
) -> None:
    torch.manual_seed(5)
    make, dtype = CASES[case]
    make(dtype)
    called = {call.name.removesuffix("_fp32").removesuffix("_bf16") for call in recorder.calls}
    assert called >= KERNELS[case.partition(",")[0]]

    (tmp_path / "what").write_bytes(b"".join(p for call in recorder.calls for p in call.script()))
    emulate(program, str(tmp_path / "what"), str(tmp_path / "found"))
    whole, at = (tmp_path / "found").read_bytes(), 0
    for call in recorder.calls:
        (result,) = struct.unpack_from("=q", whole, at)
        assert call.result in (None, result), call.name
        at += 8
        written = False
        for block in call.blocks:
            found = whole[at : at + len(block.before)]
            at += len(block.before)
            if block.kind is not None:
                written |= found != block.before
                assert_same(block, found, call.name)
        assert written or not call.blocks, f"{call.name} has written nothing"
    assert at == len(whole)


def assert_same(block: Block, found: bytes, name: str) -> None:
    """Whole numbers and packed weights to the bit, others to rounding: logarithms are the C
    library's, and compilers fuse products with sums as they like."""
    assert block.kind is not None
    before, ours, theirs = (
        np.frombuffer(one, KINDS[block.kind]) for one in (block.before, block.after, found)
    )
    bits = f"u{ours.itemsize}"
    others = ours.view(bits) != theirs.view(bits)
    if not others.any():
        return
    assert block.kind in LIMITS, name
    written = as_floats(ours[before.view(bits) != ours.view(bits)])
    apart = np.abs(as_floats(ours[others]) - as_floats(theirs[others])).max()
    assert apart <= LIMITS[block.kind] * np.abs(written).max(), name


def as_floats(values: Array) -> Array:
    """fp32, or bf16 as 16 bits."""
    if values.dtype == np.float32:
        return values
    return (values.astype(np.uint32) << 16).view(np.float32)
