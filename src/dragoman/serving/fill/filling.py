"""What one masked model does with texts that have blanks: for a thread beside the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dragoman.errors import DragomanError, TooLongError
from dragoman.serving.fill.schema import Blank, Candidate, FillAnswer, FillRequest
from dragoman.serving.http.refusals import Refusal, too_long
from dragoman.serving.turns import Turns
from dragoman.tasks.masked.filler import BLANK, Filled, Filler, NoTokenFitsError

OF_CLIENT, OF_ALL = 8, 64
"""Requests that may wait to have their blanks filled, of one client and of all."""
MOST_BLANKS = 32
"""In one text: after each that is filled the model is asked again for all others."""
MOST = 5000
"""Candidates in one answer, those of all blanks together."""


class Filling:
    """A masked model that is served."""

    def __init__(self, filler: Filler) -> None:
        self.filler = filler
        self.turns = Turns("fill", of_client=OF_CLIENT, of_all=OF_ALL)
        """Where blanks are filled."""

    def close(self) -> None:
        self.turns.close()

    def check(self, request: FillRequest, widest: int) -> None:
        """``widest``: the most that a beam may hold. Raises Refusal 400."""
        blanks = self.check_blanks(request.text)
        if not blanks:
            raise Refusal(
                "no_blank",
                "text: there is no blank in it. Write ___, three underscores, where a word is to "
                "be filled in.",
            )
        if blanks * request.top > MOST:
            raise Refusal(
                "too_many_candidates",
                f"{request.top:,} candidates of each of {blanks} blanks are "
                f"{blanks * request.top:,}; this server gives {MOST:,} at once. Ask for fewer "
                "(top).",
                each=request.top,
                blanks=blanks,
                total=blanks * request.top,
                most=MOST,
            )
        if request.pieces > 1 and request.top > widest:
            raise Refusal(
                "too_many_choices",
                f"top: {request.top} were asked for; of blanks of several pieces this server "
                f"gives {widest} candidates at most.",
                asked=request.top,
                most=widest,
            )

    def check_blanks(self, text: str) -> int:
        """How many a text has. Raises Refusal 400 for more than are filled at once."""
        blanks = sum(1 for _ in BLANK.finditer(text))
        if blanks > MOST_BLANKS:
            raise Refusal(
                "too_many_blanks",
                f"The text has {blanks:,} blanks; this server fills {MOST_BLANKS} at once. Send "
                "it in parts.",
                blanks=blanks,
                most=MOST_BLANKS,
            )
        return blanks

    def parts(self, request: FillRequest, check: Callable[[int], None]) -> Iterator[Filled | None]:
        """The filled text last; None each time that the model has been asked, so that others have
        their turn. ``check`` refuses too many tokens that would be read. Raises Refusal 400 for
        what cannot be filled."""
        try:
            check(self.filler.tokens_read(request.text, request.top, request.pieces))
            yield from self.filler.parts(request.text, request.top, request.pieces)
        except TooLongError as error:
            raise too_long(error, f"{error}.") from None
        except NoTokenFitsError as error:
            raise Refusal("no_token_fits", f"{error}.") from None
        except DragomanError as error:
            raise Refusal("bad_text", f"{error}.", problem=str(error)) from None


def told(run: str, text: str, found: Filled) -> FillAnswer:
    """A filled text, as the API tells it."""
    blanks = zip(BLANK.finditer(text), found.blanks, found.chosen, strict=True)
    return FillAnswer(
        run=run,
        text=found.text,
        log_probability=round(found.score, 5),
        blanks=[
            Blank(
                begin=blank.start(),
                end=blank.end(),
                candidates=[
                    Candidate(text=one.text, probability=round(one.probability, 6))
                    for one in candidates
                ],
                chosen=chosen.text,
            )
            for blank, candidates, chosen in blanks
        ],
    )
