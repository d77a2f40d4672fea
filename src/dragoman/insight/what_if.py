"""Experiments that change a translation: they hide words of the source, switch heads off or force
the beginning of the output, and translate again. A hidden word keeps its place, but no attention of
encoder or decoder may look at it; the output of a head that is switched off is zero
(``engine/session.py``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural
from dragoman.engine.predictor import Output, Predictor
from dragoman.engine.session import InspectionSession, Intervention
from dragoman.models.interface import Network
from dragoman.pictures.records import words


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
