"""A served masked model, and the endpoint that fills the blanks of a text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pydantic import Field

from dragoman.base.errors import DragomanError, TooLongError
from dragoman.base.wording import plural
from dragoman.runs.run import Run
from dragoman.serving.http.limits import READING
from dragoman.serving.http.messages import KeyedMessage, Message
from dragoman.serving.http.refusals import Refusal, check_total, too_long
from dragoman.serving.look.inspector import Asked, Cut
from dragoman.serving.service.endpoints import asks
from dragoman.serving.service.served_run import AskedRun, sample_sources, short
from dragoman.serving.service.service import Service
from dragoman.tasks.masked.filler import BEST, BLANK, MAX_PIECES, Filled, Filler, NoTokenFitsError


class FillRequest(KeyedMessage):
    """A request to fill in the blanks of a text: `POST /v1/fill`."""

    text: str
    """The text with its blanks. A blank is three or more underscores: `___`."""
    run: str | None = None
    """The name of the run. Default: the first run that fills in blanks."""
    pieces: int = Field(default=1, ge=1, le=MAX_PIECES)
    """The number of tokens in each blank. More than 1 allows words that are not in the vocabulary
    as a whole."""
    top: int = Field(default=BEST, ge=1, le=1000)
    """The number of candidates to return for each blank."""


class Candidate(Message):
    """A candidate for a blank of the text."""

    text: str
    """The word or words of the candidate."""
    probability: float
    """The probability among all tokens of the vocabulary, given the surrounding text, while the
    other blanks are open. From 0 to 1."""


class Blank(Message):
    """A blank of the text and its candidates."""

    begin: int
    """The position of its first character in the request, from 0, in Unicode code points."""
    end: int
    """The position after its last character, in Unicode code points."""
    candidates: list[Candidate]
    """The candidates, the most probable first."""
    chosen: str
    """The word in the filled text. It can differ from the first candidate: the surest blank is
    filled first, and the others are then computed again."""


class FillAnswer(Message):
    """A text whose blanks are filled in."""

    run: str
    """The name of the run that answered."""
    text: str
    """The text with all its blanks filled in."""
    log_probability: float
    """The log-probability of all chosen tokens, in nats, each given those that were filled in
    before it."""
    blanks: list[Blank]
    """The blanks of the text, in order."""


MAX_BLANKS = 32
"""The most blanks of a text: after each one that is filled, the model computes all others again."""
MAX_CANDIDATES = 5000
"""The most candidates in one answer, over all blanks."""
_AROUND = 6
"""The number of words on either side of the blank of an example."""


class ServedFillMask(AskedRun[Filler]):
    """A masked model that the server has loaded."""

    task, does, path = "masked", "fills in blanks", "/v1/fill"
    trained = "dragoman train my.txt --task masked"
    sent, gives = FillRequest, FillAnswer
    opens, work = Filler, "fill"

    @staticmethod
    def examples(run: Run) -> list[str]:
        texts = sample_sources(run)
        return sorted(short(texts) or short(map(_around_blank, texts)), key=len)

    def look_cut(self, request: Asked) -> Cut[Asked]:
        self.check_blanks(request.text)
        return super().look_cut(request)

    def check(self, request: FillRequest) -> None:
        """Check the limits of a request. Raises Refusal 400 for more than one answer may hold."""
        widest = min(self.settings.limits.beam, self.settings.rows)
        blanks = self.check_blanks(request.text)
        if not blanks:
            raise Refusal(
                "no_blank",
                "text: it has no blank. Write ___, three underscores, where a word is missing.",
            )
        check_total(
            "too_many_candidates",
            (request.top, "candidate"),
            (blanks, "blanks"),
            MAX_CANDIDATES,
            "Ask for fewer (top).",
        )
        if request.pieces > 1 and request.top > widest:
            raise Refusal(
                "too_many_choices",
                f"top: {request.top} were requested; for blanks of several pieces, this server "
                f"returns at most {widest} candidates.",
                asked=request.top,
                most=widest,
            )

    def check_blanks(self, text: str) -> int:
        """Count the blanks of a text. Raises Refusal 400 for more than may be filled at once."""
        blanks = sum(1 for _ in BLANK.finditer(text))
        if blanks > MAX_BLANKS:
            raise Refusal(
                "too_many_blanks",
                f"The text has {blanks:,} blanks; this server fills {MAX_BLANKS} at once. Send "
                "it in parts.",
                blanks=blanks,
                most=MAX_BLANKS,
            )
        return blanks

    def parts(self, request: FillRequest) -> Iterator[Filled | None]:
        """Fill a text in steps: yields None after each step, so that other clients take turns, and
        the filled text last. Raises Refusal 400 for a text that cannot be filled, or costs too
        much."""
        arguments = request.text, request.top, request.pieces
        try:
            tokens = self.predictor.tokens_read(*arguments)
            blanks, pieces = self.check_blanks(request.text), plural(request.pieces, "piece")
            self.check_cost(
                tokens * READING,
                "blanks",
                f"{plural(blanks, 'blank')} of {pieces} each; {tokens:,} tokens are read",
                "Send fewer blanks at once, or ask for fewer pieces or candidates (top).",
            )
            yield from self.predictor.parts(*arguments)
        except TooLongError as error:
            raise too_long(error, f"{error}.") from None
        except NoTokenFitsError as error:
            raise Refusal("no_token_fits", f"{error}.") from None
        except DragomanError as error:
            raise Refusal("bad_text", f"{error}.", problem=str(error)) from None

    def answer(self, text: str, filled: Filled) -> FillAnswer:
        """Return the filled text as a message."""
        blanks = zip(BLANK.finditer(text), filled.blanks, filled.chosen, strict=True)
        return FillAnswer(
            run=self.name,
            text=filled.text,
            log_probability=round(filled.score, 5),
            blanks=[
                Blank(
                    begin=blank.start(),
                    end=blank.end(),
                    candidates=[
                        Candidate(text=candidate.text, probability=round(candidate.probability, 6))
                        for candidate in candidates
                    ],
                    chosen=chosen.text,
                )
                for blank, candidates, chosen in blanks
            ],
        )


@asks(ServedFillMask, "Fill in the blanks of a text")
async def fill(service: Service, request: FillRequest, client: str) -> bytes:
    """Returns the filled text, and the candidates of each blank with their probabilities while the
    other blanks are open. The surest blank is filled first, and the others are then computed
    again."""
    service.check_texts(request.text, client)
    run = service.catalogue.of(ServedFillMask, request.run)
    run.check(request)
    *_, filled = await run.asking.all(client, run.parts(request))
    assert filled is not None, "the filled text comes last"
    service.meters.count_characters(run.name, client, len(request.text))
    return await service.encode(client, partial(run.answer, request.text, filled))


def _around_blank(text: str) -> str:
    """The words around the first blank that is a whole word; an empty text without one."""
    words = text.split()
    place = next((n for n, word in enumerate(words) if BLANK.fullmatch(word)), None)
    if place is None:
        return ""
    return " ".join(words[max(0, place - _AROUND) : place + _AROUND + 1])
