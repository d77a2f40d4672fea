"""Measuring a finished run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import DataError
from dragoman.base.wording import plural
from dragoman.forms.form import Pair
from dragoman.forms.text_form import MosesText
from dragoman.metrics.translation import (
    WHY_BLEU_DIFFERS,
    Score,
    TranslationScores,
    evaluate_translation,
    tokenised_bleu,
)
from dragoman.metrics.word_errors import WordErrors
from dragoman.recipe.sections import writes_what_it_reads
from dragoman.runs.evaluation_set import EvaluationSet
from dragoman.runs.lineage import warn_of_learned
from dragoman.runs.run import Run
from dragoman.runs.scores import keep_scores, samples, signed
from dragoman.tasks.shared.evaluation_report import SearchReport, timed
from dragoman.tasks.translation.markup import Markup, count_intact

logger = logging.getLogger("dragoman")


@dataclass(frozen=True)
class TranslationReport(SearchReport):
    """The translations of a test set by a run, and their scores."""

    scores: TranslationScores
    prepared: Score | None
    """BLEU over lower-cased Moses tokens, where that protocol is asked for."""
    markup: Markup | None
    """How many lines keep their markup, where the recipe says that the text has any."""
    heard: WordErrors | None
    """WER and CER, where what is read is written; of several references, those of the first."""
    pairs: Sequence[Pair]
    hypotheses: Sequence[str]
    noun: str = "sentence"
    """What is read, one of it."""

    def table(self) -> str:
        """Plain text."""
        speed = len(self.hypotheses) / max(self.seconds, 1e-9)
        sentences = plural(len(self.hypotheses), self.noun)
        lines = [
            f"{self.head}, {sentences}",
            f"{self.search}; {self.path}; {self.seconds:.1f} s, {speed:,.0f} {self.noun}s/s",
            "",
            self.scores.table(),
        ]
        if self.heard is not None:
            names = [pair.source for pair in self.pairs]
            lines[3:3] = [self.heard.table(names, self.noun), ""]
        if self.prepared is not None:
            lines += [
                "",
                (
                    f"BLEU {self.prepared.value:.2f} over lower-cased, Moses-tokenised text "
                    f"({self.prepared.signature})"
                ),
                WHY_BLEU_DIFFERS,
            ]
        if self.markup is not None:
            lines += ["", str(self.markup)]
        return "\n".join(lines)

    def outputs(self) -> Sequence[str]:
        return self.hypotheses

    def details(self) -> dict[str, Any]:
        values = self.scores.to_dict()
        if self.heard is not None:
            rates = {"WER": self.heard.words.rate, "CER": self.heard.characters.rate}
            values["scores"] = signed(rates, self.heard.signature) | values["scores"]
            values["errors"] = self.heard.to_dict([pair.source for pair in self.pairs], self.noun)
        if self.prepared is not None:
            values["prepared_bleu"] = {
                "value": self.prepared.value,
                "signature": self.prepared.signature,
                "why": WHY_BLEU_DIFFERS,
            }
        if self.markup is not None:
            values["markup"] = asdict(self.markup)
        return values


def evaluate_run(
    run: Run,
    files: Sequence[Path] = (),
    changes: Sequence[str] = (),
    *,
    precision: str = "auto",
    shortlist: bool = False,
    ensemble: Sequence[Run] = (),
    mbr: int = 0,
    columns: str | None = None,
    keys: tuple[str, str] | None = None,
) -> TranslationReport:
    """Translate a test set and score it.

    ``files``: sources and their references, of which there may be several with other translations
    of the same sources; without files it is the recipe's. ``changes`` are ``key=value``, merged
    into the recipe's search settings. ``ensemble``: runs that translate together with this one.
    ``mbr``: as ``TranslatorSettings``. ``columns``, ``keys``: where one file has both sides. The
    figures of the run alone on the recipe's own test set, by the recipe's own settings, are written
    to its scores.json.
    Errors: ``RunError`` for a run, ``DataError`` for files that cannot be used.
    """
    recipe = run.recipe
    measured = EvaluationSet.of(run, files, columns, keys)
    pairs = measured.pairs
    warn_of_learned(run, pairs)
    # Here, so that what is wrong above is said at once: it imports torch, which takes seconds.
    from dragoman.engine.search_settings import for_test_set
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.tasks.translation.translator import Translator

    search = for_test_set(recipe, changes)
    settings = TranslatorSettings.check(precision=precision, shortlist=shortlist, mbr=mbr)
    translator = Translator(run, settings, search, ensemble)
    noun = run.task.noun.removesuffix("s") if run.task.reads_files else "sentence"
    logger.info("translating %s", plural(len(pairs), noun))
    translations, seconds = timed(lambda: list(translator.stream(pair.source for pair in pairs)))
    hypotheses = [translation.text for translation in translations]
    language = recipe.languages.target
    scores = evaluate_translation(hypotheses, measured.references, language)
    heard = None
    if writes_what_it_reads(recipe):
        heard = WordErrors.of(measured.references[0], hypotheses)
    prepared = None
    if recipe.data.moses:
        # The model speaks prepared text: its own tokens are what that protocol counts.
        prepared = tokenised_bleu(
            [translation.prepared for translation in translations],
            [list(map(run.forms.written.prepare, lines)) for lines in measured.references],
        )
    elif recipe.evaluation.tokenised:
        try:
            prepare = MosesText(language).prepare
            prepared = tokenised_bleu(
                list(map(prepare, hypotheses)),
                [list(map(prepare, lines)) for lines in measured.references],
            )
        except DataError as error:
            logger.info("%s (for BLEU over tokenised text)", error)
    markup = None
    if recipe.evaluation.markup != "none":
        sources = [pair.source for pair in pairs]
        markup = count_intact(sources, hypotheses, measured.references[0])
    described = f"beam {search.beam}, length penalty {search.length_penalty}"
    if search.sampling is not None:
        described = f"sampling, {search.sampling.model_dump(exclude_none=True)}"
    if search.ctc_weight:
        described += f", with CTC (weight {search.ctc_weight:g})"
    if translator.ctc is not None and search.sampling is None and search.beam > 1 and not mbr:
        described += f", ranked with CTC (weight {settings.ctc_weight:g})"
    if mbr:
        described = f"minimum Bayes risk by chrF among {mbr} of: {described}"
    runs = (run, *ensemble)
    result = TranslationReport(
        " + ".join(one.folder.name for one in runs),
        "; ".join(dict.fromkeys(one.weights_summary for one in runs)),
        measured.name, seconds, described, translator.description, scores, prepared,
        markup, heard, pairs, hypotheses, noun,
    )  # fmt: skip
    if not files:
        own = search == for_test_set(recipe) and settings == TranslatorSettings()
        found = result.to_dict() | samples(run, pairs, hypotheses)
        keep_scores(run, found, own=own and not ensemble)
    return result
