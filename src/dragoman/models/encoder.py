"""A Transformer's encoder by itself: each token looks at all others, and of each row that comes out
something is said.

    x = x + SelfAttention(LayerNorm(x));  x = x + FFN(LayerNorm(x))          (pre-norm)
    logits = x Wᵀ

(Devlin et al., 2019: BERT's shape; paper §3.1.) What is said is the task's: which token stands
where one is masked, W being the embedding with ``tie``, or one of some labels. Departures from
BERT: no segments, no first symbol of its own, ReLU (the paper's) unless the setting ``activation``
says GELU, and no layer between the last one and W.

Shapes: B sources, P packed rows, D width, V outputs.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from dragoman.models.encoding import ClassToken, LayeredEncoder, SourceInput, front_end
from dragoman.models.interface import AttentionLayer
from dragoman.models.settings import EncoderSettings
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Embedding, Positions
from dragoman.nn.layers import Around, EncoderLayer, Stack
from dragoman.nn.linear import Linear


class Encoder(LayeredEncoder):
    """Embedding, layers, output. What is said of P rows is ``project(encode(source).rows)``.

    Its weights are called as those of a ``Transformer``'s encoder.
    """

    settings: EncoderSettings

    def __init__(
        self, settings: EncoderSettings, source_vocabulary: SourceInput, target_vocabulary: int
    ) -> None:
        """``target_vocabulary``: V, the tokens or labels that a row can be given; with ``tie`` the
        tokens that are read. One that reads rows has no matrix to tie, and without another output
        layer none at all: a head stands over it."""
        super().__init__()
        self.settings = settings
        width = settings.model_dim
        made = front_end(source_vocabulary, width)
        self.front_end = ClassToken(made, width) if settings.class_token and made else made
        if isinstance(source_vocabulary, int):
            if settings.tie:
                assert source_vocabulary == target_vocabulary, "one matrix needs one vocabulary"
            self.source_embedding = Embedding(source_vocabulary, width)
        self.output = None if settings.tie else Linear(width, target_vocabulary, bias=False)
        across = self.front_end.across if self.front_end else 0
        skipped = int(settings.class_token)
        self.source_positions = Positions(settings.positions, width, across, skipped)
        self.dropout = Dropout(settings.dropout)
        self.encoder: Stack[EncoderLayer] = Stack(
            [EncoderLayer(settings, f"encoder.{number}") for number in range(settings.layers)]
        )
        self.encoder_norm = Around(settings).last_norm()

    @property
    def attentions(self) -> tuple[AttentionLayer, ...]:
        attentions = [layer.attention for layer in self.encoder]
        return tuple(
            AttentionLayer("encoder", number, one.heads, one.scale, one.name)
            for number, one in enumerate(attentions)
        )

    @property
    def output_layer(self) -> Embedding | Linear:
        return self.source_embedding if self.output is None else self.output

    def embedded(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        """The steps of the embedding by name, as ``Network.embedded`` describes. ``side`` is not
        used, since an encoder has one side."""
        lengths, places = torch.full_like(tokens, len(tokens)), torch.arange(len(tokens))
        word = self.source_embedding(tokens) * self.settings.embedding_scale
        place = self.source_positions(places, lengths, word.dtype)
        return {"embedding": word, "position": place, "sum": word + place}
