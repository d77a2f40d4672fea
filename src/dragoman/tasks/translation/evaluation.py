"""Evaluates finished runs of the task translation: scores, also with noise in the sources, and the
lines whose markup survives.

Markup is that of reStructuredText (docutils, "reStructuredText Markup Specification", section
Inline Markup). A role or a literal must be copied exactly: ``:func:`open` ``, ````open(file)````. A
link or role with a title, ``:ref:`title <target>` ``, must keep its target; its title is
translated. Strong and emphasised words, ``**word**`` and ``*word*``, must keep the number of their
marks. A line is intact if it has all marks of its source and no others.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import DataError, DragomanError
from dragoman.base.wording import plural
from dragoman.data.hashing import torch_seed
from dragoman.forms.text_form import MosesText
from dragoman.metrics.translation import (
    WHY_BLEU_DIFFERS,
    References,
    Score,
    TranslationScores,
    evaluate_translation,
    tokenised_bleu,
)
from dragoman.metrics.word_errors import WordErrors
from dragoman.pictures.labels import plain_table
from dragoman.runs.evaluation_set import EvaluationSet
from dragoman.runs.lineage import warn_of_learned
from dragoman.runs.recipe.sections import writes_what_it_reads
from dragoman.runs.run import Run
from dragoman.sources.augment import NoiseSettings, with_noise
from dragoman.tasks.shared.evaluation import (
    EvaluationRequest,
    RunEvaluation,
    SearchReport,
    clock,
    sign,
)

if TYPE_CHECKING:
    from dragoman.tasks.translation.result import Translation
    from dragoman.tasks.translation.translator import Translator

logger = logging.getLogger("dragoman")
_NOISES = {
    "typos in 10 % of the words": NoiseSettings(typos=0.1, texts=1),
    "typos in 20 % of the words": NoiseSettings(typos=0.2, texts=1),
    "5 % of the words missing": NoiseSettings(words=0.05, texts=1),
    "lower case": NoiseSettings(case=1, texts=1),
    "no punctuation": NoiseSettings(punctuation=1, texts=1),
    "no accents": NoiseSettings(accents=1, texts=1),
}
_MARK = re.compile(
    r"``(?P<literal>.+?)``"
    r"|(?P<role>(?::[\w+.-]+)+:)`(?P<content>[^`]+)`"
    r"|`(?P<reference>[^`]+)`__?"
    r"|\*\*(?P<strong>[^*\s](?:[^*]*[^*\s])?)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])"
)
_TARGET = re.compile(r"<([^<>]+)>$")


@dataclass(frozen=True)
class TranslationReport(SearchReport):
    """The translations of a test set, and their scores."""

    scores: TranslationScores
    prepared: Score | None
    """BLEU over lower-cased Moses tokens, if the recipe asks for it."""
    markup: Markup | None
    """The number of lines that keep their markup, if the recipe says that the text has markup."""
    heard: WordErrors | None
    """WER and CER by the first reference, if the run writes the language that it reads."""
    noise: Sequence[NoiseScore] = ()
    """The scores with noise in the sources, if they were asked for."""
    noun: str = "sentence"
    """The noun for a source in the report: a sentence, a recording."""

    def table(self) -> str:
        """Return the whole report as plain text."""
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
        if self.noise:
            lines += ["", noise_table(self.noise, self.scores["BLEU"], self.scores["chrF"])]
        return "\n".join(lines)

    def details(self) -> dict[str, Any]:
        values = self.scores.to_dict()
        if self.heard is not None:
            rates = {"WER": self.heard.words.rate, "CER": self.heard.characters.rate}
            values["scores"] = sign(rates, self.heard.signature) | values["scores"]
            values["errors"] = self.heard.to_dict([pair.source for pair in self.pairs], self.noun)
        if self.prepared is not None:
            values["prepared_bleu"] = {
                "value": self.prepared.value,
                "signature": self.prepared.signature,
                "why": WHY_BLEU_DIFFERS,
            }
        if self.markup is not None:
            values["markup"] = asdict(self.markup)
        if self.noise:
            values["noise"] = [asdict(score) for score in self.noise]
        return values


class TranslationEvaluation(RunEvaluation[EvaluationSet, TranslationReport]):
    """Translates sources and scores the translations. The user gives one file of sources and one or
    more files of references; each file of references holds a correct translation of every source.
    """

    def check(self, asked: EvaluationRequest) -> None:
        super().check(asked)
        if asked.robust and asked.run.task.reads_files:
            raise DragomanError(
                f"--robust: {asked.run.folder} is a {asked.run.task.called} and reads no text. "
                "Leave it out"
            )

    def examples(self, asked: EvaluationRequest) -> EvaluationSet:
        examples = EvaluationSet.of(asked.run, asked.files, asked.columns, asked.keys)
        warn_of_learned(asked.run, examples.pairs)
        return examples

    def report(self, asked: EvaluationRequest, examples: EvaluationSet) -> TranslationReport:
        # Imported here because it may import torch: mistakes above are reported first.
        from dragoman.engine.settings import TranslatorSettings
        from dragoman.tasks.translation.translator import Translator

        run, search, pairs = asked.run, asked.search, examples.pairs
        settings = TranslatorSettings.check(
            precision=asked.precision, shortlist=asked.shortlist, mbr=asked.mbr
        )
        translator = Translator(run, settings, search, asked.ensemble)
        noun = run.task.noun.removesuffix("s") if run.task.reads_files else "sentence"
        logger.info("translating %s", plural(len(pairs), noun))
        outputs, seconds = clock(lambda: list(translator.stream(pair.source for pair in pairs)))
        hypotheses = [translation.text for translation in outputs]
        noise: Sequence[NoiseScore] = ()
        if asked.robust:
            logger.info("translating them with noise")
            noise = robustness(
                lambda texts: [translation.text for translation in translator.stream(texts)],
                [pair.source for pair in pairs],
                examples.references,
                run.recipe.languages.target,
            )
        heard = markup = None
        if writes_what_it_reads(run.recipe):
            heard = WordErrors.of(examples.references[0], hypotheses)
        if run.recipe.evaluation.markup != "none":
            sources = [pair.source for pair in pairs]
            markup = count_intact(sources, hypotheses, examples.references[0])
        return TranslationReport(
            *asked.about(examples.name, seconds),
            _describe(translator, asked), translator.description, pairs, hypotheses,
            evaluate_translation(hypotheses, examples.references, run.recipe.languages.target),
            _moses_bleu(run, outputs, examples), markup, heard, noise, noun,
        )  # fmt: skip


@dataclass(frozen=True)
class NoiseScore:
    """The scores on sources with one kind of noise."""

    noise: str
    changed: float
    """The share of the sources that the noise changes."""
    bleu: float
    chrf: float


def robustness(
    translate: Callable[[Sequence[str]], Sequence[str]],
    sources: Sequence[str],
    references: References,
    language: str,
) -> list[NoiseScore]:
    """Translate the sources with each kind of noise that changes any of them, and score the
    translations. The noise is the same in every call. ``language``: that of the references."""
    scores = []
    for name, settings in _NOISES.items():
        noisy = [
            with_noise(source, settings, torch_seed(0, place))
            for place, source in enumerate(sources)
        ]
        changed = sum(map(str.__ne__, noisy, sources)) / max(1, len(sources))
        if changed:
            measured = evaluate_translation(
                translate(noisy), references, language, metrics=("BLEU", "chrF")
            )
            scores.append(NoiseScore(name, changed, measured["BLEU"], measured["chrF"]))
    return scores


def noise_table(scores: Sequence[NoiseScore], bleu: float, chrf: float) -> str:
    """Return a table of the scores with each noise, and of the difference from ``bleu`` and
    ``chrf``, the scores without noise."""
    header = ("noise in the source", "sources", "BLEU", "change", "chrF", "change")
    rows = [
        (
            score.noise, f"{score.changed:.0%}", f"{score.bleu:.2f}", f"{score.bleu - bleu:+.2f}",
            f"{score.chrf:.2f}", f"{score.chrf - chrf:+.2f}",
        )
        for score in scores
    ]  # fmt: skip
    return plain_table(header, [("none", "", f"{bleu:.2f}", "", f"{chrf:.2f}", ""), *rows])


@dataclass(frozen=True)
class Markup:
    """Counts of lines that keep their markup."""

    lines: int
    """The number of lines whose source has markup."""
    intact: int
    """The number of these whose translation has the same markup."""
    references: int
    """The number of these whose reference has the same markup, as a human translator kept it."""

    def __str__(self) -> str:
        return (
            f"inline markup intact in {self.intact:,} of the "
            f"{plural(self.lines, 'line that has', 'lines that have')} any "
            f"(in the references: {self.references:,})"
        )


def marks(text: str) -> Counter[tuple[str, str]]:
    """Count the inline marks of a line, by kind and by the content that must be kept."""
    counts: Counter[tuple[str, str]] = Counter()
    for match in _MARK.finditer(text):
        kind = match.lastgroup or ""
        if kind in ("strong", "emphasis"):
            counts[kind, ""] += 1
        elif kind == "literal":
            counts[kind, match["literal"]] += 1
        else:
            content = match[kind]
            target = _TARGET.search(content)
            counts[match["role"] or kind, target[1] if target else content] += 1
    return counts


def count_intact(
    sources: Sequence[str], translations: Sequence[str], references: Sequence[str]
) -> Markup:
    """Count the lines of a test set that keep their markup. The three sequences are parallel."""
    lines = intact = right = 0
    for source, translation, reference in zip(sources, translations, references, strict=True):
        wanted = marks(source)
        if wanted:
            lines += 1
            intact += marks(translation) == wanted
            right += marks(reference) == wanted
    return Markup(lines, intact, right)


def _moses_bleu(run: Run, outputs: Sequence[Translation], examples: EvaluationSet) -> Score | None:
    """Compute BLEU over Moses tokens; None if the recipe does not say so, or if the language has no
    tokeniser."""
    if run.recipe.data.moses:
        # The model writes Moses tokens, which this protocol scores directly.
        prepare = run.forms.written.prepare
        hypotheses = [translation.prepared for translation in outputs]
    elif run.recipe.evaluation.tokenised:
        try:
            prepare = MosesText(run.recipe.languages.target).prepare
        except DataError as error:
            logger.info("%s (for BLEU over tokenised text)", error)
            return None
        hypotheses = [prepare(translation.text) for translation in outputs]
    else:
        return None
    return tokenised_bleu(hypotheses, [list(map(prepare, lines)) for lines in examples.references])


def _describe(translator: Translator, asked: EvaluationRequest) -> str:
    search, mbr = asked.search, asked.mbr
    described = f"beam {search.beam}, length penalty {search.length_penalty}"
    if search.sampling is not None:
        described = f"sampling, {search.sampling.model_dump(exclude_none=True)}"
    if search.ctc_weight:
        described += f", with CTC (weight {search.ctc_weight:g})"
    if translator.ctc.ranks and search.sampling is None and search.beam > 1 and not mbr:
        described += f", ranked with CTC (weight {translator.settings.ctc_weight:g})"
    if mbr:
        described = f"minimum Bayes risk by chrF among {mbr} of: {described}"
    return described
