"""The contract between models and the code that trains, searches, serves or inspects them.

A model *encodes* sources; it then *scores* given outputs for them, or *generates* outputs, or both.
Training and force decoding need only ``Scores``; search needs only ``Generates``, with ``select``
and ``admit`` of its state. Property tests check the contract for every model and every fast path:
``decode`` equals ``step`` repeated, however the prefix is cut, and selecting or admitting at any
time changes no result.

A model that only reads predicts something for each row: it *encodes*, and *projects* the encoded
rows (``Network``). A model that writes projects the rows of ``decode`` (``Writing``).

Shapes: B batch of sources, P packed rows (see ``nn/layout.py``), D model width, V vocabulary, N
live rows of a search (sentences x beam), t new tokens per row, k candidates per row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor, nn

from dragoman.models.searched import Constrain
from dragoman.models.settings import ModelSettings
from dragoman.native.abi import Step
from dragoman.nn.embedding import Embedding
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.linear import Linear

if TYPE_CHECKING:
    from dragoman.models.front_ends import FrontEnd

Part = Literal["encoder", "decoder", "cross"]
"""The part of a model that an attention belongs to: source tokens attend to the source (encoder),
target tokens attend to those before them (decoder), or target tokens attend to the source
(cross)."""


@dataclass(frozen=True)
class AttentionLayer:
    """One attention of a model, for callers that inspect it or intervene in it."""

    part: Part
    layer: int
    """The number of the layer within the part, from 0."""
    heads: int
    scale: float
    """The factor of scores before the softmax: 1 / √d_k in the paper."""
    name: str
    """The name of the attention for probes (``nn/probes.py``)."""


@dataclass(frozen=True)
class Memory:
    """B encoded sources. They may be shorter than the input: a speech encoder shortens its
    source."""

    rows: Tensor
    """(P, D), one row per position that the decoder may attend to."""
    layout: Layout
    key_mask: Tensor | None = None
    """(P,) bool, False for rows that may not be attended to (an unknown token, a hidden word);
    None: all may be."""
    tokens: Tensor | None = None
    """(P,) the token ids that were read; None if rows were read. A shortlist and the hint about the
    next word (``models/transformer/model.py``) use them."""
    parts: tuple[Memory, ...] = ()
    """In an ensemble, the memory of each model for the same B sources (``ensemble.py``)."""


class DecodeState(ABC):
    """The state that a search keeps from step to step. It belongs to one search, which changes it
    in place.

    Each row continues one hypothesis of one source. The rows of one source are adjacent.
    """

    @property
    @abstractmethod
    def lengths(self) -> Tensor:
        """(N,) int64: the number of target tokens that each row has read, including BOS."""

    @abstractmethod
    def select(self, rows: Tensor) -> None:
        """Keep ``rows`` (M,) int64, in that order: reorder, drop, or repeat hypotheses.

        A source without kept rows is forgotten, and its memory is freed.
        """

    @abstractmethod
    def admit(self, memory: Memory) -> None:
        """Add B new sources after the rows under way, with one row each, at position 0."""

    def native(self, k: int, length: int) -> Step | None:
        """Return the step by which native code calls ``best`` and ``select`` itself; None if it
        cannot.

        ``k``: the number of candidates that will be requested. ``length``: the number of tokens
        that a row will have read after the next step; beyond it, a native step may stop and request
        more.
        """
        return None


class Encodes(ABC):
    """A model that reads sources, as every model does."""

    @abstractmethod
    def encode(self, source: Sequences) -> Memory:
        """Read a batch of sources once. ``source.values`` are ids (P,), including end symbols, or
        rows (P, F), depending on the model."""


class Projects(ABC):
    """A model that turns hidden rows into logits, as every model does."""

    @abstractmethod
    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """Compute logits of hidden rows: (..., D) -> (..., V), or (..., len(ids)) for only the
        outputs ``ids``."""


class Scores(Encodes, Projects):
    """A model that writes, as training and force decoding use it: with given outputs."""

    @abstractmethod
    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Compute the hidden rows (P, D) of all positions at once, under teacher forcing, as in
        training.

        ``target_in.values`` (P,) begins each sentence with BOS; row p of the result predicts the
        token that follows row p.
        """


