"""A convolutional encoder–decoder (ConvS2S: Gehring et al., 2017). Section numbers are those of
that paper.

    v(x) = A ⊗ σ(B),  [A B] = W [x_{i-k/2}; ...; x_{i+k/2}] + b           (§3.2: gated linear unit)
    h^l = (v(h^{l-1}) + h^{l-1}) √½                                        (§3.2, §3.4)

In the decoder, a window ends at its own row, and every layer has its own attention over the source
(§3.3):

    q = (W_q v + b_q + e) √½         e the embedding of the token, e_s of the source's
    found = √S Σ_s softmax(q · z)_s (z_s + e_s) √½      z what the encoder makes of S positions
    h^l = ((W_c found + b_c + v) √½ + h^{l-1}) √½

All matrices but embeddings and output are weight-normalised; √½ keeps the variance of a sum (§3.4),
and all weights are initialised as in §3.5. Departures: the output layer has no bias and no weight
normalisation, so that it can be tied; all blocks have the same width.

Shapes: B sources, P packed rows, D width of embeddings, C width of blocks, k of a window, N rows of
a search, L layers of the decoder.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from dragoman.models.encoding import EncoderDecoder, SourceInput
from dragoman.models.interface import AttentionLayer, DecodeState, Memory
from dragoman.models.search_states import (
    Carried,
    CarriedState,
    Looking,
    Source,
    look,
    seen_by_probe,
)
from dragoman.models.settings import ConvolutionalSettings
from dragoman.native import attention as native
from dragoman.native.embedding import embed as embed_natively
from dragoman.nn import probes
from dragoman.nn.convolution import ConvolutionWindows, NormedLinear, unfold
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Embedding, Positions
from dragoman.nn.layers import Stack, stack_of
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.settings import PositionSettings

HALF = math.sqrt(0.5)

EMBEDDING_STD = 0.1

Side = Literal["source", "target"]


class GatedConvolution(nn.Module):
    """A convolution with its gated linear unit: windows (..., k x C) -> (..., C)."""

    def __init__(self, settings: ConvolutionalSettings) -> None:
        super().__init__()
        inputs = settings.kernel_width * settings.channels
        # A gate lets half of it through, so it begins twice as large (§3.5).
        std = 2 * math.sqrt((1 - settings.dropout) / inputs)
        self.convolution = NormedLinear(inputs, 2 * settings.channels, std=std, gated=True)

    def forward(self, windows: Tensor) -> Tensor:
        return self.convolution(windows)  # type: ignore[no-any-return]


class ConvolutionalDecoderLayer(nn.Module):
    """A block of the decoder, with its attention over the source."""

    def __init__(self, settings: ConvolutionalSettings, name: str) -> None:
        super().__init__()
        self.name = name
        self.block = GatedConvolution(settings)
        self.query = make_linear(settings.channels, settings.model_dim)
        self.found = make_linear(settings.model_dim, settings.channels)

    def forward(self, windows: Tensor, x: Tensor, embedded: Tensor, look_over: LookOver) -> Tensor:
        """Compute the layer: from the rows ``x`` (P, C) of the layer below, their ``windows``
        (P, k x C) and the decoder's input ``embedded`` (P, D), return rows (P, C). ``look_over``
        computes the attention."""
        made = self.block(windows)
        context = look_over(self, (self.query(made) + embedded) * HALF)
        return ((self.found(context) + made) * HALF + x) * HALF  # type: ignore[no-any-return]


LookOver = Callable[[ConvolutionalDecoderLayer, Tensor], Tensor]
"""The attention of a layer over the sources: its queries (P, D) -> the weighted sums of values
(P, D), times √S."""


class Convolutional(EncoderDecoder):
    """A convolutional encoder and decoder; each block of the decoder has an attention."""

    settings: ConvolutionalSettings

    def __init__(
        self,
        settings: ConvolutionalSettings,
        source_vocabulary: SourceInput,
        target_vocabulary: int,
    ) -> None:
        super().__init__(settings, source_vocabulary, target_vocabulary)
        width, channels, rate = settings.model_dim, settings.channels, settings.dropout
        places = PositionSettings(kind="learned", maximum=settings.positions)
        self.source_positions = Positions(places, width)
        self.target_positions = Positions(places, width)
        self.encoder_in = make_linear(width, channels, rate)
        self.encoder: Stack[GatedConvolution] = Stack(
            [GatedConvolution(settings) for _ in range(settings.encoder_layers)]
        )
        self.encoder_out = make_linear(channels, width)
        self.decoder_in = make_linear(width, channels, rate)
        layers = settings.decoder_layers
        self.decoder = stack_of(ConvolutionalDecoderLayer, settings, "decoder", layers)
        self.decoder_out = make_linear(channels, width)
        self.dropout = Dropout(rate)
        self.looking = Looking()
        for table in self.children():
            if isinstance(table, Embedding):
                nn.init.normal_(table.weight, std=EMBEDDING_STD)
        for positions in (self.source_positions, self.target_positions):
            assert positions.table is not None
            nn.init.normal_(positions.table, std=EMBEDDING_STD)
        if self.output is not None:
            nn.init.normal_(self.output.weight, std=math.sqrt((1 - rate) / width))

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return tuple(
            AttentionLayer("cross", number, 1, 1.0, layer.name)
            for number, layer in enumerate(self.decoder)
        )

    # ---- reading

    def encode(self, source: Sequences) -> Memory:
        """Encode a batch of sources. The rows (P, 2D) of the result hold a key and a value each: z,
        and (z + e) √½."""
        probe = probes.opened.get()
        if self.front_end is None:
            layout = source.layout
            embedded = self._embed(source.values, layout.positions, "source", layout.row_keys)
        else:
            read = self.front_end(source)
            layout, rows = read.layout, read.values * EMBEDDING_STD  # as spread as embeddings
            embedded = self._add_positions(rows, layout.positions, "source", layout.row_keys)
        windows = ConvolutionWindows.around(layout, self.settings.kernel_width)
        x = self.encoder_in(embedded)
        for block in self.encoder:
            x = (block(unfold(self.dropout(x, layout.row_keys), windows)) + x) * HALF
        # As many gradients come back as there are attentions (§3.4).
        keys = scale_gradient(self.encoder_out(x), 1 / len(self.decoder))
        key_mask = None if probe is None else probe.source_key_mask(layout.positions)
        return Memory(torch.cat([keys, (keys + embedded) * HALF], dim=-1), layout, key_mask)

    # ---- writing

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        layout = target_in.layout
        row_keys = layout.row_keys
        embedded = self._embed(target_in.values, layout.positions, "target", row_keys)
        windows = ConvolutionWindows.behind(layout, self.settings.kernel_width)
        look_over = self._all_at_once(layout, memory)
        x = self.decoder_in(embedded)
        for layer in self.decoder:
            x = layer(unfold(self.dropout(x, row_keys), windows), x, embedded, look_over)
        return self.dropout.forward(self.decoder_out(x), row_keys)

    def start(self, memory: Memory) -> CarriedState:
        return CarriedState(self._begin, memory)

    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, CarriedState)  # a state comes back to the model that made it
        look_over = self._step_by_step(state)
        x = torch.empty(0)
        for column in tokens.unbind(dim=1):
            embedded = self._embed(column, state.lengths.to(column.device), "target")
            (past,) = state.carried
            x, kept = self.decoder_in(embedded), []
            for layer, before in zip(self.decoder, past, strict=True):
                window = torch.cat([before, x[:, None]], dim=1)  # (N, k, C)
                kept.append(window[:, 1:])
                x = layer(window.flatten(1), x, embedded, look_over)
            state.store((torch.stack(kept),))
        return self.decoder_out(x)  # type: ignore[no-any-return]

    # ---- inside

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        word = self._words(side)(tokens)
        place = self._places(side)(torch.arange(len(tokens)), None, word.dtype)
        return {"word": word, "position": place, "sum": word + place}

    def _embed(
        self, tokens: Tensor, positions: Tensor, side: Side, row_keys: Tensor | None = None
    ) -> Tensor:
        """Embed tokens (P,) at positions (P,), with dropout. Return (P, D). ``row_keys`` (P,) of
        the rows, for dropout."""
        embedding = self._words(side)
        if embedding.packed is not None:
            dtype = embedding.packed.dtype
            x = embed_natively(tokens, embedding.weight, None, None, scale=1.0, dtype=dtype)
        else:
            x = embedding(tokens)
            x = x if embedding.cast is None else x.to(embedding.cast)
        return self._add_positions(x, positions, side, row_keys)

    def _add_positions(
        self, x: Tensor, positions: Tensor, side: Side, row_keys: Tensor | None = None
    ) -> Tensor:
        """Add positions (P,) to rows (P, D), and apply dropout. ``row_keys`` (P,) of the rows, for
        dropout."""
        probe = probes.opened.get()
        if probe is None or not probe.positions_off or side == "target":
            x = x + self._places(side)(positions, None, x.dtype)
        return self.dropout.forward(x, row_keys)

    def _begin(self, memory: Memory) -> tuple[Carried, Source]:
        """Return the state of a search before the first token: windows of zeros, and the
        sources."""
        settings, rows = self.settings, memory.rows
        sizes = settings.decoder_layers, memory.layout.batch, settings.kernel_width - 1
        past = rows.new_zeros(*sizes, settings.channels)
        return (past,), _source(memory)

    def _all_at_once(self, layout: Layout, memory: Memory) -> LookOver:
        """Return the attention over the sources for all rows of some targets at once."""
        lengths = torch.tensor(memory.layout.lengths, device=layout.device)
        factor = lengths.to(memory.rows.dtype).sqrt()[layout.sequence, None]  # (P, 1)
        by_kernels = self.written_embedding.packed is not None and memory.key_mask is None
        by_kernels = by_kernels and probes.opened.get() is None
        source = cache(partial(_source, memory))

        def look_over(layer: ConvolutionalDecoderLayer, query: Tensor) -> Tensor:
            if by_kernels and probes.guiding.get().name != layer.name:
                places = layout.offsets, memory.layout.offsets
                context = native.attention((query, memory.rows), *places, heads=1, scale=1.0)
                return context * factor
            out, weights = look(layout.pad(query), source(), 1.0)
            probes.offer_weights(layer.name, weights[:, None])
            return seen_by_probe(layer.name, layout.pack(out)) * factor

        return look_over

    def _step_by_step(self, state: CarriedState) -> LookOver:
        """Return the attention over the sources for the rows of a search."""
        source, places = state.source, state.queries
        factors = source.lengths.to(source.keys.dtype).sqrt()  # (B,)

        def look_over(layer: ConvolutionalDecoderLayer, query: Tensor) -> Tensor:
            seen = self.looking(query, places, source, scale=1.0, factors=factors)
            if seen is not None:
                return seen
            context, _ = look(places.pad(query), source, 1.0)
            return seen_by_probe(layer.name, places.pack(context * factors[:, None, None]))

        return look_over

    def _words(self, side: Side) -> Embedding:
        return self.source_embedding if side == "source" else self.written_embedding

    def _places(self, side: Side) -> Positions:
        return self.source_positions if side == "source" else self.target_positions


def _source(memory: Memory) -> Source:
    return Source.of(memory, *memory.rows.chunk(2, dim=-1))


def make_linear(inputs: int, outputs: int, dropped: float = 0.0) -> NormedLinear:
    """Make a linear map that keeps the variance (§3.5) of inputs of which dropout drops a share."""
    return NormedLinear(inputs, outputs, std=math.sqrt((1 - dropped) / inputs))


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """Return ``x`` unchanged, but multiply its gradient by ``factor``."""
    out: Tensor = _ScaleGradient.apply(x, factor)  # type: ignore[no-untyped-call]
    return out


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0] * ctx.factor, None
