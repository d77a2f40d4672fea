"""The two hops of a pronoun show how a model resolves "it".

"The animal didn't cross the street because it was too tired": *es* in German, for the animal;
with "too wide" it is *sie*, for the street. To choose, the decoder must look at *it*
(cross-attention), and the encoder must have brought the meaning into *it* (self-attention, from
*it* to the adjective that decides, and to the possible nouns). The heads and layers that do this
differ between models, so they are searched on some sentences and shown on other sentences. How they
do this differs too: one model looks at the noun that is meant; another model always looks at the
same one of the two nouns, and tells from it which noun is meant.
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
    """One head of one attention, layers and heads counted from 0."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"layer {self.layer + 1}, head {self.head + 1}"


@dataclass(frozen=True)
class PronounHeads:
    """The heads that resolve pronouns, and their mean attention over some sentences."""

    cross: PronounHead
    """The head from the German pronoun to "it"."""
    noun: PronounHead
    """The encoder head from "it" to its noun."""
    decider: PronounHead
    """The encoder head from "it" to the adjective that decides."""
    cross_mass: float
    """The mean weight of the first hop over the sentences."""
    noun_mass: float
    """The mean weight from "it" to its noun."""
    decider_mass: float
    """The mean weight from "it" to the adjective."""
    uniform: float
    """The weight of one word if all words had the same weight."""

    @property
    def encoder(self) -> tuple[PronounHead, ...]:
        """The heads of the encoder: those of the noun and of the adjective, or one that is both."""
        return (self.noun,) if self.noun == self.decider else (self.noun, self.decider)


def pronoun_sentences() -> list[str]:
    """Return a pair of each family: the animal and the street, the man and the dinosaur."""
    return [p.source for p in pronoun_probes()[0]] + [p.source for p in order_probes()[0]]


def look_at(predictor: Predictor[object], probe: PronounProbe) -> AttentionRecord:
    """Return all attention of the reference translation of a probe, by words."""
    begin_part()
    (given,) = predictor.engine.target.tokens([probe.reference])
    return merged_to_words(predictor.look(probe.source, given))


def find_heads(predictor: Predictor[object], probes: Sequence[PronounProbe]) -> PronounHeads:
    """Return the heads with the most attention in the right places, on average over the probes."""
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
    """Return the head with the largest mean of (L, H) weights, and that mean."""
    mean = np.mean(weights, axis=0)
    layer, head = np.unravel_index(mean.argmax(), mean.shape)
    return PronounHead(int(layer), int(head)), float(mean[layer, head])


def hops_of(predictor: Predictor[object], probe: PronounProbe, heads: PronounHeads) -> Hops:
    """Return both hops of one probe for a picture.

    If two heads of the encoder make the second hop, it is their mean, so that it shows both noun
    and adjective.
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
    """Return the hops of the first pair of probes, through heads found on all the others, and
    the heads."""
    shown, *others = pronoun_probes()
    heads = find_heads(predictor, [probe for pair in others for probe in pair])
    return [hops_of(predictor, probe, heads) for probe in shown], heads
