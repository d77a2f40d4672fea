"""A translated unit with the codes of its original: each in its sentence, or between two.

Sentences that have codes inside are aligned by the model; all others only keep theirs in front and
behind. Here is what is computed; ``Translator`` and the server ask their models for the alignments.

In an aligned sentence, codes go where their words went. Every word of the translation belongs to
the stretch of the source at which it looked most, and so to the elements that are open there. Words
of one element that no longer stand together make it stand twice, if it may; a code that stands
alone goes to the gap at which the fewest words, the near ones first, stand on the wrong side of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dragoman.documents.projection import project, shares
from dragoman.engine.alignment_head import Alignment, TokenPair
from dragoman.engine.engine import Engine
from dragoman.formats.units.document import Code, Target, Unit, target_of
from dragoman.forms.form import Form, Passage
from dragoman.forms.shown_words import ShownWord, piece_spans, words_of
from dragoman.search.hypothesis import Hypothesis

MOST_BETWEEN = 1000
"""Characters between two sentences within which the next is looked for."""
Chain: TypeAlias = tuple[int, ...]
"""The elements that are open at a place, outermost first, each by the number of its first code."""


@dataclass(frozen=True)
class Translated:
    """A unit, how it was cut into sentences, and the translation of each."""

    unit: Unit
    passage: Passage
    hypotheses: Sequence[Hypothesis]
    source: Form
    """The form of the texts."""

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """The begin and end of each sentence in the text."""
        places, end = [], 0
        for piece in self.passage.pieces:
            # A part of a very long sentence may be written a little differently: then about here.
            until = end + len(piece.text) + MOST_BETWEEN
            begin = max(end, self.unit.text.find(piece.text, end, until))
            end = min(len(self.unit.text), begin + len(piece.text))
            places.append((begin, end))
        return places

    @cached_property
    def inside(self) -> dict[int, Sequence[Code]]:
        """The codes that stand inside a sentence, by its number."""
        inside: dict[int, Sequence[Code]] = {}
        of_codes = [code.place for code in self.unit.tags]
        for number, (begin, end) in enumerate(self.places):
            first, last = bisect_right(of_codes, begin), bisect_left(of_codes, end)
            if first < last:
                inside[number] = self.unit.tags[first:last]
        return inside

    @cached_property
    def pairs(self) -> list[TokenPair]:
        """The sentences with codes inside, to be aligned."""
        pieces, without_tag = self.passage.pieces, self.source.without_tag
        return [(without_tag(pieces[s].values), self.hypotheses[s].tokens) for s in self.inside]


def place_codes(engine: Engine, result: Translated, alignments: Sequence[Alignment]) -> Target:
    """The translation of a unit with its codes; one of which nothing can be read stays as it is.
    ``alignments``: of its pairs."""
    source, target = engine.source, engine.target
    if not result.passage.pieces:
        return result.unit.as_it_is
    texts = target.raw([hypothesis.tokens for hypothesis in result.hypotheses])
    of_sentence = dict(zip(result.inside, alignments, strict=True))
    if not result.unit.ordered and result.unit.tags:
        sentences = []
        for s, (piece, place) in enumerate(zip(result.passage.pieces, result.places, strict=True)):
            pieces = source.names_of(source.without_tag(piece.values)) if s in of_sentence else []
            words = words_in(target, result.hypotheses[s], texts[s]) if s in of_sentence else []
            sentences.append(MovedSentence(*place, texts[s], pieces, words, of_sentence.get(s)))
        gaps = [result.passage.before, *(piece.behind for piece in result.passage.pieces)]
        if (moved := move_codes(result.unit, sentences, gaps)) is not None:
            return moved
    spoken = [[text] for text in texts]
    for s, codes in result.inside.items():
        piece, begin = result.passage.pieces[s], result.places[s][0]
        spoken[s] = project(
            [code.move(-begin) for code in codes],
            piece.text,
            source.names_of(source.without_tag(piece.values)),
            words_in(target, result.hypotheses[s], texts[s]),
            of_sentence[s],
        )
    return target_of(_join(result, spoken))


def words_in(target: Form, hypothesis: Hypothesis, text: str) -> list[ShownWord]:
    """The words of a hypothesis, whose text is known."""
    pieces, values = target.names_of(hypothesis.tokens), hypothesis.token_log_probabilities
    return words_of(text, pieces, values, spaced=target.spaced)


def _join(result: Translated, spoken: Sequence[Sequence[str]]) -> list[str]:
    """Sentences, each cut at the codes inside it, and what stands between them."""
    parts = [""]
    codes, text = result.unit.tags, result.unit.text
    first, end = 0, 0  # the first code that has no place yet; the end of the sentence before

    def put(pieces: Sequence[str]) -> None:
        parts[-1] += pieces[0]
        parts.extend(pieces[1:])

    gaps = [result.passage.before, *(piece.behind for piece in result.passage.pieces)]
    ends = [*result.places, (len(text), len(text))]
    for (begin, following_end), gap, sentence in zip(ends, gaps, [*spoken, [""]], strict=True):
        last = first
        while last < len(codes) and codes[last].place <= begin:
            last += 1
        put(gap_parts(gap, codes[first:last], text[end:begin], end))
        put(sentence)
        first = last + len(sentence) - 1
        end = following_end
    put([""] * (len(codes) - first + 1))
    return parts


def gap_parts(gap: str, codes: Sequence[Code], source: str, begin: int) -> list[str]:
    """The text between two sentences, cut at its codes. ``source``: that before translation."""
    if gap == source:
        cuts = [code.place - begin for code in codes]
    else:
        # Another space than before: end tags keep to the sentence that they end.
        ended = next((n for n, code in enumerate(codes) if not code.closes), len(codes))
        cuts = [0 if n < ended else len(gap) for n in range(len(codes))]
    edges = [0, *cuts, len(gap)]
    return [gap[a:b] for a, b in pairwise(edges)]


class MovedSentence(NamedTuple):
    """A sentence of a unit and its translation."""

    begin: int
    end: int
    """The end of its place in the unit."""
    text: str
    """The translation of the sentence, as text."""
    pieces: Sequence[str]
    words: Sequence[ShownWord]
    alignment: Alignment | None
    """None: no code stands inside of it."""


@dataclass(frozen=True)
class _Shown:
    """Some text of the translation and the elements around it."""

    before: str
    """The space in front of it."""
    text: str
    chain: Chain


def move_codes(
    unit: Unit, sentences: Sequence[MovedSentence], gaps: Sequence[str]
) -> Target | None:
    """The translation with its codes; None where an element that must stand once would not.

    ``gaps``: what stands before the first sentence and behind each.
    """
    chains, alone = _chains(unit.tags)
    places = [code.place for code in unit.tags]
    stream: list[_Shown | int] = []
    of_alone = [places[number] for number in alone]
    first = 0  # of ``alone``

    def alone_until(place: int) -> list[int]:
        nonlocal first
        begin, first = first, max(first, bisect_right(of_alone, place))
        return alone[begin:first]

    space = gaps[0]
    for sentence, behind in zip(sentences, gaps[1:], strict=True):
        stream += _gap(space, alone_until(sentence.begin), stream)
        inner = alone[first : max(first, bisect_left(of_alone, sentence.end))]
        first += len(inner)
        stream += _sentence(unit, places, sentence, chains, inner)
        space = behind
    stream += _gap(space, alone[first:], stream)
    target, times = _write_elements(stream, unit.tags)
    for number, code in enumerate(unit.tags):
        has_to = not code.repeats and code.partner is not None
        if has_to and times.get(number, 0) != 1:
            return None
    return target


def _chains(codes: Sequence[Code]) -> tuple[list[Chain], list[int]]:
    """Returns the codes that are open before the first code and after each, and the numbers of
    codes that stand alone: also those of elements without text."""
    chains: list[Chain] = [()]
    alone = []
    for number, code in enumerate(codes):
        chain, partner = chains[-1], code.partner
        if partner is None or codes[partner].place == code.place:
            alone.append(number)
        elif partner > number:
            chain = (*chain, number)
        else:
            chain = tuple(index for index in chain if index != partner)
        chains.append(chain)
    return chains, alone


def _gap(space: str, codes: Sequence[int], stream: Sequence[_Shown | int]) -> list[_Shown | int]:
    """Between two sentences: codes behind the space, in what was open before it."""
    return [*([_Shown(space, "", stream_chain(stream))] if space else []), *codes]


def _sentence(
    unit: Unit,
    places: Sequence[int],
    sentence: MovedSentence,
    chains: Sequence[Chain],
    codes: Sequence[int],
) -> list[_Shown | int]:
    """``places``: of the codes of the unit; ``codes``: those that stand alone in the sentence."""
    first = bisect_right(places, sentence.begin)  # codes before the sentence
    if sentence.alignment is None or not sentence.words:
        return [_Shown("", sentence.text, chains[first]), *codes]
    last = max(first, bisect_left(places, sentence.end))
    inner = [place - sentence.begin for place in places[first:last]]
    length = sentence.end - sentence.begin
    edges = np.array([0, *inner, length], dtype=np.float64)
    spans = piece_spans(sentence.pieces, length)
    of_words = np.stack(
        [sentence.alignment[w.first : w.first + w.count].mean(axis=0) for w in sentence.words]
    )
    gains = of_words @ shares(spans, edges)  # (W, K + 1)
    of_word = [chains[first + int(stretch)] for stretch in gains.argmax(axis=1)]
    of_word = _move_marks(of_word, sentence.words, chains[last])
    centres = spans.mean(axis=1)[of_words.argmax(axis=1)] if len(spans) else np.zeros(len(of_words))
    spoken = np.array([any(map(str.isalnum, word.text)) for word in sentence.words])
    at: dict[int, list[int]] = {}
    least = 0
    for number in codes:
        # Codes that stand alone keep their order among themselves.
        gap = max(least, _best_gap(centres, spoken, places[number] - sentence.begin))
        least = gap
        at.setdefault(gap, []).append(number)
    stream: list[_Shown | int] = []
    for number, (word, chain) in enumerate(zip(sentence.words, of_word, strict=True)):
        before, beginning = word.before, at.get(number, [])
        if beginning and before:
            # The space stays on the side of the code on which it was.
            ahead = [n for n in beginning if not unit.text[places[n] - 1 : places[n]].isspace()]
            stream += ahead
            stream.append(_Shown(before, "", stream_chain(stream)))
            stream += [n for n in beginning if n not in ahead]
            before = ""
        else:
            stream += beginning
        stream.append(_Shown(before, word.text, chain))
    return [*stream, *at.get(len(sentence.words), [])]


def stream_chain(stream: Sequence[_Shown | int]) -> Chain:
    """The codes that are open at the end of ``stream``."""
    return next((part.chain for part in reversed(stream) if isinstance(part, _Shown)), ())


def _best_gap(centres: NDArray[np.float64], spoken: NDArray[np.bool_], place: int) -> int:
    """The number of words before a code whose place in the source is ``place``."""
    weights = np.where(spoken, 1.0, 0.01) / (1.0 + np.abs(centres - place))
    behind = centres >= place
    # Words before the gap that belong behind it, and words behind it that belong before.
    wrong = np.concatenate([[0.0], np.cumsum(np.where(behind, weights, 0.0))])
    rest = np.where(behind, 0.0, weights)
    wrong += np.concatenate([np.cumsum(rest[::-1])[::-1], [0.0]])
    return int(wrong.argmin())


def _move_marks(of_word: Sequence[Chain], words: Sequence[ShownWord], at_end: Chain) -> list[Chain]:
    """A mark stands with the words around it, or with one of them; it makes no element of its
    own. ``at_end``: what is open at the end of the source, for marks at the end."""
    chains = list(of_word)
    for number, word in enumerate(words):
        if any(map(str.isalnum, word.text)):
            continue
        if not any(map(str.isalnum, "".join(rest.text for rest in words[number:]))):
            chains[number] = at_end
            continue
        beside = chains[max(0, number - 1) : number] + list(of_word[number + 1 : number + 2])
        if beside and (chains[number] not in beside or len(set(beside)) == 1):
            chains[number] = beside[0]
    return chains


def _write_elements(
    stream: Sequence[_Shown | int], codes: Sequence[Code]
) -> tuple[Target, dict[int, int]]:
    """The stream with its elements begun and ended, and how often each code is in it."""
    target: Target = []
    times: dict[int, int] = {}
    current: Chain = ()

    def put(number: int) -> None:
        target.append(number)
        times[number] = times.get(number, 0) + 1

    def say(text: str) -> None:
        """Texts that follow each other without a code are one."""
        if target and isinstance(target[-1], str):
            target[-1] += text
        elif text:
            target.append(text)

    def change(to: Chain, space: str) -> None:
        nonlocal current
        same = 0
        while same < min(len(current), len(to)) and current[same] == to[same]:
            same += 1
        for number in reversed(current[same:]):
            partner = codes[number].partner
            assert partner is not None, "an element has an end"
            put(partner)
        say(space)
        for number in to[same:]:
            put(number)
        current = to

    for item in stream:
        if isinstance(item, int):
            put(item)
        else:
            if item.text or item.chain != current:
                change(item.chain if item.text else current, item.before)
            else:
                say(item.before)
            say(item.text)
    change((), "")
    return target, times
