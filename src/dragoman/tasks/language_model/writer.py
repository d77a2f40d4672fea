"""The predictor of a language model: how a text begins in, how it goes on out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.engine.settings import EngineSettings
from dragoman.errors import DragomanError
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.tasks.language_model.generation import MAX_NEW_TOKENS, Growth, text_of


@dataclass(frozen=True)
class Written:
    """One text. ``str(written)`` is it."""

    text: str
    """The whole text, with the beginning that was given."""
    score: float
    """Log-probability over length penalty (see ``search.hypothesis``), higher is better."""
    token_log_probabilities: tuple[float, ...]
    """log P of each token, in nats, those that were given included, and of the end symbol if the
    model ended the text."""
    ids: tuple[int, ...] = ()
    """The tokens as ids."""

    def __str__(self) -> str:
        return self.text


class Writer(Predictor):
    """A trained language model, ready to write. Not for several threads at once."""

    def __init__(
        self,
        run: Run,
        settings: EngineSettings | None = None,
        search_settings: SearchSettings | None = None,
    ) -> None:
        """Errors: ``RunError``, also for a run that translates."""
        run.require_task("language-model", "not a language model")
        super().__init__(run, Engine.open(run, settings or EngineSettings(), search_settings))
        self.context = run.recipe.evaluation.window or run.recipe.plan.context
        """Tokens that the model reads at once."""

    def tokens(self, begin: str) -> int:
        """How many tokens a beginning has."""
        return len(self.engine.target.tokens([begin])[0])

    def stream(
        self,
        begin: str = "",
        settings: SearchSettings | None = None,
        *,
        stop: Sequence[str] = (),
        longest: int = MAX_NEW_TOKENS,
    ) -> Iterator[str]:
        """How one text goes on, piece by piece as it is written, the beginning not repeated.

        ``settings``: the best hypothesis, or the first sample, is followed; a beam comes a window
        at a time, as it changes its mind until then. ``stop``: the text ends before any of these.
        ``longest``: tokens that are added at most.
        """
        chosen = settings or self.engine.search_settings
        growth = Growth(self.engine, self.context, begin, chosen, stop=stop, longest=longest)
        while (request := growth.next()) is not None:
            for found, is_last in self._grow(request, growth.grows):
                if text := growth.take(found, is_last):
                    yield text
                if growth.ending is not None:
                    break
        if text := growth.rest():
            yield text

    def _grow(self, request: Request, grows: bool) -> Iterator[tuple[Hypothesis, bool]]:
        """What is found so far, again and again, and whether it is the end of the search."""
        scheduler = self.engine.scheduler()
        ticket = scheduler.submit(request)
        while not scheduler.idle:
            for _, (best, *_) in scheduler.advance():
                yield best, True
                return
            if grows and (so_far := scheduler.so_far(ticket)) is not None:
                yield so_far, False

    def __call__(
        self, begins: Iterable[str] = ("",), settings: SearchSettings | None = None
    ) -> list[list[Written]]:
        """The n best (or n samples) of texts that begin so, for each beginning."""
        engine, begins = self.engine, list(begins)
        nothing = engine.source.values(begins)
        given = engine.target.tokens(begins)
        requests = [
            engine.request(source, settings, tokens)
            for source, tokens in zip(nothing, given, strict=True)
        ]
        return [
            [
                Written(
                    text_of(engine, one.tokens), one.score, one.token_log_probabilities, one.tokens
                )
                for one in found
            ]
            for found in engine.search(requests)
        ]

    def shown(self, text: str, prefix: str = "") -> Written:
        """The text itself, with the end symbol behind it. Errors: ``DragomanError`` for a
        prefix."""
        if prefix:
            raise DragomanError("nothing is read, so the text itself says how it begins")
        tokens = self.engine.target.tokens([text])
        (found,) = self.score_ids([""], tokens)
        return Written(text, found.score, found.token_log_probabilities, found.tokens)
