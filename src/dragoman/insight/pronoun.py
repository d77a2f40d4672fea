"""Both hops of a pronoun: how a model finds out what "it" stands for.

"The animal didn't cross the street because it was too tired": *es* in German, for the animal; with
"too wide" it is *sie*, for the street. To choose, the decoder must look at *it* (cross-attention),
and the encoder must have told *it* what it stands for (self-attention, from *it* to the noun, and
to the adjective that decides). Which head of which layer does this differs from model to model, so
it is looked for on some sentences and shown on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.data.demo_corpus import PronounProbe, order_probes, pronoun_probes
from dragoman.pictures.records import AttentionRecord, Hops
from dragoman.pictures.words import in_words
from dragoman.tasks.translator import Translator


@dataclass(frozen=True)
class Head:
    """One head of one attention, layers and heads counted from 0."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"layer {self.layer + 1}, head {self.head + 1}"


@dataclass(frozen=True)
class PronounHeads:
    """The heads that resolve pronouns, and how much attention they give, over some sentences."""

    cross: Head
    """From the German pronoun to "it"."""
    encoder: Head
    """From "it" to the noun it stands for and the word that decides."""
    cross_mass: float
    """Mean weight of the first hop over the sentences that were looked at."""
    encoder_mass: float
    """Mean weight of the second hop."""
    uniform_cross: float
    """What the first hop would be if every token were looked at alike."""
    uniform_encoder: float


def pronoun_sentences() -> list[str]:
    """A pair of each family: the animal and the street, the man and the dinosaur."""
    return [p.source for p in pronoun_probes()[0]] + [p.source for p in order_probes()[0]]


def look_at(translator: Translator, probe: PronounProbe) -> AttentionRecord:
    """All attention of the reference translation of a probe, by words."""
    (given,) = translator.score([(probe.source, probe.reference)])
    return in_words(translator.look(probe.source, given.ids))


def find_heads(translator: Translator, probes: Sequence[PronounProbe]) -> PronounHeads:
    """The head of each hop with the most attention where it should be, on average."""
    cross, encoder, uniform = [], [], []
    for probe in probes:
        record = look_at(translator, probe)
        there = [probe.antecedent, probe.decider]
        cross.append(record.cross[:, :, probe.pronoun_word, probe.it])  # (L, H)
        encoder.append(record.encoder[:, :, probe.it, there].sum(-1))  # (L, H)
        uniform.append(1.0 / len(record.source))
    cross_mean, encoder_mean = np.mean(cross, axis=0), np.mean(encoder, axis=0)
    best_cross = np.unravel_index(cross_mean.argmax(), cross_mean.shape)
    best_encoder = np.unravel_index(encoder_mean.argmax(), encoder_mean.shape)
    return PronounHeads(
        Head(int(best_cross[0]), int(best_cross[1])),
        Head(int(best_encoder[0]), int(best_encoder[1])),
        float(cross_mean[best_cross]),
        float(encoder_mean[best_encoder]),
        float(np.mean(uniform)),
        2 * float(np.mean(uniform)),
    )


def hops_of(translator: Translator, probe: PronounProbe, heads: PronounHeads) -> Hops:
    """Both hops of one probe, as a picture takes them."""
    record = look_at(translator, probe)
    cross, encoder = heads.cross, heads.encoder
    return Hops(
        source=record.source,
        target=record.target,
        word=probe.pronoun_word,
        through=probe.it,
        first=record.cross[cross.layer, cross.head, probe.pronoun_word],
        second=record.encoder[encoder.layer, encoder.head, probe.it],
        first_from=f"cross-attention, {cross}",
        second_from=f"encoder, {encoder}",
    )


def pronoun_hops(translator: Translator, shown: int = 1) -> tuple[list[Hops], PronounHeads]:
    """Hops of the first ``shown`` pairs of probes, through heads found on all the others."""
    pairs = pronoun_probes()
    heads = find_heads(translator, [probe for pair in pairs[shown:] for probe in pair])
    return [hops_of(translator, probe, heads) for pair in pairs[:shown] for probe in pair], heads
