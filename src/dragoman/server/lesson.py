"""The endpoint of the lesson: the ten steps about one run and one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache, partial

from dragoman.base.errors import DragomanError
from dragoman.insight.lesson.answer import Lesson
from dragoman.insight.lesson.lesson import make_lesson, subject_of
from dragoman.insight.lesson.steps import learn_beside
from dragoman.server.figures import as_refusal
from dragoman.serving.http.messages import KeyedMessage, json_of
from dragoman.serving.service.endpoints import Endpoints
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service

MAX_KEPT = 8
"""The number of lessons that the server keeps."""


class LessonRequest(KeyedMessage):
    """A request for a lesson: `POST /v1/lesson`."""

    run: str | None = None
    """The name of the run. Default: the first run of the server."""
    text: str = ""
    """A text; the lesson is about its first sentence. Default: the sentence of the paper, or for a
    run that does not read English, one that the run was measured on."""


def endpoints(service: Service) -> Endpoints:
    """The endpoint of lessons for one server."""
    routes = Endpoints(service)

    @lru_cache(MAX_KEPT)
    def make(written: tuple[tuple[int, ...], ...], name: str, text: str) -> bytes:
        """``written``: the versions of all runs; a lesson is kept only for these."""
        return _make(service.catalogue.run_named(name), text, service.catalogue.translating)

    @routes.answers("/lesson", LessonRequest, Lesson, "Compute a lesson")
    async def lesson(request: LessonRequest, client: str) -> bytes:
        """Returns the ten steps by which a Transformer turns a sentence into a translation, with
        the numbers of the run."""
        service.check_texts(request.text, client)
        run = service.catalogue.run_or_first(request.run)
        written = tuple(served.run.written for served in service.catalogue.runs)
        text = request.text.strip()
        return await service.figures.do(client, partial(make, written, run.name, text))

    return routes


def _make(run: ServedRun, text: str, others: Sequence[ServedRun]) -> bytes:
    """Make the lesson of a run. ``others``: the runs of the server that translate."""
    families = {
        other.run.recipe.model.kind: other
        for other in reversed(others)
        if other.run.languages == run.run.languages and not other.run.task.reads_files
    }
    with as_refusal("no_lesson", run.run, run.name):
        subject = subject_of(run.run, text, run.settings.precision)
        lesson = make_lesson(subject)
        for family in sorted(families.keys() - {run.run.recipe.model.kind}):
            other = families[family]
            with suppress(DragomanError):  # a damaged run has its own messages elsewhere
                beside = subject_of(other.run, subject.sentence, other.settings.precision)
                lesson.beside.append(learn_beside(beside, other.name))
        return json_of(lesson)
