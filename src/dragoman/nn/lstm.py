"""A layer of long short-term memory (LSTM) over packed rows, in one direction or in both.

The layer has the weights of ``torch.nn.LSTM``, with the same names and shapes, and computes the
same (``recurrence.py`` has the equations): all steps at once in training, or a step at a time.

Shapes: B sequences, P packed rows, H width of one direction, N rows of a search.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.native import linear as native
from dragoman.native import lstm as native_lstm
from dragoman.native.int8 import Int8Map
from dragoman.nn.layout import Layout
from dragoman.nn.linear import Computing, InferenceLinear, Linear, Precision, linear, low_copy
from dragoman.nn.recurrence import Products, Steps, recur


class Lstm(Computing):
    """An LSTM layer: rows (P, inputs) -> (P, H), or with ``both_ways`` (P, 2H), forwards then
    backwards.

    ``context``: the width of a second input, which has its own matrix; 0: there is none.
    """

    def __init__(
        self, inputs: int, width: int, *, both_ways: bool = False, context: int = 0
    ) -> None:
        super().__init__()
        self.width = width
        self.ways = ("", "_reverse") if both_ways else ("",)
        for way in self.ways:
            self._parameter(f"weight_ih_l0{way}", 4 * width, inputs)
            self._parameter(f"weight_hh_l0{way}", 4 * width, width)
            self._parameter(f"bias_ih_l0{way}", 4 * width)
            self._parameter(f"bias_hh_l0{way}", 4 * width)
        self.context = Linear(context, 4 * width, bias=False) if context else None
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(width**-0.5), width**-0.5)
        self._prepared_read: InferenceLinear | None = None
        self._prepared_again: list[InferenceLinear] = []
        self._int8: _Int8Lstm | None = None
        self.choose("fp32", by_kernels=False)

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        read, again = self._of_ways("weight_ih"), self._of_ways("weight_hh")
        self._read = native.PackedWeights(read, precision) if by_kernels else None
        self._read_low = [low_copy(weight, precision, by_kernels) for weight in read]
        self._again = [
            native.PackedWeights([weight], precision) if by_kernels else None for weight in again
        ]
        self._again_low = [low_copy(weight, precision, by_kernels) for weight in again]

    def hidden_matrices(self) -> list[tuple[nn.Parameter, int]]:
        matrices = [p for p in self.parameters() if p.dim() == 2]
        return [(matrix, 4) for matrix in matrices]  # of four gates each

    def prepare(self, dtype: torch.dtype) -> None:
        super().prepare(dtype)
        if dtype == torch.int8:
            self._int8 = _Int8Lstm(self)
            return
        read, again = self._of_ways("weight_ih"), self._of_ways("weight_hh")
        self._prepared_read = InferenceLinear(torch.cat(read), None, dtype)
        self._prepared_again = [InferenceLinear(weight, None, dtype) for weight in again]

    def fits(self, precision: Precision) -> bool:
        return all(
            native.is_supported(weight.shape[1], weight.shape[0], precision)
            for weight in self.parameters(recurse=False)
            if weight.dim() == 2
        )

    def copies(self) -> list[tuple[Tensor, Tensor]]:
        lows = [*self._read_low, *self._again_low]
        weights = [*self._of_ways("weight_ih"), *self._of_ways("weight_hh")]
        return [(low, weight) for low, weight in zip(lows, weights, strict=True) if low is not None]

    def read(self, x: Tensor) -> Tensor:
        """Return the contribution of the inputs (..., inputs) to the gates: x W_ihᵀ, (..., 4H) for
        each direction. In int8 it includes the biases and has the order of the kernels."""
        if self._int8 is not None:
            return self._int8.read(x)
        weights = self._of_ways("weight_ih")
        if self._prepared_read is not None:
            return self._prepared_read.any_rows(x)
        if self._read is not None:
            return native.linear(x, weights, [], self._read)
        pairs = zip(weights, self._read_low, strict=True)
        return torch.cat([linear(x, weight, None, low) for weight, low in pairs], dim=-1)

    def read_context(self, attended: Tensor, gates: Tensor) -> Tensor:
        """Add the contribution of the second input to ``gates`` (..., 4H)."""
        assert self.context is not None
        if self._int8 is not None:
            return self._int8.read_context(attended, gates)
        out: Tensor = gates + self.context(attended)
        return out

    def forward(
        self,
        gates: Tensor,
        layout: Layout,
        begin: tuple[Tensor, Tensor] | None = None,
        kept: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Compute all steps from ``gates``, the result of ``read`` for packed rows. Return hidden
        vectors and cells.

        ``begin``: the initial hidden vectors and cells (B, H) of the sequences; None: 0. ``kept``
        (B, H for each direction): see ``recur``.
        """
        if self._int8 is not None:
            return self._int8.forward(gates, layout, begin)
        width, outs = self.width, []
        for number in range(len(self.ways)):
            part = slice(number * width, (number + 1) * width)
            if begin is None:
                first = gates.new_zeros(layout.batch, width)
                hidden, cell = first, first
            else:
                hidden, cell = begin[0][:, part], begin[1][:, part]
            outs.append(
                recur(
                    gates[:, 4 * part.start : 4 * part.stop],
                    hidden,
                    cell,
                    self._products(number),
                    self._bias(number),
                    Steps(layout, backwards=number == 1),
                    None if kept is None else kept[:, part],
                )
            )
        (hidden, cell), *others = outs
        for other in others:
            hidden, cell = torch.cat([hidden, other[0]], -1), torch.cat([cell, other[1]], -1)
        return hidden, cell

    def step(
        self, gates: Tensor, hidden: Tensor, cell: Tensor, kept: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute one step of N rows in one direction, from gates (N, 4H) of ``read`` and the
        hidden vectors and cells (N, H). Return the new hidden vectors and cells."""
        if self._int8 is not None:
            return self._int8.again[0].lstm(gates, hidden, cell)
        again = hidden if kept is None else hidden * kept
        products = self._products(0)
        if products.prepared is not None:
            again = products.forward(again)
        elif products.packed is not None:
            again = native.linear(again, [products.weight], [], products.packed)
        else:
            again = linear(again, products.weight, None, products.low)
        by_kernels = products.packed is not None and products.prepared is None
        one_step = native_lstm.cell if by_kernels else native_lstm.cell_plain
        hidden, cell = one_step(gates, again, self._bias(0), cell)
        return hidden.to(products.dtype), cell

    def _products(self, number: int) -> Products:
        weight = self._of_ways("weight_hh")[number]
        prepared = self._prepared_again[number] if self._prepared_again else None
        return Products(weight, self._again_low[number], self._again[number], prepared)

    def _bias(self, number: int) -> Tensor:
        return self._of_ways("bias_ih")[number] + self._of_ways("bias_hh")[number]

    def _of_ways(self, name: str) -> list[Tensor]:
        return [getattr(self, f"{name}_l0{way}") for way in self.ways]

    def _parameter(self, name: str, *shape: int) -> None:
        self.register_parameter(name, nn.Parameter(torch.empty(*shape)))


class _Int8Lstm:
    """The weights of an ``Lstm`` in int8. ``read`` adds the biases."""

    def __init__(self, of: Lstm) -> None:
        ways = range(len(of.ways))
        read, again = of._of_ways("weight_ih"), of._of_ways("weight_hh")
        self._width = of.width
        self._read = [Int8Map(read[way], of._bias(way), groups=4) for way in ways]
        self.again = [Int8Map(weight, None, groups=4) for weight in again]
        self._context = None if of.context is None else Int8Map(of.context.weight, None, groups=4)

    def read(self, x: Tensor) -> Tensor:
        rows, columns = x.reshape(-1, x.shape[-1]), self._read[0].columns
        out = rows.new_empty(len(rows), len(self._read) * columns)
        for way, read in enumerate(self._read):
            read.rows(rows, out[:, way * columns : (way + 1) * columns])
        return out.view(*x.shape[:-1], -1)

    def read_context(self, attended: Tensor, gates: Tensor) -> Tensor:
        assert self._context is not None
        return self._context.rows(attended, gates, more=True)

    def forward(
        self, gates: Tensor, layout: Layout, begin: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        width, columns = self._width, self._read[0].columns
        hidden = gates.new_empty(len(gates), width * len(self.again))
        cells = []
        for way, again in enumerate(self.again):
            part = slice(way * width, (way + 1) * width)
            steps = Steps(layout, backwards=way == 1)
            none = gates.new_zeros(layout.batch, width)
            first = (none, none)
            if begin is not None:
                first = begin[0][steps.order, part], begin[1][steps.order, part]
            of_way = gates[:, way * columns : (way + 1) * columns]
            cells.append(again.recur(of_way, steps.rows, steps.sizes, first, hidden[:, part]))
        return hidden, torch.cat(cells, dim=-1)
