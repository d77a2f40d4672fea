"""A run that paints, served over HTTP.

The codes of a picture are searched for in the queue that all clients share. They are turned into
pictures, and these into PNG files, outside the event loop; large files in a thread of their own, so
that small ones do not wait for them.
"""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from pydantic import Field

from dragoman.base.errors import DataError, RecipeError, RunError
from dragoman.engine.alignment_head import Alignment, by_words
from dragoman.forms.lexicon import Lexicon
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SamplingSettings
from dragoman.serving.http.limits import PIXELS_OF_A_PLACE
from dragoman.serving.http.messages import IMAGES, OPENAI_REFUSALS, KeyedMessage, Message
from dragoman.serving.http.refusals import Refusal, unsearchable, wrong_field
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.served_run import AskedRun, sample_sources, short
from dragoman.serving.service.service import Service
from dragoman.tasks.painting.painter import LARGEST_SCALE, Painter, painting_settings, unknown_words


class ImagesRequest(KeyedMessage):
    """A request to paint pictures from a caption: `POST /v1/images/generations`."""

    prompt: str
    """The caption from which the pictures are painted."""
    model: str | None = None
    """The name of the run. Default, and for `gpt-image-1`, `dall-e-2` and `dall-e-3`: the first run
    that paints."""
    n: int | None = Field(default=None, ge=1, le=10)
    """The number of pictures. Default: 1."""
    size: str | None = None
    """The size in pixels, such as `64x64`. A run paints in one size, so only this size and `auto`
    are accepted."""
    response_format: Literal["b64_json"] | None = None
    """The form of the pictures: always `b64_json`, in the answer. The server stores no pictures."""
    output_format: Literal["png"] | None = None
    """The file format of the pictures: always `png`."""
    stream: Literal[False] | None = None
    """Always false: a picture is returned as a whole."""
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    """The random seed to sample the pictures; the same seed gives the same pictures. Default: the
    most probable pictures are searched for. Not a field of OpenAI."""
    scale: int = Field(default=1, ge=1, le=LARGEST_SCALE)
    """The factor by which the picture is enlarged: each pixel becomes `scale` × `scale` pixels. Not
    a field of OpenAI."""
    explain: bool = False
    """Return the codes of each picture with their probabilities and attention, and the words of the
    caption. Not a field of OpenAI."""
    quality: str | None = None
    """Accepted for clients of OpenAI, and not used."""
    style: str | None = None
    """Accepted for clients of OpenAI, and not used."""
    background: str | None = None
    """Accepted for clients of OpenAI, and not used."""
    moderation: str | None = None
    """Accepted for clients of OpenAI, and not used."""
    output_compression: int | None = None
    """Accepted for clients of OpenAI, and not used."""
    user: str | None = None
    """Accepted for clients of OpenAI, and not used."""


class WrittenCodes(Message):
    """The codes of a picture, patch by patch, from left to right and from top to bottom."""

    rows: int
    """The number of rows of patches."""
    columns: int
    """The number of columns of patches."""
    codes: list[int]
    """The numbers of the codes, from 0."""
    probabilities: list[float]
    """The probability of each code given the codes before it, from 0 to 1."""
    attention: list[list[float]]
    """For each code, the attention to each of `words`, from 0 to 1; the rest was on the end of the
    caption. The lists are empty if the model has no attention."""


class PaintedImage(Message):
    """A picture that was painted, and its codes."""

    b64_json: str
    """The picture as a PNG file in base64."""
    written: WrittenCodes | None = None
    """The codes of the picture. Present only if `explain` was set."""


class ImagesAnswer(Message):
    """The pictures that were painted from the caption."""

    created: int
    """The time of the answer, in seconds since 1970."""
    data: list[PaintedImage]
    """The pictures, the most probable first."""
    words: list[str] | None = None
    """The words of the caption, split at spaces. Present only if `explain` was set."""
    unknown: list[str] | None = None
    """The words that occur in no caption of the training data, so the run cannot know how to paint
    them. Present only if `explain` was set."""


ANY = ("gpt-image-1", "dall-e-2", "dall-e-3")
"""Model names that clients have built in: each stands for any run that paints."""


