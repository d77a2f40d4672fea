"""A run that reads lines of text in pictures and is served, and its endpoint.

A picture is opened, which tells how many pixels it has; decoded into columns, in a thread of its
own where its pixels are many; and searched for in the queue of the run, as sentences are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from dragoman.engine.engine import Engine
from dragoman.engine.settings import EngineSettings, TranslatorSettings
from dragoman.forms.rows.lines_form import LinesForm
from dragoman.forms.rows.rows_form import Rows
from dragoman.forms.rows.settings import LineSource
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.uploads import Upload, readable
from dragoman.serving.lines.schema import LinesAnswer, LinesRequest, ReadLine, SeenLine
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.outputs.hypothesis import texts_of
from dragoman.serving.queue.cost import PIXELS_OF_A_PLACE
from dragoman.serving.service.endpoints import Endpoints
from dragoman.serving.service.pictures import LINE, OpenedPicture, check_pictures, opened
from dragoman.serving.service.seen import drawn, looked, looked_tokens
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service
from dragoman.tasks.translation.ranking import CtcRanking


class ServedLines(ServedRun):
    """A run that reads lines of text in pictures and is served."""

    task, path = "picture-translation", "/v1/translate/pictures"
    does = "reads lines of text in pictures"
    trained = "dragoman train multi30k-en-de-pixels"
    has_figures = False
    takes_files = True

    def __init__(
        self, name: str, engine: Engine, run: Run, settings: ServeSettings, ctc_weight: float
    ) -> None:
        form = engine.source
        assert isinstance(form, LinesForm)
        form.check_library()
        super().__init__(name, engine, settings, run, looked_into=False)
        self.source = run.recipe.languages.source  # a form of rows knows none
        self._form = form
        self._ctc = CtcRanking.of(engine, run.recipe, ctc_weight)
        self.opening = self.executor("files")
        """Where pictures are opened, and decoded where they are small."""
        self._decoding = self.executor("large files")
        """Where others are decoded."""
        self._ranking = self.executor("lines")
        """Where CTC ranks what was found."""
        self.looking = self.executor("look")
        """Where it is told where the run looked."""

    @classmethod
    def takes(cls, run: Run) -> bool:
        return run.task.name == "translation" and isinstance(run.recipe.source, LineSource)

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedLines:
        """Errors: ``RunError``, and ``DataError`` where what decodes pictures is missing."""
        chosen = TranslatorSettings(**settings.model_dump(include=set(EngineSettings.model_fields)))
        engine = Engine.open(run, chosen, None, None, ())
        return cls(name, engine, run, settings, chosen.ctc_weight)

    @property
    def reads(self) -> str:
        return self._form.settings.raws

    @staticmethod
    def examples(run: Run) -> list[str]:
        """None: what it was measured on are texts that were drawn, or files of another machine."""
        return []

    def opened(self, uploads: Sequence[Upload]) -> Iterator[OpenedPicture]:
        """Each picture with its size. Raises as ``service.pictures.opened``."""
        return opened(uploads, self.settings.limits)

    def search_settings(self, beam: int | None) -> SearchSettings:
        """How lines are searched. Raises Refusal 400."""
        chosen = self.beam_search(beam, None).model_copy(update={"n_best": 1})
        if self._ctc is not None:
            chosen = self._ctc.asked(chosen)
        self.check_search(chosen)
        return chosen

    async def decoded(self, pictures: Sequence[OpenedPicture], client: str) -> list[Rows]:
        """The columns of some pictures. Raises Refusal 400 for one that cannot be read."""
        pixels = sum(one.height * one.width for one in pictures)
        places = 1 + pixels // PIXELS_OF_A_PLACE
        executor = self.opening if places == 1 else self._decoding
        found = await executor.all_in(client, places, self._decoded(pictures))
        return [rows for rows in found if rows is not None]

    def _decoded(self, pictures: Sequence[OpenedPicture]) -> Iterator[Rows | None]:
        for one in pictures:
            with readable(one.file):
                yield from self._form.in_turns(one.file, self._most_columns)

    @property
    def _most_columns(self) -> int:
        """Of one line: twice what the run has learned from, or ``LINE``, as far as the model has
        positions for them."""
        assert self.run is not None
        most = max(LINE, 2 * self.run.recipe.bounded_plan.max_source)
        places = self.engine.places
        return most if places is None else min(most, places * self._form.settings.shortens)

    def requests(self, rows: Sequence[Rows], settings: SearchSettings) -> list[Request]:
        """What is searched for. Raises Refusal 400 for what costs too much."""
        wanted = [self.engine.request(values, settings) for values in rows]
        self.check_searches(wanted)
        return wanted

    async def ranked(
        self, rows: Sequence[Rows], found: Sequence[Sequence[Hypothesis]], client: str
    ) -> list[Hypothesis]:
        """The best of each line."""
        if self._ctc is None:
            return [best for best, *_ in found]
        ctc = self._ctc
        both = zip(rows, found, strict=True)
        return await self._ranking.all(client, (ctc(*one)[0] for one in both))

    def seen(self, rows: Rows, best: Hypothesis) -> SeenLine:
        """What is read of a line, and where the run looked."""
        width, height, png = drawn(self._form, rows)
        shares = looked(self.engine, rows, best.tokens)
        tokens = looked_tokens(self.engine.target.shown(best.tokens), shares)
        return SeenLine(width=width, height=height, png=png, tokens=tokens)

    def told(self, picture: OpenedPicture, best: Hypothesis) -> ReadLine:
        """What was read in a picture, as the API tells it."""
        (text,) = texts_of(self.engine.target, [best])
        each = best.token_log_probabilities
        whole = math.fsum(each)
        return ReadLine(
            name=picture.file.called,
            width=picture.width,
            height=picture.height,
            text=text,
            log_probability=round(whole, 5),
            probability=round(math.exp(whole / max(1, len(each))), 6),
        )


def endpoints(service: Service) -> Endpoints:
    """The endpoint of runs that read lines of text."""
    routes = Endpoints(service)

    @routes.answers(
        "/translate/pictures",
        LinesRequest,
        LinesAnswer,
        "Translate lines of text in pictures",
        files=True,
    )
    async def translate_pictures(request: LinesRequest, client: str) -> bytes:
        """What a run writes of pictures with one line of text each: a translation, or, of a run
        that has learned to read, the text itself. Pictures come as `file`, in a form or in base64;
        cut them close to their line."""
        run, uploads = service.catalogue.of(ServedLines, request.run), request.uploads
        check_pictures(uploads, run.settings.limits, is_seen=request.seen)
        settings = run.search_settings(request.beam)
        pictures = await run.opening.all_in(client, 1, run.opened(uploads))
        rows = await run.decoded(pictures, client)
        wanted = run.requests(rows, settings)
        if request.seen:
            run.check_seen(rows[0], wanted[0])
        found = await run.queue.search(wanted, client)
        best = await run.ranked(rows, found, client)
        lines = [run.told(*one) for one in zip(pictures, best, strict=True)]
        if request.seen:
            lines[0].seen = await run.looking.do(client, partial(run.seen, rows[0], best[0]))
        answer = LinesAnswer(run=run.name, source=run.source, target=run.target, files=lines)
        return await service.written(client, lambda: answer)

    return routes
