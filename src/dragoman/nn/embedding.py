"""The input of a stack's first layer (paper §3.4, §3.5): token embeddings and position encodings.

Six encodings are fixed, one is learned. Each maps a position (and, for one, the length of the
sequence) to a vector:

- ``index``: the position itself, in every dimension. Unbounded.
- ``normalised``: position / length. Bounded, but the same place means different values at
  different lengths. Where the length is not known yet, on the target side, a fixed maximum serves.
- ``binary``: the binary digits of the position, lowest first. Bounded and unique, but not smooth.
- ``sinusoidal``: PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i+1) = cos(same).
- ``marian``: PE(pos, i) = sin(pos f_i), PE(pos, D/2 + i) = cos(pos f_i) for i < D/2, with
  f_i = 10000^(-i / (D/2 - 1)): Marian's ``sinusoidalPositionEmbeddings``.
- ``learned``: a table trained with the rest.
- ``sinusoidal-2d``: for the patches of a picture, the sines of the row next to those of the column.

Each is added to the embedding or concatenated with it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.base.errors import SearchError
from dragoman.native.dropout import new_drop
from dragoman.native.embedding import embed as embed_natively
from dragoman.nn import probes
from dragoman.nn.dropout import Dropout
from dragoman.nn.linear import Computing, Matrix, Precision
from dragoman.nn.settings import PositionSettings


class Embedding(Matrix):
    """A matrix (V, D) with a row per token, which may also serve as the output projection (paper
    §3.4)."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__(vocabulary, width)
        self.cast: torch.dtype | None = None
        """The type to which the rows are cast before the first layer; None: they are not cast."""
        # Scaled by √d_model on the way in, rows then have unit variance; as an output matrix
        # they give logits of unit variance.
        nn.init.normal_(self.weight, std=width**-0.5)

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        super().choose(precision, by_kernels)
        self.cast = torch.bfloat16 if precision == "bf16" else None

    def prepare(self, dtype: torch.dtype) -> None:
        super().prepare(dtype)
        if dtype != torch.int8:  # whose kernels read and give fp32
            self.cast = dtype

    def forward(self, ids: Tensor) -> Tensor:
        """Look up token ids (...): return rows (..., D) in fp32."""
        return F.embedding(ids, self.weight)


def sinusoidal(positions: Tensor, width: int) -> Tensor:
    """Encode positions (P,) as rows (P, width) fp64: paper §3.5, sine in the even dimensions,
    cosine in the odd ones."""
    even = torch.arange(0, width, 2, device=positions.device, dtype=torch.float64)
    angles = positions.double()[:, None] * torch.exp(even * (-math.log(10000.0) / width))
    table = torch.zeros(len(positions), width, dtype=torch.float64, device=positions.device)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : width // 2]
    return table


def marian(positions: Tensor, width: int) -> Tensor:
    """Encode positions (P,) as rows (P, width) fp64: all sines before all cosines. If ``width`` is
    odd, the last column is zero."""
    half = width // 2
    number = torch.arange(half, device=positions.device, dtype=torch.float64)
    angles = positions.double()[:, None] * torch.exp(number * (-math.log(1e4) / max(half - 1, 1)))
    table = torch.zeros(len(positions), width, dtype=torch.float64, device=positions.device)
    table[:, :half] = angles.sin()
    table[:, half : 2 * half] = angles.cos()
    return table


def index(positions: Tensor, width: int) -> Tensor:
    """Encode positions (P,) as rows (P, width): the position itself in every dimension."""
    return positions.float()[:, None].expand(-1, width)


def normalised(positions: Tensor, lengths: Tensor, width: int) -> Tensor:
    """Encode positions (P,) of sequences of ``lengths`` (P,) as rows (P, width): position / length
    in every dimension."""
    return (positions / lengths).float()[:, None].expand(-1, width)


def binary(positions: Tensor, width: int) -> Tensor:
    """Encode positions (P,) as rows (P, width): their binary digits, lowest first, with zeros
    beyond the 63rd."""
    digits = torch.arange(min(width, 63), device=positions.device)
    table = torch.zeros(len(positions), width, device=positions.device)
    table[:, : len(digits)] = ((positions[:, None] >> digits) & 1).float()
    return table


