"""This module has the endpoints that show how a model works: ``/v1/figures`` computes the figures
of the documentation with values of their sliders, ``/v1/look`` inspects one sentence, and the
lesson explains one run in ten steps.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Any
from weakref import WeakKeyDictionary

from fastapi import Request
from pydantic import Field
from starlette.responses import Response

from dragoman.base.errors import DataError, DragomanError, FileError, RecipeError, RunError
from dragoman.base.wording import shorten
from dragoman.insight.figures import catalogue
from dragoman.insight.figures.captions import captions
from dragoman.insight.lesson.answer import Lesson
from dragoman.insight.lesson.lesson import make_lesson, subject_of
from dragoman.insight.lesson.steps import learn_beside
from dragoman.insight.subject import Subject, has_learned_positions
from dragoman.nn.settings import InferencePrecision
from dragoman.pictures.figure import Words, csv_files, figure_svg
from dragoman.runs.run import Run
from dragoman.serving.http.messages import REFUSALS, KeyedMessage, Message, error_of, json_of
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.answer import look_answer
from dragoman.serving.look.inspector import Asked, Cut, Inspector
from dragoman.serving.look.schema import (
    AttentionRequest,
    CellAnswer,
    CellRequest,
    DetectedLanguage,
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

KEPT_FIGURES = 48_000_000
"""The most bytes of figures that are kept for each run."""
MAX_SENTENCE = 120
"""The most source tokens of a sentence; a figure shows every one of them."""
OF_OPERATORS = (DataError, FileError, RecipeError, RunError)
"""Errors that only an operator can fix; their messages contain names of folders."""
KEPT_LESSONS = 8
"""The number of lessons that the server keeps."""


class TwoLanguages(Message):
    """A text in the two languages of the page."""

    en: str
    """The text for readers of English."""
    ko: str
    """The text for readers of Korean."""


class FigureEntry(Message):
    """A figure that the server can compute."""

    name: str
    """The name of the figure, for the field `name` of a request."""
    title: TwoLanguages
    """The title of the figure, in both languages."""
    caption: TwoLanguages
    """The caption of the figure, in both languages."""
    source: TwoLanguages
    """The section and equation of the paper that the figure shows."""
    group: catalogue.Group
    """The subject of the figure: positions, attention, training, or the run itself."""
    encoding: TwoLanguages | None = None
    """The name of the positional encoding, if the figure shows a single one. Absent otherwise."""
    needs_run: bool
    """True if the figure is computed from a run."""
    sentence: catalogue.Sentence | None = None
    """The default sentence, if the figure accepts another one: the first that the run was measured
    on, or one that the figure chooses. Absent otherwise."""
    values: dict[str, list[float]]
    """The possible values of each slider, by name. For sliders that depend on the run, see the
    answer of `POST /v1/figures`."""
    missing: TwoLanguages | None = None
    """The reason why the figure cannot be computed for the run. Absent if it can."""
    command: str | None = None
    """The command that computes the figure in a shell, if only the server cannot. Absent
    otherwise."""


class FigureList(Message):
    """The list of all figures of the server."""

    figures: list[FigureEntry]
    """The figures, in the order in which the documentation lists them."""


class FigureRequest(KeyedMessage):
    """A request for a figure: `POST /v1/figures`."""

    name: str
    """The name of the figure, from `GET /v1/figures`."""
    run: str | None = None
    """The name of the run. Default: the first run of the server."""
    sentence: str = Field(default="", max_length=2000)
    """The sentence that the run reads. Default: an example."""
    values: dict[str, float] = Field(default_factory=dict, max_length=8)
    """The values of the sliders, by name. Default: the initial value of each slider."""
    data: bool = False
    """Return files instead of panels: the figure as SVG and its numbers as CSV."""


class SliderInfo(Message):
    """A parameter of a figure that a reader can change."""

    name: str
    """The name of the slider, for the field `values` of a request."""
    title: TwoLanguages
    """The label of the slider, in both languages."""
    values: list[float]
    """The possible values of the slider, in order."""
    value: float
    """The value with which this figure was computed."""
    zero: TwoLanguages | None = None
    """The meaning of the value 0, if it is not a number. Absent otherwise."""


class FigureAnswer(Message):
    """A computed figure: its texts, its sliders and its panels."""

    name: str
    """The name of the figure, from the request."""
    title: TwoLanguages
    """The title of the figure, in both languages."""
    caption: TwoLanguages
    """The caption of the figure, in both languages."""
    notes: list[TwoLanguages]
    """The remarks on the figure, in both languages."""
    source: TwoLanguages
    """The section and equation of the paper that the figure shows."""
    run: str
    """The name of the run. Empty if the figure needs none."""
    sentence: str
    """The sentence that the run read. Empty if the figure reads none."""
    sliders: list[SliderInfo]
    """The sliders with their current values."""
    panels: list[dict[str, Any]]
    """The data to draw, by the `kind` of each panel: `cells`, `lines`, `heads`, `hops` or `table`.
    Matrices are 32-bit floats in base64."""


class FigureData(Message):
    """The picture and the numbers of a figure as files."""

    files: dict[str, str]
    """The contents of each file by its name: the figure as SVG, or its numbers as CSV."""


class FigureMaker:
    """Makes the figures of one run, and caches the last ones."""

    def __init__(self, run: ServedRun) -> None:
        self._run, self._name = run.run, run.name
        self._missing = {name: _missing(name, run) for name in captions()}
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        # The run's own example would be a file of the machine on which it was trained.
        own = "" if run.takes_files else None
        opening = partial(_open_subject, run.run, run.settings.precision, own)
        self._subject = lru_cache(1)(opening)  # each has a model of its own in memory

    def make(self, request: FigureRequest) -> bytes:
        """Make a figure, as JSON. It takes some time, and stops at the next part of the work if the
        request is given up. Raises Refusal 400, and the errors of a damaged run."""
        key = request.model_copy(update={"run": None, "api_key": None}).model_dump_json()
        made = self._kept.pop(key, None) or self._make(request)
        self._kept[key] = made
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > KEPT_FIGURES:
            self._kept.popitem(last=False)
        return made

    def _make(self, request: FigureRequest) -> bytes:
        name = request.name
        if name not in captions():
            raise Refusal("no_such_figure", figure=shorten(name, 100))
        missing = self._missing[name]
        if missing is not None:
            raise Refusal(
                "no_figure_here", missing.en, figure=name, english=missing.en, korean=missing.ko
            )
        with as_refusal("bad_figure", self._run, self._name):
            subject = self._subject(request.sentence.strip()) if catalogue.needs_run(name) else None
            values = catalogue.validate(name, subject, request.values)
            made = catalogue.make_figure(name, subject, values)
        if request.data:
            files = {f"{name}.svg": figure_svg(made), **csv_files(made)}
            return FigureData(files=files).model_dump_json().encode()
        answer = FigureAnswer(
            name=name,
            title=_both(made.title),
            caption=_both(made.caption),
            notes=[_both(note) for note in made.notes],
            source=_both(made.source),
            run=made.run and self._name,
            sentence="" if subject is None else subject.sentence,
            sliders=[
                _slider(slider, values.get(slider.name, slider.start))
                for slider in catalogue.sliders_of(name, subject)
            ],
            panels=[panel.to_dict() for panel in made.panels],
        )
        fields = answer.model_dump(exclude_none=True)
        return json.dumps(fields, ensure_ascii=False, allow_nan=False, default=float).encode()


def _open_subject(
    run: Run, precision: InferencePrecision, own: str | None, sentence: str
) -> Subject:
    """Open a run with a sentence, or with ``own`` if there is none. Raises Refusal 400 if the
    sentence is too long."""
    subject = Subject.open(run, sentence or own, precision=precision)
    tokens = len(subject.predictor.ids_to_show(subject.sentence)) if subject.sentence else 0
    if tokens > MAX_SENTENCE:
        raise Refusal("too_long_for_figure", tokens=tokens, most=MAX_SENTENCE)
    return subject


def figure_endpoints(service: Service) -> Endpoints:
    """The endpoints of figures for one server."""
    routes = Endpoints(service)
    makers: WeakKeyDictionary[ServedRun, FigureMaker] = WeakKeyDictionary()

    @routes.get(
        "/figures",
        summary="List the figures",
        responses={
            200: {"model": FigureList},
            404: error_of("No run has this name"),
            **REFUSALS,
        },
    )
    async def names(http: Request, run: str | None = None) -> Response:
        """Returns the figures in the order in which the documentation lists them. If a figure
        cannot be computed for the run, `missing` has the reason."""
        with service.admit(http):
            served = service.catalogue.run_or_first(run)
            return await service.json_once(http, partial(_figures, served), served.name)

    @routes.answers("/figures", FigureRequest, FigureAnswer, "Compute a figure")
    async def figure(request: FigureRequest, client: str) -> bytes:
        """Returns the figure with its captions in English and Korean, its sliders and the data of
        its panels; or with `data`, as SVG and CSV."""
        run = service.catalogue.run_or_first(request.run)
        maker = makers.get(run) or makers.setdefault(run, FigureMaker(run))
        return await service.figures.do(client, partial(maker.make, request))

    return routes


@contextmanager
def as_refusal(code: str, run: Run, name: str) -> Iterator[None]:
    """Answer an error that is not one for operators with a Refusal. Its message has the name of the
    run instead of its folder, which is none of a client's business."""
    try:
        yield
    except OF_OPERATORS:
        raise
    except DragomanError as error:
        problem = str(error).replace(str(run.folder), name)
        raise Refusal(code, problem, problem=problem) from None


