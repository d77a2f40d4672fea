"""The predictor of a language model: how a text begins in, how it goes on out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dragoman.errors import DragomanError, RunError
from dragoman.search.settings import SearchSettings
from dragoman.tasks.engine import Engine
from dragoman.tasks.predictor import Predictor
from dragoman.tasks.run import Run
from dragoman.tasks.settings import EngineSettings


@dataclass(frozen=True)
class Written:
    """One text. ``str(written)`` is it."""

    text: str
    """The beginning that was given included."""
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
        if run.task.name != "language-model":
            raise RunError(
                f"{run.folder} is a {run.task.name}, not a language model: "
                f"dragoman translate {run.folder}"
            )
        super().__init__(run, Engine.open(run, settings or EngineSettings(), search_settings))

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
                Written(text, one.score, one.token_log_probabilities, one.tokens)
                for text, one in zip(
                    engine.target.raw([one.tokens for one in found]), found, strict=True
                )
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
