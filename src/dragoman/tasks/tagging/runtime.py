"""The specification and the runtime of tagging: a model reads a sentence and chooses a tag for each
of its words. The runtime has what trains, evaluates and predicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dragoman.base.errors import DataError
from dragoman.base.measure import LOSS, SHARE, percent
from dragoman.base.task import Side
from dragoman.base.wording import plural
from dragoman.forms.form import Form, Pair
from dragoman.forms.sides import Forms
from dragoman.metrics.classification import Matches
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import Sections
from dragoman.runs.recipe.spec import Examples, Spec, WithHead
from dragoman.runs.run import Run
from dragoman.tasks.shared.progress_made import MIN_TOKENS, TrainingSummary, entropy
from dragoman.tasks.shared.runtime import SURE, Builders, LabelRuntime, Parts, beside_guess
from dragoman.tasks.tagging.form import Tags, words_and_tags
from dragoman.tasks.tagging.metrics import has_spans

if TYPE_CHECKING:
    from dragoman.models.interface import Network
    from dragoman.models.settings import ModelSettings
    from dragoman.pictures.records import Table

_CONFUSED = 15
"""The most rows of a table of confusions."""


@dataclass(frozen=True)
class TaggingSpec(WithHead):
    """Sentences with a tag for each word."""

    target_file: ClassVar[str] = "tags.txt"
    never_generated: ClassVar[str] = "tagged words"
    fixed_words: ClassVar[bool] = True

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        return Forms(given["source"], Tags.load(folder / self.target_file))

    def learn_target(self, recipe: Sections, examples: Examples, folder: Path) -> list[str]:
        tags = Tags.learn(words_and_tags(pair, name) for name, pair in examples())
        self._check_metric(recipe, tags)
        tags.save(folder / self.target_file)
        return [f"{plural(tags.size, 'tag')}: {tags.labels.summary()}"]

    def check_target(self, recipe: Sections, examples: Examples, learned: Forms, run: Path) -> None:
        self._check_metric(recipe, Tags.of(learned.target))
        for name, pair in examples():
            for tag in words_and_tags(pair, name)[1]:
                line = f"{name}, line {pair.line}"
                self.check_known(Tags.of(learned.target).labels, tag, line, run, "tag")

    def _check_metric(self, recipe: Sections, tags: Tags) -> None:
        if recipe.training.metric not in ("accuracy", "loss") and not has_spans(tags.counts):
            raise DataError(
                f"training.metric = {recipe.training.metric} needs spans, but the tags are not "
                f"of the kinds B-X, I-X, E-X, S-X and O: {tags.labels.summary()}. Use --set "
                "training.metric=accuracy"
            )

    def new_network(self, settings: ModelSettings, forms: Forms) -> Network:
        from dragoman.models.catalogue.classifier import WordTagger, new_classifier

        return new_classifier(settings, forms.source.size, forms.target.size, WordTagger)


TAGGING = TaggingSpec(
    name="tagging",
    called="tagger",
    writes=False,
    noun="sentences",
    counted="words",
    metrics={"accuracy": percent("accuracy"), "f1": percent("F1"), "loss": LOSS},
    finished={
        "known": percent("accuracy (known words)"),
        "unknown": percent("accuracy (unknown words)"),
        "precision": percent("precision"),
        "recall": percent("recall"),
    },
    evaluation_options=("output", "columns", "keys"),
    verbs=(("tag", "< lines.txt"),),
    hub_tag="token-classification",
    limits=(
        "It chooses among the tags that it was trained on, even if none of them fits.",
        "It tags words as in its training text, separated by spaces.",
    ),
)


class TaggingRuntime(LabelRuntime):
    """Tagging: the model reads a sentence and chooses a tag for each of its words."""

    spec: ClassVar[Spec] = TAGGING
    counts: ClassVar[str] = "tags"
    one_label: ClassVar[str] = "tag"
    quoted: ClassVar[str] = "words"
    quoted_length: ClassVar[int | None] = None

    def builders(self) -> Builders:
        from dragoman.tasks.tagging.sizes import TaggingBuilder

        return (TaggingBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.shared.examples import TaggedSentences
        from dragoman.tasks.tagging.evaluation import TaggedValidation, TaggingEvaluation, compare
        from dragoman.tasks.tagging.tagger import Tagger
        from dragoman.training.losses.objectives import TagOfEachWord

        return Parts(
            TaggedSentences, TagOfEachWord, TaggedValidation, TaggingEvaluation(), Tagger, compare
        )

    def count_target(self, counts: Counter[str], pair: Pair) -> None:
        counts.update(pair.target.split())

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        counts = Counter(tag for pair in pairs for tag in pair.target.split())
        if counts.total() < MIN_TOKENS:
            return {}
        from dragoman.tasks.tagging.evaluation import usual_scores

        guess = usual_scores(Tags.of(forms.target), pairs).figures()
        kept = {name: guess[name] for name in ("accuracy", "f1") if name in guess}
        return kept | {"loss": entropy(counts.values())}

    def hardly_learned(self, run: Run, training: TrainingSummary) -> str | None:
        """A sentence that says that a run is worse than always choosing the most frequent tag of
        each word. None if it is not worse, or if that is not known."""
        scores: dict[str, Any] = run.scores()
        measured = scores.get("scores", {}).get("accuracy")
        guess = scores.get("usual", {}).get("accuracy")
        words = sum(row["texts"] for row in scores.get("labels", []))
        if measured is None or not isinstance(guess, int | float) or not words:
            return None
        share, accuracy = guess / 100, measured["value"] / 100
        if accuracy + SURE * math.sqrt(max(0.0, share * (1 - share)) / words) >= share:
            return None
        return beside_guess(accuracy, "the most frequent tag of each word", share)

    def label_tables(self, scores: Mapping[str, Any]) -> list[Table]:
        """The tables of labels, also with the scores of spans and the most frequent confusions."""
        from dragoman.pictures.records import Table
        from dragoman.tasks.shared.label_report import confusion_in

        labels = scores.get("labels", [])
        tables = super().label_tables({"labels": [row for row in labels if row["texts"]]})
        if spans := scores.get("spans", {}):
            counts = {kind: Matches(**fields) for kind, fields in spans.items()}
            rows = [
                (kind, *map(SHARE.text, (span.precision, span.recall, span.f1)), span.there)
                for kind, span in counts.items()
            ]
            tables.append(Table("Spans", ("span", "precision", "recall", "F1", "spans"), rows))
        if scores.get("confusion"):
            names = [row["label"] for row in labels]
            often = confusion_in(scores).mistaken()[:_CONFUSED]
            confused = [(names[true], names[chosen], count) for true, chosen, count in often]
            tables.append(Table("Confused most often", ("tag", "taken for", "words"), confused))
        return tables
