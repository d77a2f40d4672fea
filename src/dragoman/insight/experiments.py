"""Experiments on a trained run: how much each head matters, how each sub-layer changes the residual
stream, how much the encoder depends on positions, and what if something changes.

Heads are switched off one at a time, as Michel, Levy and Neubig do in *Are Sixteen Heads Really
Better than One?* (2019): most heads can go, a few cannot.

Norms: the paper's post-norm (§3.1, §5.4) turns x into LayerNorm(x + Sublayer(x)), pre-norm into x +
Sublayer(LayerNorm(x)). A model without residual connections does not add x. Sizes are measured per
row (token) and averaged over all rows of some sentences.

Positions: self-attention is a sum over a set. Without positions, each word of a sentence gets the
same row, whatever the order of the words (§3.5). The experiment switches the encoder's positions
off and on.

What if: words of the source are hidden, heads switched off or the beginning of the output forced,
and the source is translated again. A hidden word keeps its place, but no attention of encoder or
decoder may look at it; the output of a head that is switched off is zero (``engine/session.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Output, Predictor
from dragoman.engine.session import InspectionSession, Intervention, begin_part, teacher_forced
from dragoman.insight.subject import transformer_of
from dragoman.models.interface import Network
from dragoman.models.transformer.model import Sublayer
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Point, Probe
from dragoman.pictures.labels import labels
from dragoman.pictures.records import words


@dataclass(frozen=True)
class Importance:
    """The loss of some pairs with all heads, and with each head switched off in turn."""

    sentences: int
    tokens: int
    """The number of target tokens, including end symbols."""
    whole: float
    """The loss with all heads: -log P, in nats per target token."""
    without: dict[str, NDArray[np.float64]]
    """For each kind of attention ("encoder", "decoder", "cross"), a matrix (layers, heads) of the
    loss with only this head switched off."""

    def growth(self, kind: str) -> NDArray[np.float64]:
        """Return (layers, heads): by how much the loss grows without each head of the attention
        ``kind``, in nats per token."""
        return self.without[kind] - self.whole

    def ranking(self) -> list[tuple[str, int, int, float]]:
        """Return all heads as (kind of attention, layer, head, growth of the loss without this
        head), the largest growth first. Layers and heads count from 0."""
        every = [
            (kind, int(layer), int(head), float(self.growth(kind)[layer, head]))
            for kind, losses in self.without.items()
            for layer, head in np.ndindex(*losses.shape)
        ]
        return sorted(every, key=lambda head: -head[3])


def head_importance(predictor: Predictor[object], pairs: Sequence[tuple[str, str]]) -> Importance:
    """Compute the loss of ``pairs`` (source, reference) with all heads, and without each head in
    turn."""
    whole, tokens = _loss(predictor, pairs, Intervention())
    session = InspectionSession(predictor.engine, predictor)
    losses = session.without_each_head(lambda under: _loss(predictor, pairs, under)[0])
    without = {part: np.array(of_layers) for part, of_layers in losses.items()}
    return Importance(len(pairs), tokens, whole, without)


def _loss(
    predictor: Predictor[object], pairs: Sequence[tuple[str, str]], under: Intervention
) -> tuple[float, int]:
    """Return the loss of ``pairs``, -log P in nats per target token, and the number of target
    tokens. ``under``: the change to the model, such as a head that is switched off."""
    begin_part()
    with under.probe():
        written = predictor.engine.target.tokens([output for _, output in pairs])
        scored = predictor.score_ids([source for source, _ in pairs], written)
    values = [value for score in scored for value in score.token_log_probabilities]
    return -sum(values) / max(len(values), 1), len(values)


@dataclass(frozen=True)
class SublayerStatistics:
    """The statistics of one sub-layer. The size of a row is the root mean square of its numbers;
    sizes are averaged over rows."""

    sublayer: Sublayer
    """The sub-layer that the statistics describe."""
    stream: float
    """The size of x, the input of the residual connection."""
    added: float
    """The size of the sub-layer's output Sublayer(·), which is added to x."""
    agreement: float
    """The cosine between x and Sublayer(·): at 0 the sub-layer adds something new, at 1 it repeats
    x."""
    summed: float
    """The size of x + Sublayer(·)."""
    after: float
    """The size of what goes on to the next sub-layer: the output of the norm (post-norm) or the sum
    itself (pre-norm)."""
    gain: float | None
    """The mean of the norm's gain (γ); None without a norm."""
    bias: float | None
    """The root mean square of the norm's bias (β); None without a norm."""


def layer_statistics(
    predictor: Predictor[object], pairs: Sequence[tuple[str, str]]
) -> list[SublayerStatistics]:
    """Read ``pairs`` (source, target) with teacher forcing, and return statistics of the input and
    output of every sub-layer, in the order in which the sub-layers are computed."""
    run = predictor.run
    model = transformer_of(predictor.plain)
    sources = [predictor.source_ids(source) for source, _ in pairs]
    bos = run.target_text.bos
    targets = [[bos, *ids] for ids in run.target.tokens([target for _, target in pairs])]
    probe = Probe(points=("stream", "added", "after"))
    teacher_forced(model, sources, targets, probe)
    return [_measure(sublayer, probe) for sublayer in model.sublayers]


