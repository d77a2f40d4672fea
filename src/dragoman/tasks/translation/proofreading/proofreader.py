"""Proofreads translations with the model, but without a reference.

A model that does not know a word, or leaves out half of a sentence, is as sure of its output as
ever, so its probabilities do not show it. The proofreader gives these warnings:

``language``  most of the words are not in the run's language
``unknown``   a word or sign that the run has never read, or cannot read at all
``omitted``   words of the source on which the translation does not depend
``lost``      a placeholder or an address that is not in the translation
``coverage``  the share of the source on which the translation depends, if words are omitted or
              the length is unusual
``repeated``  words that are repeated in a row, unlike those of the source
``cut_off``   the translation reached its greatest length
``length``    it is longer or shorter than translations of such a sentence are

The warnings are independent, with two exceptions: a source in another language is not searched for
single words, and a translation that was cut off is not reported as too long. They all come from the
plain model. How often each warning is right: docs/experiments.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dragoman.data.length_ratio import LengthRatio
from dragoman.engine.alignment_head import Alignment, TokenPair
from dragoman.engine.engine import Engine
from dragoman.forms.lexicon import Lexicon, Span, words_in
from dragoman.runs.run import Run
from dragoman.tasks.translation.proofreading.plain import ProofWarning, warnings_of_lost
from dragoman.tasks.translation.proofreading.source import (
    ReadSource,
    another_language,
    omissions,
    suspects_of,
    unknown_words,
)

_MAX_TOO_SHORT = 2
"""A source of at most this many words is checked only for an empty translation: the words that
remain would say too little."""

_LONG = 4
"""A word of at least this many letters may not occur twice in a row."""
_LONG_SYLLABLES = 2
"""The value of ``_LONG`` for scripts in which a character is a syllable or a word."""
_LONGEST = 30
"""The most words of a repeated unit: searching for longer ones takes quadratic time."""
_SYLLABIC = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_UNSPACED = re.compile(r"(\w{2,40}?)\1{2,}|(\w{4,40}?)\2")


class ToProofread(NamedTuple):
    """A source sentence and its translation."""

    source: str
    text: str
    tokens: Sequence[int]
    """The tokens of the translation without special symbols."""
    finished: bool = True
    """False if the translation was cut off at its greatest length."""


@dataclass(frozen=True)
class Proof:
    """The warnings about one translation, and its alignment."""

    warnings: tuple[ProofWarning, ...]
    """The warnings by place, those about the source first, with its coverage last."""
    words: tuple[Span, ...]
    """The places of the W words of the source, or of its pieces in a language without spaces."""
    alignment: Alignment
    """The attention (T, W) of each token of the translation to each word."""


class Proofreader:
    """Checks translations of one engine against their sources."""

    def __init__(
        self, engine: Engine, lexicon: Lexicon | None = None, lengths: LengthRatio | None = None
    ) -> None:
        """Prepare proofreading for ``engine``. ``lexicon`` and ``lengths`` are those of the
        training text. Without a lexicon, only words that the vocabulary cannot write count as
        unknown; without ``lengths``, no translation is reported as unusually long or short."""
        self._engine = engine
        self.lexicon = lexicon
        self._lengths = lengths

    @classmethod
    def of(cls, run: Run, engine: Engine) -> Proofreader:
        """Make the proofreader of a run and its engine. Errors: ``RunError`` for damaged files."""
        return cls(engine, run.lexicon(), run.length_ratio())

    def over(self, engine: Engine) -> Proofreader:
        """Make a proofreader for another engine, with what this one knows of the training text."""
        return Proofreader(engine, self.lexicon, self._lengths)

    def __call__(self, translations: Sequence[ToProofread]) -> Iterator[list[Proof]]:
        """Yield the proofs of the translations, in order and in batches."""
        sources = [ReadSource.of(self._engine.source, pair.source) for pair in translations]
        pairs = [
            (source.tokens, pair.tokens) for source, pair in zip(sources, translations, strict=True)
        ]
        done = 0
        for of_tokens in self._align(pairs):
            batch = slice(done, done + len(of_tokens))
            done = batch.stop
            alignments = [
                alignment @ source.members
                for alignment, source in zip(of_tokens, sources[batch], strict=True)
            ]
            yield self._proofs(sources[batch], translations[batch], alignments)

    def _align(self, pairs: Sequence[TokenPair]) -> Iterator[list[Alignment]]:
        """Yield the attention of each translation to its source, in batches. An ensemble has no
        attention, so its alignments are zeros."""
        if self._engine.has_inside:
            return self._engine.attention.align(pairs)
        return iter([[np.zeros((len(output), len(source))) for source, output in pairs]])

    def _proofs(
        self,
        sources: Sequence[ReadSource],
        translations: Sequence[ToProofread],
        alignments: Sequence[Alignment],
    ) -> list[Proof]:
        unknown = [unknown_words(source, self.lexicon) for source in sources]
        language = [
            another_language(source, never, self.lexicon, self._engine.source.language)
            for source, never in zip(sources, unknown, strict=True)
        ]
        suspects = [
            []
            if strange or (len(source.words) <= _MAX_TOO_SHORT and pair.text.strip())
            else suspects_of(source, alignment, self.lexicon)
            for source, pair, alignment, strange in zip(
                sources, translations, alignments, language, strict=True
            )
        ]
        at = ProofWarning.at
        missing = omissions(self._engine, sources, [pair.tokens for pair in translations], suspects)
        proofs = []
        for source, pair, strange, never, missed, alignment in zip(
            sources, translations, language, unknown, missing, alignments, strict=True
        ):
            doubts = self._of_target(source, pair)
            doubts += warnings_of_lost(source.text, pair.text)
            if strange:
                doubts.append(strange)
            else:
                doubts += [at("unknown", "source", source.text, place) for place in never]
                doubts += [at("omitted", "source", source.text, place) for place in missed.places]
                if missed.covered < 1 and any(w.code in ("omitted", "length") for w in doubts):
                    doubts.append(_coverage(source.text, missed.covered))
            warnings = sorted(doubts, key=lambda w: (w.side, w.code == "coverage", w.begin, w.end))
            proofs.append(Proof(tuple(warnings), tuple(source.words), alignment))
        return proofs

    def _of_target(self, source: ReadSource, pair: ToProofread) -> list[ProofWarning]:
        at, whole = ProofWarning.at, (0, len(pair.text))
        warnings = []
        if not repetitions(source.text, spaced=self._engine.source.spaced):
            again = repetitions(pair.text, spaced=self._engine.target.spaced)
            warnings = [at("repeated", "target", pair.text, place) for place in again]
        if not pair.finished:
            warnings.append(at("cut_off", "target", pair.text, whole))
        elif self._lengths and self._lengths.judge(len(source.tokens), len(pair.tokens)):
            warnings.append(at("length", "target", pair.text, whole))
        return warnings


def _coverage(source: str, share: float) -> ProofWarning:
    whole = ProofWarning.at("coverage", "source", source, (0, len(source)))
    return replace(whole, covered=share)


def repetitions(text: str, *, spaced: bool = True) -> list[Span]:
    """Find words, or groups of words, that are repeated with only space between them.

    A decoder that gets stuck writes such words. Natural language repeats words too ("die die Straße
    überqueren", "had had"), so short words count only from the third time on (counts in human
    translations: docs/experiments.md). The capital letter of the first word is ignored.
    ``spaced``: the language writes spaces between words.
    """
    if not spaced:
        return [match.span() for match in _UNSPACED.finditer(text)]
    repeats = []
    for places in _stretches(text):
        words = [text[slice(*place)] for place in places]
        if places and places[0][0] == 0 and words[0].lower() in words[1:]:
            words[0] = words[0].lower()
        at = 0
        while at < len(words):
            size, times = _longest_repeat(words, at)
            if times > 1:
                last = at + size * times
                if times > 2 or _is_long(words[at : at + size]):
                    repeats.append((places[at][0], places[last - 1][1]))
                at = last
            else:
                at += 1
    return repeats


def _stretches(text: str) -> list[list[Span]]:
    """Group the words of a text: words with only space between them are in one group."""
    stretches: list[list[Span]] = []
    for place in words_in(text):
        if stretches and not text[stretches[-1][-1][1] : place[0]].strip():
            stretches[-1].append(place)
        else:
            stretches.append([place])
    return stretches


def _longest_repeat(words: list[str], at: int) -> tuple[int, int]:
    """Return the number of words, and of repetitions, of the unit that is repeated from the word
    ``at`` on."""
    best = (1, 1)
    for size in range(1, min(_LONGEST, (len(words) - at) // 2) + 1):
        unit, times = words[at : at + size], 1
        while words[at + times * size : at + (times + 1) * size] == unit:
            times += 1
        if times > 1 and size * times > best[0] * best[1]:
            best = (size, times)
    return best


def _is_long(words: list[str]) -> bool:
    letters = "".join(words)
    if len(words) > 1:
        return True
    return len(letters) >= (_LONG_SYLLABLES if _SYLLABIC.search(letters) else _LONG)