class Generates(Encodes):
    """A model that writes, as a search uses it: it generates outputs token by token."""

    normalises: ClassVar[bool] = True
    """True if ``best`` turns the results of ``step`` into log-probabilities; False if it keeps
    them."""

    @abstractmethod
    def start(self, memory: Memory) -> DecodeState:
        """Return a state with one row per source, at position 0."""

    @abstractmethod
    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        """Read ``tokens`` (N, t). Return logits (N, V) of the token after the last of them.

        t is 1 in search, and more for a prompt or a forced prefix. The first token is BOS.
        """

    def best(
        self, tokens: Tensor, state: DecodeState, k: int, constrain: Constrain | None = None
    ) -> tuple[Tensor, Tensor]:
        """Take a step, then return the k best continuations, best first: log-probabilities (N, k)
        fp32 and ids (N, k). Equal scores may come in any order.

        This is the plain computation; fast paths fuse its parts.
        """
        scores = self.step(tokens, state).float()
        if self.normalises:
            scores = torch.log_softmax(scores, dim=-1)
        if constrain is not None:  # which works on the host
            scores = torch.from_numpy(constrain(scores.cpu().numpy())).to(scores.device)
        return torch.topk(scores, min(k, scores.shape[-1]), dim=-1)


class Model(Scores, Generates):
    """The whole contract of models that write. Every such model keeps it, and so does every fast
    path."""


class Network(nn.Module, Encodes, Projects):
    """A model as a recipe describes it: a torch module that reads, and can be trained.

    ``settings.py`` lists the kinds. A network is made from its settings, the number of different
    tokens that it reads (or the settings of its rows), and the number of its outputs: the tokens
    that it writes, or the predictions that it can make for a row.
    """

    settings: ModelSettings
    front_end: FrontEnd | None
    """The part that turns a source of rows into rows of the model's width; None if the model reads
    tokens."""
    ctc: Linear | None
    """The layer that predicts for each encoded row which token is spoken there, or none (the last
    output): for training (``training/losses/objectives.py``) and for the search
    (``with_ctc.py``). None: there is no such layer."""
    output_bias: nn.Parameter | None
    """(V,) a bias that is added to the logits; None: there is none."""
    plain_only: ClassVar[str] = ""
    """The reason why no faster path runs this model; empty if one may."""

    def __init__(self) -> None:
        super().__init__()
        self.front_end = None
        self.ctc = None
        self.output_bias = None

    def memory_length(self, length: int) -> int:
        """Return the number of rows that the layers get for a source of ``length`` tokens or
        rows."""
        return length if self.front_end is None else self.front_end.length(length)

    @property
    @abstractmethod
    def attentions(self) -> tuple[AttentionLayer, ...]:
        """All attentions that can be inspected, those of one part in the order of their layers;
        empty if there are none."""

    def attentions_of(self, part: str) -> tuple[AttentionLayer, ...]:
        """Return the attentions of one part, in the order of their layers."""
        return tuple(attention for attention in self.attentions if attention.part == part)

    @property
    @abstractmethod
    def output_layer(self) -> Embedding | Linear:
        """The matrix by which ``project`` multiplies, before it adds ``output_bias``. Losses that
        fuse ``project`` use it."""

    @abstractmethod
    def input_terms(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        """Return the input of a side's first layer for one sequence (length,), and the terms of
        which it is made: (length, D) each by name, in the order of computing. Inspection uses
        them."""

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        logits = self.output_layer.project(hidden, ids)
        bias = self.output_bias
        if bias is None:
            return logits
        return logits + (bias if ids is None else bias[ids])


class Writing(Network, Model):
    """A network that writes, token by token."""


def writing(network: Network) -> Writing:
    """Return ``network`` as a ``Writing`` one, which it must be. Recipes of a task that writes
    (``Task.writes``) accept no other."""
    assert isinstance(network, Writing), f"a {network.settings.kind} model writes nothing"
    return network


class Advancing(Writing):
    """A network that can take a step without computing logits (``prepared.py`` computes them in its
    own way)."""

    @abstractmethod
    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        """Read ``tokens`` (N, t). Return the hidden rows (N, D) of the last of them."""

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        return self.project(self.advance(tokens, state))
