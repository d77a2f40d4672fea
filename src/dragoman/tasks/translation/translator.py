"""The predictor: text in, translations out. The command line and every picture use it; the server
searches for what it searches for (``lines.py``).

    translator = dragoman.load("runs/x")
    translator("Guten Tag").text
    translator.batch(["Eins.", "Zwei."])
    for translation in translator.stream(open("big.de")): ...

One sentence's way: normalise and cut into tokens (SentencePiece), ``encode`` once, search, join
tokens to text again. A line may be cut first: see ``tasks/translation/lines.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from dragoman.base.errors import DragomanError, RunError
from dragoman.base.wording import plural
from dragoman.engine.ctc_ranking import CtcRanking
from dragoman.engine.engine import Engine
from dragoman.engine.predictor import Predictor, named
from dragoman.engine.search_settings import with_beams
from dragoman.engine.settings import EngineSettings, TranslatorSettings
from dragoman.engine.streaming import parts
from dragoman.forms.passage import Passage
from dragoman.runs.run import Run, load_shortlist
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.tasks.translation.given_pairs import score_pairs
from dragoman.tasks.translation.lines import plan_of, requests_of
from dragoman.tasks.translation.ranking import expected_chrf
from dragoman.tasks.translation.result import Translation

if TYPE_CHECKING:
    from dragoman.formats.units.document import Document
    from dragoman.metrics.alignment import Links
    from dragoman.tasks.translation.proofreading.plain import PlainCheck, ProofWarning
    from dragoman.tasks.translation.proofreading.proofreader import Proofreader

logger = logging.getLogger("dragoman")

WINDOW = 1000
"""Lines that ``stream`` holds at once: enough to sort by length, little enough to stay small."""


class Translator(Predictor[Translation]):
    """A trained model, ready to translate. Make one with ``dragoman.load``.

    Not for several threads at once; a server gives each run one thread.
    """

    @classmethod
    def whole(cls, run: Run, settings: EngineSettings | None) -> Self:
        """One that never cuts a text into sentences: for looking at what the model itself does."""
        return cls(run, TranslatorSettings(**dict(settings or EngineSettings()), whole=True))

    def __init__(
        self,
        run: Run,
        settings: TranslatorSettings | None = None,
        search_settings: SearchSettings | None = None,
        ensemble: Sequence[Run] = (),
    ) -> None:
        """``ensemble``: further runs, which translate together with ``run``.

        Errors: ``RunError``, also for a run that does not translate, and for runs that cannot
        translate together.
        """
        run.require_task("translation", "which does not translate")
        self.settings = settings or TranslatorSettings()
        self.ensemble = tuple(ensemble)
        if self.ensemble and self.settings.shortlist:
            raise RunError(
                "a shortlist is of one run, and an ensemble has several: leave --shortlist out"
            )
        shortlist = load_shortlist(run) if self.settings.shortlist else None
        engine = Engine.open(run, self.settings, search_settings, shortlist, self.ensemble)
        super().__init__(run, engine)
        self._lines = plan_of(self.engine, run, cut_off=self.settings.long_lines == "cut")
        ranks = not self.ensemble  # several runs have no CTC of their own
        self.ctc = CtcRanking.of(self.engine, run.recipe, self.settings.ctc_weight * ranks)
        """Ranks what the beam finds (``TranslatorSettings.ctc_weight``), where the run has CTC."""

    @property
    def search_settings(self) -> SearchSettings:
        """How it searches unless told otherwise."""
        return self.engine.search_settings

    # ---- translating

    def each(
        self,
        given: Iterable[str],
        *,
        settings: SearchSettings | None = None,
        beam: int | None = None,
        n_best: int | None = None,
        prefix: str = "",
        attention: bool = False,
    ) -> Iterator[Translation]:
        """Translate any number of texts, each as soon as it and all before it are there.

        ``prefix`` is how every translation must begin. ``settings`` replace the run's own; ``beam``
        and ``n_best`` change them. With ``attention`` a text is translated as one, however many
        sentences it has. Take all of them before you use this translator again.
        """
        chosen = with_beams(settings or self.search_settings, beam, n_best)
        whole = attention or self.settings.whole
        for window in parts(given):
            begun = [prefix] * len(window) if prefix else None
            found = self._translate(window, chosen, begun, whole=whole)
            if attention:
                both = zip(window, found, strict=True)
                found = (replace(one, attention=self.look(text, one.ids)) for text, one in both)
            yield from found

    def batch(
        self,
        texts: Iterable[str],
        *,
        settings: SearchSettings | None = None,
        beam: int | None = None,
        n_best: int | None = None,
        prefixes: Iterable[str] | None = None,
    ) -> list[Translation]:
        """Translate several texts, in their order. Each gives one line, an empty one an empty one.

        ``prefixes``: how each translation must begin, "" for those that may begin as they like.
        Errors: ``SearchError`` for a prefix that is too long.
        """
        listed = _listed(texts, "batch")
        begun = None if prefixes is None else _listed(prefixes, "batch")
        if begun is not None and len(begun) != len(listed):
            raise DragomanError(
                f"{plural(len(listed), 'text')} and {plural(len(begun), 'prefix', 'prefixes')}: "
                "give one for each"
            )
        chosen = with_beams(settings or self.search_settings, beam, n_best)
        return list(self._translate(listed, chosen, begun, whole=self.settings.whole))

    def _translate(
        self,
        texts: Sequence[str],
        settings: SearchSettings,
        prefixes: Sequence[str] | None,
        *,
        whole: bool,
    ) -> Iterator[Translation]:
        begun: list[list[int]] = [[] for _ in texts]
        if prefixes and any(prefixes):
            begun = self.engine.target.tokens(prefixes)
        at = 0
        for passages in self._lines.cut(texts, whole=whole):
            end = at + len(passages)
            yield from self._search(texts[at:end], passages, settings, begun[at:end])
            at = end

    def _search(
        self,
        texts: Sequence[str],
        passages: Sequence[Passage],
        settings: SearchSettings,
        begun: Sequence[Sequence[int]],
    ) -> Iterator[Translation]:
        """The translation of each text from those of its pieces; the first begins as ``begun``."""
        risk = self.settings.mbr
        asked = settings if self.ctc is None or risk else self.ctc.asked(settings)
        requests = requests_of(self.engine, passages, asked, begun, risk)
        pieces = [piece for one in passages for piece in one.pieces]
        spoken = [piece.text for piece in pieces]

        def made(n: int, hypotheses: list[Hypothesis]) -> Translation:
            if risk:
                return self._agreed(spoken[n], hypotheses, settings)
            if self.ctc is not None and asked.sampling is None:
                ranked = self.ctc(np.asarray(pieces[n].values), hypotheses)
                hypotheses = ranked[: settings.n_best]
            return Translation.of(spoken[n], hypotheses, self.engine.written)

        found = self.engine.each(requests, made)
        drawn = settings.sampling is not None and not risk
        for text, passage in zip(texts, passages, strict=True):
            parts = list(islice(found, len(passage.pieces)))
            yield Translation.join(text, passage, parts, drawn=drawn)

    def stream(
        self, texts: Iterable[str], *, settings: SearchSettings | None = None
    ) -> Iterator[Translation]:
        """Translate any number of texts, a window at a time, in their order and in flat memory."""
        if isinstance(texts, str):
            raise TypeError("translator.stream takes many texts; give a single one to translator()")
        for window in parts(texts, WINDOW):
            yield from self.batch(window, settings=settings)

    def paragraphs(
        self, text: str, *, settings: SearchSettings | None = None, prefix: str = ""
    ) -> str:
        """Running text: its sentences are translated and put back between their own spaces.

        ``prefix`` is how the translation of the first must begin.
        """
        (passage,) = self.engine.cut([text], whole=False)
        begun = self.engine.target.tokens([prefix])[0] if prefix else ()
        chosen = settings or self.search_settings
        (translation,) = self._search([text], [passage], chosen, [begun])
        return translation.text

    def document(
        self,
        source: Path | str | Document,
        to: Path | str | None = None,
        *,
        final: bool = False,
        columns: Sequence[str | int] = (),
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> bytes:
        """Translate a document: Word, PowerPoint, Excel, HTML, Markdown, messages, subtitles and
        more (docs/documents.md). All that is no text of it comes out byte for byte.

        ``source``: a file, or ``dragoman.formats.catalogue.read_document(data, name)``. ``to``:
        where the translation is written, whole or not at all. ``final``: whether translations
        count as done in formats that can tell. ``columns``: of a table, by name in the first row or
        by number from 1; by default all. ``progress``: is told how many of how many texts
        there are. Errors: ``BadDocument``, which names the file and the place; ``FileError``.
        """
        from dragoman.documents.files import check_is_another, open_document, write_document
        from dragoman.formats.units.document import Document

        if isinstance(source, Document):
            document = source
        else:
            if to is not None:
                check_is_another(Path(source), Path(to))
            document = open_document(Path(source))
        if columns:
            document = document.in_columns([str(one) for one in columns])
        data, _ = self.document_of(document, final=final, progress=progress)
        if to is not None:
            write_document(Path(to), data)
        return data

    def document_of(
        self,
        document: Document,
        *,
        final: bool = False,
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> tuple[bytes, int]:
        """A document that has been read: its translation, and how many of its texts changed. What
        is doubtful about it is logged. Errors: ``BadDocument``, also where it says that it is of
        other languages than the run's."""
        from dragoman.documents.files import fitted
        from dragoman.documents.translation import translated
        from dragoman.formats.units.document import OutputOptions

        source, target = self.engine.source.language, self.engine.target.language
        document, doubts = fitted(document, source, target)
        for doubt in (*document.notes, *doubts):
            logger.warning("%s", doubt)
        units, settings = document.units, self.search_settings

        def best(passages: Sequence[Passage]) -> list[Hypothesis]:
            requests = requests_of(self.engine, passages, settings, [()] * len(passages))
            return [found[0] for found in self.engine.search(requests)]

        targets = translated(units, self.engine, best, lambda done: progress(done, len(units)))
        check = self.plain_check()
        check.take_targets(units, targets)
        for found in check.found:
            logger.warning("%s", found)
        data = document.join(targets, OutputOptions(target, final=final))
        changed = sum(one != unit.as_it_is for unit, one in zip(units, targets, strict=True))
        return data, changed

    # ---- measuring and looking

    def plain_check(self) -> PlainCheck:
        """Looks at translations for what is seen without the model, over all texts of a call."""
        from dragoman.tasks.translation.proofreading.plain import PlainCheck

        return PlainCheck(self.engine.source.language, self.run.lexicon)

    def warnings(self, translation: Translation) -> tuple[ProofWarning, ...]:
        """What is doubtful about a translation of this translator's: words that it left out, never
        read or repeats. Takes a forward pass of the plain model for each word of the source; see
        ``tasks/translation/proofreading/``."""
        return self.proofread([translation])[0]

    def proofread(self, translations: Sequence[Translation]) -> list[tuple[ProofWarning, ...]]:
        """``warnings`` of several, at once. Errors: ``RunError`` for files of the run that say what
        it has read, and are damaged."""
        from dragoman.tasks.translation.proofreading.proofreader import ToProofread

        sentences = [
            (number, one, place if len(whole.parts) > 1 else None)
            for number, whole in enumerate(translations)
            for place, one in enumerate(whole.parts or (whole,), 1)
        ]
        asked = [
            ToProofread(one.source, one.text, one.ids, one.finished) for _, one, _ in sentences
        ]
        proofs = chain.from_iterable(self._proofreader(asked))
        found: list[list[ProofWarning]] = [[] for _ in translations]
        number, source, target = -1, 0, 0  # where the sentence before ended
        for (of, one, place), proof in zip(sentences, proofs, strict=True):
            if of != number:
                number, source, target = of, 0, 0
            whole = translations[of]
            source = max(source, whole.source.find(one.source, source))
            target = max(target, whole.text.find(one.text, target))
            found[of] += [warning.moved(source, target, place) for warning in proof.warnings]
            source, target = source + len(one.source), target + len(one.text)
        return [tuple(warnings) for warnings in found]

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[Translation]:
        """Score given translations (force decoding): ``text`` is the given target.

        Any number of pairs goes to ``scored``. Errors: ``DataError`` that
        says which one, as a line from 1, has a side that is too long.
        """
        return list(self.scored(pairs))

    def scored(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Translation]:
        """What ``score`` gives, as it comes, in flat memory."""
        return score_pairs(self.engine, pairs)

    def align(
        self, pairs: Iterable[tuple[str, str]], *, head: str | None = None, step: str = "reading"
    ) -> list[Links]:
        """Which words of given translations come from which of their sources: (source word, target
        word), counted from 0; words are what stands between spaces.

        ``head``: 2.1 is layer 2, head 1 of the attention over the source, 2.* the mean of its
        heads; left out, the head that was taught to align, or a guess. ``step``: "reading" a word
        or "choosing" it. Errors: ``DragomanError`` for a head that there is not.
        """
        from dragoman.engine.alignment_head import AligningHead
        from dragoman.tasks.translation.aligner import Aligner

        named = None if head is None else AligningHead.parse(head, step)
        return list(Aligner(self.engine, named)(list(pairs)))

    def shown(self, text: str, prefix: str = "") -> Translation:
        return self(text, prefix=prefix)

    # ---- inside

    @cached_property
    def _proofreader(self) -> Proofreader:
        from dragoman.tasks.translation.proofreading.proofreader import Proofreader

        return Proofreader.of(self.run, self.engine)

    def _agreed(
        self, source: str, candidates: Sequence[Hypothesis], settings: SearchSettings
    ) -> Translation:
        """The candidate that the others agree with most, and behind it as many more as are asked
        for, without those of the same text."""
        every = [Translation.of(source, [one], self.engine.written) for one in candidates]
        sampled = settings.sampling is not None
        expected = expected_chrf([one.text for one in every], candidates, sampled=sampled)
        best: dict[str, Translation] = {}
        for value, one in sorted(zip(expected, every, strict=True), key=lambda pair: -pair[0]):
            best.setdefault(one.text, replace(one, expected_chrf=value))
        first, *others = list(best.values())[: settings.n_best]
        return replace(first, alternatives=tuple(others))


def _listed(texts: Iterable[str], method: str) -> list[str]:
    """Errors: ``TypeError`` for one text, or for what is none."""
    if isinstance(texts, str):
        raise TypeError(f"translator.{method} takes several texts; give one to translator()")
    return list(named(texts))