def _figures(run: ServedRun) -> bytes:
    """List all figures, with the reason where one cannot be made for the run."""
    figures = [
        FigureEntry(
            name=name,
            title=_both(words.title),
            caption=_both(words.text),
            source=_both(words.source),
            group=catalogue.FIGURES[name].group,
            encoding=None if words.encoding is None else _both(words.encoding),
            needs_run=catalogue.needs_run(name),
            sentence=catalogue.FIGURES[name].sentence,
            values={item.name: list(item.values) for item in catalogue.sliders_of(name, None)},
            missing=(missing := _missing(name, run)),
            command=_command(name, run) if missing is not None else None,
        )
        for name, words in captions().items()
    ]
    return json_of(FigureList(figures=figures))


def _missing(name: str, run: ServedRun) -> TwoLanguages | None:
    """The reason why this server cannot make a figure for a run, or None."""
    if not catalogue.needs_run(name):
        return None
    if not run.has_figures:
        return TwoLanguages(
            en=f"{run.name} {run.does}. Figures work only for runs that write text or fill it in.",
            ko=f"그림은 글을 쓰거나 빈칸을 채우는 모델만 들여다봅니다. {run.name} 모델은 다른 일을 "
            "합니다.",
        )
    recipe, model, figure = run.run.recipe, run.engine.network, catalogue.FIGURES[name]
    needed = catalogue.missing(name, model)
    if needed is not None:
        return _both(needed)
    if run.takes_files and figure.sentence is not None:
        return TwoLanguages(
            en=f"This figure shows a file, and {run.name} reads {run.reads}. Use the view Label "
            "to see where it looks in your file.",
            ko=f"이 그림은 파일을 보여 줍니다. {run.name} 모델이 파일에서 본 곳과 읽는 과정은 인식 "
            "화면에서 볼 수 있습니다.",
        )
    if figure.trains and not has_learned_positions(model):
        return TwoLanguages(
            en=f"{run.name} has fixed positions, so a small model would have to be trained for "
            "this figure. The server does not train models.",
            ko=f"{run.name} 모델은 위치 인코딩이 고정되어 있어, 이 그림을 그리려면 작은 모델을 "
            "몇 초 동안 새로 학습해야 합니다. 서버에서는 학습하지 않습니다.",
        )
    if figure.of_demo and recipe.data.embedded != "demo":
        return TwoLanguages(
            en="This figure needs a run trained on the demo corpus. Create one with dragoman demo.",
            ko="이 그림에는 데모 말뭉치로 학습한 모델이 필요합니다. dragoman demo 명령으로 만들 수 "
            "있습니다.",
        )
    return None


def _command(name: str, run: ServedRun) -> str | None:
    """The command that makes the figure in a shell, or None."""
    is_made = catalogue.FIGURES[name].trains and catalogue.missing(name, run.engine.network) is None
    return f"dragoman figure {name}" if is_made else None


def _both(words: Words) -> TwoLanguages:
    return TwoLanguages(en=words.english, ko=words.korean)


def _slider(slider: catalogue.Slider, value: float) -> SliderInfo:
    return SliderInfo(
        name=slider.name,
        title=_both(slider.title),
        values=list(slider.values),
        value=value,
        zero=None if slider.zero is None else _both(slider.zero),
    )


def look_endpoints(service: Service) -> Endpoints:
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

    @lru_cache(KEPT_LESSONS)
    def make(written: tuple[int, ...], name: str, text: str) -> bytes:
        """``written``: the versions of all runs; a lesson is kept only for these."""
        return _make_lesson(service.catalogue.run_named(name), text, service.catalogue.translating)

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


def _make_lesson(run: ServedRun, text: str, others: Sequence[ServedRun]) -> bytes:
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
