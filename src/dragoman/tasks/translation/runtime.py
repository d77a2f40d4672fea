"""Translation: a text is read, and another is written; transcription and reading pictures are
variants of it. The specification of the task, and what it needs to train, to evaluate and to
predict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dragoman.base.measure import BLEU, CER, CHRF, LOSS, PERPLEXITY, WER, Measure
from dragoman.engine.settings import TranslatorSettings, parse_search
from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.runs.run import Run
from dragoman.sources.shared.rows import SourceSettings
from dragoman.tasks.shared.progress_made import (
    TrainingSummary,
    below,
    chance_of_translations,
    of_tokens,
    on_test,
    training_answers,
)
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime, tokens_in

if TYPE_CHECKING:
    from dragoman.pictures.records import AttentionRecord
    from dragoman.tasks.translation.evaluation import TranslationEvaluation
    from dragoman.tasks.translation.translator import Translator

BEGUN_BLEU = 5.0
"""A translator with a lower BLEU has hardly begun to learn. In observed training runs, BLEU begins
to climb at this value (docs/experiments/tokens-before-translating.md)."""
BEGUN_WER = 90.0
"""Above this WER, in percent, hardly a word is right: an output of only the most frequent word
scores about as much."""
_ONE_LINE = ("n_best=1", "min_length=0", "max_length=60")


@dataclass(frozen=True)
class TranslationSpec(Spec):
    """The description of the task of translation, which depends on the kind of source: text,
    recordings or pictures."""

    sections: ClassVar[frozenset[str]] = frozenset({"search"})
    reads_rows: ClassVar[bool] = True

    def of(self, source: SourceSettings) -> Self:
        return replace(super().of(source), **_OF_SOURCE.get(source.kind, {}))


_METRICS = {"bleu": BLEU, "chrf": CHRF, "loss": LOSS, "perplexity": PERPLEXITY}
_FINISHED = {
    "BLEU": BLEU,
    "chrF": CHRF,
    "chrF++": Measure("chrF++", "higher"),
    "TER": Measure("TER", "lower"),
}
_OF_SOURCE: Mapping[str, Mapping[str, Any]] = {
    "frames": {
        "becomes": "transcription",
        "called": "transcriber",
        "metrics": {"wer": WER, "cer": CER, **_METRICS},
        "finished": {"WER": WER, "CER": CER, **_FINISHED},
        "verbs": (("transcribe", "talk.wav"), ("look", "talk.wav")),
        "limits": (
            "It knows the voices, accents and microphones of its training data best.",
            "It may leave out or invent words, especially in silence and noise.",
        ),
    },
    "line": {
        "becomes": "picture-translation",
        # WER and CER need a run that writes the language that it reads.
        "metrics": {**_METRICS, "wer": WER, "cer": CER},
        "finished": {**_FINISHED, "WER": WER, "CER": CER},
    },
    "picture": {"becomes": "captioning"},
}
"""The fields that change with the kind of source."""

TRANSLATION = TranslationSpec(
    name="translation",
    called="translator",
    texts=("source", "target"),
    writes=True,
    noun="pairs",
    counted="target tokens",
    metrics=_METRICS,
    finished=_FINISHED,
    evaluation_options=(
        *("beam", "mbr", "precision", "shortlist", "ensemble", "output"),
        *("columns", "keys", "robust"),
    ),
    begins=(10_000, 250),
    verbs=(("translate", "< input.txt > output.txt"), ("look", "'A sentence.'")),
    hub_tag="translation",
    limits=(
        "It translates each sentence without knowing the sentences around it.",
        "It may leave out, add or invent; check numbers and names.",
    ),
)


class TranslationRuntime(Runtime):
    """The behaviour of tasks that read a text, recording or picture and write a text."""

    spec: ClassVar[Spec] = TRANSLATION

    def __init__(self, of_recordings: Callable[[], Builders]) -> None:
        """``of_recordings`` returns the builders of recipes for recordings."""
        self._of_recordings = of_recordings

    def builders(self) -> Builders:
        from dragoman.tasks.translation.sizes import TranslationBuilder

        return (TranslationBuilder, *self._of_recordings())

    def parts(self) -> Parts:
        from dragoman.tasks.shared.examples import Pairs
        from dragoman.tasks.translation.evaluation import TranslationEvaluation
        from dragoman.tasks.translation.translator import Translator
        from dragoman.tasks.translation.validation import TranslationValidation
        from dragoman.training.losses.objectives import next_token

        return Parts(
            Pairs, next_token, TranslationValidation, TranslationEvaluation(), Translator.whole
        )

    @property
    def evaluate(self) -> TranslationEvaluation:
        """The evaluation of ``parts``, without an import of torch, so that mistakes are reported
        first."""
        from dragoman.tasks.translation.evaluation import TranslationEvaluation

        return TranslationEvaluation()

    def open(
        self, run: Run, settings: TranslatorSettings | None = None, ensemble: Sequence[Run] = ()
    ) -> Translator:
        from dragoman.tasks.translation.translator import Translator

        return Translator(run, settings, ensemble=ensemble)

    def looks(self, run: Run, sources: Sequence[str]) -> list[AttentionRecord]:
        from dragoman.tasks.translation.translator import Translator

        translator = Translator(run, search_settings=parse_search(run.recipe.search, _ONE_LINE))
        records = (translator(source, attention=True).attention for source in sources)
        return [record for record in records if record is not None]

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        references = [pair.target for pair in pairs]
        tokenizer = "none" if recipe.data.moses else None
        return of_tokens(forms.target.encode(references)) | chance_of_translations(
            [references], training_answers(recipe), recipe.languages.target, tokenizer
        )

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        if run.task.purpose == "transcription":
            return below(WER, BEGUN_WER, training.scores.get("wer"), on_test(run, "WER"), "hear")
        return below(BLEU, BEGUN_BLEU, training.scores.get("bleu"), on_test(run, "BLEU"))

    def test_files(self, recipe: Recipe) -> list[str]:
        if recipe.spec.reads_files:
            return ["test.tsv"]
        return [f"test.{recipe.languages.source}", f"test.{recipe.languages.target}"]

    def vocabulary(self, run: Run) -> str:
        if run.recipe.text.shared:
            return f"{tokens_in(run)}, shared"
        kind = run.recipe.text.kind
        if run.task.reads_files:
            return f"{tokens_in(run)}; {run.target.size:,} target {kind} tokens"
        return f"{run.source.size:,} source, {run.target.size:,} target {kind} tokens"
