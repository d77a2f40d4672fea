"""The attention of a model for given sources and outputs: every weight of one pair, the parts of a
single weight, and the token alignment of many pairs. The network itself computes the attention,
since the kernels do not keep attention weights.

    weight = softmax(q · k / √d_k) over the keys,   adds = weight · v W_i^O       (paper, §3.2)

W_i^O are the rows of W^O that belong to head i: Concat(head_1, ..., head_h) W^O is the sum of
head_i W_i^O, and head_i the sum of weight · v, so the parts of single cells sum to the output of
the attention (without its bias).

Shapes: L layers, H heads, S tokens of the source, T of the output; D model width, K key width, Kv
value width.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.engine.alignment_head import AligningHead, Alignment, TokenPair
from dragoman.forms.form import Form, Values
from dragoman.models.interface import AttentionLayer, Network, writing
from dragoman.nn.attention import MultiHeadAttention
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.pictures.records import AttentionRecord
from dragoman.training.settings import GuidedSettings

Cross = npt.NDArray[np.float32]
"""(L, H, T + 1, S + 1): every weight of the attention over the source for one pair. The end symbols
come last."""

MOST_WEIGHTS = 4_000_000
"""The most attention weights that an alignment holds at once, over all layers and heads: 16 MB."""


@dataclass(eq=False)
class AttentionReader:
    """Reads the attention of one network. Make it with ``Engine.attention``."""

    network: Network
    source: Form
    target: Form
    writes: bool
    """True if the model writes an output, so that there is more than the source to look at."""
    guided: GuidedSettings | None
    """The settings by which a head was trained to align; None if there are none."""

    @cached_property
    def taught(self) -> AligningHead | None:
        """The head that was trained to align; None if there is none."""
        if self.guided is None:
            return None
        return AligningHead.of_guided(self.guided, self.network.attentions_of("cross"))

    def record(
        self, values: Sequence[int] | Values, tokens: Sequence[int], through: Probe | None = None
    ) -> AttentionRecord:
        """Return every attention weight of one output. A part that the model lacks has 0 layers;
        for a model that writes nothing, ``tokens`` is not used.

        ``values``: those of the source form, with the end symbol, or rows. ``through``: a recording
        probe that also intervenes, such as by switching heads off or hiding words.
        """
        given = [self.target.bos, *tokens] if self.writes else []
        with torch.inference_mode(), through or Probe() as probe:
            memory = self.network.encode(Sequences.of([torch.as_tensor(np.array(values))]))
            if self.writes:
                writing(self.network).decode(Sequences.of([torch.tensor(given)]), memory)
        s, t = self.network.memory_length(len(values)), len(given)
        return AttentionRecord(
            source=self.source.row_labels(values, s),
            target=self.target.names_of([*tokens, self.target.eos]) if self.writes else [],
            encoder=self.maps(probe, "encoder", s, t).numpy(),
            decoder=self.maps(probe, "decoder", s, t).numpy(),
            cross=self.maps(probe, "cross", s, t).numpy(),
        )

    def maps(
        self, probe: Probe, part: str, source: int, target: int, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Return the weights (L, H, rows, columns) of one ``part`` that ``probe`` recorded, for
        ``source`` and ``target`` tokens."""
        names = [attention.name for attention in self.network.attentions_of(part)]
        rows = source if part == "encoder" else target
        columns = target if part == "decoder" else source
        return probe.maps(names, rows, columns, dtype)

    def align(self, pairs: Sequence[TokenPair]) -> Iterator[list[Alignment]]:
        """Yield for each batch of ``pairs`` the attention of each output token to each source
        token, (T, S) per pair: that of the head that was trained to align, or else the mean of the
        heads of the layer whose attention is most concentrated. All 0 for a model without attention
        over its source."""
        for batch in self.cross(pairs):
            yield [
                (self.taught or AligningHead.guess(cross)).weights(cross).astype(np.float64)
                if len(cross)
                else np.zeros((cross.shape[2] - 1, cross.shape[3] - 1))
                for cross in batch
            ]

    def cross(self, pairs: Sequence[TokenPair]) -> Iterator[list[Cross]]:
        """Yield for each batch of ``pairs`` every weight of the attention over the source; with 0
        layers for a model that has no such attention."""
        layers = self.network.attentions_of("cross")
        before = len(self.source.before)
        for batch in self._batches(pairs):
            if not layers:
                yield [np.zeros((0, 0, len(t) + 1, len(s) + 1), np.float32) for s, t in batch]
                continue
            given = [
                torch.tensor([*self.source.before, *source, self.source.eos]) for source, _ in batch
            ]
            written = [torch.tensor([self.target.bos, *target]) for _, target in batch]
            with torch.inference_mode(), Probe() as probe:
                memory = self.network.encode(Sequences.of(given))
                writing(self.network).decode(Sequences.of(written), memory)
            # (L, B, H, T, S)
            cross = torch.stack([probe.attention[layer.name] for layer in layers]).float().numpy()
            yield [
                cross[:, number, :, : len(target) + 1, before : before + len(source) + 1]
                for number, (source, target) in enumerate(batch)
            ]

    def _batches(self, pairs: Sequence[TokenPair]) -> Iterator[list[TokenPair]]:
        """Yield the pairs in their order, in batches of at most ``MOST_WEIGHTS`` weights or of a
        single pair."""
        maps = sum(attention.heads for attention in self.network.attentions)
        batch: list[TokenPair] = []
        longest = 0
        for pair in pairs:
            length = max(longest, *(len(tokens) + 1 for tokens in pair))
            if batch and maps * (len(batch) + 1) * length * length > MOST_WEIGHTS:
                yield batch
                batch, length = [], max(len(tokens) + 1 for tokens in pair)
            batch.append(pair)
            longest = length
        if batch:
            yield batch


