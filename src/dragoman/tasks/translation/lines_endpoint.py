"""A served run that reads lines of text in pictures, and its endpoint.

A picture is opened, which gives its number of pixels; it is decoded into columns, in a separate
thread if it is large; then the run's queue searches for its text, as for sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from pydantic import Field

from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.messages import Message
from dragoman.serving.http.uploads import WithFiles
from dragoman.serving.look.schema import texts_of
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.file_run import (
    FileRun,
    LookedToken,
    OpenedFile,
    SeenFile,
    attention,
    png_of,
    token_messages,
)
from dragoman.serving.service.service import Service
from dragoman.sources.shared.rows import Rows
from dragoman.tasks.translation.translator import Translator


class LinesRequest(WithFiles):
    """A request to read or translate pictures of one line of text each: `POST
    /v1/translate/pictures`."""

    run: str | None = None
    """The name of the run. Default: the first run that reads lines of text."""
    beam: int | None = Field(default=None, ge=1)
    """The number of hypotheses kept at each step of the search. Default: the run's setting."""
    seen: bool = False
    """Return the input of the model, and its attention for each token of the text. For one
    picture."""


class SeenLine(SeenFile):
    """A line of text as the model reads it, scaled to the height of its input."""

    tokens: list[LookedToken]
    """The tokens of the text with their attention. The rows of the encoder divide the picture from
    left to right. The attention is left out if there are more than 1,024 rows or tokens."""


class ReadLine(Message):
    """The text that the run writes for one picture."""

    name: str
    """The name of the uploaded file. For base64, `file`, or `file[0]` and so on for a list."""
    width: int
    """The width in pixels, after the picture was turned upright as its EXIF data says."""
    height: int
    """The height in pixels, after the picture was turned upright as its EXIF data says."""
    text: str
    """The text in the target language."""
    log_probability: float
    """The log-probability of the text, in nats: the sum over its tokens."""
    probability: float
    """The geometric mean of the probabilities of its tokens, from 0 to 1."""
    seen: SeenLine | None = None
    """The input of the model. Present only if `seen` was set."""


class LinesAnswer(Message):
    """The texts that the run wrote for the pictures."""

    run: str
    """The name of the run that answered."""
    source: str
    """The language of the lines in the pictures, as a code."""
    target: str
    """The language of the texts, as a code."""
    files: list[ReadLine]
    """The text of each picture, in the order of the request."""


class ServedLines(FileRun[Translator]):
    """A served run that reads lines of text in pictures."""

    task, path = "picture-translation", "/v1/translate/pictures"
    does, opens, work = "reads lines of text in pictures", Translator, "lines"
    trained = "dragoman train multi30k-en-de-pixels"
    sent, gives = LinesRequest, LinesAnswer

    def __init__(self, name: str, translator: Translator, settings: ServeSettings) -> None:
        super().__init__(name, translator, settings)
        self.source = self.run.recipe.languages.source  # a form of rows has no language
        self.looking = self.executor("look")
        """The thread that computes where the run looked."""

    def search_settings(self, beam: int | None) -> SearchSettings:
        """Return the settings of the search with this beam. Raises Refusal 400."""
        return self.predictor.ctc.with_n_best(super().search_settings(beam))

    @property
    def most_columns(self) -> int:
        """The most columns of a picture of a line: twice those of the longest line in training, or
        ``LINE``, limited by the model's positions."""
        most = self.most_rows(2 * self.run.recipe.bounded_plan.max_source)
        places = self.engine.places
        return most if places is None else min(most, places * self.form.settings.shortens)

    async def choose_best(
        self, rows: Sequence[Rows], n_bests: Sequence[Sequence[Hypothesis]], client: str
    ) -> list[Hypothesis]:
        """Return the best hypothesis of each line. ``rows``: what the model reads of each line;
        ``n_bests``: its hypotheses."""
        both = zip(rows, n_bests, strict=True)
        return await self.asking.all(client, (self.predictor.ctc(*line)[0] for line in both))

    def view(self, rows: Rows, best: Hypothesis) -> SeenLine:
        """Return the input of a line, and the attention of each token of its best hypothesis."""
        shares = attention(self.engine, rows, best.tokens)
        tokens = token_messages(self.engine.target.names_of(best.tokens), shares)
        return SeenLine(**png_of(self.form, rows), tokens=tokens)

    def message(self, picture: OpenedFile, best: Hypothesis) -> ReadLine:
        """Return the text that was read in a picture as a message of the API."""
        (text,) = texts_of(self.engine.target, [best])
        each = best.token_log_probabilities
        whole = math.fsum(each)
        return ReadLine(
            name=picture.file.called,
            width=picture.extent.width,
            height=picture.extent.height,
            text=text,
            log_probability=round(whole, 5),
            probability=round(math.exp(whole / max(1, len(each))), 6),
        )


@asks(ServedLines, "Translate lines of text in pictures")
async def translate_pictures(service: Service, request: LinesRequest, client: str) -> LinesAnswer:
    """Returns the translation of one line of text per picture, or the line itself if the run was
    trained to read. Crop the pictures close to the line. Send them as `file`, in a form or in
    base64."""
    run = service.catalogue.of(ServedLines, request.run)
    pictures, rows, n_bests = await run.search_files(request, client, run.most_columns)
    best = await run.choose_best(rows, n_bests, client)
    lines = [run.message(*both) for both in zip(pictures, best, strict=True)]
    if request.seen:
        lines[0].seen = await run.looking.do(client, partial(run.view, rows[0], best[0]))
    return LinesAnswer(run=run.name, source=run.source, target=run.target, files=lines)
