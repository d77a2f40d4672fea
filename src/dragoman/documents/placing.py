"""A translated unit with the codes of its original: each in its sentence, or between two.

Sentences that have codes inside are aligned by the model; all others only keep theirs in front and
behind. Here is what is computed; ``Translator`` and the server ask their models for the alignments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from dragoman.documents.moving import MovedSentence, move_codes
from dragoman.documents.projection import project
from dragoman.engine.alignment_head import Alignment, TokenPair
from dragoman.engine.engine import Engine
from dragoman.formats.units.document import Code, Target, Unit, target_of
from dragoman.forms.form import Form
from dragoman.forms.passage import Passage
from dragoman.forms.shown_words import ShownWord, words_of
from dragoman.search.hypothesis import Hypothesis

MOST_BETWEEN = 1000
"""Characters between two sentences within which the next is looked for."""


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
