"""What is doubtful about a translation, read by one who knows the model, but no reference.

A model that does not know a word, or leaves half of a sentence out, is as sure of what it writes as
ever. What shows it lies elsewhere:

``language``  most of the words are none of the run's language
``unknown``   a word or sign that the run has never read, or cannot read at all
``omitted``   words of the source to which the translation owes nothing
``lost``      a placeholder or an address that does not stand in the translation
``coverage``  where some are, or its length is unusual: to how much of the source it owes something
``repeated``  words that follow upon themselves, which those of the source do not
``cut_off``   the translation reached its greatest length
``length``    it is longer or shorter than translations of such a sentence are

Each is told whatever else is: a word that was never read says nothing about the length. Only a
source of another language is not searched for single words, and a translation that was cut off is
not too long beside. All of it is by the plain model. How often each warning is right:
docs/experiments.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dragoman.data.length_ratio import LengthRatio
from dragoman.engine.alignment_head import Alignment, TokenPair
from dragoman.engine.engine import Engine
from dragoman.forms.lexicon import Lexicon, Span
from dragoman.runs.run import Run
from dragoman.tasks.translation.proofreading.omissions import Omissions, omitted, suspects_of
from dragoman.tasks.translation.proofreading.plain import ProofWarning, lost_warnings
from dragoman.tasks.translation.proofreading.repetition import repetitions
from dragoman.tasks.translation.proofreading.source import (
    ReadSource,
    another_language,
    unknown_words,
)

_MAX_TOO_SHORT = 2
"""Words of a source that are not taken away one by one: what is left of it says too little. They
are asked about only where the translation is empty."""


class ToProofread(NamedTuple):
    """A sentence and its translation."""

    source: str
    text: str
    tokens: Sequence[int]
    """The same translation as the model wrote it, without special symbols."""
    finished: bool = True
    """Whether the model ended it."""


@dataclass(frozen=True)
class Proof:
    """What was seen in one translation."""

    warnings: tuple[ProofWarning, ...]
    """In their order, those of the source first; how much of it is covered behind them."""
    words: tuple[Span, ...]
    """The W words of the source; pieces where no spaces stand between words."""
    alignment: Alignment
    """(T, W) how much each token of the translation looked at each word."""


class Proofreader:
    """Reads translations of one engine against their sources."""

    def __init__(
        self, engine: Engine, lexicon: Lexicon | None = None, lengths: LengthRatio | None = None
    ) -> None:
        """``lexicon``, ``lengths``: of the training text. Without them words never read are only
        those that the vocabulary cannot write, and no length is unusual."""
        self._engine = engine
        self.lexicon = lexicon
        self._lengths = lengths

    @classmethod
    def of(cls, run: Run, engine: Engine) -> Proofreader:
        """The proofreader of a run and its engine. Errors: ``RunError`` for damaged files."""
        return cls(engine, run.lexicon(), run.length_ratio())

    def __call__(self, translations: Sequence[ToProofread]) -> Iterator[list[Proof]]:
        """The proof of each translation, a batch at a time, in their order."""
        sources = [ReadSource.of(self._engine.source, one.source) for one in translations]
        pairs = [
            (source.tokens, one.tokens) for source, one in zip(sources, translations, strict=True)
        ]
        done = 0
        for of_tokens in self._aligned(pairs):
            batch = slice(done, done + len(of_tokens))
            done = batch.stop
            alignments = [
                alignment @ source.members
                for alignment, source in zip(of_tokens, sources[batch], strict=True)
            ]
            yield self._proofs(sources[batch], translations[batch], alignments)

    def _aligned(self, pairs: Sequence[TokenPair]) -> Iterator[list[Alignment]]:
        """As ``AttentionReader.align``; of an ensemble, which has no attention, all 0."""
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
            if strange or (len(source.words) <= _MAX_TOO_SHORT and one.text.strip())
            else suspects_of(source, alignment, self.lexicon)
            for source, one, alignment, strange in zip(
                sources, translations, alignments, language, strict=True
            )
        ]
        missing = omitted(self._engine, sources, [one.tokens for one in translations], suspects)
        proofs = []
        for source, one, strange, never, missed, alignment in zip(
            sources, translations, language, unknown, missing, alignments, strict=True
        ):
            found = self._of_target(source, one)
            found += lost_warnings(source.text, one.text)
            if strange:
                found.append(strange)
            else:
                found += self._of_source(source, never, missed)
                if missed.covered < 1 and any(w.code in ("omitted", "length") for w in found):
                    found.append(_coverage(source.text, missed.covered))
            warnings = sorted(found, key=lambda w: (w.side, w.code == "coverage", w.begin, w.end))
            proofs.append(Proof(tuple(warnings), tuple(source.words), alignment))
        return proofs

    def _of_source(
        self, source: ReadSource, never: Sequence[Span], missed: Omissions
    ) -> list[ProofWarning]:
        """``never``: words that were never read."""
        at, text = ProofWarning.at, source.text
        found = [at("unknown", "source", text, place) for place in never]
        return found + [at("omitted", "source", text, place) for place in missed.places]

    def _of_target(self, source: ReadSource, one: ToProofread) -> list[ProofWarning]:
        at, whole = ProofWarning.at, (0, len(one.text))
        found = []
        if not repetitions(source.text, spaced=self._engine.source.spaced):
            again = repetitions(one.text, spaced=self._engine.target.spaced)
            found = [at("repeated", "target", one.text, place) for place in again]
        if not one.finished:
            found.append(at("cut_off", "target", one.text, whole))
        elif self._lengths and self._lengths.judge(len(source.tokens), len(one.tokens)):
            found.append(at("length", "target", one.text, whole))
        return found


def _coverage(source: str, share: float) -> ProofWarning:
    whole = ProofWarning.at("coverage", "source", source, (0, len(source)))
    return replace(whole, covered=share)
