"""This module packs token sequences, or rows, into the tensors of one micro-batch.

It adds the special symbols, which stores do not contain: a source sentence ends with EOS (rows have
no end symbol), ``target_in`` begins with BOS and ``target_out`` ends with EOS, so that row p of the
decoder's hidden states predicts ``target_out[p]``. In a task without input, each source is EOS
alone, as in ``tasks/language_model/runtime.py``.

A masked text is read like the source of a translation: its tokens, then EOS. A text that is longer
than a model reads at once comes in pieces, each followed by EOS.

Shapes: B sentences, P packed rows of a side (the sum of its lengths; see ``nn/layout.py``), M
tokens to predict.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.base.wording import plural
from dragoman.data.hashing import hashes
from dragoman.data.masking import Masked
from dragoman.nn.layout import Layout, Sequences

Tokens = npt.NDArray[np.int32]
"""The tokens of one sentence, without special symbols."""
Values = npt.NDArray[Any]
"""(length,) tokens of a source, or (length, F) rows."""
T = TypeVar("T")


class ExampleBatch(ABC):
    """A batch of examples that go through a model together: a dataclass of packed sequences and
    tensors."""

    source: Sequences
    ids: tuple[int, ...]

    def __len__(self) -> int:
        """The number of examples in the batch, B."""
        return len(self.ids)

    @property
    def measured(self) -> Layout:
        """The layout whose rows measure the work of a batch."""
        return self.source.layout

    @abstractmethod
    def part(self, first: int, last: int) -> Self:
        """Return a batch of the examples from ``first`` to ``last``, last excluded."""

    def summary(self) -> str:
        """Return one line with the sizes of the batch."""
        count, read = plural(len(self), "example"), plural(self.measured.total, "token")
        return f"{count}, {read}, the longest {self.measured.longest}"

    def to(self, device: torch.device | str) -> Self:
        """Return the same batch on another device."""
        moved = {name: _move(value, device) for name, value in vars(self).items()}
        return replace(self, **moved)  # type: ignore[type-var]

    def split(self) -> tuple[Self, Self]:
        """Return two batches with about half of the rows each, in the same order.

        It is used for a batch that did not fit into memory. Raises ValueError if there is only one
        example.
        """
        cut = half_of(self.measured)
        return self.part(0, cut), self.part(cut, len(self))


def _move(value: Any, device: torch.device | str) -> Any:
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    return value if value is None or isinstance(value, tuple) else value.to(device)


@dataclass(frozen=True)
class Batch(ExampleBatch):
    """One micro-batch, as an objective takes it (``training/losses/objectives.py``)."""

    source: Sequences
    """(P_source,) int64 ids, each sentence with EOS at its end; or (P_source, F) rows."""
    target_in: Sequences
    """(P_target,) int64 ids, each sentence with BOS at its beginning."""
    target_out: Tensor
    """(P_target,) int64 ids, each sentence with EOS at its end, in the layout of ``target_in``."""
    ids: tuple[int, ...]
    """The number of each sentence's example in the store."""

    @property
    def measured(self) -> Layout:
        return self.target_in.layout

    @property
    def target_tokens(self) -> int:
        """The number of target tokens with EOS, over which the loss is summed."""
        return self.target_in.layout.total

    def summary(self) -> str:
        source, target = self.source.layout, self.target_in.layout
        return (
            f"{len(self)} examples, {source.total} source and {target.total} target tokens, "
            f"the longest {max(source.longest, target.longest)}"
        )

    def part(self, first: int, last: int) -> Batch:
        target_in = rows_of(self.target_in, first, last)
        begin = sum(self.target_in.layout.lengths[:first])
        target_out = self.target_out[begin : begin + target_in.layout.total]
        source = rows_of(self.source, first, last)
        return Batch(source, target_in, target_out, self.ids[first:last])


def in_batches(items: Iterable[T], most: int, size: Callable[[T], int]) -> Iterator[list[T]]:
    """Split items, in their order, into batches whose sizes add up to at most ``most``. A larger
    item is a batch of its own."""
    batch: list[T] = []
    held = 0
    for item in items:
        added = size(item)
        if batch and held + added > most:
            yield batch
            batch, held = [], 0
        batch.append(item)
        held += added
    if batch:
        yield batch


def half_of(layout: Layout) -> int:
    """Return how many of the first sequences have about half of all rows: at least one, and not
    all. Raises ValueError if there is only one sequence."""
    if layout.batch < 2:
        raise ValueError("a batch with one example cannot be split")
    ends = np.cumsum(layout.lengths)
    return min(int(np.searchsorted(ends, ends[-1] / 2)) + 1, layout.batch - 1)


def make_batch(
    sources: Sequence[Values] | None,
    targets: Sequence[Tokens],
    bos: int,
    eos: int,
    ids: Sequence[int] | None = None,
) -> Batch:
    """Join B pairs of bare sequences into one packed batch.

    If ``sources`` is None, nothing is read; rows of (length, F) get no end symbol. ``ids`` are the
    numbers of the examples, from which dropout derives the keys of their rows; without them,
    examples are numbered from 0.
    """
    if sources is not None and len(sources) != len(targets):
        raise ValueError(f"there are {len(sources)} sources but {len(targets)} targets")
    end, begin = np.array([eos], np.int32), np.array([bos], np.int32)
    windows = [
        (np.concatenate([begin, target]), np.concatenate([target, end])) for target in targets
    ]
    return window_batch(windows, eos, ids, sources)


