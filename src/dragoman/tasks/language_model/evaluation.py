"""Evaluation of language models, during training and of a finished run.

Losses are over all tokens of a text and its end symbol. *Bits per byte* express them in units that
do not depend on the vocabulary, so that runs with different vocabularies can be compared. They are
the number of bits that a code for the text needs (``Length``), divided by its number of bytes, both
after the vocabulary has normalised it.

During training, texts are read in windows as in training, each by itself. A finished run reads them
in windows that overlap (``evaluation.stride``), so its losses are lower.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.base.wording import plural
from dragoman.data.batches import Batch, window_batch
from dragoman.data.store import part_of, read_and_predicted, slide
from dragoman.forms.form import Pair
from dragoman.search.settings import SearchSettings
from dragoman.tasks.shared.evaluation import (
    EvaluationReport,
    EvaluationRequest,
    TextsEvaluation,
    TextStream,
    no_texts,
    sign,
)
from dragoman.tasks.shared.surprisal import Length, windows_of
from dragoman.tasks.shared.validation import TOKENS_AT_ONCE, Validation, sum_loss
from dragoman.training.records import Evaluation, Sample

logger = logging.getLogger("dragoman")

_SAMPLES = 3
_SHOWN = 64
"""The most tokens of a sample, of which the model reads the first half."""


class LanguageModelValidation(Validation[Batch]):
    """Computes ``loss`` (nats per token), ``perplexity`` and ``bits_per_byte``. As samples, the
    model continues the beginnings of some texts."""

    without = "empty"

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[Batch]]:
        form, context = self.forms.written, self.recipe.plan.context
        written = form.vocabulary.encode([pair.target for pair in pairs])
        kept = [(pair, tokens) for pair, tokens in zip(pairs, written, strict=True) if len(tokens)]
        lengths = (Length.of(form.vocabulary, pair.target, tokens) for pair, tokens in kept)
        self._length = sum(lengths, Length())
        windows = []
        for _, tokens in kept:
            for begin, _, end in slide(len(tokens) + 1, context, context):
                place = begin, end - begin
                part = tokens[part_of(*place)]
                windows.append(read_and_predicted(part, *place, form.bos, form.eos))
        windows.sort(key=lambda window: len(window[0]))
        together = max(1, TOKENS_AT_ONCE // context)
        batches = [
            window_batch(windows[first : first + together], form.eos)
            for first in range(0, len(windows), together)
        ]
        return [pair for pair, _ in kept], batches

    def search_count(self, examples: int) -> int:
        return min(_SAMPLES, examples)

    def __call__(self, update: int) -> Evaluation:
        total, tokens = sum_loss(self)
        scores = {"loss": total / max(tokens, 1), **self._length.scores(total)}
        return Evaluation(scores, self._samples())

    def _samples(self) -> tuple[Sample, ...]:
        """Make samples of the beginnings of texts, their true continuations and the model's."""
        engine = self.engine()
        longest = min(_SHOWN, self.recipe.plan.context // 2)
        texts = [pair.target for pair in self.some()]
        some = [tokens[:longest] for tokens in engine.target.tokens(texts)]
        begun = [tokens[: len(tokens) // 2] for tokens in some]
        nothing = engine.source.values([""] * len(some))
        n_bests = engine.search(
            engine.request(source, SearchSettings(beam=1, max_length=len(whole)), begin)
            for source, whole, begin in zip(nothing, some, begun, strict=True)
        )
        goes_on, model = (
            [tokens[len(begin) :] for tokens, begin in zip(every, begun, strict=True)]
            for every in (some, [best.tokens for best, *_ in n_bests])
        )
        three = [engine.target.raw(tokens) for tokens in (begun, goes_on, model)]
        return tuple(Sample(*texts) for texts in zip(*three, strict=True))


@dataclass(frozen=True)
class LanguageModelReport(EvaluationReport):
    """The losses of a run on some texts."""

    texts: int
    nll: float
    """The negative log probability of all texts, in nats."""
    length: Length
    context: int
    stride: int

    @property
    def scores(self) -> dict[str, float]:
        """A mapping from the name of each score to its value."""
        return self.length.scores(self.nll)

    def table(self) -> str:
        """Return the whole report as plain text."""
        length = self.length
        notes = [
            f"Read in windows of {self.context:,} tokens, each {self.stride:,} further.",
            "Perplexity is per token of this vocabulary; bits per byte compare across them.",
        ]
        if length.unknown:
            notes.append(
                f"{plural(length.unknown, 'byte is of a character', 'bytes are characters')} "
                "that the vocabulary does not know: bits per byte count 8 bits for each in "
                "addition to the unknown token; perplexity does not."
            )
        if length.given != length.bytes:
            notes.append(
                f"The texts have {length.given:,} bytes in the file and {length.bytes:,} after "
                "normalisation. Bits per byte uses the second number. Set text.lossless = true "
                "to keep every byte."
            )
        tokens, count = plural(length.tokens, "token"), plural(length.bytes, "byte")
        read = f"{plural(self.texts, 'text')}, {tokens}, {count}"
        return self.lines(f"{read}; {self.seconds:.1f} s", self.scores, notes)

    def details(self) -> dict[str, Any]:
        length = self.length
        signature = (
            f"tokens:{length.tokens}|bytes:{length.bytes}|unknown:{length.unknown}|end:counted|"
            f"window:{self.context}|stride:{self.stride}"
        )
        return {
            "sentences": self.texts,
            "scores": sign(self.scores, signature),
        }


class LanguageModelEvaluation(TextsEvaluation[LanguageModelReport]):
    """Scores texts from a file or folder. ``window=512`` and ``stride=64`` change the settings of
    the recipe's section ``evaluation``."""

    def check(self, asked: EvaluationRequest) -> None:
        windows_of(asked.run, asked.changes)

    def is_own(self, asked: EvaluationRequest) -> bool:
        return windows_of(asked.run, asked.changes) == windows_of(asked.run)

    def report(self, asked: EvaluationRequest, examples: TextStream) -> LanguageModelReport:
        # Imported here because it imports torch: mistakes in the texts are reported first.
        from dragoman.engine.engine import Engine
        from dragoman.engine.settings import EngineSettings

        how = windows_of(asked.run, asked.changes)
        engine = Engine.open(asked.run, EngineSettings(precision="fp32"))
        form = engine.written
        began, nll, count, length = time.perf_counter(), 0.0, 0, Length()
        for part in examples.parts():
            written = form.tokens(part)
            for text, tokens in zip(map(form.prepare, part), written, strict=True):
                length += Length.of(form.vocabulary, text, tokens)
            for log_probabilities in engine.score_windows(written, *how):
                nll -= math.fsum(log_probabilities)
            count += len(part)
        if not count:
            raise no_texts(asked.run)
        seconds = time.perf_counter() - began
        return LanguageModelReport(*asked.about(examples.name, seconds), count, nll, length, *how)
