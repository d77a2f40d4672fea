"""A classifier of texts and pictures: the last rows of any stack of layers, averaged, and a linear
layer.

    logits = W mean_p x_p + b          x (P, D) the rows of one text's last layer

With a class token, x_0 replaces the mean (Dosovitskiy et al., 2021, equation 4).

The stack may be bidirectional, as BERT's is (Devlin et al., 2019), or attend only to the left, as
GPT's (Radford et al., 2018) and ULMFiT's LSTM do (Howard and Ruder, 2018), and may come from a run
that was trained on text without labels. Departures: those papers use the row of one symbol, or
concatenate the last row with the mean and the maximum of each column. The mean alone depends on
every token, needs no symbol that training without labels has not seen, and is the same for all
stacks.

Shapes: B texts, P packed rows, D width, K labels.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from dragoman.models.catalogue.networks import new_network
from dragoman.models.encoding import SourceInput
from dragoman.models.interface import AttentionLayer, Memory, Network, writing
from dragoman.models.settings import EncoderSettings, ModelSettings
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Linear, PlainLinear


class Classifier(Network):
    """A body, which is any network that is a single stack, and a linear head over it.

    ``encode`` returns one row per text, and ``project(encode(texts).rows)`` is (B, K).
    """

    def __init__(self, body: Network, labels: int) -> None:
        super().__init__()
        self.settings = body.settings
        self.body = body
        self.head = PlainLinear(body.settings.model_dim, labels)
        settings = body.settings
        self._by_first = isinstance(settings, EncoderSettings) and settings.class_token

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        return self.body.attentions

    @property
    def output_layer(self) -> Linear:
        return self.head

    def memory_length(self, length: int) -> int:
        return self.body.memory_length(length)

    def encode(self, source: Sequences) -> Memory:
        memory = self.body.encode(source)
        rows = memory.rows  # (P, D)
        if not self.settings.reads:  # what it is given it takes for what it has written
            rows = writing(self.body).decode(source, memory)
        layout = memory.layout if self.settings.reads else source.layout
        said = first_rows(rows, layout) if self._by_first else mean_rows(rows, layout)
        return Memory(said, Layout([1] * layout.batch, layout.device))

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        logits: Tensor = self.head(hidden)
        return logits if ids is None else logits[..., ids]

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        return self.body.input_terms(tokens, side)


def first_rows(rows: Tensor, layout: Layout) -> Tensor:
    """Return the first row of each sequence, in at least fp32: (P, D) -> (B, D)."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    return rows.index_select(0, layout.offsets[:-1].long()).to(wide)


def mean_rows(rows: Tensor, layout: Layout) -> Tensor:
    """Return the mean of each sequence's rows, in at least fp32: (P, D) -> (B, D)."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    sums = rows.new_zeros(layout.batch, rows.shape[1], dtype=wide)
    sums = sums.index_add(0, layout.sequence, rows.to(wide))
    lengths = torch.tensor(layout.lengths, dtype=wide, device=rows.device)
    return sums / lengths[:, None]


def new_classifier(settings: ModelSettings, source: SourceInput, labels: int) -> Classifier:
    """Make a classifier with new weights, drawn from torch's generator. ``source``: the number of
    different tokens that it reads, or the settings of its rows."""
    outputs = source if isinstance(source, int) else labels  # of the body, which nothing asks for
    return Classifier(new_network(settings, source, outputs), labels)
