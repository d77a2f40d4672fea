"""Evaluation of masked models, during training and of a finished run.

``loss`` (nats), ``perplexity`` (its exponential) and ``accuracy`` are over the masked tokens: each
text is masked once as in training, with fixed random numbers. A finished run also gets a
*pseudo-perplexity* (Salazar et al., 2020), exp of the mean of -log P(token | all others of its
window), for which tokens are hidden one at a time. Each token takes a forward pass, so it is
computed on an even sample. None of these is comparable to the perplexity of a language model, which
sees only the tokens before each token.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dragoman.base.measure import perplexity
from dragoman.base.wording import plural
from dragoman.data.batches import MaskedBatch, in_batches, masked_batch
from dragoman.data.hashing import hashes, torch_seed
from dragoman.data.masking import Masked, Masking
from dragoman.data.store import Tokens
from dragoman.forms.form import Pair
from dragoman.forms.subwords.text import Text
from dragoman.models.interface import Network
from dragoman.tasks.shared.evaluation import (
    EvaluationReport,
    EvaluationRequest,
    TextsEvaluation,
    TextStream,
    no_texts,
    sign,
)
from dragoman.tasks.shared.validation import TOKENS_AT_ONCE, Validation
from dragoman.training.records import Evaluation, Sample

BLANK = "___"
"""The sign for a hidden token, which users write in a text too."""

_MEASURED = 6
"""The stream of random numbers for evaluation, independent of a run's seed."""
_SAMPLES = 3
_ALONE = 2000
"""The number of tokens for the pseudo-perplexity."""


class MaskedValidation(Validation[MaskedBatch]):
    """Computes ``loss`` (nats per masked token), ``perplexity`` and ``accuracy``. As samples, the
    model fills the blanks of some texts."""

    without = "empty"

    def fitting(self, pairs: Sequence[Pair]) -> tuple[list[Pair], list[MaskedBatch]]:
        form, context = self.forms.written, self.recipe.plan.context
        self._masking = Masking(form.vocabulary, self.recipe.masking)
        written = form.vocabulary.encode([pair.target for pair in pairs])
        kept = [(pair, tokens) for pair, tokens in zip(pairs, written, strict=True) if len(tokens)]
        pieces = list(mask_pieces((tokens for _, tokens in kept), context, self._masking))
        pieces.sort(key=lambda piece: len(piece[0]))
        return [pair for pair, _ in kept], list(_batches(pieces, form.eos))

    def __call__(self, update: int) -> Evaluation:
        parts = (MaskedSums.of(self.model, batch, self.device) for batch in self.batches)
        return Evaluation(sum(parts, MaskedSums()).scores, self._samples())

    def _samples(self) -> tuple[Sample, ...]:
        vocabulary = self.forms.written.vocabulary
        texts = [pair.target for pair in self.pairs[:_SAMPLES]]
        longest = self.recipe.plan.context - 1
        whole = [tokens[:longest] for tokens in vocabulary.encode(texts)]
        pieces = list(mask_pieces(whole, self.recipe.plan.context, self._masking))
        samples = []
        for tokens, masked in pieces:
            batch = masked_batch([(tokens, masked)], self.forms.written.eos).to(self.device)
            filled = tokens.copy()
            filled[masked.places] = _logits(self.model, batch).argmax(-1).cpu().numpy()
            shown = with_blanks(vocabulary, tokens, masked.places)
            samples.append(Sample(shown, vocabulary.decode(tokens), vocabulary.decode(filled)))
        return tuple(samples)


def with_blanks(vocabulary: Text, tokens: Tokens, places: Iterable[int]) -> str:
    """Replace each token of ``places`` by ``___`` in the text."""
    parts: list[str] = []
    spaces = [" " * piece.startswith("▁") for piece in vocabulary.pieces(tokens)]
    begin = 0
    for end in (*places, len(tokens)):
        if begin < end:
            # A part that is decoded alone may lose the space before it.
            parts += [spaces[begin], vocabulary.decode(tokens[begin:end]).lstrip(" ")]
        if end < len(tokens):
            parts += [spaces[end], BLANK]
        begin = end + 1
    return "".join(parts).strip()


@dataclass(frozen=True)
class MaskedSums:
    """The sums over all masked tokens."""

    nll: float = 0.0
    """The negative log probability of the true tokens, in nats."""
    right: int = 0
    """The number of true tokens that are the most probable ones."""
    tokens: int = 0

    @classmethod
    def of(cls, model: Network, batch: MaskedBatch, device: torch.device | str) -> MaskedSums:
        batch = batch.to(device)
        if not len(batch.wanted):
            return cls()
        log_probabilities = torch.log_softmax(_logits(model, batch), dim=-1)  # (M, V)
        nll = -log_probabilities.gather(-1, batch.wanted[:, None]).sum(dtype=torch.float64)
        right = (log_probabilities.argmax(-1) == batch.wanted).sum()
        return cls(float(nll), int(right), len(batch.wanted))

    def __add__(self, other: MaskedSums) -> MaskedSums:
        return MaskedSums(
            self.nll + other.nll, self.right + other.right, self.tokens + other.tokens
        )

    @property
    def scores(self) -> dict[str, float]:
        """A mapping from the name of each score to its value."""
        loss = self.nll / max(1, self.tokens)
        return {
            "loss": loss,
            "perplexity": perplexity(loss),
            "accuracy": self.right / max(1, self.tokens),
        }


