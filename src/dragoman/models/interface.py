"""The one contract between models and everything that trains, searches, serves or looks inside.

A model *encodes*; what was encoded it *scores* outputs of, or *generates* them, or both. Training
and force decoding ask for ``Scores``, search asks for ``Generates`` and of the state ``select`` and
``admit``, and for nothing else. Property tests hold every model and every fast path to it:
``decode`` equals ``step`` repeated, however the prefix is cut; selecting or admitting at any moment
changes no result.

A model that only reads says something of each row that it has read: it *encodes*, and *projects*
those rows (``Network``). One that writes projects the rows of ``decode`` (``Writing``).

Shapes: B batch of sources, P packed rows (see ``nn/layout.py``), D model width, V vocabulary,
N live rows of a search (sentences x beam), t new tokens per row, k candidates per row.
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
"""Which attention: source tokens look at the source (encoder), target tokens at those before them
(decoder), or target tokens at the source (cross)."""


@dataclass(frozen=True)
class AttentionLayer:
    """One attention of a model, for callers that look at it or reach into it."""

    part: Part
    layer: int
    """Its number within the part, from 0."""
    heads: int
    scale: float
    """The factor of scores before the softmax: 1 / √d_k in the paper."""
    name: str
    """Its name for probes (``nn/probes.py``)."""


@dataclass(frozen=True)
class Memory:
    """B encoded sources. They may be shorter than the input: a speech encoder shortens."""

    rows: Tensor
    """(P, D), one row per position that the decoder may attend to."""
    layout: Layout
    key_mask: Tensor | None = None
    """(P,) bool, False where attention is switched off (unknown tokens, a hidden word)."""
    tokens: Tensor | None = None
    """(P,) the ids that were read, where ids were: a shortlist and the next word go by them."""
    parts: tuple[Memory, ...] = ()
    """In an ensemble, the memory of each model for the same B sources (``ensemble.py``)."""


class DecodeState(ABC):
    """All that a search carries from step to step. Changed in place; belongs to one search.

    Row n continues one hypothesis of source ``sources[n]``. Rows of one source are together.
    """

    @property
    @abstractmethod
    def lengths(self) -> Tensor:
        """(N,) int64: how many target tokens each row has taken in, BOS counted."""

    @abstractmethod
    def select(self, rows: Tensor) -> None:
        """Keep ``rows`` (M,) int64, in that order: reorder, drop, or repeat hypotheses.

        A source none of whose rows is kept is forgotten, and its memory is freed.
        """

    @abstractmethod
    def admit(self, memory: Memory) -> None:
        """Add B new sources behind the rows under way, one row each, at position 0."""

    def native(self, k: int, length: int) -> Step | None:
        """The step by which native code calls ``best`` and ``select`` itself; None if it cannot.

        ``k``: candidates that will be asked for. ``length``: tokens that a row will have taken in
        after the next step; beyond it a step may stop and ask for more.
        """
        return None


class Encodes(ABC):
    """A model that reads sources, as all do."""

    @abstractmethod
    def encode(self, source: Sequences) -> Memory:
        """Read a batch of sources, once. ``source.values`` are (P,) ids, end symbol included, or
        (P, F) rows, whichever the model was made for."""


class Projects(ABC):
    """Every model turns hidden rows into logits."""

    @abstractmethod
    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """(..., D) -> logits (..., V), or (..., len(ids)) over the outputs ``ids`` alone."""


class Scores(Encodes, Projects):
    """A model that writes, as training and force decoding use it: its outputs are given."""

    @abstractmethod
    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """All positions at once under teacher forcing -> hidden (P, D); what training calls.

        ``target_in.values`` (P,) begins each sentence with BOS; row p of the result predicts the
        token that follows row p.
        """


class Generates(Encodes):
    """A model that writes, as a search uses it: its outputs are made, token by token."""

    normalises: ClassVar[bool] = True
    """Whether ``best`` makes log-probabilities of what ``step`` gives."""

    @abstractmethod
    def start(self, memory: Memory) -> DecodeState:
        """A state with one row per source, at position 0."""

    @abstractmethod
    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        """Take in ``tokens`` (N, t) -> logits (N, V) of what follows the last of them.

        t is 1 in search; more for a prompt or a forced prefix. The first token is BOS.
        """

    def best(
        self, tokens: Tensor, state: DecodeState, k: int, constrain: Constrain | None = None
    ) -> tuple[Tensor, Tensor]:
        """Step, then the k best continuations: log-probabilities (N, k) fp32 and ids (N, k).

        Best first; equal scores in any order. Fast paths fuse what this spells out.
        """
        scores = self.step(tokens, state).float()
        if self.normalises:
            scores = torch.log_softmax(scores, dim=-1)
        if constrain is not None:  # which works on the host
            scores = torch.from_numpy(constrain(scores.cpu().numpy())).to(scores.device)
        return torch.topk(scores, min(k, scores.shape[-1]), dim=-1)


class Model(Scores, Generates):
    """The whole contract of what writes: every such model keeps it, and every faster way to run
    one."""


class Network(nn.Module, Encodes, Projects):
    """A model as a recipe describes it: a torch module that reads, and can be trained.

    ``settings.py`` names them all. Made from its settings, the number of different tokens that it
    reads (or what its rows are), and the number of its outputs: of those that it writes, or of what
    it can say of a row.
    """

    settings: ModelSettings
    front_end: FrontEnd | None
    """The part that turns a source of rows into the model's rows; None if it reads tokens."""
    ctc: Linear | None
    """The layer that predicts for each row that was read which token is spoken there, or none (the
    last output): for training (``training/losses/ctc.py``) and for the search (``with_ctc.py``)."""
    output_bias: nn.Parameter | None
    """(V,) a bias that is added to the logits, or none."""
    plain_only: ClassVar[str] = ""
    """Why no faster path of its kind runs it; nothing where they may."""

    def __init__(self) -> None:
        super().__init__()
        self.front_end = None
        self.ctc = None
        self.output_bias = None

    def memory_length(self, length: int) -> int:
        """The number of rows that the layers make of a source of ``length`` tokens or rows."""
        return length if self.front_end is None else self.front_end.length(length)

    @property
    @abstractmethod
    def attentions(self) -> tuple[AttentionLayer, ...]:
        """All that can be looked at, layers of one part in their order; empty where nothing can."""

    def attentions_of(self, part: str) -> tuple[AttentionLayer, ...]:
        """The attentions of one part, in the order of their layers."""
        return tuple(attention for attention in self.attentions if attention.part == part)

    @property
    @abstractmethod
    def output_layer(self) -> Embedding | Linear:
        """The matrix that ``project`` multiplies by before it adds ``output_bias``: for losses
        that fuse it."""

    @abstractmethod
    def embedded(self, tokens: Tensor, side: Literal["source", "target"]) -> dict[str, Tensor]:
        """The input of a side's first layer for one sequence (length,), and the terms that it is
        made of: (length, D) each by name, in the order of computing. For those who look inside."""

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        logits = self.output_layer.project(hidden, ids)
        bias = self.output_bias
        if bias is None:
            return logits
        return logits + (bias if ids is None else bias[ids])


class Writing(Network, Model):
    """A network that writes, token by token."""


def writing(network: Network) -> Writing:
    """A network of a task that writes (``Task.writes``), for which a recipe takes no other."""
    assert isinstance(network, Writing), f"a {network.settings.kind} model writes nothing"
    return network


class Advancing(Writing):
    """A network whose step can be had without its logits (``prepared.py`` makes them otherwise)."""

    @abstractmethod
    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        """Take in ``tokens`` (N, t) -> hidden (N, D) of the last."""

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        return self.project(self.advance(tokens, state))