def window_batch(
    windows: Sequence[tuple[Tokens, Tokens]],
    eos: int,
    ids: Sequence[int] | None = None,
    sources: Sequence[Values] | None = None,
) -> Batch:
    """Join B windows, pairs of the tokens that are read and those that are predicted, into one
    packed batch. Unlike those of ``make_batch``, outputs may be incomplete."""
    if sources is None:
        sources = [np.empty(0, np.int32)] * len(windows)
    ids, row_keys = number_examples(ids, len(windows))
    layout = Layout([len(read) for read, _ in windows], first_row_keys=row_keys)
    return Batch(
        source=make_sources(sources, eos, row_keys),
        target_in=Sequences(join([read for read, _ in windows]), layout),
        target_out=join([predicted for _, predicted in windows]),
        ids=ids,
    )


def make_sources(
    sources: Sequence[Values], eos: int, first_row_keys: Tensor | None = None
) -> Sequences:
    """Join B bare sources into the input of ``model.encode``; EOS is appended to sources of tokens.

    ``first_row_keys``: see ``Layout``.
    """
    are_rows = bool(sources) and sources[0].ndim > 1
    return with_symbol(sources, None if are_rows else eos, first_row_keys)


def with_symbol(
    bare: Sequence[Values], symbol: int | None, row_keys: Tensor | None = None, before: bool = False
) -> Sequences:
    """Join bare sequences, each with a symbol behind it, or ``before`` it; None: rows, without any.
    ``row_keys``: ``first_row_keys`` of ``Layout``."""
    layout = Layout([len(rows) + (symbol is not None) for rows in bare], first_row_keys=row_keys)
    if symbol is None:
        return Sequences(torch.from_numpy(np.concatenate(bare)), layout)
    added = np.array([symbol], np.int32)
    parts = [part for rows in bare for part in ((added, rows) if before else (rows, added))]
    return Sequences(join(parts), layout)


def number_examples(ids: Sequence[int] | None, count: int) -> tuple[tuple[int, ...], Tensor | None]:
    """Return the numbers of ``count`` examples, and the keys of their rows for dropout. Without
    ``ids``, examples are numbered from 0 and have no keys of their own."""
    if ids is None:
        return tuple(range(count)), None
    return tuple(map(int, ids)), first_row_keys_of(ids)


def first_row_keys_of(ids: Sequence[int]) -> Tensor:
    """Return (B,) int32 keys, scattered so that the rows that follow them rarely share a key: in an
    update of 1,000 pairs of 30 tokens, two rows share a mask once in a hundred times."""
    scattered = hashes(np.array(ids, np.int64), 0)
    return torch.from_numpy((scattered >> np.uint64(32)).astype(np.uint32).view(np.int32))


def join(parts: Sequence[Tokens]) -> Tensor:
    """Concatenate the parts to (P,) int64."""
    if not parts:
        return torch.empty(0, dtype=torch.int64)
    return torch.from_numpy(np.concatenate(parts).astype(np.int64))


def rows_of(sequences: Sequences, first: int, last: int) -> Sequences:
    """Return the sentences from ``first`` to ``last``, last excluded."""
    lengths = sequences.layout.lengths
    begin = sum(lengths[:first])
    row_keys = sequences.layout.first_row_keys
    layout = Layout(
        lengths[first:last],
        sequences.layout.device,
        None if row_keys is None else row_keys[first:last],
    )
    return Sequences(sequences.values[begin : begin + layout.total], layout)


@dataclass(frozen=True)
class MaskedBatch(ExampleBatch):
    """One micro-batch of masked pieces (``training/losses/objectives.py``)."""

    source: Sequences
    """(P,) int64 ids, some hidden, each piece with EOS at its end."""
    places: Tensor
    """(M,) int64: the rows of ``source`` whose tokens are to be predicted."""
    wanted: Tensor
    """(M,) int64: the tokens at ``places`` before masking."""
    ids: tuple[int, ...]
    """The number of each piece's example in the store."""

    def summary(self) -> str:
        layout = self.source.layout
        return (
            f"{len(self)} examples, {layout.total} tokens, {len(self.wanted)} of them masked, the "
            f"longest {layout.longest}"
        )

    def part(self, first: int, last: int) -> MaskedBatch:
        source = rows_of(self.source, first, last)
        begin = sum(self.source.layout.lengths[:first])
        inside = (self.places >= begin) & (self.places < begin + source.layout.total)
        places = self.places[inside] - begin
        return MaskedBatch(source, places, self.wanted[inside], self.ids[first:last])


def masked_batch(
    pieces: Sequence[tuple[Tokens, Masked]], eos: int, ids: Sequence[int] | None = None
) -> MaskedBatch:
    """Join B pieces, pairs of their tokens and how they are masked, into one packed batch.

    ``ids`` are the numbers of the examples, from which dropout derives the keys of their rows;
    without them, examples are numbered from 0.
    """
    ids, row_keys = number_examples(ids, len(pieces))
    source = make_sources([masked.read for _, masked in pieces], eos, row_keys)
    begins = np.cumsum([0, *source.layout.lengths])[: len(pieces)]
    asked = [masked.places for _, masked in pieces]
    rows = [begin + places for begin, places in zip(begins, asked, strict=True)]
    wanted = [tokens[places] for (tokens, _), places in zip(pieces, asked, strict=True)]
    return MaskedBatch(
        source,
        torch.from_numpy(np.concatenate([np.empty(0, np.int64), *rows])),
        torch.from_numpy(np.concatenate([np.empty(0, np.int64), *wanted]).astype(np.int64)),
        ids,
    )