def sinusoidal_2d(positions: Tensor, width: int, across: int) -> Tensor:
    """Encode places (P,) on a grid of ``across`` columns, counted row by row, as rows (P, width)
    fp64: the ``sinusoidal`` encoding of the grid row in the first half, and of the column in the
    second."""
    half = width // 2
    rows = sinusoidal(positions // across, half)
    return torch.cat([rows, sinusoidal(positions % across, width - half)], dim=1)


_FIXED = {"sinusoidal": sinusoidal, "marian": marian, "binary": binary}
"""The encodings that have one row per position, whatever the sequence.
``models/transformer/int8_weights.py`` computes the same rows without torch."""


class Positions(Computing):
    """The position encoding of one side; ``settings.kind`` names it."""

    def __init__(
        self, settings: PositionSettings, width: int, across: int = 0, skipped: int = 0
    ) -> None:
        """For positions on a grid, ``across`` is the number of columns, and the first ``skipped``
        rows of a sequence are outside of the grid: they get zeros."""
        super().__init__()
        self.settings = settings
        self.width = width
        self.across = across
        self.skipped = skipped
        self.table: nn.Parameter | None = None
        if settings.kind == "learned":
            self.table = nn.Parameter(torch.empty(settings.maximum, width))
            nn.init.normal_(self.table, std=width**-0.5)
        # Rows 0..n-1 of a fixed encoding, grown when first needed. Not part of the state dict.
        self._rows = torch.empty(0, width)

    def forward(self, positions: Tensor, lengths: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Encode positions (P,) as rows (P, width) of type ``dtype``.

        ``lengths`` (P,) is the length of each row's own sequence; None if it is not known. Errors:
        ``SearchError`` for a position beyond a learned table.
        """
        kind = self.settings.kind
        if kind == "none":
            return torch.zeros(len(positions), self.width, device=positions.device, dtype=dtype)
        if kind == "index":
            return index(positions, self.width).to(dtype)
        if kind == "normalised":
            known = torch.full_like(positions, self.settings.maximum)
            divisor = known if lengths is None else lengths
            return normalised(positions, divisor, self.width).to(dtype)
        longest = int(positions.max()) + 1 if len(positions) else 0
        if self.table is None:
            return self.rows(longest, positions.device, dtype)[positions]
        if longest > self.settings.maximum:
            raise SearchError(
                f"position {longest} is beyond this model's learned table of "
                f"{self.settings.maximum} positions. Shorten the sequence, or train with a "
                "larger model.positions.maximum"
            )
        return F.embedding(positions, self.table).to(dtype)

    @property
    def is_added_table(self) -> bool:
        """True if the encoding adds a fixed row per position, whatever the sequence: see
        ``rows``."""
        kind, combine = self.settings.kind, self.settings.combine
        return combine == "add" and kind in {*_FIXED, "sinusoidal-2d"}

    def rows(self, longest: int, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Return the rows of a fixed table, (at least ``longest``, width). They are computed once
        and kept."""
        made = self._rows
        if longest > len(made) or made.device != device or made.dtype != dtype:
            every = torch.arange(max(256, 2 * longest), device=device)
            self._rows = self._encode(every).to(dtype)
        return self._rows

    def _encode(self, positions: Tensor) -> Tensor:
        if self.settings.kind != "sinusoidal-2d":
            return _FIXED[self.settings.kind](positions, self.width)
        assert self.across, "a grid has columns"
        placed = sinusoidal_2d(positions - self.skipped, self.width, self.across)
        return placed * (positions >= self.skipped)[:, None]


def embed(
    tokens: Tensor,
    embedding: Embedding,
    dropout: Dropout,
    *,
    scale: float | None = None,
    positions: Tensor | None = None,
    encoding: Positions | None = None,
    lengths: Tensor | None = None,
    row_keys: Tensor | None = None,
) -> Tensor:
    """Multiply the embeddings of tokens (P,) by ``scale``, add (or append) their positions, and
    apply dropout. Return (P, D).

    ``scale``: None: √width, which gives rows of unit variance. ``positions`` (P,) and their
    ``encoding``: None for a model that gets the positions from the order of reading. ``lengths``
    (P,) of the rows' sequences, for encodings that depend on them; ``row_keys`` (P,) of the rows,
    for dropout.
    """
    scale = math.sqrt(embedding.weight.shape[1]) if scale is None else scale
    if embedding.packed is not None and (encoding is None or encoding.is_added_table):
        table = None
        if encoding is not None and positions is not None:
            longest = int(positions.max()) + 1 if len(positions) else 0
            table = encoding.rows(longest, positions.device, torch.float32)
        return embed_natively(
            tokens,
            embedding.weight,
            table,
            positions,
            scale=scale,
            dtype=embedding.packed.dtype,
            drop=new_drop(dropout.rate_now, row_keys),
        )
    return add_positions(
        embedding(tokens) * scale,
        dropout,
        positions=positions,
        encoding=encoding,
        lengths=lengths,
        row_keys=row_keys,
        dtype=embedding.cast,
    )


def add_positions(
    rows: Tensor,
    dropout: Dropout,
    *,
    positions: Tensor | None,
    encoding: Positions | None,
    lengths: Tensor | None = None,
    row_keys: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Add (or append) positions to rows (P, D), then apply dropout in ``dtype`` (None: that of the
    rows). The other arguments are those of ``embed``. An open probe may change the rows. Kernels do
    not use this function."""
    if encoding is not None and positions is not None:
        place = encoding(positions, lengths, rows.dtype)
        added = encoding.settings.combine == "add"
        rows = rows + place if added else torch.cat([rows, place], dim=-1)
    rows = dropout.forward(rows.to(dtype or rows.dtype), row_keys)
    probe = probes.opened.get()
    return rows if probe is None else probe.take_embedded(rows)