def _measure(sublayer: Sublayer, probe: Probe) -> SublayerStatistics:
    def rows(point: Point) -> Tensor:
        return probe.taken[sublayer.name, point].double()

    x, y = rows("stream"), rows("added")
    norm = {name: values.detach().double() for name, values in sublayer.norm.named_parameters()}
    return SublayerStatistics(
        sublayer,
        _size(x),
        _size(y),
        float(torch.cosine_similarity(x, y, dim=-1).mean()),
        _size(x + y),
        _size(rows("after")),
        float(norm["weight"].mean()) if norm else None,
        float(norm["bias"].square().mean().sqrt()) if norm else None,
    )


def _size(rows: Tensor) -> float:
    return float(rows.square().mean(dim=-1).sqrt().mean())


Array = NDArray[np.float64]


@dataclass(frozen=True)
class OrderReading:
    """What the run computes for both sentences, either with or without positions: the differences
    between the encoder's rows, and the translations."""

    differences: Array
    """(S,): for each token of the first sentence |a - b| / |a|, where a is the encoder's row of the
    token and b that of the same token in the second sentence."""
    translations: tuple[str, str]


@dataclass(frozen=True)
class OrderExperiment:
    """Two sentences of the same tokens in different orders, read with and without positions."""

    tokens: Sequence[str]
    """The tokens of the first sentence."""
    other_places: Sequence[int]
    """The place, from 0, that each token of the first sentence has in the second sentence."""
    with_positions: OrderReading
    without_positions: OrderReading


def order_experiment(predictor: Predictor[object], first: str, second: str) -> OrderExperiment:
    """Encode and translate two sentences that have the same tokens in different orders, with and
    without positions.

    Errors: ``DragomanError`` if the sentences do not have the same tokens.
    """
    run = predictor.run
    ids = [predictor.source_ids(first), predictor.source_ids(second)]
    if sorted(ids[0]) != sorted(ids[1]):
        pieces = [" ".join(run.source_text.pieces(sentence)) for sentence in ids]
        raise DragomanError(
            f"the two sentences do not have the same tokens in another order: {pieces[0]} | "
            f"{pieces[1]}"
        )
    places = _places(ids[0], ids[1])
    engine = predictor.engine.over(transformer_of(predictor.plain))
    return OrderExperiment(
        labels(run.source_text.pieces(ids[0])),
        places,
        _read_orders(engine, ids, places, positions=True),
        _read_orders(engine, ids, places, positions=False),
    )


