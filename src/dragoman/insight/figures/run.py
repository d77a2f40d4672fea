"""Figures of a trained run: how much the order of words and each head matter, word alignment, and
the resolution of a pronoun in two steps of attention (hops).

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
from numpy.typing import NDArray

from dragoman.base.errors import DragomanError
from dragoman.base.wording import percent, plural, power
from dragoman.demo.corpus import PronounProbe, order_probes, pronoun_probes
from dragoman.engine.alignment_head import AlignmentScores, HeadLinks
from dragoman.engine.predictor import Predictor
from dragoman.engine.session import begin_part
from dragoman.insight.experiments import Importance, head_importance, order_experiment
from dragoman.insight.figures.captions import Parts
from dragoman.insight.panels import (
    PART_WORDS,
    aer_panels,
    aer_table,
    importance_panels,
    importance_table,
)
from dragoman.insight.subject import Subject
from dragoman.metrics.alignment import parse_links
from dragoman.pictures.figure import DataTable, Panel, Words
from dragoman.pictures.matrix import MatrixPicture
from dragoman.pictures.panels import TextPanel, TwoHops, WordWeights
from dragoman.pictures.records import AttentionRecord, Heatmap, Hops, Weights, merged_to_words

_ORDER = ("The small man eats the dinosaur.", "The dinosaur eats the small man.")
_GOLD = {
    (
        "The animal didn't cross the street because it was too tired.",
        "Das Tier überquerte die Straße nicht, weil es zu müde war.",
    ): "0-0 1-1 3-2 2?2 4-3 5-4 2-5 6-6 7-7 9-8 10-9 8-10"
}
"""Word links made by hand for a pair (source, translation), with words counted from 0."""


def order_figure(subject: Subject) -> Parts:
    """Draw how much the encoder's rows of the same words differ between two sentences that have
    these words in different orders. Draw this with and without positions, and show the
    translations."""
    first, second = _ORDER if subject.is_demo else _reverse(subject)
    experiment = order_experiment(subject.predictor, first, second)
    ordered, unordered = experiment.with_positions, experiment.without_positions
    both = np.stack([ordered.differences, unordered.differences])
    written = [
        ("on", first, ordered.translations[0]),
        ("on", second, ordered.translations[1]),
        ("off", first, unordered.translations[0]),
        ("off", second, unordered.translations[1]),
    ]
    yield MatrixPicture(
        "From a word's row in one sentence to its row in the other, |a − b| / |a|",
        both,
        rows=["with", "without"],
        columns=list(experiment.tokens),
        cell=(60, 30),
    )
    yield TextPanel("What the run then writes", ("positions", "read", "written"), written)
    yield DataTable(
        ("token", "place", "place in the other", "difference on", "difference off"),
        [
            (token, place, experiment.other_places[place], float(ordered.differences[place]),
             float(unordered.differences[place]))
            for place, token in enumerate(experiment.tokens)
        ],
    )  # fmt: skip
    yield DataTable(("positions", "source", "translation"), written, "translations")
    yield Words(
        f"Largest difference without positions: {power(unordered.differences.max())}; "
        f"with them: {ordered.differences.max():.2f}.",
        f"위치 인코딩이 없을 때 가장 큰 차이: {power(unordered.differences.max())}, "
        f"있을 때: {ordered.differences.max():.2f}.",
    )


def _reverse(subject: Subject) -> tuple[str, str]:
    """Return the sentence and the same words in reverse order. Errors: ``DragomanError`` if both
    are not split into the same tokens."""
    words = subject.sentence.split()
    turned = " ".join(reversed(words))
    pair = [sorted(ids) for ids in subject.run.source.values([subject.sentence, turned])]
    if pair[0] != pair[1]:
        raise DragomanError(
            f"the words of {subject.sentence!r} in reverse order are split into other tokens. Use "
            "another sentence: --sentence TEXT"
        )
    return subject.sentence, turned


def importance_figure(subject: Subject) -> Parts:
    """Draw how much the loss grows when one head at a time is switched off."""
    pairs = subject.pairs or ((subject.sentence, subject.output.text),)
    importance = head_importance(subject.predictor, pairs)
    yield from importance_panels(importance)
    yield importance_table(importance)
    yield _importance_note(importance)


def _importance_note(importance: Importance) -> Words:
    kind, layer, head, growth = importance.ranking()[0]
    idle = sum(abs(entry[3]) < 0.01 for entry in importance.ranking())
    count = len(importance.ranking())
    name = PART_WORDS[kind]
    return Words(
        f"{plural(importance.sentences, 'sentence')}, {plural(importance.tokens, 'token')}, loss "
        f"{importance.whole:.3f} with all "
        f"heads. Most needed: {name.english}, layer {layer + 1}, head {head + 1} (+{growth:.2f}). "
        f"Of {count} heads, switched off one at a time, {idle or 'none'} "
        f"{'change' if idle > 1 else 'changes'} the loss by less than 0.01.",
        f"문장 {importance.sentences}개, 토큰 {importance.tokens}개, 모든 헤드로 잰 손실 "
        f"{importance.whole:.3f}. 가장 중요한 헤드: {name.korean} {layer + 1}층 헤드 {head + 1} "
        f"(+{growth:.2f}). 하나씩 껐을 때 손실이 0.01보다 적게 변하는 헤드: {count}개 중 {idle}개.",
    )


def alignment_figure(subject: Subject) -> Parts:
    """Draw cross-attention, the source word to which each target word is linked, and, if links made
    by hand are known, the alignment error rate (AER)."""
    record, looked = merged_to_words(subject.attention), HeadLinks.of_record(subject.attention)
    layer, head = looked.guess.layer, looked.guess.head
    by_hand = _GOLD.get((subject.sentence, subject.output.text))
    gold = None if by_hand is None else parse_links(by_hand, "the demo's own links")
    links = looked.by(looked.guess)
    shown = record.heatmap("cross", layer, head)
    chosen = np.zeros((len(shown.rows), len(shown.columns)))
    for source, target in links:
        chosen[target, source] = 1.0
    yield WordWeights(shown)
    yield _links("Links of the model: most looked at", shown, chosen)
    yield DataTable(
        ("target word", "target", "source word", "source"),
        [
            (target, shown.rows[target], source, shown.columns[source])
            for source, target in sorted(links, key=lambda link: link[1])
        ],
    )
    several = len(record.cross) > 1
    drawn_layer = Words(
        f"layer {layer + 1}{', whose heads look most surely at one word' if several else ''}",
        f"{'한 단어를 가장 뚜렷하게 보는 ' if several else ''}디코더 {layer + 1}층",
    )
    if gold is None:
        yield Words(
            f"Drawn: {drawn_layer.english}. This sentence has no links made by people. To compare "
            "with some: dragoman look RUN SENTENCE --gold FILE",
            f"그린 것: {drawn_layer.korean}. 이 문장에는 사람이 만든 정렬이 없습니다. dragoman "
            "look RUN 문장 --gold FILE 명령으로 비교할 수 있습니다.",
        )
        return
    scores = AlignmentScores.of([looked], [gold])
    made = np.zeros_like(chosen)
    for links_made, strength in ((gold.possible, 0.5), (gold.sure, 1.0)):
        for source, target in links_made:
            made[target, source] = strength
    yield _links("Links made by hand: sure 1, possible 0.5", shown, made)
    yield from aer_panels(scores)
    yield aer_table(scores)
    drawn = float(scores.heads["choosing"][layer, -1])
    best = scores.best
    rate, head = scores.quality(best).error_rate, best.head
    yield Words(
        f"Drawn: {drawn_layer.english}; AER {drawn:.3f} against links made by hand for this "
        f"one sentence. The least of all heads, chosen by these very links (an oracle): "
        f"{rate:.3f}, {best}.",
        f"그린 것: {drawn_layer.korean}. 이 한 문장에 사람이 만든 정렬과 비교한 AER "
        f"{drawn:.3f}. 이 정렬을 보고 고른 최솟값(오라클): {rate:.3f}, "
        f"디코더 {best.layer + 1}층 {'헤드 평균' if head is None else f'헤드 {head + 1}'}, "
        f"단어를 {'고른' if best.when == 'choosing' else '읽은'} 단계.",
    )


def _links(title: str, shown: Heatmap, links: NDArray[np.float64]) -> Panel:
    """Return a panel of ``links`` (target words, source words) without the end symbols. ``shown``:
    a heatmap whose words name the rows and columns."""
    return WordWeights(Heatmap(shown.rows[:-1], shown.columns[:-1], links[:-1, :-1], title))


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


def pronoun_figure(subject: Subject) -> Parts:
    """Draw both hops of a pronoun: from the German pronoun to "it", and from "it" to the words that
    decide. One sentence is about the animal, the other about the street."""
    if not subject.is_demo:
        raise DragomanError(
            "the figure pronoun needs a run trained on the demo corpus. Create one with "
            "dragoman demo"
        )
    hops, heads = pronoun_hops(subject.predictor)
    probes = pronoun_probes()[0]
    yield from map(TwoHops, hops)
    yield DataTable(
        ("pronoun", "place", "source word", "from the pronoun", "from it"),
        [
            (probe.pronoun, place, word, float(hop.first[place]), float(hop.second[place]))
            for probe, hop in zip(probes, hops, strict=True)
            for place, word in enumerate(hop.source)
        ],
    )
    for probe in probes:
        text = f"{probe.pronoun}: {probe.reference}"
        yield Words(text, text)
    yield _mean_note(heads)


def _mean_note(heads: PronounHeads) -> Words:
    masses = (heads.cross_mass, heads.noun_mass, heads.decider_mass, heads.uniform)
    to_it, to_noun, to_adjective, alike = map(percent, masses)
    to_it_ko, to_noun_ko, to_adjective_ko, alike_ko = (percent(m, korean=True) for m in masses)
    noun, decider = heads.noun, heads.decider
    if len(heads.encoder) == 1:
        arcs = Words(
            f"One head of the encoder does both ({noun}): the arcs are its weights, not a mean.",
            f"인코더의 한 헤드({_in_korean(noun)})가 두 가지를 모두 합니다. 호는 평균이 아니라 "
            "그 헤드의 가중치입니다.",
        )
    else:
        arcs = Words(
            "The arcs are the mean of two heads: a word that one of them looks at wholly, and the "
            "other not at all, has 50\N{NO-BREAK SPACE}% here.",
            "호는 두 헤드의 평균입니다. 한 헤드만 온전히 보는 단어는 여기서 50%가 됩니다.",
        )
    return Words(
        f"{arcs.english} Each head by itself, mean over the other sentences: {to_it} from the "
        f"pronoun to “it”; from “it” {to_noun} to its noun (encoder, {noun}) and {to_adjective} to "
        f"the adjective (encoder, {decider}). If all words were looked at alike, one would get "
        f"{alike}.",
        f"{arcs.korean} 다른 문장들의 평균, 헤드마다: 대명사에서 “it”으로 {to_it_ko}, “it”에서 그 "
        f"명사로 {to_noun_ko}(인코더 {_in_korean(noun)}), 형용사로 {to_adjective_ko}(인코더 "
        f"{_in_korean(decider)}). 모든 단어를 똑같이 본다면 하나에 {alike_ko}.",
    )


def _in_korean(head: PronounHead) -> str:
    return f"{head.layer + 1}층 헤드 {head.head + 1}"
