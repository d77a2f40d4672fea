"""The choice of a run for a request, by its name, its task, its languages, or the detected language
of the text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

from dragoman.base.wording import shorten
from dragoman.forms.languages import base, same_language
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.schema import DetectedLanguage
from dragoman.serving.service.served_run import ServedRun

AUTO = "auto"
_SHOWN = 100
"""The largest number of characters that messages show of an unknown name, which may be megabytes
long."""

Served = TypeVar("Served", bound=ServedRun)


class LanguageDetector:
    """Detects the language of a text with py3langid, which contains its model.

    Making a detector takes a second. Only one thread at a time may use it.
    """

    def __init__(self) -> None:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def rank(self, text: str) -> list[tuple[str, float]]:
        """Return the codes of all known languages with their probabilities, the most probable
        first. For a text without letters, the result is meaningless."""
        ranking = self._identifier.rank(text.replace("\0", " "))
        return [(str(code), float(probability)) for code, probability in ranking]

    def choose(self, text: str, offered: Sequence[str]) -> DetectedLanguage:
        """Return the most probable of the ``offered`` codes, of which there must be at least
        one."""
        for language, probability in self.rank(text):
            for code in offered:
                if base(code) == language:
                    return language_message(code, probability)
        return language_message(offered[0], 0.0)


class Catalogue:
    """The runs of a server, in the order of the command line; the first one is the default."""

    def __init__(self, runs: Sequence[ServedRun], detector: LanguageDetector) -> None:
        self.runs = list(runs)
        self.detector = detector
        self.made: dict[str, Any] = {}
        """Cached answers and pages, by name. They are valid as long as these runs are served."""

    def start(self) -> None:
        """Start the queues of all runs. Call this in the event loop."""
        for run in self.runs:
            run.start()

    async def close(self) -> None:
        """Finish the accepted requests, and close all runs."""
        await asyncio.gather(*(run.close() for run in self.runs))

    @property
    def translating(self) -> list[ServedRun]:
        """The runs of the server that translate."""
        return [run for run in self.runs if run.translates]

    def run_named(self, name: str) -> ServedRun:
        """Return the run with this name. Raises Refusal 404 if there is none."""
        for run in self.runs:
            if run.name == name:
                return run
        runs, name = [run.name for run in self.runs], shorten(name, _SHOWN)
        raise Refusal("no_such_run", run=name, runs=runs)

    def run_or_first(self, name: str | None) -> ServedRun:
        """Return the run with this name, or without a name the first run. Raises Refusal 404 if
        there is no such run."""
        return self.run_named(name) if name else self.runs[0]

    def every(self, kind: type[Served], name: str | None) -> list[Served]:
        """Return the named run, or without a name all runs of a ``kind``. Raises Refusal 404 if no
        run has the name, and Refusal 400 if the named run is of another kind or no run is of this
        kind."""
        runs = [self.run_named(name)] if name else self.runs
        matches = [run for run in runs if isinstance(run, kind)]
        if name and not matches:
            (run,) = runs
            raise Refusal(
                "other_task",
                f"{name} {run.does}. Send the request to {run.path}.",
                run=name,
                task=run.task,
                path=run.path,
            )
        if not matches:
            raise Refusal(
                "no_run_for_task",
                f"No run here {kind.does}. To train one: {kind.trained}",
                task=kind.task,
                command=kind.trained,
            )
        return matches

    def of(self, kind: type[Served], name: str | None) -> Served:
        """Return the named run, or without a name the first run of a ``kind``. Raises the same as
        ``every``."""
        return self.every(kind, name)[0]

    def to_look_into(self, name: str | None) -> list[ServedRun]:
        """Return the named run, or without a name the runs from which the languages of a request
        for ``/v1/look`` choose: the translators; if there are none, all runs that can be inspected;
        if there are none, the first run. Raises Refusal 404."""
        able = [run for run in self.runs if run.can_be_looked_into]
        return [self.run_named(name)] if name else self.translating or able or self.runs[:1]

    def choose(
        self, runs: Sequence[Served], text: str, source: str, target: str | None
    ) -> tuple[Served, DetectedLanguage | None]:
        """Choose the run for a text. Returns the run, and the detected language if the request did
        not name the source language. Raises Refusal 400 if no run has the languages."""
        if target is None:
            targets = list(dict.fromkeys(code for run in runs for code in run.usual_targets))
            if len(targets) > 1:
                raise Refusal("target_needed", targets=targets)
        else:
            of_targets = [(run, code) for run in runs for code in run.targets]
            runs = [run.into(own) for run, own in self._matching(of_targets, "target", target)]
        of_sources = [(run, run.source) for run in runs]
        if source != AUTO:
            return self._matching(of_sources, "source", source)[0][0], None
        detection = self.detector.choose(text, list(dict.fromkeys(own for _, own in of_sources)))
        return next(run for run in runs if run.source == detection.language), detection

    def _matching(
        self, of_runs: Sequence[tuple[Served, str]], side: str, code: str
    ) -> list[tuple[Served, str]]:
        """Return the runs whose ``side`` (source or target) is the language ``code``, each with its
        own code for this language. The codes that match best come first (see ``same_language``)."""
        codes = same_language(code, [own for _, own in of_runs])
        matches = [(run, own) for wanted in codes for run, own in of_runs if own == wanted]
        if not matches:
            pairs = [(run.source, own) for run in self.translating for own in run.targets]
            raise Refusal(
                "language_not_supported",
                f"{code} is not supported as a {side} language. Use "
                f"{', '.join(' to '.join(pair) for pair in pairs)}.",
                language=code,
                side=side,
                pairs=["-".join(pair) for pair in pairs],
            )
        return matches


def language_message(language: str, confidence: float) -> DetectedLanguage:
    """Make the message about a detected language. ``confidence`` is from 0 to 1; the message has it
    in percent, as LibreTranslate does."""
    return DetectedLanguage(language=language, confidence=round(100 * confidence, 1))
