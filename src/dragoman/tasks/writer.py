"""The predictor of a language model: how a text begins in, how it goes on out.

A text may grow longer than what the model reads at once. Then it goes on from the last half of that
(``Writer.stream``): what stands before is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.errors import DragomanError, RunError
from dragoman.search.settings import SearchSettings
from dragoman.tasks.engine import Engine
from dragoman.tasks.predictor import Predictor
from dragoman.tasks.run import Run
from dragoman.tasks.settings import EngineSettings

LONGEST = 256
"""Tokens that are added to a text, unless it is said how many."""

_UNFINISHED = "\ufffd"
_NEXT_TURN = 0x9E3779B97F4A7C15
"""Apart from all seeds that people choose."""


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
        longest: int = LONGEST,
    ) -> Iterator[str]:
        """How one text goes on, piece by piece as it is written, the beginning not repeated.

        ``settings``: the best hypothesis, or the first sample, is followed; a beam comes a window
        at a time, as it changes its mind until then. ``stop``: the text ends before any of these.
        ``longest``: tokens that are added at most.
        """
        chosen = settings or self.engine.search_settings
        tokens = self.engine.target.tokens([begin])[0]
        given = len(tokens)
        shown, turn = self._text(tokens), 0
        held, ended = _Held(stop), False
        while len(tokens) < given + longest and not ended:
            kept = tokens if len(tokens) < self.context else tokens[-max(1, self.context // 2) :]
            before = tokens[: len(tokens) - len(kept)]
            limit = min(self.context, len(kept) + given + longest - len(tokens))
            for found, ended in self._grow(kept, _of_turn(chosen, turn, limit)):
                tokens = [*before, *found]
                text = self._text(tokens)
                if not ended and text.endswith(_UNFINISHED):
                    continue  # a character of which some bytes are written
                yield from held.take(text[len(shown) :])
                shown = text
                if held.stopped:
                    return
            if len(tokens) == len(before) + len(kept):
                break  # nothing may follow
            turn += 1
        yield from held.rest()

    def _grow(
        self, prefix: Sequence[int], settings: SearchSettings
    ) -> Iterator[tuple[Sequence[int], bool]]:
        """The tokens so far, again and again, and whether the model has ended the text."""
        (nothing,) = self.engine.source.values([""])
        scheduler = self.engine.scheduler()
        ticket = scheduler.submit(self.engine.request(nothing, settings, prefix))
        grows = settings.sampling is not None or settings.beam == 1
        while not scheduler.idle:
            for _, (best, *_) in scheduler.advance():
                yield best.tokens, best.finished
                return
            so_far = scheduler.so_far(ticket) if grows else None
            if so_far is not None and len(so_far.tokens) > len(prefix):
                yield so_far.tokens, False

    def _text(self, tokens: Sequence[int]) -> str:
        """Exactly what is written, line ends included."""
        form = self.engine.target
        return form.restore(form.vocabulary.decode_exact(tokens))

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
                Written(self._text(one.tokens), one.score, one.token_log_probabilities, one.tokens)
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


class _Held:
    """What is written but may be the beginning of a stop string is held back."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = [one for one in stop if one]
        self._held = ""
        self.stopped = False

    def take(self, text: str) -> Iterator[str]:
        """More text in, what may be shown out."""
        held = self._held + text
        places = [place for one in self._stop if (place := held.find(one)) >= 0]
        if places:
            self.stopped, held = True, held[: min(places)]
        keep = 0
        if not self.stopped:
            keep = max(
                (n for one in self._stop for n in range(1, len(one)) if held.endswith(one[:n])),
                default=0,
            )
        self._held = held[len(held) - keep :]
        if ready := held[: len(held) - keep]:
            yield ready

    def rest(self) -> Iterator[str]:
        """What is still held, at the end."""
        if self._held:
            yield self._held


def _of_turn(settings: SearchSettings, turn: int, limit: int) -> SearchSettings:
    """For one text of at most ``limit`` tokens; each turn draws other numbers."""
    sampling = settings.sampling
    if sampling is not None:
        seed = (sampling.seed + turn * _NEXT_TURN) % 2**63
        sampling = sampling.model_copy(update={"seed": seed})
    least = min(settings.min_length, limit)
    changes = {"sampling": sampling, "n_best": 1, "max_length": limit, "min_length": least}
    return settings.model_copy(update=changes)
