"""Windows are runs of tokens, of a context length, that a model reads at once.

A text t_1 … t_n is read as BOS t_1 … t_n and predicted as t_1 … t_n EOS, n + 1 places in all.
Window k takes the places k·C to (k + 1)·C - 1, so every token is predicted once and none is read
together with another text. The last window of a text is as short as the rest of it: batches are
packed (``nn/layout.py``), so there is no padding. A window that does not begin its text begins with
the previous token instead of BOS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.data.chunks import CorpusRange
from dragoman.data.store import Tokens, TokenStore

SIDE = "target"


class Window(NamedTuple):
    """A window reads the places from ``begin`` to ``end`` of a text. Earlier windows have predicted
    the places before ``new``."""

    begin: int
    new: int
    end: int


def slide(places: int, context: int, stride: int) -> Iterator[Window]:
    """Yield the windows over a text of ``places`` places, each ``stride`` further than the one
    before.

    With a stride below the context, a window reads the end of the previous one again, so that every
    place but the first ones has at least ``context - stride`` others before it.
    """
    yield Window(0, 0, min(context, places))
    for new in range(context, places, stride):
        begin = new - (context - stride)
        yield Window(begin, new, min(begin + context, places))


def part_of(begin: int, length: int) -> slice:
    """Return the slice of a text's bare tokens that ``read_and_predicted`` takes for a window."""
    return slice(max(begin - 1, 0), begin + length)


def read_and_predicted(
    part: Tokens, begin: int, length: int, bos: int, eos: int
) -> tuple[Tokens, Tokens]:
    """Return the tokens that a window of ``length`` places reads, and those it predicts: (length,)
    each.

    ``part``: the tokens ``part_of(begin, length)`` of its text.
    """
    read = part if begin else np.append(np.int32(bos), part)
    predicted = read[1 : length + 1]
    if len(predicted) < length:
        predicted = np.append(predicted, np.int32(eos))
    return read[:length], predicted


class Cuts:
    """The texts of a store, cut into pieces of at most ``most`` places, numbered in their order."""

    def __init__(self, store: TokenStore, places: npt.NDArray[np.int64], most: int) -> None:
        """``places`` (texts,): the length of each text; a text of length 0 has no piece."""
        self._store, self._most = store, most
        counts = -(-places // most)
        self._first = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
        """(texts + 1,) the first piece of each text."""
        self.sizes = np.full(self._first[-1], most, np.int32)
        """(pieces,) the length of each piece."""
        last = (self._first[1:] - 1)[counts > 0]
        self.sizes[last] = (places[counts > 0] - 1) % most + 1
        self.corpora = tuple(
            CorpusRange(int(self._first[c.first]), int(self._first[c.last]), c.weight, c.name)
            for c in store.corpora
        )

    def __len__(self) -> int:
        return int(self._first[-1])

    def where(self, number: int) -> tuple[int, int, int]:
        """Return the text of a piece, the place where the piece begins, and its length."""
        text = int(np.searchsorted(self._first, number, side="right")) - 1
        begin = (number - int(self._first[text])) * self._most
        return text, begin, int(self.sizes[number])


class Windows(Cuts):
    """The windows of all texts of a store, numbered in their order, as a ``Plan`` takes them."""

    def __init__(self, store: TokenStore, context: int, bos: int, eos: int) -> None:
        super().__init__(store, store.lengths[SIDE].astype(np.int64) + 1, context)
        self._bos, self._eos = bos, eos
        self.lengths = {SIDE: self.sizes - 1}
        """(windows,) tokens of each, one fewer than it predicts, as a plan adds the end symbol."""

    def window(self, number: int) -> tuple[Tokens, Tokens]:
        """Return the tokens that a window reads, and those it predicts, each (length,)."""
        text, begin, length = self.where(number)
        part = self._store.tokens(SIDE, text, part_of(begin, length))
        return read_and_predicted(part, begin, length, self._bos, self._eos)


class TextPieces(Cuts):
    """All texts of a store in pieces that are read whole, numbered in their order, as a ``Plan``
    takes them. With its end symbol, a piece has at most ``context`` tokens."""

    def __init__(self, store: TokenStore, context: int) -> None:
        super().__init__(store, store.lengths[SIDE].astype(np.int64), context - 1)
        self.lengths = {SIDE: self.sizes}
        """(pieces,) tokens of each; a plan adds the end symbol."""

    def piece(self, number: int) -> Tokens:
        """Return the bare tokens of a piece, (length,)."""
        text, begin, length = self.where(number)
        return self._store.tokens(SIDE, text, slice(begin, begin + length))
