"""Which run translates a text: by name, by languages, or by the language that the text is in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.forms.languages import base, name_of
from dragoman.serving.classify.labelling import Labelling
from dragoman.serving.fill.filling import Filling
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.parse.bracketing import Bracketing
from dragoman.serving.schema import DetectedLanguage, Language
from dragoman.serving.served import ServedRun
from dragoman.serving.translate.languages import Detector
from dragoman.serving.uses import TaskName, another_use, no_such_use
from dragoman.serving.write.composer import Composer

AUTO = "auto"


@dataclass(frozen=True)
class ChosenRun:
    """A run, and the language that was detected if the client left it open."""

    run: ServedRun
    detected: DetectedLanguage | None = None


class Catalogue:
    """The runs of a server, in the order in which they were named; the first one counts most."""

    def __init__(self, runs: Sequence[ServedRun], detector: Detector) -> None:
        self.runs = list(runs)
        self.detector = detector

    def start(self) -> None:
        """Start the queues of all runs, in the event loop."""
        for run in self.runs:
            run.start()

    async def close(self) -> None:
        """Finish what was taken."""
        await asyncio.gather(*(run.close() for run in self.runs))

    @property
    def translating(self) -> list[ServedRun]:
        """Those that translate what they are given."""
        return [run for run in self.runs if run.task == "translation"]

    def named(self, name: str) -> ServedRun:
        """Raises Refusal 404."""
        for run in self.runs:
            if run.name == name:
                return run
        runs = [run.name for run in self.runs]
        raise Refusal(
            "no_such_run",
            f"There is no run {name!r} here; there are: {', '.join(runs)}.",
            run=name,
            runs=runs,
        )

    def of(self, task: TaskName, name: str | None) -> ServedRun:
        """The run that is named, or the first of a task. Raises Refusal 404, or 400 for one of
        another task."""
        for run in [self.named(name)] if name else self.runs:
            if run.task == task:
                return run
            if name:
                raise another_use(name, run.task)
        raise no_such_use(task)

    def writer(self, name: str | None) -> tuple[ServedRun, Composer]:
        """The run that goes on with texts. Raises as ``of``."""
        run = self.of("language-model", name)
        assert run.composer is not None
        return run, run.composer

    def labelling(self, name: str | None) -> tuple[ServedRun, Labelling]:
        """The run that labels texts. Raises as ``of``."""
        run = self.of("classification", name)
        assert run.labelling is not None
        return run, run.labelling

    def filling(self, name: str | None) -> tuple[ServedRun, Filling]:
        """The run that fills in blanks. Raises as ``of``."""
        run = self.of("masked", name)
        assert run.filling is not None
        return run, run.filling

    def bracketing(self, name: str | None) -> tuple[ServedRun, Bracketing]:
        """The run that parses. Raises as ``of``."""
        run = self.of("parsing", name)
        assert run.bracketing is not None
        return run, run.bracketing

    def choose(
        self, text: str, source: str, target: str | None, name: str | None, *, looking: bool
    ) -> ChosenRun:
        """The run for one text. ``looking``: to look inside; else to translate. Raises Refusal 404,
        or 400 for languages that no run has, and for a run that does something else."""
        if looking:
            able = [run for run in self.runs if run.can_be_looked_into]
            runs = [self.named(name)] if name else self.translating or able or self.runs[:1]
        else:
            runs = [self.of("translation", name)] if name else self.translating
            if not runs:
                raise no_such_use("translation")
        if target is None:
            targets = list(dict.fromkeys(run.target for run in runs))
            if len(targets) > 1:
                raise Refusal(
                    "target_needed",
                    f"Say which target language: {', '.join(targets)}.",
                    targets=targets,
                )
        else:
            runs = self._matching(runs, "target", target)
        if source != AUTO:
            return ChosenRun(self._matching(runs, "source", source)[0])
        sources = list(dict.fromkeys(run.source for run in runs))
        found = self.detector.choose(text, sources)
        run = next(run for run in runs if run.source == found.language)
        return ChosenRun(run, detected(found.language, found.confidence))

    def languages(self) -> list[Language]:
        """Source languages and what each can be translated into."""
        targets: dict[str, list[str]] = {}
        for run in self.translating:
            of_source = targets.setdefault(run.source, [])
            if run.target not in of_source:
                of_source.append(run.target)
        # LibreTranslate's clients look for the target among the languages too.
        for run in self.translating:
            targets.setdefault(run.target, [])
        return [
            Language(code=code, name=name_of(code), targets=found)
            for code, found in targets.items()
        ]

    def _matching(self, runs: Sequence[ServedRun], side: str, code: str) -> list[ServedRun]:
        """The runs whose ``side`` is the language: the very code first, then without region."""
        of_run = {id(run): run.source if side == "source" else run.target for run in runs}
        found = [run for run in runs if of_run[id(run)] == code]
        found += [run for run in runs if run not in found and base(of_run[id(run)]) == base(code)]
        if not found:
            pairs = [f"{run.source} to {run.target}" for run in self.translating]
            raise Refusal(
                "language_not_supported",
                f"{code} is not supported as a {side} language; there is {', '.join(pairs)}.",
                language=code,
                side=side,
                pairs=[f"{run.source}-{run.target}" for run in self.translating],
            )
        return found


def detected(language: str, confidence: float) -> DetectedLanguage:
    """``confidence`` from 0 to 1 -> in percent, as LibreTranslate gives it."""
    return DetectedLanguage(language=language, confidence=round(100 * confidence, 1))