class ServedPainter(AskedRun[Painter]):
    """A run that paints, served over HTTP."""

    task, does, path = "painting", "paints pictures from captions", IMAGES
    trained = "dragoman train captions.tsv --task painting --codes RUN"
    sent, gives = ImagesRequest, ImagesAnswer
    opens, work = Painter, "pictures"
    looked_into = has_figures = False

    def __init__(self, name: str, painter: Painter, settings: ServeSettings) -> None:
        super().__init__(name, painter, settings)
        painter.form.coder  # noqa: B018, damaged weights are refused now
        source = painter.form.symbols.source
        self.height, self.width = source.height, source.width
        self.lexicon = _words_of(painter.run)
        self._writing = self.executor("large pictures")
        """The executor that writes large PNG files; small files are written by ``asking``."""

    @property
    def why_not_inside(self) -> str:
        return "it writes codes of pictures. From the command line: dragoman look"

    @staticmethod
    def examples(run: Run) -> list[str]:
        return short(sample_sources(run))

    def check(self, request: ImagesRequest) -> None:
        """Check a request before the search. Raises Refusal 400."""
        own = f"{self.width}x{self.height}"
        if request.size not in (None, "auto", own):
            raise wrong_field(
                "size",
                f"{self.name} paints pictures of {own}. Leave size out, and set the size of each "
                "pixel (scale)",
            )
        count, most = request.n or 1, self.settings.limits.pixels
        pixels = self._pixels(request)
        if pixels > most:
            raise Refusal(
                "too_many_pixels",
                f"{count} x {own} pixels, each enlarged to {request.scale} x {request.scale}, "
                f"are {pixels:,}; this server makes at most {most:,} at once. Use a smaller "
                "scale, or fewer pictures (n).",
                pixels=pixels,
                most=most,
            )

    def _pixels(self, request: ImagesRequest) -> int:
        return (request.n or 1) * self.height * self.width * request.scale**2

    def search_for(self, request: ImagesRequest) -> Request:
        """Return the search that answers a request. Raises Refusal 400."""
        sampling = None if request.seed is None else SamplingSettings(seed=request.seed)
        try:
            own = self.engine.search_settings
            settings = painting_settings(own, request.n or 1, None, sampling)
            self.check_search(settings)
            return self.predictor.ask(request.prompt, settings)
        except RecipeError as error:
            raise unsearchable(error) from None
        except DataError as error:
            raise Refusal("bad_text", f"prompt: {error}.", problem=str(error)) from None

    async def attention_of(
        self, request: ImagesRequest, hypotheses: Sequence[Hypothesis], client: str
    ) -> list[Alignment]:
        """Return, for each picture, the attention of each code to each token of the caption."""
        ((tokens, _),) = self.engine.source.tokens_of_words([request.prompt])
        return await self.align([(tokens, hypothesis.tokens) for hypothesis in hypotheses], client)

    def codes_of(
        self, request: ImagesRequest, hypotheses: Sequence[Hypothesis], looks: Sequence[Alignment]
    ) -> Iterator[WrittenCodes]:
        """Yield the codes of each picture, with their probabilities and their attention.
        ``looks``: the attention of each picture's codes to the tokens of the caption."""
        ((_, numbers),) = self.engine.source.tokens_of_words([request.prompt])
        words = len(request.prompt.split())
        symbols = self.predictor.form.symbols
        for hypothesis, alignment in zip(hypotheses, looks, strict=True):
            shares = by_words(alignment, numbers, words)
            each = hypothesis.token_log_probabilities[: len(hypothesis.tokens)]
            yield WrittenCodes(
                rows=symbols.source.grid[0],
                columns=symbols.source.grid[1],
                codes=[token - symbols.first for token in hypothesis.tokens],
                probabilities=[round(math.exp(value), 4) for value in each],
                attention=[
                    [round(share, 4) for share in line] if shares.any() else []
                    for line in shares.tolist()
                ],
            )

    async def images(
        self, request: ImagesRequest, hypotheses: Sequence[Hypothesis], client: str
    ) -> list[PaintedImage]:
        """Return the pictures of ``hypotheses`` as PNG files."""
        work = partial(self.predictor.answer, request.prompt, hypotheses)
        pictures = await self.asking.do(client, work)
        places = 1 + self._pixels(request) // PIXELS_OF_A_PLACE
        executor = self.asking if places == 1 else self._writing
        files = (
            PaintedImage(b64_json=base64.b64encode(picture.png(request.scale)).decode())
            for picture in pictures
        )
        return await executor.all(client, files, places)


def _words_of(run: Run) -> Lexicon | None:
    """Return the words of the training captions, read once: there may be 200,000. Return None if
    there is no list of them or if it is damaged: ``knowledge_of`` reports damage, and the run can
    still paint."""
    try:
        return run.lexicon()
    except RunError:
        return None


@asks(ServedPainter, "Paint pictures", "", "OpenAI", OPENAI_REFUSALS)
async def images(service: Service, request: ImagesRequest, client: str) -> ImagesAnswer:
    """Works with the clients of OpenAI. Returns the most probable pictures of the caption, or with
    `seed`, sampled pictures."""
    service.check_texts(request.prompt, client)
    named = None if request.model in ANY else request.model
    run = service.catalogue.of(ServedPainter, named)
    run.check(request)
    search = await service.texts.do(client, partial(run.search_for, request))
    run.check_searches([search])
    service.meters.count_characters(run.name, client, len(request.prompt))
    (hypotheses,) = await run.queue.search([search], client)
    data = await run.images(request, hypotheses, client)
    answer = ImagesAnswer(created=int(time.time()), data=data)
    if request.explain:
        answer.words = request.prompt.split()
        answer.unknown = await service.texts.do(
            client, partial(unknown_words, run.lexicon, [request.prompt])
        )
        looks = await run.attention_of(request, hypotheses, client)
        codes = await service.texts.all(client, run.codes_of(request, hypotheses, looks))
        for image, written in zip(data, codes, strict=True):
            image.written = written
    return answer
