"""The endpoints that look inside a model: ``/v1/look``, the paths for heads and words, and the
lesson of ten steps about one run and one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial

from dragoman.base.errors import DragomanError
from dragoman.insight.lesson.answer import Lesson
from dragoman.insight.lesson.lesson import make_lesson, subject_of
from dragoman.insight.lesson.steps import learn_beside
from dragoman.server.figures import as_refusal
from dragoman.serving.http.messages import KeyedMessage, json_of
from dragoman.serving.look.answer import look_answer
from dragoman.serving.look.inspector import Asked, Cut, Inspector
from dragoman.serving.look.outputs import DetectedLanguage
from dragoman.serving.look.schema import (
    AttentionRequest,
    CellAnswer,
    CellRequest,
    HeadsAnswer,
    LookAnswer,
    LookRequest,
    Weights,
    WordAnswer,
    WordRequest,
)
from dragoman.serving.service.endpoints import Endpoints
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service

MAX_KEPT = 8
"""The number of lessons that the server keeps."""


def endpoints(service: Service) -> Endpoints:
    """The endpoints of ``/v1/look`` for one server."""
    routes = Endpoints(service)

    async def choose(
        request: Asked, client: str
    ) -> tuple[ServedRun, DetectedLanguage | None, Cut[Asked]]:
        """The run, the detected language and the text to look at. All limits are checked before any
        work."""
        service.check_texts(request.text, client)
        runs, texts = service.catalogue.to_look_into(request.run), [request.text]
        choices = await service.choose(runs, texts, client, request.source, request.target)
        ((run, detected),) = choices
        run.check_width(request.beam or 1)
        return run, detected, await service.texts.do(client, partial(run.look_cut, request))

    @routes.answers("/look", LookRequest, LookAnswer, "Inspect the model on one sentence")
    async def look(request: LookRequest, client: str) -> bytes:
        """Returns the attention weights of every layer and head, and the candidates at each step of
        the search. Heads can be switched off, and source tokens hidden."""
        run, detected, cut = await choose(request, client)
        looking, asked = run.inspector, cut.request
        inspection = await looking.turns.do(client, partial(looking.look, asked, cut.ids))
        arguments = (asked, cut.sentences, inspection, run.name, run.engine, detected)
        return await service.encode(client, partial(look_answer, *arguments))

    async def answer(
        request: Asked, client: str, work: Callable[[Inspector, Asked, list[int]], bytes]
    ) -> bytes:
        run, _, cut = await choose(request, client)
        looking = run.inspector
        return await looking.turns.do(client, partial(work, looking, cut.request, cut.ids))

    @routes.answers("/look/attention", AttentionRequest, Weights, "Get the attention of heads")
    async def attention(request: AttentionRequest, client: str) -> bytes:
        """Returns the attention weights of one layer or head, for texts whose weights are too many
        for one answer. The other fields are those of `/v1/look`."""
        return await answer(request, client, Inspector.attention)

    @routes.answers("/look/word", WordRequest, WordAnswer, "Trace a word through the model")
    async def word(request: WordRequest, client: str) -> bytes:
        """Returns the attention weights of a word in every layer and head, and its vectors from the
        embedding to the last layer."""
        return await answer(request, client, Inspector.word)

    @routes.answers("/look/cell", CellRequest, CellAnswer, "Explain an attention weight")
    async def cell(request: CellRequest, client: str) -> bytes:
        """Returns the query, the key, their product, and the vector that the value adds."""
        return await answer(request, client, Inspector.cell)

    @routes.answers("/look/heads", LookRequest, HeadsAnswer, "Measure the effect of each head")
    async def heads(request: LookRequest, client: str) -> bytes:
        """Returns, for each head, how much the output's log-probability decreases when that head
        alone is switched off."""
        return await answer(request, client, Inspector.heads)

    return routes


class LessonRequest(KeyedMessage):
    """A request for a lesson: `POST /v1/lesson`."""

    run: str | None = None
    """The name of the run. Default: the first run of the server."""
    text: str = ""
    """A text; the lesson is about its first sentence. Default: the sentence of the paper, or for a
    run that does not read English, one that the run was measured on."""


def lesson_endpoints(service: Service) -> Endpoints:
    """The endpoint of lessons for one server."""
    routes = Endpoints(service)

    @lru_cache(MAX_KEPT)
    def make(written: tuple[int, ...], name: str, text: str) -> bytes:
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
        return await service.lessons.do(client, partial(make, written, run.name, text))

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
        lesson.model.name = run.name  # folders of several runs may be called alike
        for family in sorted(families.keys() - {run.run.recipe.model.kind}):
            other = families[family]
            with suppress(DragomanError):  # a damaged run has its own messages elsewhere
                beside = subject_of(other.run, subject.sentence, other.settings.precision)
                lesson.beside.append(learn_beside(beside, other.name))
        return json_of(lesson)
