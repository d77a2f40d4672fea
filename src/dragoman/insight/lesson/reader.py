"""Reads and translates sentences with the plain model of a run, with and without changes to it.
A change is a probe that is open while the model computes (``nn/probes.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.engine.predictor import Predictor
from dragoman.engine.session import Intervention, begin_part, teacher_forced
from dragoman.insight.head import softmax
from dragoman.insight.lesson.answer import LessonSentence
from dragoman.insight.subject import transformer_of
from dragoman.models.interface import Network
from dragoman.nn.probes import Probe
from dragoman.pictures.records import words
from dragoman.search.hypothesis import Hypothesis, StepRecord

MOST_TOKENS = 40
"""The most tokens of a sentence or its translation, with the end symbol: a lesson shows every one
of them. A longer translation is cut."""
_AT_ONCE = 16
"""The most sources of one search."""
DIGITS = 6
"""The significant digits of numbers in a lesson."""


def shorten(numbers: Any) -> Any:
    """Return an array or a tensor as nested lists of numbers with ``DIGITS`` significant digits."""
    values = np.asarray(numbers, dtype=np.float64)
    flat = [float(f"{value:.{DIGITS}g}") for value in values.ravel().tolist()]
    return np.array(flat).reshape(values.shape).tolist()


class Reader:
    """The plain model of a run, which reads and writes."""

    def __init__(self, predictor: Predictor[object], model: Network | None = None) -> None:
        """``model``: another model of the run, such as one of its snapshots. Errors:
        ``DragomanError`` if the model is no Transformer."""
        self.predictor = predictor
        self.model = transformer_of(model or predictor.plain)
        self.engine = predictor.engine.over(self.model)
        self.source, self.target = predictor.run.source_text, predictor.run.target_text

    def search(
        self,
        sources: Sequence[Sequence[int]],
        probe: Probe | None = None,
        prefix: Sequence[int] = (),
        record: list[StepRecord] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, given as its tokens, best first. ``probe`` is open
        meanwhile; each output begins with ``prefix``; ``record`` collects the steps."""
        begin_part()
        settings = self.engine.search_settings
        most = min(settings.max_length or MOST_TOKENS, MOST_TOKENS - 1)
        settings = settings.model_copy(update={"n_best": settings.beam, "max_length": most})
        with probe or nullcontext():
            return self.engine.search(
                self.engine.request(ids, settings, prefix, record) for ids in sources
            )

    def texts(
        self,
        sources: Sequence[Sequence[int]],
        probe: Probe | None = None,
        prefix: Sequence[int] = (),
    ) -> list[str]:
        """Return the best output of each source as text. The arguments are those of ``search``."""
        # A lesson that is given up ends after a part of the sources.
        parts = [sources[n : n + _AT_ONCE] for n in range(0, len(sources), _AT_ONCE)]
        results = [best for part in parts for best in self.search(part, probe, prefix)]
        return self.engine.target.raw([hypotheses[0].tokens for hypotheses in results])

    def logits(
        self, ids: Sequence[int], tokens: Sequence[int], probe: Probe | None = None
    ) -> NDArray[np.float64]:
        """Return the logits (T, V) of each step that writes ``tokens`` and the end symbol."""
        begin_part()
        hidden = teacher_forced(self.model, [ids], [[self.target.bos, *tokens]], probe)
        with torch.inference_mode():
            return self.model.project(hidden).double().numpy()

    def next_token(
        self, ids: Sequence[int], tokens: Sequence[int], place: int, under: Intervention
    ) -> tuple[float, str]:
        """Return the probability of the token ``place`` of ``tokens`` (or of the end symbol behind
        them), given the tokens before it, under a change to the model; and the token that is then
        the most probable one, as the vocabulary writes it."""
        logits = self.logits(ids, tokens[:place], under.probe())[-1]
        wanted = [*tokens, self.target.eos][place]
        (best,) = self.pieces([int(logits.argmax())])
        return float(softmax(logits)[wanted]), best

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """Return output tokens as the vocabulary writes them."""
        return self.engine.target.names_of(list(tokens))

    def sentence(
        self, text: str, best: Hypothesis, place: int, reference: str | None
    ) -> LessonSentence:
        """Return what a lesson says of one sentence with the translation ``best``. ``place``: the
        token that the lesson is about."""
        ids, tokens = self.predictor.source_ids(text), best.tokens
        record = self.predictor.look(text, tokens)
        shares = softmax(self.logits(ids, tokens))
        chosen = [*tokens, self.target.eos]
        served = self.predictor.own_output(text)
        (output,) = self.engine.target.raw([tokens])
        return LessonSentence(
            text=text,
            tokens=list(record.source),
            words=list(words(record.source)[1]),
            output=output,
            is_cut=not best.finished,
            output_tokens=list(record.target),
            output_words=list(words(record.target)[1]),
            probabilities=shorten(shares[np.arange(len(chosen)), chosen]),
            served=None if served.ids == tokens or not best.finished else served.text,
            reference=reference,
            place=place,
            encoder=shorten(record.encoder),
            decoder=shorten(record.decoder),
            cross=shorten(record.cross),
        )
