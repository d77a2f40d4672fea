"""A served run that reads lines of text in pictures, and its endpoint.

A picture is opened, which gives its number of pixels; it is decoded into columns, in a separate
thread if it is large; then the run's queue searches for its text, as for sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from pydantic import Field

from dragoman.engine.settings import EngineSettings, TranslatorSettings
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.serving.http.messages import Message
from dragoman.serving.http.uploads import WithFiles
from dragoman.serving.look.outputs import texts_of
from dragoman.serving.operate.settings import ServeSettings
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.file_run import (
    FileRun,
    LookedToken,
    OpenedFile,
    SeenFile,
    drawn,
    looked,
    looked_tokens,
)
from dragoman.serving.service.service import Service
from dragoman.sources.shared.rows_form import Rows
from dragoman.tasks.translation.translator import Translator


class LinesRequest(WithFiles):
    """``POST /v1/translate/pictures``: pictures of one line of text each."""

    run: str | None = None
    """Name of the run to use, where several read lines of text."""
    beam: int | None = Field(default=None, ge=1)
    """Hypotheses kept at each step; the run's own if not given."""
    seen: bool = False
    """Give what the model reads of one picture, and where it looked as it wrote each token."""
    api_key: str | None = None


class SeenLine(SeenFile):
    """What a model reads of a line, at the height at which it is read."""

    tokens: list[LookedToken]
    """Rows of the encoder lie side by side, from the left to the right of the picture. Of more than
    1,024 rows or tokens, nothing is told of where they looked."""


class ReadLine(Message):
    """What a run writes of one picture."""

    name: str
    """What it was called; of base64 ``file``, or its place as ``file[0]``."""
    width: int
    """Pixels of the picture as its camera was held."""
    height: int
    text: str
    log_probability: float
    """Of the text, in nats: the sum over its tokens."""
    probability: float
    """The mean probability of its tokens (geometric), 0 to 1."""
    seen: SeenLine | None = None
    """Only where it was asked for."""


class LinesAnswer(Message):
    """One for each picture, in their order."""

    run: str
    source: str
    """Language of the lines."""
    target: str
    """Language of the texts."""
    files: list[ReadLine]


class ServedLines(FileRun[Translator]):
    """A served run that reads lines of text in pictures."""

    task, path = "picture-translation", "/v1/translate/pictures"
    does, work = "reads lines of text in pictures", "lines"
    trained = "dragoman train multi30k-en-de-pixels"
    sent, gives = LinesRequest, LinesAnswer

    def __init__(self, name: str, translator: Translator, settings: ServeSettings) -> None:
        super().__init__(name, translator, settings)
        self.source = self.run.recipe.languages.source  # a form of rows has no language
        self.looking = self.executor("look")
        """The thread that computes where the run looked."""

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedLines:
        """Open a run. Errors: ``RunError``, and ``DataError`` if the picture decoder is missing."""
        chosen = TranslatorSettings(**settings.model_dump(include=set(EngineSettings.model_fields)))
        return cls(name, Translator(run, chosen), settings)

    def search_settings(self, beam: int | None) -> SearchSettings:
        """Make the settings of the search. Raises Refusal 400."""
        chosen = super().search_settings(beam)
        ctc = self.predictor.ctc
        return chosen if ctc is None else ctc.asked(chosen)

    @property
    def most_columns(self) -> int:
        """The most columns of a line: twice the longest in training, or ``LINE``, limited by the
        model's positions."""
        most = self.most_rows(2 * self.run.recipe.bounded_plan.max_source)
        places = self.engine.places
        return most if places is None else min(most, places * self.form.settings.shortens)

    async def ranked(
        self, rows: Sequence[Rows], found: Sequence[Sequence[Hypothesis]], client: str
    ) -> list[Hypothesis]:
        """Choose the best hypothesis of each line."""
        ctc = self.predictor.ctc
        if ctc is None:
            return [best for best, *_ in found]
        both = zip(rows, found, strict=True)
        return await self.asking.all(client, (ctc(*one)[0] for one in both))

    def seen(self, rows: Rows, best: Hypothesis) -> SeenLine:
        """Describe the input of a line, and the attention of each token."""
        shares = looked(self.engine, rows, best.tokens)
        tokens = looked_tokens(self.engine.target.shown(best.tokens), shares)
        return SeenLine(**drawn(self.form, rows), tokens=tokens)

    def told(self, picture: OpenedFile, best: Hypothesis) -> ReadLine:
        """Describe the text that was read in a picture."""
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
    """What a run writes of pictures with one line of text each: a translation, or, of a run
    that has learned to read, the text itself. Pictures come as `file`, in a form or in base64;
    cut them close to their line."""
    run = service.catalogue.of(ServedLines, request.run)
    pictures, rows, found = await run.searched(request, client, run.most_columns)
    best = await run.ranked(rows, found, client)
    lines = [run.told(*one) for one in zip(pictures, best, strict=True)]
    if request.seen:
        lines[0].seen = await run.looking.do(client, partial(run.seen, rows[0], best[0]))
    return LinesAnswer(run=run.name, source=run.source, target=run.target, files=lines)