@dataclass(frozen=True)
class MaskedReport(EvaluationReport):
    """The scores of a run that restores masked texts."""

    texts: int
    tokens: int
    masked: MaskedSums
    alone: MaskedSums
    """The sums over tokens that were hidden one at a time (pseudo-perplexity)."""
    context: int
    share: float
    whole_words: bool

    @property
    def scores(self) -> dict[str, float]:
        """A mapping from the name of each score to its value."""
        return self.masked.scores | self._alone

    @property
    def _alone(self) -> dict[str, float]:
        return {"pseudo_perplexity": self.alone.scores["perplexity"]}

    def table(self) -> str:
        """Return the whole report as plain text."""
        read = f"{plural(self.texts, 'text')}, {plural(self.tokens, 'token')}"
        whole = ", whole words" if self.whole_words else ""
        notes = (
            f"Loss (nats), perplexity and accuracy are over {plural(self.masked.tokens, 'token')}: "
            f"{self.share:.0%} of them all{whole}, masked as in training.\n"
            f"Pseudo-perplexity hides one token at a time, {self.alone.tokens:,} of them, drawn "
            "evenly, with all others to see.\n"
            f"Texts are read in pieces of {self.context:,} tokens at most. None of these is the "
            "perplexity of a language model."
        )
        amount = f"{read}; {self.seconds:.1f} s"
        return self.lines(amount, self.scores, [notes])

    def details(self) -> dict[str, Any]:
        words = "|whole words" if self.whole_words else ""
        masked = f"masked:{self.masked.tokens}|share:{self.share}{words}|context:{self.context}"
        alone = f"hidden alone:{self.alone.tokens}|context:{self.context}"
        return {
            "sentences": self.texts,
            "scores": sign(self.masked.scores, masked) | sign(self._alone, alone),
        }


class MaskedEvaluation(TextsEvaluation[MaskedReport]):
    """Scores the texts of a file or folder."""

    @torch.inference_mode()
    def report(self, asked: EvaluationRequest, examples: TextStream) -> MaskedReport:
        run = asked.run
        model, form, settings = run.model(), run.forms.written, run.recipe.masking
        context, masking = run.recipe.plan.context, Masking(form.vocabulary, settings)
        began, count, tokens = time.perf_counter(), 0, 0
        masked, alone = MaskedSums(), _DrawnTokens()
        for part in examples.parts():
            written = [np.array(text, np.int32) for text in form.tokens(part)]
            pieces = list(mask_pieces(written, context, masking, count))
            for piece, _ in pieces:
                alone.take(piece, form.vocabulary.ordinary)
                tokens += len(piece)
            masked += _sums(model, pieces, form.eos)
            count += len(part)
        if not masked.tokens:
            raise no_texts(run)
        assert form.vocabulary.mask is not None  # ``Masking`` requires it
        hidden = alone.pieces(form.vocabulary.mask)
        seconds = time.perf_counter() - began
        return MaskedReport(
            *asked.about(examples.name, seconds), count, tokens, masked,
            _sums(model, hidden, form.eos), context, settings.share, settings.whole_words,
        )  # fmt: skip


def _sums(model: Network, pieces: Sequence[tuple[Tokens, Masked]], eos: int) -> MaskedSums:
    parts = (MaskedSums.of(model, batch, "cpu") for batch in _batches(pieces, eos))
    return sum(parts, MaskedSums())


class _DrawnTokens:
    """Samples tokens uniformly from a stream, in bounded memory."""

    def __init__(self) -> None:
        self._seen = 0
        self._heap: list[tuple[int, int, Tokens, int]] = []
        """A heap of the smallest hashes: each negated, with token number, piece and place."""

    def take(self, piece: Tokens, ordinary: Any) -> None:
        numbers = np.arange(self._seen, self._seen + len(piece))
        self._seen += len(piece)
        draws = hashes(numbers, torch_seed(0, _MEASURED))
        for place in np.flatnonzero(ordinary[piece]):
            entry = -int(draws[place]), int(numbers[place]), piece, int(place)
            if len(self._heap) < _ALONE:
                heapq.heappush(self._heap, entry)
            elif entry[0] > self._heap[0][0]:
                heapq.heapreplace(self._heap, entry)

    def pieces(self, mask: int) -> list[tuple[Tokens, Masked]]:
        """Return each piece with its sampled token hidden, short ones first."""
        hidden = []
        for _, _, piece, place in sorted(self._heap, key=lambda entry: (len(entry[2]), entry[1])):
            read = piece.copy()
            read[place] = mask
            hidden.append((piece, Masked(read, np.array([place], np.int64))))
        return hidden


def mask_pieces(
    texts: Iterable[Tokens], context: int, masking: Masking, first: int = 0
) -> Iterator[tuple[Tokens, Masked]]:
    """Split texts into pieces and mask them. The piece's number, from ``first`` on, is the seed."""
    for number, tokens in enumerate(texts, first):
        for begin in range(0, len(tokens), context - 1):
            piece = tokens[begin : begin + context - 1]
            yield piece, masking(piece, torch_seed(0, _MEASURED, number, begin))


def _batches(pieces: Sequence[tuple[Tokens, Masked]], eos: int) -> Iterator[MaskedBatch]:
    """Batch pieces of about ``TOKENS_AT_ONCE`` tokens together."""
    for batch in in_batches(pieces, TOKENS_AT_ONCE, lambda piece: len(piece[0]) + 1):
        yield masked_batch(batch, eos)


def _logits(model: Network, batch: MaskedBatch) -> torch.Tensor:
    """Compute the logits (M, V) of the M masked tokens."""
    return model.project(model.encode(batch.source).rows[batch.places]).float()
