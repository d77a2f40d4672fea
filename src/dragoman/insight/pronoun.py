"""The two steps of attention (hops) by which a model translates "it" as the right German pronoun.

"The animal didn't cross the street because it was too tired": "it" is *es* in German, because the
animal is meant; with "too wide" it is *sie*, because the street is meant. To choose, the decoder
must look at "it" (first hop, cross-attention), and the encoder must have brought the meaning into
"it" (second hop, self-attention from "it" to the adjective that decides and to the possible nouns).
The heads and layers that do this differ between models, so they are found on some sentences and
drawn on others. The way also differs: one model looks at the noun that is meant; another model
always looks at the same one of the two nouns, and tells from it which noun is meant.

A probe is a test sentence with "it", its translation, and the places of the words in question
(``PronounProbe``). Probes come in pairs, such as the two sentences above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.demo.corpus import PronounProbe, order_probes, pronoun_probes
from dragoman.engine.predictor import Predictor
from dragoman.engine.session import begin_part
from dragoman.pictures.records import AttentionRecord, Hops, Weights, merged_to_words


@dataclass(frozen=True)
class PronounHead:
    """A head of an attention layer. Layers and heads count from 0."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"layer {self.layer + 1}, head {self.head + 1}"


@dataclass(frozen=True)
class PronounHeads:
    """The heads that resolve pronouns, and how much weight they give the right words, averaged over
    some sentences."""

    cross: PronounHead
    """The cross-attention head that looks from the German pronoun at "it"."""
    noun: PronounHead
    """The encoder head that looks from "it" at its noun."""
    decider: PronounHead
    """The encoder head that looks from "it" at the adjective that decides."""
    cross_mass: float
    """The weight that ``cross`` gives to "it" when it looks from the German pronoun, averaged over
    the sentences."""
    noun_mass: float
    """The weight that ``noun`` gives to the noun when it looks from "it", averaged over the
    sentences."""
    decider_mass: float
    """The weight that ``decider`` gives to the adjective when it looks from "it", averaged over the
    sentences."""
    uniform: float
    """The weight of one word if all words had the same weight, averaged over the sentences."""

    @property
    def encoder(self) -> tuple[PronounHead, ...]:
        """The heads of the encoder: ``noun`` and ``decider``, or a single head if they are the
        same."""
        return (self.noun,) if self.noun == self.decider else (self.noun, self.decider)


def pronoun_sentences() -> list[str]:
    """Return four English sentences: two about the animal and the street, which differ in the
    meaning of "it", and two about the man and the dinosaur, which differ in the order of words."""
    return [p.source for p in pronoun_probes()[0]] + [p.source for p in order_probes()[0]]


def look_at(predictor: Predictor[object], probe: PronounProbe) -> AttentionRecord:
    """Return the attention weights of all layers and heads, from word to word, while the model
    reads the source of the test sentence ``probe`` and writes its reference translation."""
    begin_part()
    (given,) = predictor.engine.target.tokens([probe.reference])
    return merged_to_words(predictor.look(probe.source, given))


def find_heads(predictor: Predictor[object], probes: Sequence[PronounProbe]) -> PronounHeads:
    """Return the heads that give the right words the largest weight on average over the test
    sentences ``probes``: one head of cross-attention and two of the encoder (see ``PronounHeads``).
    """
    cross, noun, decider, uniform = [], [], [], []
    for probe in probes:
        record = look_at(predictor, probe)
        cross.append(record.cross[:, :, probe.pronoun_word, probe.it])  # (L, H)
        noun.append(record.encoder[:, :, probe.it, probe.antecedent])  # (L, H)
        decider.append(record.encoder[:, :, probe.it, probe.decider])  # (L, H)
        uniform.append(1.0 / len(record.source))
    (to_it, it_mass), (to_noun, noun_mass), (to_decider, decider_mass) = map(
        _best, (cross, noun, decider)
    )
    return PronounHeads(
        to_it, to_noun, to_decider, it_mass, noun_mass, decider_mass, float(np.mean(uniform))
    )


def _best(weights: list[Weights]) -> tuple[PronounHead, float]:
    """Return the head with the largest mean weight, and this mean. ``weights``: for each sentence,
    the weights (layers, heads)."""
    mean = np.mean(weights, axis=0)
    layer, head = np.unravel_index(mean.argmax(), mean.shape)
    return PronounHead(int(layer), int(head)), float(mean[layer, head])


def hops_of(predictor: Predictor[object], probe: PronounProbe, heads: PronounHeads) -> Hops:
    """Return the attention of both hops in one test sentence, in the form in which a figure draws
    it: from the German pronoun to "it", and from "it" to all words of the source. ``probe``: the
    sentence; ``heads``: the heads whose attention is drawn.

    If the noun and the adjective have different heads, the second hop is the mean of both heads, so
    that it shows both words.
    """
    record = look_at(predictor, probe)
    cross = heads.cross
    from_it = [record.encoder[head.layer, head.head, probe.it] for head in heads.encoder]
    mean_of = "mean of " if len(heads.encoder) > 1 else ""
    return Hops(
        source=record.source,
        target=record.target,
        word=probe.pronoun_word,
        through=probe.it,
        first=record.cross[cross.layer, cross.head, probe.pronoun_word],
        second=np.mean(from_it, axis=0),
        first_from=f"cross-attention, {cross}",
        second_from=f"encoder, {mean_of}{' and '.join(map(str, heads.encoder))}",
    )


def pronoun_hops(predictor: Predictor[object]) -> tuple[list[Hops], PronounHeads]:
    """Return both hops of each of two test sentences (the first pair of probes), and the heads that
    make these hops. The heads are found on the sentences of all other pairs."""
    shown, *others = pronoun_probes()
    heads = find_heads(predictor, [probe for pair in others for probe in pair])
    return [hops_of(predictor, probe, heads) for probe in shown], heads