@dataclass(frozen=True)
class OpenedCell:
    """One cell of an attention map: the weight of one key for one query, with all that it is made
    of."""

    query: Tensor
    """(K,) the query of the token that attends."""
    key: Tensor
    """(K,) the key of the token that is attended to."""
    value: Tensor
    """(Kv,) the value of the token that is attended to."""
    product: float
    """The product q · k."""
    scale: float
    """The factor of the product: 1 / √d_k, or 1 for a model that does not scale."""
    weight: float
    """The attention weight, as the model computed it."""
    adds: Tensor
    """(D,) the contribution of this cell to the output row of the query's token."""
    head_adds: Tensor
    """(D,) the contribution of the whole head to that output row."""


def attention_of(model: Network, layer: AttentionLayer) -> MultiHeadAttention | None:
    """Return the module that computes an attention; None if it has no queries and keys."""
    every = (module for module in model.modules() if isinstance(module, MultiHeadAttention))
    return next((module for module in every if module.name == layer.name), None)


def open_cell(
    model: Network,
    attention: AttentionLayer,
    head: int,
    row: int,
    column: int,
    source: Tensor,
    target: Tensor,
    *,
    heads_off: Collection[tuple[str, int]] = (),
    hidden: Collection[int] = (),
) -> OpenedCell:
    """Run the model on a text and open one cell of an attention that has queries and keys
    (``attention_of``). ``source`` (S,) and ``target`` (T,) are tokens, ``target`` with the start
    symbol; ``heads_off`` and ``hidden`` are those of ``Probe``."""
    computes = attention_of(model, attention)
    assert computes is not None, "an attention with queries and keys"
    probe = Probe(heads_off=heads_off, hidden=hidden, points=("query", "key", "value", "heads"))
    with torch.inference_mode(), probe:
        memory = model.encode(Sequences.of([source]))
        if attention.part != "encoder":
            writing(model).decode(Sequences.of([target]), memory)
    taken = {
        point: probe.taken[attention.name, point][0, head]
        for point in ("query", "key", "value", "heads")
    }
    query, key, value = taken["query"][row], taken["key"][column], taken["value"][column]
    weight = float(probe.attention[attention.name][0, head, row, column])
    width = len(value)
    part = computes.output.weight.detach()[:, head * width : (head + 1) * width]  # W_i^O, (D, Kv)
    is_off = (attention.name, head) in heads_off
    at_work = 0.0 if is_off else 1.0
    return OpenedCell(
        query,
        key,
        value,
        product=float(query @ key),
        scale=attention.scale,
        weight=weight,
        adds=at_work * weight * (part @ value),
        head_adds=at_work * (part @ taken["heads"][row]),
    )
