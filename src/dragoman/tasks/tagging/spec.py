"""Tagging: a sentence is read, and a tag chosen for each of its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dragoman.base.errors import DataError
from dragoman.base.measure import LOSS, percent
from dragoman.base.task import Side
from dragoman.base.wording import plural
from dragoman.forms.form import Form, Pair
from dragoman.forms.sides import Forms
from dragoman.runs.recipe.sections import Sections
from dragoman.runs.recipe.spec import Examples, WithHead
from dragoman.tasks.tagging.form import Tags
from dragoman.tasks.tagging.metrics import has_spans

if TYPE_CHECKING:
    from dragoman.models.interface import Network
    from dragoman.models.settings import ModelSettings


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
        from dragoman.tasks.tagging.head import new_tagger

        return new_tagger(settings, forms.source.size, forms.target.size)


def words_and_tags(pair: Pair, name: str) -> tuple[Sequence[str], Sequence[str]]:
    """The words and the tags of an example. Errors: ``DataError`` if their numbers differ."""
    words, tags = pair.source.split(), pair.target.split()
    if len(words) != len(tags):
        raise DataError(
            f"{name}, line {pair.line}: {plural(len(words), 'word')} and "
            f"{plural(len(tags), 'tag')}. Each word needs one tag"
        )
    return words, tags


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
