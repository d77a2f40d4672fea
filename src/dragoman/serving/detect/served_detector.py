"""A detector that is served, and its endpoint.

A picture is opened, which tells how many pixels it has; decoded, in a thread of its own where they
are many; and searched for its boxes in the queue of the run, as sentences are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from dragoman.forms.box_symbols import PER_BOX
from dragoman.forms.rows.rows_form import Rows, RowsForm
from dragoman.forms.rows.settings import PictureSource
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving.detect.schema import (
    BoxEdges,
    DetectAnswer,
    DetectRequest,
    FoundBox,
    SearchedPicture,
    SeenPicture,
)
from dragoman.serving.http.uploads import Upload, readable
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.queue.cost import PIXELS_OF_A_PLACE
from dragoman.serving.service.endpoints import Endpoints
from dragoman.serving.service.pictures import OpenedPicture, check_pictures, opened
from dragoman.serving.service.seen import drawn, looked, told
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service
from dragoman.tasks.detection.detector import Detector, detected


class ServedDetector(ServedRun):
    """A run that finds boxes and is served."""

    task, does, path = "detection", "finds boxes in pictures", "/v1/detect"
    trained = "dragoman train boxes.json --task detection"
    has_figures = False
    takes_files = True

    def __init__(self, name: str, detector: Detector, settings: ServeSettings) -> None:
        form = detector.run.source
        assert isinstance(form, RowsForm)
        form.check_library()
        super().__init__(name, detector.engine, settings, detector.run, looked_into=False)
        self._form = form
        self.opening = self.executor("files")
        """Where pictures are opened, and decoded where they are small."""
        self._decoding = self.executor("large files")
        """Where others are decoded."""
        self.looking = self.executor("look")
        """Where it is told where the run looked."""

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedDetector:
        """Errors: ``RunError``, and ``DataError`` where what decodes pictures is missing."""
        return cls(name, Detector(run), settings)

    @property
    def reads(self) -> str:
        return self._form.settings.raws

    @staticmethod
    def examples(run: Run) -> list[str]:
        """None: what it was measured on are files of the machine that it was trained on."""
        return []

    def search_settings(self, beam: int | None) -> SearchSettings:
        """How pictures are searched. Raises Refusal 400."""
        chosen = self.beam_search(beam, None).model_copy(update={"n_best": 1})
        self.check_search(chosen)
        return chosen

    def opened(self, uploads: Sequence[Upload]) -> Iterator[OpenedPicture]:
        """Each picture with its size. Raises as ``service.pictures.opened``."""
        return opened(uploads, self.settings.limits)

    async def decoded(self, opened: Sequence[OpenedPicture], client: str) -> list[Rows]:
        """The patches of some pictures."""
        pixels = sum(one.height * one.width for one in opened)
        places = 1 + pixels // PIXELS_OF_A_PLACE
        executor = self.opening if places == 1 else self._decoding
        found = await executor.all_in(client, places, self._decoded(opened))
        return [rows for rows in found if rows is not None]

    def _decoded(self, opened: Sequence[OpenedPicture]) -> Iterator[Rows | None]:
        for one in opened:
            with readable(one.file):
                yield from self._form.in_turns(one.file)

    def requests(
        self, opened: Sequence[OpenedPicture], rows: Sequence[Rows], settings: SearchSettings
    ) -> list[Request]:
        """What is searched for."""
        return [
            self.engine.request(values, settings, raw=one.file.called)
            for one, values in zip(opened, rows, strict=True)
        ]

    def told(
        self, one: OpenedPicture, best: Hypothesis, threshold: float, seen: Rows | None = None
    ) -> SearchedPicture:
        """What was found in a picture, as the API tells it; of the patches ``seen``, also what is
        read, and where the run looked as it wrote each box."""
        found = detected(self.engine, one.file.called, (one.height, one.width), best)
        shares = None if seen is None else looked(self.engine, seen, best.tokens)
        if shares is not None:
            shares = shares.reshape(-1, PER_BOX, shares.shape[-1]).mean(axis=1)
        return SearchedPicture(
            name=one.file.called,
            width=one.width,
            height=one.height,
            boxes=[
                FoundBox(
                    score=round(box.score, 6),
                    label=box.label,
                    box=BoxEdges.model_validate(box.to_dict()["box"]),
                    looked=None if shares is None else told(shares[number].tolist()),
                )
                for box, number in zip(found.above(threshold), found.order, strict=False)
            ],
            seen=None if seen is None else self._seen(seen),
        )

    def _seen(self, rows: Rows) -> SeenPicture:
        """What is read of a picture."""
        settings = self._form.settings
        assert isinstance(settings, PictureSource)
        down, across = settings.grid
        width, height, png = drawn(self._form, rows)
        return SeenPicture(width=width, height=height, png=png, rows=down, columns=across)


def endpoints(service: Service) -> Endpoints:
    """The endpoint of a detector."""
    routes = Endpoints(service)

    @routes.answers(
        "/detect", DetectRequest, DetectAnswer, "Find what is in pictures, and where", files=True
    )
    async def detect(request: DetectRequest, client: str) -> bytes:
        """Boxes with their labels and scores, the surest first, as the pipelines of transformers
        give them. Pictures come as `file`, in a form or in base64."""
        run, uploads = service.catalogue.of(ServedDetector, request.run), request.uploads
        check_pictures(uploads, run.settings.limits, is_seen=request.seen)
        settings = run.search_settings(request.beam)
        opened = await run.opening.all_in(client, 1, run.opened(uploads))
        rows = await run.decoded(opened, client)
        requests = run.requests(opened, rows, settings)
        run.check_searches(requests)
        if request.seen:
            run.check_seen(rows[0], requests[0])
        found = await run.queue.search(requests, client)
        if request.seen:
            work = partial(run.told, opened[0], found[0][0], request.threshold, rows[0])
            pictures = [await run.looking.do(client, work)]
        else:
            told = (
                run.told(one, best, request.threshold)
                for one, (best, *_) in zip(opened, found, strict=True)
            )
            pictures = await service.texts.all(client, told)
        answer = DetectAnswer(run=run.name, files=pictures)
        return await service.written(client, lambda: answer)

    return routes
