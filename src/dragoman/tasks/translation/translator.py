"""The predictor of translation: texts in, translations out. The command line and figures use it;
the server makes the same search requests (``lines.py``).

    translator = dragoman.load("runs/x")
    translator("Guten Tag").text
    translator.batch(["Eins.", "Zwei."])
    for translation in translator.stream(open("big.de")): ...

A sentence is normalised and split into tokens (SentencePiece), encoded once and searched for; the
tokens are joined to text again. A line may be split first: see ``tasks/translation/lines.py``.
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
from dragoman.engine.predictor import Predictor, as_texts, parts
from dragoman.engine.settings import EngineSettings, TranslatorSettings, with_beams
from dragoman.forms.form import Passage
from dragoman.runs.run import Run, load_shortlist
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.tasks.translation.lines import plan_of
from dragoman.tasks.translation.result import Translation, candidates_of, expected_chrf, score_pairs

if TYPE_CHECKING:
    from dragoman.formats.units.document import Document
    from dragoman.metrics.alignment import Links
    from dragoman.tasks.translation.proofreading.plain import PlainCheck, ProofWarning
    from dragoman.tasks.translation.proofreading.proofreader import Proofreader

logger = logging.getLogger("dragoman")


class Translator(Predictor[Translation]):
    """A trained model, opened to translate. ``dragoman.load`` makes one.

    It must not be used by several threads at once; a server gives each run one thread.
    """

    @classmethod
    def whole(cls, run: Run, settings: EngineSettings | None) -> Self:
        """Open a translator that never splits a text into sentences, to study the model itself."""
        return cls(run, TranslatorSettings.of(settings).model_copy(update={"whole": True}))

    def __init__(
        self,
        run: Run,
        settings: EngineSettings | None = None,
        search_settings: SearchSettings | None = None,
        ensemble: Sequence[Run] = (),
    ) -> None:
        """Open a run to translate. ``ensemble``: other runs, which translate together with ``run``.

        Errors: ``RunError``, also for a run that does not translate, and for runs that cannot
        translate together.
        """
        run.require_task("translation", "which does not translate")
        self.settings = TranslatorSettings.of(settings)
        self.ensemble = tuple(ensemble)
        if self.ensemble and self.settings.shortlist:
            raise RunError("an ensemble cannot use a shortlist. Leave --shortlist out")
        shortlist = load_shortlist(run) if self.settings.shortlist else None
        engine = Engine.open(run, self.settings, search_settings, shortlist, self.ensemble)
        super().__init__(run, engine)
        self._lines = plan_of(self.engine, run, cut_off=self.settings.long_lines == "cut")
        ranks = not self.ensemble  # several runs have no CTC of their own
        self.ctc = CtcRanking.of(self.engine, run.recipe, self.settings.ctc_weight * ranks)
        """Ranks hypotheses by CTC (``TranslatorSettings.ctc_weight``), if the run has it."""

    @property
    def search_settings(self) -> SearchSettings:
        """The default settings of a search."""
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
        """Translate any number of texts, and yield each translation once all before it are done.

        ``prefix`` is the beginning of every translation. ``settings`` replace the run's own;
        ``beam`` and ``n_best`` change them. With ``attention``, a text is translated as a whole,
        even if it has several sentences. Consume the iterator before you use this translator again.
        """
        chosen = with_beams(settings or self.search_settings, beam, n_best)
        whole = attention or self.settings.whole
        for window in parts(given):
            begun = [prefix] * len(window) if prefix else None
            translations = self._translate(window, chosen, begun, whole=whole)
            for text, translation in zip(window, translations, strict=True):
                if attention:
                    translation = replace(translation, attention=self.look(text, translation.ids))
                yield translation

    def batch(
        self,
        texts: Iterable[str],
        *,
        settings: SearchSettings | None = None,
        beam: int | None = None,
        n_best: int | None = None,
        prefixes: Iterable[str] | None = None,
    ) -> list[Translation]:
        """Translate several texts, in order. Each text gives one line; an empty text gives an empty
        line.

        ``prefixes``: the beginning of each translation, or "" for none. Errors: ``SearchError`` for
        a prefix that is too long.
        """
        listed = list(_several(texts, "batch"))
        begun = None if prefixes is None else list(_several(prefixes, "batch"))
        if begun is not None and len(begun) != len(listed):
            raise DragomanError(
                f"{plural(len(listed), 'text')} and {plural(len(begun), 'prefix', 'prefixes')}. "
                "Give one for each text"
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
        """Translate each text piece by piece. ``passages``: the pieces of each text; ``begun``: for
        each text, the tokens with which the translation of its first piece begins."""
        risk = self.settings.mbr
        search = candidates_of(settings, risk) if risk else self.ctc.with_n_best(settings)
        requests = self.engine.requests(passages, search, begun)
        pieces = [piece for passage in passages for piece in passage.pieces]
        spoken = [piece.text for piece in pieces]

        def translation_of(n: int, hypotheses: list[Hypothesis]) -> Translation:
            if risk:
                return self._consensus(spoken[n], hypotheses, settings)
            if search.sampling is None:
                ranked = self.ctc(np.asarray(pieces[n].values), hypotheses)
                hypotheses = ranked[: settings.n_best]
            return Translation.of(spoken[n], hypotheses, self.engine.written)

        translations = self.engine.searcher.each(requests, translation_of)
        drawn = settings.sampling is not None and not risk
        for text, passage in zip(texts, passages, strict=True):
            parts = list(islice(translations, len(passage.pieces)))
            yield Translation.join(text, passage, parts, drawn=drawn)

    def stream(
        self, texts: Iterable[str], *, settings: SearchSettings | None = None
    ) -> Iterator[Translation]:
        """Translate any number of texts in order, a window at a time, in constant memory."""
        return self.each(_several(texts, "stream"), settings=settings)

    def paragraphs(
        self, text: str, *, settings: SearchSettings | None = None, prefix: str = ""
    ) -> str:
        """Translate running text: sentences are translated, and the space between them is kept.

        ``prefix`` is the beginning of the first translation.
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
        more (docs/documents.md). Only its text changes; the rest is copied byte for byte.

        ``source``: a file, or ``dragoman.formats.catalogue.read_document(data, name)``. ``to``: the
        file for the translation, which is written whole or not at all. ``final`` marks translations
        as finished, in formats that support it. ``columns``: those of a table that are translated,
        by name in the first row or by number from 1; by default all. ``progress`` is called with
        the number of texts that are done, and of all texts.
        Errors: ``BadDocument``, which names the file and the place; ``FileError``.
        """
        from dragoman.formats.catalogue import check_is_another, open_document, write_document
        from dragoman.formats.units.document import Document

        if isinstance(source, Document):
            document = source
        else:
            if to is not None:
                check_is_another(Path(source), Path(to))
            document = open_document(Path(source))
        if columns:
            document = document.in_columns([str(column) for column in columns])
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
        """Translate a document that has been read. Return the content of the new document, and the
        number of changed texts. Doubts are logged. Errors: ``BadDocument``, also for a document in
        other languages than the run's."""
        from dragoman.documents.translation import translate_units
        from dragoman.formats.catalogue import fit_document
        from dragoman.formats.units.document import OutputOptions

        source, target = self.engine.source.language, self.engine.target.language
        document, doubts = fit_document(document, source, target)
        for doubt in (*document.notes, *doubts):
            logger.warning("%s", doubt)
        units, settings = document.units, self.search_settings

        def best(passages: Sequence[Passage]) -> list[Hypothesis]:
            requests = self.engine.requests(passages, settings)
            return [n_best[0] for n_best in self.engine.search(requests)]

        targets = translate_units(units, self.engine, best, lambda done: progress(done, len(units)))
        check = self.plain_check()
        check.take_targets(units, targets)
        for warning in check.doubts:
            logger.warning("%s", warning)
        data = document.join(targets, OutputOptions(target, final=final))
        changed = sum(output != unit.as_it_is for unit, output in zip(units, targets, strict=True))
        return data, changed

    # ---- measuring and looking

    def plain_check(self) -> PlainCheck:
        """Return a check of translations that needs no model. One check serves all texts of a
        call."""
        from dragoman.tasks.translation.proofreading.plain import PlainCheck

        return PlainCheck(self.engine.source.language, self.run.lexicon)

    def warnings(self, translation: Translation) -> tuple[ProofWarning, ...]:
        """Proofread a translation that this translator made. The warnings name words that the
        translation leaves out, words that the run has never read, and words that the translation
        repeats, among others. This takes a forward pass of the plain model for each word of the
        source; see ``tasks/translation/proofreading/``."""
        return self.proofread([translation])[0]

    def proofread(self, translations: Sequence[Translation]) -> list[tuple[ProofWarning, ...]]:
        """Proofread several translations at once, as ``warnings`` does. Errors: ``RunError`` for
        damaged notes on the training text."""
        from dragoman.tasks.translation.proofreading.proofreader import ToProofread

        sentences = [
            (number, part, place if len(whole.parts) > 1 else None)
            for number, whole in enumerate(translations)
            for place, part in enumerate(whole.parts or (whole,), 1)
        ]
        pairs = [
            ToProofread(part.source, part.text, part.ids, part.finished) for _, part, _ in sentences
        ]
        proofs = chain.from_iterable(self._proofreader(pairs))
        warnings: list[list[ProofWarning]] = [[] for _ in translations]
        number, source, target = -1, 0, 0  # where the sentence before ended
        for (of, part, place), proof in zip(sentences, proofs, strict=True):
            if of != number:
                number, source, target = of, 0, 0
            whole = translations[of]
            source = max(source, whole.source.find(part.source, source))
            target = max(target, whole.text.find(part.text, target))
            warnings[of] += [warning.move(source, target, place) for warning in proof.warnings]
            source, target = source + len(part.source), target + len(part.text)
        return [tuple(own) for own in warnings]

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[Translation]:
        """Score given translations (forced decoding); ``text`` is the given target.

        For any number of pairs, use ``scored``.
        Errors: ``DataError`` with the line (from 1) of a pair with a side that is too long.
        """
        return list(self.score_each(pairs))

    def score_each(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Translation]:
        """Score given translations one by one, in constant memory; see ``score``."""
        return score_pairs(self.engine, pairs)

    def align(
        self, pairs: Iterable[tuple[str, str]], *, head: str | None = None, step: str = "reading"
    ) -> list[Links]:
        """Align the words of given translations with those of their sources. Return the links of
        each pair, (source word, target word), counted from 0. Words are separated by spaces.

        ``head``: 2.1 is layer 2, head 1 of the attention over the source, 2.* the mean of its
        heads; without it, the head that was trained to align, or a guess. ``step``: the attention
        of the step that reads a word ("reading") or of the step that chooses it ("choosing").
        Errors: ``DragomanError`` for a head that does not exist.
        """
        from dragoman.engine.alignment_head import AligningHead
        from dragoman.tasks.translation.aligner import Aligner

        named = None if head is None else AligningHead.parse(head, step)
        return list(Aligner(self.engine, named)(list(pairs)))

    def own_output(self, text: str, prefix: str = "") -> Translation:
        return self(text, prefix=prefix)

    # ---- inside

    @cached_property
    def _proofreader(self) -> Proofreader:
        from dragoman.tasks.translation.proofreading.proofreader import Proofreader

        return Proofreader.of(self.run, self.engine)

    def _consensus(
        self, source: str, candidates: Sequence[Hypothesis], settings: SearchSettings
    ) -> Translation:
        """Return the candidate that agrees most with the others, and as its alternatives the next
        best with different texts, as many as ``settings`` request."""
        every = [Translation.of(source, [choice], self.engine.written) for choice in candidates]
        sampled = settings.sampling is not None
        expected = expected_chrf([choice.text for choice in every], candidates, sampled=sampled)
        best: dict[str, Translation] = {}
        for value, choice in sorted(zip(expected, every, strict=True), key=lambda pair: -pair[0]):
            best.setdefault(choice.text, replace(choice, expected_chrf=value))
        first, *rest = list(best.values())[: settings.n_best]
        return replace(first, alternatives=tuple(rest))


def _several(texts: Iterable[str], method: str) -> Iterator[str]:
    """Check that ``texts`` is an iterable of texts. Errors: ``TypeError`` for a single string, or
    for other objects."""
    if isinstance(texts, str):
        raise TypeError(f"translator.{method} takes several texts. Give one to translator()")
    return as_texts(texts)
