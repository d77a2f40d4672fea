"""The objectives of training: functions that compute the losses that are minimised and reported.

An objective is called with the model and a micro-batch. It returns the sum of the losses and the
number of tokens. The trainer adds up both over an update and divides once, so that the result does
not depend on how the update was cut into micro-batches, nor on how many processes shared them.
Dropout depends on the examples (``nn/dropout.py``) for the same reason.

In ``Taught`` and ``Consistent``, a translator also learns distributions over the vocabulary: those
of its teachers, or its own under other dropout. Both replace a share λ of the target distribution
of each token, which is (1 - λ) · (the right token, smoothed) + λ · soft. The gradient does not flow
into the soft part.

``GuidedAlignment`` and ``JointCtc`` add a second loss to that of an objective.

Shapes: B examples, P packed rows, D width, V vocabulary, K likely tokens, T target rows (the begin
symbol first), S source tokens (the end symbol last). For CTC, P rows of the encoder in all and T
rows of the longest recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.base.wording import plural
from dragoman.data.batches import Batch, MaskedBatch
from dragoman.data.labelled import LabelledBatch, TaggedBatch
from dragoman.data.store import TokenStore
from dragoman.data.word_links import Booleans, WordLinks, words_of
from dragoman.models.interface import Memory, Model, Network, Scores, Writing
from dragoman.native import loss as native_loss
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.probes import Guide
from dragoman.sources.shared.rows import SourceSettings
from dragoman.training.losses.loss import (
    CrossEntropy,
    PiecewiseCrossEntropy,
    SoftTargets,
    smoothed_cross_entropy,
)

_OTHER_MASKS = 0x5BD1E995
"""Added to the keys of rows, so that the second pass has other dropout masks."""
_MIN_WEIGHT = 1e-9
"""Attention weights below this value are replaced by it, so that their logarithm stays finite."""


class Sums(NamedTuple):
    """The losses of one micro-batch, summed over the tokens that the model has to predict, and the
    number of these tokens."""

    loss: Tensor
    """The loss to minimise, label smoothing included. Only this sum has a gradient."""
    nll: Tensor
    """The loss to report: -log P of the right tokens, in nats."""
    tokens: int
    """The number of tokens to predict."""


Objective = Callable[[Any, Any], Sums]
"""A function from a model and one batch (``MicroBatch``) of its task to the sums over that
batch."""


class MicroBatch(Protocol):
    """Examples that go through a model at once, as training handles them."""

    def __len__(self) -> int: ...

    def to(self, device: torch.device | str) -> Self: ...

    def split(self) -> tuple[Self, Self]:
        """Split into two parts with about half of the work each, which needs at least two
        examples."""

    def summary(self) -> str:
        """Return a phrase that says how large this micro-batch is."""


class NextToken:
    """Predict every token of the target from the source and the tokens before it (paper §5.4)."""

    def __init__(self, cross_entropy: CrossEntropy) -> None:
        self._cross_entropy = cross_entropy

    def __call__(self, model: Scores, batch: Batch) -> Sums:
        memory = model.encode(batch.source)
        hidden = model.decode(batch.target_in, memory)  # (P, D)
        loss, nll = self._cross_entropy(hidden, batch.target_out)
        return Sums(loss, nll, batch.target_tokens)


class MaskedTokens:
    """Predict the masked tokens from the whole input (Devlin et al., 2019, §3.1)."""

    def __init__(self, model: Network, smoothing: float) -> None:
        self._cross_entropy = cross_entropy_of(model, smoothing)

    def __call__(self, model: Network, batch: MaskedBatch) -> Sums:
        rows = model.encode(batch.source).rows  # (P, D)
        count = len(batch.wanted)
        if not count:  # texts of unknown tokens alone, of which nothing is asked
            nothing = rows.sum().double() * 0
            return Sums(nothing, nothing.detach(), 0)
        # Only these are projected: the logits of all would be seven times as many.
        loss, nll = self._cross_entropy(rows.index_select(0, batch.places), batch.wanted)
        return Sums(loss, nll, count)


def next_token(model: Writing, smoothing: float) -> NextToken:
    """Return the objective ``NextToken`` with the fastest cross-entropy for ``model``."""
    return NextToken(cross_entropy_of(model, smoothing))


def cross_entropy_of(model: Network, smoothing: float) -> CrossEntropy:
    """Return the cross-entropy of the tokens that ``model`` predicts: the fused native loss where
    the output layer computes with kernels, else a ``PiecewiseCrossEntropy``."""
    piecewise = PiecewiseCrossEntropy(model.project, model.parameters(), smoothing)
    layer = model.output_layer
    if model.output_bias is not None:  # the kernel adds none
        return piecewise

    def by_kernels(hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        packed = layer.packed
        if packed is None:
            return piecewise(hidden, targets)
        return native_loss.cross_entropy(hidden, layer.weight, targets, packed, smoothing=smoothing)

    return by_kernels


class LabelObjective:
    """Predict the label of each example with a ``Classifier``. The number of examples is counted
    instead of tokens. No kernel is needed, because a classifier makes few logits."""

    def __init__(self, model: Network, smoothing: float) -> None:
        self._smoothing = smoothing

    def __call__(self, model: Network, batch: LabelledBatch) -> Sums:
        logits = model.project(model.encode(batch.source).rows)  # (B, K)
        loss, nll = smoothed_cross_entropy(
            logits, batch.labels, self._smoothing, batch.others, batch.shares
        )
        return Sums(loss, nll, len(batch))


class TagOfEachWord:
    """Predict the tag of each word with a ``WordTagger``. Words are counted instead of tokens. No
    kernel is needed, because a tagger makes few logits."""

    def __init__(self, model: Network, smoothing: float) -> None:
        self._smoothing = smoothing

    def __call__(self, model: Network, batch: TaggedBatch) -> Sums:
        rows = model.encode(batch.read.source).rows  # (P, D)
        logits = model.project(batch.read.windows(rows))  # (W, K)
        loss, nll = smoothed_cross_entropy(logits, batch.tags, self._smoothing)
        return Sums(loss, nll, len(batch.tags))


class Likely(NamedTuple):
    """The likeliest tokens of each row, as teachers predict it."""

    probabilities: Tensor
    """The probabilities of these tokens, (P, K)."""
    tokens: Tensor
    """Their numbers, (P, K) int64, with the likeliest token first."""


LIKELY = 16
"""The number of likely tokens of a row that a student learns, K."""
_ROWS = 256
"""The logits of this many rows are in memory at once."""


@torch.no_grad()
def predict(teachers: Model, batch: Batch) -> Likely:
    """Predict each token of the target. ``teachers``: one model, or an ensemble."""
    hidden = teachers.decode(batch.target_in, teachers.encode(batch.source))
    parts = []
    for rows in hidden.split(_ROWS):
        logits = teachers.project(rows).float()
        parts.append(torch.softmax(logits, dim=-1).topk(min(LIKELY, logits.shape[-1])))
    return Likely(*(torch.cat(part) for part in zip(*parts, strict=True)))


class Taught:
    """Predict each token of the target as teachers do (word-level knowledge distillation; Kim and
    Rush, 2016): the likeliest tokens, and all others together."""

    def __init__(
        self, model: Writing, predict: Callable[[Batch], Likely], smoothing: float, weight: float
    ) -> None:
        """``predict``: what the teachers predict of a batch. ``weight``: λ."""
        self._loss = PiecewiseCrossEntropy(model.project, model.parameters(), smoothing)
        self._predict, self._weight = predict, weight

    def __call__(self, model: Writing, batch: Batch) -> Sums:
        wanted = self._predict(batch)

        def of_rows(first: int, last: int) -> tuple[Tensor, Tensor]:
            return wanted.probabilities[first:last], wanted.tokens[first:last]

        hidden = model.decode(batch.target_in, model.encode(batch.source))  # (P, D)
        loss, nll = self._loss(hidden, batch.target_out, SoftTargets(self._weight, of_rows))
        return Sums(loss, nll, batch.target_tokens)


class Consistent:
    """Predict each token twice, with different dropout masks, and learn that both distributions
    agree (R-Drop; Liang et al., 2021).

    The paper adds α times the mean of both Kullback-Leibler divergences, here with each
    distribution in turn held fixed; λ = α / (1 + α).
    """

    def __init__(self, model: Writing, smoothing: float, weight: float) -> None:
        """``weight``: λ, the weight of the other prediction."""
        self._loss = PiecewiseCrossEntropy(model.project, model.parameters(), smoothing)
        self._weight = weight

    def __call__(self, model: Writing, batch: Batch) -> Sums:
        twice = replace(batch, source=_twice(batch.source), target_in=_twice(batch.target_in))
        hidden = model.decode(twice.target_in, model.encode(twice.source))  # (2P, D)
        own = batch.target_tokens
        others = torch.cat([hidden[own:], hidden[:own]]).detach()

        def of_rows(first: int, last: int) -> tuple[Tensor, None]:
            with torch.no_grad():
                return torch.softmax(model.project(others[first:last]).float(), dim=-1), None

        targets = torch.cat([batch.target_out, batch.target_out])
        loss, nll = self._loss(hidden, targets, SoftTargets(self._weight, of_rows))
        return Sums(loss / 2, nll / 2, own)


def _twice(sequences: Sequences) -> Sequences:
    """Return all sequences of a batch twice; the second time, dropout has other masks."""
    layout, values = sequences.layout, sequences.values
    keys = layout.first_row_keys
    if keys is not None:
        keys = torch.cat([keys, keys + _OTHER_MASKS])  # may wrap around
    both = Layout([*layout.lengths, *layout.lengths], layout.device, keys)
    return Sequences(torch.cat([values, values]), both)


@dataclass(eq=False)
class GuidedAlignment:
    """One head of the decoder learns to align while the model learns to translate: the sum of the
    loss of an objective and of the weighted alignment loss of one attention head.

    Garg et al. (2019, "Jointly Learning to Align and Translate with Transformer Models") add to the
    loss

        - λ · Σ_t Σ_s A_ts log a_ts

    where a_t are the weights with which one head attends to the source, and A_t is 1 / n on the n
    source tokens that target token t is linked to. Tokens without a link add nothing to the loss.

    Garg et al. let the head see the whole target, by a second pass of the decoder without its mask.
    Here there is no second pass: the head is taken from the ordinary pass, at the step that has
    already *read* token t and therefore knows it (Chen et al. 2020, "Accurate Word Alignment
    Induction from Neural Machine Translation"). Nothing is computed twice, every kind of model can
    learn in this way, and the alignment is available while a translation is being written.
    docs/decisions/insight.md says more.
    """

    objective: Objective
    links: WordLinks
    """The word links of all examples of the store."""
    starts: tuple[Booleans, Booleans]
    """Two arrays of flags for tokens, one of the source and one of the target: true if the token
    begins a word."""
    _: KW_ONLY
    attention: str
    """The name of the model's attention whose ``head`` is trained."""
    head: int
    weight: float
    """The weight of the alignment loss (λ)."""

    def __call__(self, model: Any, batch: Batch) -> Sums:
        with Guide(self.attention, self.head) as guide:
            sums = self.objective(model, batch)
        assert guide.weights is not None, f"no attention is called {self.attention}"
        known = guide.weights.float().clamp(min=_MIN_WEIGHT).log()
        loss = -(known * self.labels(batch).to(known.device)).sum(dtype=torch.float64)
        return Sums(sums.loss + self.weight * loss, sums.nll, sums.tokens)

    def labels(self, batch: Batch) -> Tensor:
        """Return (B, T, S): for each target position, the attention weights that the head should
        have over the source positions. Each row sums to 1, or to 0 if its word has no link."""
        source, target = batch.source, batch.target_in
        grid = np.zeros((len(batch), target.layout.longest, source.layout.longest), np.float32)
        parts = zip(
            batch.ids,
            source.values.cpu().split(list(source.layout.lengths)),
            target.values.cpu().split(list(target.layout.lengths)),
            strict=True,
        )
        for row, (example, read, written) in enumerate(parts):
            of_source = words_of(read[:-1].numpy(), self.starts[0])
            of_target = words_of(written[1:].numpy(), self.starts[1])
            sources, targets = self.links[example]
            if not len(sources) or not len(of_source) or not len(of_target):
                continue
            words = np.zeros((of_target[-1] + 1, of_source[-1] + 1), np.float32)
            inside = (sources < words.shape[1]) & (targets < words.shape[0])
            words[targets[inside], sources[inside]] = 1
            tokens = words[of_target][:, of_source]  # (T - 1, S - 1)
            tokens /= np.maximum(tokens.sum(axis=1, keepdims=True), 1)
            grid[row, 1 : len(written), : len(read) - 1] = tokens
        return torch.from_numpy(grid)


class _Remembering:
    """A model that keeps the most recent output of its encoder."""

    memory: Memory

    def __init__(self, model: Scores) -> None:
        self._model = model

    def encode(self, source: Sequences) -> Memory:
        self.memory = self._model.encode(source)
        return self.memory

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        return self._model.decode(target_in, memory)


class JointCtc:
    """The weighted sum of an objective and of connectionist temporal classification (CTC; Graves et
    al., 2006), for models that read recordings: each row of the encoder predicts the token that is
    spoken there, or the blank.

        P(y | x) = Σ over all ways to spread y over the rows of Π_t P(token_t | x)

    A way assigns each token of y to one row or to several consecutive rows. The blank may stand
    between any two tokens; between two equal tokens it is required. In this way, the encoder learns
    the order of the words, which attention alone does not learn from little data. The loss is

        (1 - λ) · cross-entropy of the decoder - λ · log P(y | x)

    (Watanabe et al., 2017, "Hybrid CTC/Attention Architecture"). If a recording has fewer rows than
    its text needs, there is no way at all. Such a recording is left out of this loss, which would
    be infinite otherwise. The blank is output V, after those of the decoder.
    """

    def __init__(self, objective: Objective, weight: float) -> None:
        """``objective`` must call only ``encode`` and ``decode`` of the model. ``weight``: the
        weight of CTC (λ)."""
        self._objective = objective
        self._weight = weight

    def __call__(self, model: Any, batch: Batch) -> Sums:
        remembering = _Remembering(model)
        sums = self._objective(remembering, batch)
        loss = ctc_loss(model, remembering.memory, targets_of(batch))
        return Sums((1 - self._weight) * sums.loss + self._weight * loss, sums.nll, sums.tokens)


def targets_of(batch: Batch) -> list[Tensor]:
    """Return the tokens of each text, without begin and end symbols."""
    parts = batch.target_in.values.split(list(batch.target_in.layout.lengths))
    return [part[1:] for part in parts]


def ctc_loss(model: Network, memory: Memory, targets: list[Tensor]) -> Tensor:
    """Return the sum, in nats, of -log P over all texts whose recording has enough encoder rows
    for them. The other texts are left out."""
    head = model.ctc
    assert head is not None, "the recipe has training.ctc_weight"
    logits: Tensor = head(memory.rows).float()  # (P, V + 1)
    lengths = memory.layout.lengths
    room = [
        place
        for place, (rows, target) in enumerate(zip(lengths, targets, strict=True))
        if rows >= rows_needed(target.cpu().numpy())
    ]
    if not room:
        return logits.sum() * 0
    grid = memory.layout.pad(torch.log_softmax(logits, dim=-1))  # (B, T, V + 1)
    loss: Tensor = F.ctc_loss(
        grid[room].transpose(0, 1),
        torch.cat([targets[place] for place in room]),
        torch.tensor([lengths[place] for place in room]),
        torch.tensor([len(targets[place]) for place in room]),
        blank=logits.shape[-1] - 1,
        reduction="sum",
    )
    return loss.double()


def rows_needed(target: npt.NDArray[Any]) -> int:
    """Return the number of rows that a text needs: one for each token, and one for the blank
    between two equal tokens."""
    return len(target) + int((target[1:] == target[:-1]).sum())


_NAMED = 3
"""The number of sources that a message names, if more are too short for their texts."""


def without_room(store: TokenStore, model: Network, read: SourceSettings) -> str | None:
    """Return a message that describes the sources with fewer rows than their text needs, or None
    if there are no such sources. ``read``: the settings of the sources, which tell their kind and
    how many rows are merged into one."""
    source, target = store.lengths["source"], store.lengths["target"]
    different = {int(length): model.memory_length(int(length)) for length in np.unique(source)}
    rows = np.array([different[length] for length in source.tolist()])
    short = [
        int(example)
        for example in np.flatnonzero(rows < 2 * target)  # the most that can be needed
        if rows[example] < rows_needed(store.tokens("target", int(example)))
    ]
    if not short:
        return None
    names = ", ".join(store.text("source", example) for example in short[:_NAMED])
    more = ", ..." if len(short) > _NAMED else ""
    noun, fewer = read.raws.removesuffix("s"), read.shortens // 2
    set_ = f"set source.subsample = {fewer}, or use tokens" if fewer > 1 else "use tokens"
    return (
        f"{plural(len(short), f'{noun} is', f'{noun}s are')} too short for CTC, which needs a "
        f"row for each token ({names}{more}). There, only the decoder learns. If there are many: "
        f"{set_} with longer pieces"
    )
