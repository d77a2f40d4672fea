"""Classifiers of texts, pictures and words: the last rows of any stack of layers, averaged, and a
linear layer.

    logits = W mean_p x_p + b          x (P, D) the rows of one text's last layer

With a class token, x_0 replaces the mean (Dosovitskiy et al., 2021, equation 4). A tagger averages
the rows of each word, and its linear layer reads the word and its two neighbours:

    m_w = mean_{p of w} x_p
    logits_w = W [m_{w-1}; m_w; m_{w+1}] + b    zeros before and after a sentence

The stack may be bidirectional, as BERT's is (Devlin et al., 2019), or attend only to the left, as
GPT's (Radford et al., 2018) and ULMFiT's LSTM do (Howard and Ruder, 2018), and may come from a run
that was trained on text without labels. Departures: those papers use the row of one symbol, or
concatenate the last row with the mean and the maximum of each column. The mean alone depends on
every token, needs no symbol that training without labels has not seen, and is the same for all
stacks.

Devlin et al. (2019, §5.3) read the row of a word's first token. The mean suits all kinds of stacks
here too: an LSTM or a decoder runs from left to right, so the first row contains nothing of the
word's ending, and endings say most about new words. The neighbours (the window of Collobert et al.,
2011, §3.3.1) show such a stack the next word, and they show any stack which rows are near, which it
would otherwise have to learn.

Shapes: B texts, P packed rows, W words, D width, K labels.
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
        read = self.encode_tokens(source)
        rows = (first_rows if self._by_first else mean_rows)(read.rows, read.layout)
        return Memory(rows, Layout([1] * read.layout.batch, read.layout.device))

    def encode_tokens(self, source: Sequences) -> Memory:
        """Return the rows (P, D) of all tokens. A decoder is fed the source as if it had written
        it."""
        memory = self.body.encode(source)
        if self.settings.reads:
            return memory
        return Memory(writing(self.body).decode(source, memory), source.layout)

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        logits: Tensor = self.head(hidden)
        return logits if ids is None else logits[..., ids]

    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        return self.body.input_terms(tokens, side)


class WordTagger(Classifier):
    """A body, and a linear head over each word and its neighbours.

    ``encode`` returns the rows of all tokens. ``data.labelled.WordRows`` turns them into the rows
    of words (W, 3 D), and ``project`` maps these to logits (W, K).
    """

    def __init__(self, body: Network, labels: int) -> None:
        super().__init__(body, labels)
        self.head = PlainLinear(3 * body.settings.model_dim, labels)

    def encode(self, source: Sequences) -> Memory:
        return self.encode_tokens(source)


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


def new_classifier(
    settings: ModelSettings, source: SourceInput, labels: int, kind: type[Classifier] = Classifier
) -> Classifier:
    """Make a classifier of this ``kind`` with new weights, drawn from torch's generator.
    ``source``: the number of different tokens that it reads, or the settings of its rows."""
    outputs = source if isinstance(source, int) else labels  # of the body, which nothing asks for
    return kind(new_network(settings, source, outputs), labels)
