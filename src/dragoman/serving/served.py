"""A run as the server holds it: its vocabularies, its queue, and the way of a text through them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from dragoman.engine.alignment_head import Alignment, TokenPair
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor
from dragoman.errors import RunError
from dragoman.forms.passage import Passage
from dragoman.insight.session import Inspection
from dragoman.plural import plural
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.serving import schema
from dragoman.serving.classify.labelling import Labelling
from dragoman.serving.cost import LOOKING, ON_TORCH, READING, Work, check_cost, search_cost
from dragoman.serving.fill.filling import Filling
from dragoman.serving.http.refusals import Refusal
from dragoman.serving.look.answer import look_answer
from dragoman.serving.look.inspector import Asked, Cut, Inspector
from dragoman.serving.look.schema import LookAnswer, LookRequest
from dragoman.serving.parse.bracketing import Bracketing
from dragoman.serving.queue.queue import Answer, Draft, SearchQueue
from dragoman.serving.settings import ServeSettings
from dragoman.serving.translate.answer import hypothesis_message
from dragoman.serving.translate.knowledge import NOTHING_KNOWN, knowledge_of
from dragoman.serving.translate.proofs import Proofs
from dragoman.serving.turns import Turns
from dragoman.serving.uses import TaskName
from dragoman.serving.write.composer import Composer
from dragoman.tasks.classification.labeller import Labeller
from dragoman.tasks.language_model.evaluation import windows_of
from dragoman.tasks.masked.filler import Filler
from dragoman.tasks.parsing.parser import Parser
from dragoman.tasks.translation.proofreading.proofreader import Proofreader

logger = logging.getLogger("dragoman")

SPARE = 4
"""One row in so many more than ``rows`` is kept in each batch for clients that have none."""


@dataclass(frozen=True)
class TranslationOptions:
    """How one request wants its texts translated."""

    settings: SearchSettings
    whole: bool = False
    prefix: tuple[int, ...] = ()
    """For the first sentence of each text."""


class ServedRun:
    """One run. ``start`` its queue in the event loop before use, ``close`` it after."""

    def __init__(
        self,
        *,
        name: str,
        engine: Engine,
        settings: ServeSettings,
        run: Run | None = None,
        knowledge: schema.Knowledge | None = None,
        proofreader: Proofreader | None = None,
        composer: Composer | None = None,
        labelling: Labelling | None = None,
        filling: Filling | None = None,
        bracketing: Bracketing | None = None,
        predictor: Predictor | None = None,
    ) -> None:
        """``run``: its folder, for what is told of it; ``knowledge`` and ``proofreader``: what it
        has learned from, and who knows that. ``composer``, ``labelling``, ``filling``,
        ``bracketing``: what a run does that does not translate. ``predictor``: who reads its text
        as one."""
        self.name = name
        self.knowledge = knowledge or NOTHING_KNOWN
        self.engine = engine
        self.source = engine.source.language
        has_language = engine.target.vocabulary is not None
        self.target = engine.target.language if has_language else self.source
        self.run = run
        self.composer = composer
        self.labelling = labelling
        self.filling = filling
        self.bracketing = bracketing
        has_inside = predictor is None or predictor.has_inside
        self._inspector = Inspector(engine, predictor) if has_inside else None
        self._settings = settings
        self._aligning = Turns("align")
        self.proofs = Proofs(engine, proofreader or Proofreader(engine), self._aligning)
        spare = max(1, settings.rows // SPARE)
        self.queue = SearchQueue(
            lambda: engine.scheduler(spare),
            spare=spare,
            name=name,
            eos=engine.target.eos,
            waiting=settings.limits.waiting,
            workers=engine.workers,
        )

    @classmethod
    def open(cls, run: Run, settings: ServeSettings, name: str) -> ServedRun:
        """Load a run for serving. Errors: ``RunError``."""
        knowledge = knowledge_of(run)
        if run.task.has_head:
            labeller = Labeller(run, settings)
            return cls(
                name=name, engine=labeller.engine, settings=settings, run=run,
                knowledge=knowledge, labelling=Labelling(labeller), predictor=labeller,
            )  # fmt: skip
        if not run.task.writes:
            filler = Filler(run, settings)
            return cls(
                name=name, engine=filler.engine, settings=settings, run=run,
                knowledge=knowledge, filling=Filling(filler), predictor=filler,
            )  # fmt: skip
        if run.task.keeps_order:
            parser = Parser(run, settings)
            return cls(
                name=name, engine=parser.engine, settings=settings, run=run, knowledge=knowledge,
                bracketing=Bracketing(parser.engine), predictor=parser,
            )  # fmt: skip
        engine = Engine.open(run, settings)
        proofreader = Proofreader(engine)
        try:
            proofreader = Proofreader.of(run, engine)
        except RunError as error:  # what a run knows must not keep it from translating
            logger.warning("%s", error)
        return cls(
            name=name, engine=engine, settings=settings, run=run, knowledge=knowledge,
            proofreader=proofreader,
            composer=None if engine.source.reads else Composer(engine, *windows_of(run)),
        )  # fmt: skip

    @property
    def task(self) -> TaskName:
        """What it is asked for."""
        if self.labelling is not None:
            return "classification"
        if self.filling is not None:
            return "masked"
        if self.bracketing is not None:
            return "parsing"
        return "language-model" if self.composer is not None else "translation"

    @property
    def can_be_looked_into(self) -> bool:
        """Whether ``inspector`` is there."""
        return self._inspector is not None

    @property
    def inspector(self) -> Inspector:
        """Who looks inside. Raises Refusal 400 where that is not served."""
        if self._inspector is None:
            raise Refusal(
                "cannot_look",
                f"{self.name} cannot be looked into: it goes over a text from left to right to "
                "label it, and has no encoder.",
                run=self.name,
            )
        return self._inspector

    def start(self) -> None:
        self.queue.start()

    async def close(self) -> None:
        """Finish what was taken."""
        await self.queue.close()
        self._aligning.close()
        for part in (self._inspector, self.composer, self.labelling, self.filling):
            if part is not None:
                part.close()

    # ---- translating: of these, all that are not async are for a thread beside the event loop

    def cut(self, texts: Sequence[str], options: TranslationOptions) -> list[Passage]:
        """The texts as they will be translated. Raises Refusal 400 for more than one answer may
        hold."""
        passages = self.engine.cut(texts, whole=options.whole)
        sentences = sum(len(passage.pieces) for passage in passages)
        most, each = self._settings.limits.translations, options.settings.n_best
        if sentences * each > most:
            raise Refusal(
                "too_many_translations",
                f"{each} translations of each of {sentences:,} sentences are {sentences * each:,}; "
                f"this server gives {most:,} at once. Ask for fewer, or send the text in parts.",
                each=each,
                sentences=sentences,
                total=sentences * each,
                most=most,
            )
        return passages

    async def search_all(
        self, passages: Sequence[Passage], options: TranslationOptions, client: str
    ) -> list[list[list[Hypothesis]]]:
        """Of each passage, for each of its pieces, the n best."""
        found = iter(await self.queue.search(self.requests(passages, options), client))
        return [[next(found) for _ in passage.pieces] for passage in passages]

    def watch(
        self, passage: Passage, options: TranslationOptions, client: str
    ) -> AsyncGenerator[list[Draft | Answer], None]:
        """Piece by piece, each first as it grows. Closing it gives its places back."""
        return self.queue.watch(self.requests([passage], options), client)

    def options(self, request: schema.TranslateRequest) -> TranslationOptions:
        """What a request of our own interface asks for. Raises Refusal 400."""
        try:
            settings = schema.search_settings(request, self.engine.search_settings)
        except ValidationError as error:
            raise bad_field(error) from None
        self.check(settings)
        if request.prefix and request.prefix_tokens:
            raise Refusal("two_prefixes", "Give either prefix or prefix_tokens, not both.")
        tokens = tuple(request.prefix_tokens or ())
        size = self.engine.target.size
        if any(token >= size for token in tokens):
            raise Refusal(
                "no_such_token",
                f"prefix_tokens must be below {size}, the size of the vocabulary.",
                field="prefix_tokens",
                vocabulary=size,
            )
        if request.prefix:
            tokens = tuple(self.engine.target.tokens([request.prefix])[0])
        return TranslationOptions(settings, request.whole, tokens)

    def check(self, settings: SearchSettings) -> None:
        """Raises Refusal 400 for a search that is wider than this server allows."""
        self.check_width(settings.beam, settings.n_best)
        several = settings.alternatives or settings.sampling is not None
        rows = (
            settings.n_best * (1 if settings.sampling else settings.beam)
            if several
            else settings.beam
        )
        if rows > self._settings.rows:
            raise Refusal(
                "too_many_hypotheses",
                f"{settings.n_best} alternatives with beam {settings.beam} take {rows} places; "
                f"this server has {self._settings.rows}. Ask for fewer, or a narrower beam.",
                n_best=settings.n_best,
                beam=settings.beam,
                hypotheses=rows,
                most=self._settings.rows,
            )

    def check_width(self, *asked: int) -> None:
        """``asked``: beams, and numbers of translations of one text. Raises Refusal 400."""
        limit = self._settings.limits.beam
        if max(asked) > limit:
            raise Refusal(
                "beam_too_wide",
                f"This server searches with a beam of at most {limit} and gives at most {limit} "
                f"translations of one text; {max(asked):,} were asked for.",
                asked=max(asked),
                most=limit,
            )

    def look_cut(self, request: Asked) -> Cut[Asked]:
        """What is looked at of a text. Raises Refusal for what cannot be."""
        if self.filling is not None:
            self.filling.check_blanks(request.text)
        cut = self.inspector.cut(request, self._settings.look_longest)
        self._check_look(cut)
        return cut

    def look_answer(
        self, cut: Cut[LookRequest], seen: Inspection, detected: schema.DetectedLanguage | None
    ) -> LookAnswer:
        """What was seen, as the API tells it."""
        return look_answer(
            cut,
            seen,
            hypothesis_message(self.engine.target, seen.best),
            run=self.name,
            engine=self.engine,
            detected=detected,
        )

    async def align(self, pairs: Sequence[TokenPair], client: str) -> list[Alignment]:
        """How much each token of a translation looked at each token of its source."""
        batches = await self._aligning.all(client, self.engine.attention.align(pairs))
        return [alignment for batch in batches for alignment in batch]

    def head(
        self, passage: Passage, detected: schema.DetectedLanguage | None
    ) -> schema.Translation:
        """A translation as the API tells it, without its text and sentences."""
        return schema.Translation(
            text="",
            source=self.source,
            target=self.target,
            run=self.name,
            detected=detected,
            before=passage.before,
            sentences=[],
        )

    def requests(self, passages: Sequence[Passage], options: TranslationOptions) -> list[Request]:
        """What is searched for, piece by piece. Raises Refusal 400 for more than one request may
        cost."""
        wanted = [
            self.engine.request(
                piece.values, options.settings, options.prefix if place == 0 else ()
            )
            for passage in passages
            for place, piece in enumerate(passage.pieces)
        ]
        self.check_searches(wanted)
        return wanted

    # ---- costs: each raises Refusal 400 for more than one request may cost

    def check_searches(self, wanted: Sequence[Request]) -> None:
        by_kernels = self.engine.path.whole_steps
        longest = max((one.limit for one in wanted), default=0)
        widest = max((one.rows for one in wanted), default=0)
        check_cost(
            search_cost(wanted, 1 if by_kernels else ON_TORCH),
            self._settings.limits.token_steps,
            "search",
            f"{plural(len(wanted), 'sentence')} of up to {plural(longest, 'token')}, with up to "
            f"{plural(widest, 'hypothesis', 'hypotheses')} each",
            "Send fewer or shorter sentences at once, take a narrower beam, or a smaller "
            "max_length or min_length.",
        )

    def check_warnings(self, passages: Sequence[Passage]) -> None:
        """A sentence is read once more without each of its words."""
        lengths = [len(piece.values) for passage in passages for piece in passage.pieces]
        tokens = sum((length + 2) * 2 * length for length in lengths)
        check_cost(
            tokens * READING,
            self._settings.limits.token_steps,
            "warnings",
            f"warnings of {plural(len(lengths), 'sentence')} of up to "
            f"{plural(max(lengths, default=0), 'token')}",
            "Send fewer or shorter sentences at once, or leave warnings out.",
        )

    def check_tokens(
        self, tokens: int, weight: int, work: Work, how_much: str, change: str
    ) -> None:
        """Tokens that torch reads or writes, ``weight`` token steps each."""
        check_cost(tokens * weight, self._settings.limits.token_steps, work, how_much, change)

    def _check_look(self, cut: Cut[Asked]) -> None:
        """Of a model that writes, the search is what costs."""
        request = cut.request
        if not self.engine.writes or request.given:
            return
        settings = self.engine.search_settings
        rows = request.beam or settings.beam
        length = request.max_length or len(cut.ids) + settings.max_extra
        check_cost(
            rows * length * LOOKING,
            self._settings.limits.token_steps,
            "look",
            f"{plural(length, 'token')} at most, with {plural(rows, 'hypothesis', 'hypotheses')}, "
            "each step recorded",
            "Look at one sentence of the text (sentence), or take a narrower beam.",
        )


def bad_field(error: ValidationError, begin: str = "") -> Refusal:
    """For the first thing that is wrong with some settings, in one line after ``begin``."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    told = f"{where}: {message}" if where else message
    return Refusal("bad_field", f"{begin}{told}", field=where, problem=message)