def _places(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Return, for each token of ``first``, its place in ``second``. Equal tokens stay in order."""
    free: dict[int, list[int]] = {}
    for place, token in enumerate(second):
        free.setdefault(token, []).append(place)
    return [free[token].pop(0) for token in first]


def _read_orders(
    engine: Engine, ids: Sequence[Sequence[int]], places: Sequence[int], *, positions: bool
) -> OrderReading:
    begin_part()
    with torch.inference_mode(), Probe(positions_off=not positions, record=False):
        first_rows, second_rows = (
            engine.network.encode(Sequences.of([torch.tensor(sentence)])).rows.double().numpy()
            for sentence in ids
        )
        results = engine.search(engine.request(sentence) for sentence in ids)
    first, second = engine.target.raw([hypotheses[0].tokens for hypotheses in results])
    moved = second_rows[list(places)]
    return OrderReading(
        np.linalg.norm(first_rows - moved, axis=1) / np.linalg.norm(first_rows, axis=1),
        (first, second),
    )


@dataclass(frozen=True)
class Change:
    """A change to the model while it translates."""

    hidden: tuple[int, ...] = ()
    """The hidden words of the source, counted from 0. No attention can look at them."""
    heads_off: frozenset[tuple[str, int]] = frozenset()
    """The heads that are switched off, as (attention, head): the model's name of the attention
    layer, and the number of the head from 0."""
    prefix: str = ""
    """The text with which the translation must begin."""

    def on(self, predictor: Predictor[object], source: str) -> Intervention:
        """Return the intervention that makes this change while the model reads ``source``. Errors:
        ``DragomanError`` for a word that does not exist."""
        names, word_of = source_words(predictor, source)
        wrong = [word for word in self.hidden if not 0 <= word < len(names)]
        if wrong:
            raise DragomanError(
                f"the sentence has {plural(len(names), 'word')}; there is no word {wrong[0]}"
            )
        hidden = tuple(place for place, word in enumerate(word_of) if word in self.hidden)
        return Intervention(self.heads_off, hidden)

    @property
    def reaches_in(self) -> bool:
        """True if the change alters how the model computes. A prefix alone does not."""
        return bool(self.hidden or self.heads_off)


@dataclass(frozen=True)
class WhatIf:
    """A translation without and with a change."""

    change: Change
    before: Output
    after: Output
    before_log_probability: float
    """The log-probability of ``before`` without the change, in nats."""
    before_under_change: float
    """The log-probability of ``before`` under the change, in nats. If it is lower, the change makes
    the model doubt its first translation."""


def what_if(predictor: Predictor[object], source: str, change: Change) -> WhatIf:
    """Translate ``source`` without and with ``change``. If the model reads nothing, it scores the
    text ``source`` twice instead: without and with ``change``.

    ``predictor`` must compute in fp32, in which the model can be examined (``EngineSettings``).
    Errors: ``DragomanError`` for a word or a head that does not exist.
    """
    engine = predictor.engine
    is_plain = not engine.writes or engine.settings.precision == "fp32"
    assert is_plain, "only the plain model can be looked into"
    session, ids = InspectionSession(engine, predictor), predictor.source_values(source)
    under = change.on(predictor, source)
    before = predictor.own_output(source)
    with under.probe():
        after = predictor.own_output(source, change.prefix)
    doubted, trusted = (
        session.output_log_p(source, ids, before.ids, case) for case in (under, Intervention())
    )
    return WhatIf(change, before, after, trusted, doubted)


def source_words(
    predictor: Predictor[object], source: str
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the words of ``source``, including its end symbol, and for each token the number of
    its word, from 0. If ``source`` is a file, the words are the labels of the rows, such as patches
    or frames, that the model reads."""
    values = predictor.source_values(source)
    return words(
        predictor.engine.source.row_labels(values, predictor.plain.memory_length(len(values)))
    )


def find_words(names: Sequence[str], wanted: Iterable[str]) -> tuple[int, ...]:
    """Return the places, from 0, of the wanted words in ``names``. ``wanted``: each word by its
    text, or by its number from 1.

    A text selects every occurrence of the word; punctuation at its ends does not count. Errors:
    ``DragomanError`` for a word that does not exist.
    """
    chosen: list[int] = []
    bare = [name.strip(".,;:!?\"'()").casefold() for name in names]
    for word in wanted:
        places = [i for i, name in enumerate(bare) if name and name == word.casefold()]
        places = places or [i for i, name in enumerate(names) if name == word]
        if not places and word.isdecimal() and 1 <= int(word) <= len(names):
            places = [int(word) - 1]
        if not places:
            numbered = ", ".join(f"{i} {name}" for i, name in enumerate(names, 1))
            raise DragomanError(f"the sentence has no word {word!r}. Its words are: {numbered}")
        chosen += places
    return tuple(dict.fromkeys(chosen))


def parse_heads(predictor: Predictor[object], wanted: Iterable[str]) -> frozenset[tuple[str, int]]:
    """Parse texts such as ``cross.2.1``, ``encoder.1.*`` and ``decoder.*.3``: attention, layer and
    head, both from 1, and ``*`` for all. Return the heads as in ``Change.heads_off``.

    Errors: ``DragomanError`` for a head that the model does not have.
    """
    model = predictor.plain
    parts = list(dict.fromkeys(attention.part for attention in model.attentions))
    selected: set[tuple[str, int]] = set()
    for text in wanted:
        match = re.fullmatch(rf"({'|'.join(parts)})\.(\d+|\*)\.(\d+|\*)", text)
        if match is None:
            named = " or ".join(parts)
            raise DragomanError(
                f"{text!r} is not a head. Use ATTENTION.LAYER.HEAD with attention {named} and "
                f"numbers from 1 or *, such as {parts[-1]}.1.1 or {parts[0]}.1.*"
            )
        part, layer, head = match.groups()
        layers = model.attentions_of(part)
        _check_number(text, layer, len(layers), f"layers in {part}")
        for attention in layers if layer == "*" else [layers[int(layer) - 1]]:
            _check_number(text, head, attention.heads, f"heads in {part}")
            heads = range(attention.heads) if head == "*" else [int(head) - 1]
            selected.update((attention.name, number) for number in heads)
    return frozenset(selected)


def _check_number(given: str, number: str, most: int, what: str) -> None:
    if number != "*" and not 1 <= int(number) <= most:
        raise DragomanError(f"{given!r}: this model has {most} {what}, counted from 1")


def name_heads(model: Network, heads: Iterable[tuple[str, int]]) -> list[str]:
    """Return ``heads``, given as in ``Change.heads_off``, as sorted texts such as ``cross.2.1``,
    which ``parse_heads`` reads."""
    known = {attention.name: attention for attention in model.attentions}
    places = sorted((known[name].part, known[name].layer + 1, head + 1) for name, head in heads)
    return [f"{part}.{layer}.{head}" for part, layer, head in places]
