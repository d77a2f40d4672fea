"""A sane size and schedule of a model that labels texts, when a user gives nothing but examples.

``LABEL_TABLE`` is what is chosen: the number of examples chooses a row. In which column the labels
stand is found out: they repeat, and texts rarely do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from dragoman.data.files.columns import is_tabbed, labelled_corpus
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.pair import Pair
from dragoman.forms.labels import MOST, plain
from dragoman.recipe import Recipe
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections, check_two_labels
from dragoman.sizing.inputs import Inputs, absolute
from dragoman.sizing.size import Size
from dragoman.sizing.start_from import for_fine_tuning, for_part, gently
from dragoman.specs.spec import Spec
from dragoman.tasks.classification.spec import CLASSIFICATION
from dragoman.tasks.translation.sizes import two_files
from dragoman.wording import plural

EPOCHS_FROM = 4
"""Epochs of a run that begins with the weights of another one, which has read text already."""
_SAMPLE_SIZE = 100
"""Texts by which the language is told."""


class HeadBuilder(RecipeBuilder):
    """Texts and their labels."""

    name_tells = False
    texts_alone: ClassVar[str] = "--task language-model"

    def corpus(self, inputs: Inputs) -> CorpusSettings:
        if len(inputs.names) == 2:
            return two_files(inputs)
        return self.file_at(inputs.first, inputs)

    @abstractmethod
    def file_at(self, path: str, inputs: Inputs) -> CorpusSettings:
        """One file that has texts and labels, and where in it they are, by the options of
        ``inputs``."""

    def like(self, name: str, train: CorpusSettings, inputs: Inputs) -> CorpusSettings:
        """A file of another kind than the training file's has its own columns or keys."""
        if train.target or is_tabbed(name) != is_tabbed(train.source):
            return self.file_at(absolute(name), inputs)
        return train

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        amount, texts, labels = 0, list[str](), set[str]()
        for pair in read_pairs(corpus):
            amount += 1
            if amount <= _SAMPLE_SIZE:
                texts.append(pair.source)
            if len(labels) <= MOST:
                labels.update(self.labels_of(pair))
        return CorpusSummary(amount, amount, texts, labels=labels)

    @abstractmethod
    def labels_of(self, pair: Pair) -> Iterable[str]:
        """Of an example."""

    def begun(
        self, recipe: Recipe, epochs: float | None, inputs: Inputs
    ) -> tuple[Recipe, float | None]:
        """What a run has read is of use to any labels: the recipe is named by both."""
        if inputs.start_from is None:
            return recipe, epochs
        learned = inputs.start_from.recipe
        if inputs.take is None:
            recipe = for_fine_tuning(recipe, learned, own_context=inputs.base is not None)
        else:
            recipe = for_part(recipe, learned, inputs.take)
        recipe = recipe.model_copy(update={"name": f"{recipe.name}-from-{learned.name}"})
        if inputs.base is not None:
            return recipe, epochs
        return gently(recipe, learned), EPOCHS_FROM


LABEL_TABLE = (
    Size(2_000, 2_000, 64, 4, 1, 0.3, 1_024, 50, 2e-3, 30),
    Size(20_000, 8_000, 128, 4, 2, 0.3, 4_096, 200, 1.5e-3, 15),
    Size(200_000, 16_000, 256, 8, 3, 0.2, 8_192, 500, 1e-3, 8),
    Size(float("inf"), 16_000, 256, 8, 4, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""A first choice that was not tuned; docs/labels.md shows it to users."""


class ClassificationBuilder(HeadBuilder):
    """Texts with one label each."""

    task: ClassVar[Spec] = CLASSIFICATION
    noun = "labelled texts"
    table: ClassVar[Sequence[Size]] = LABEL_TABLE

    def file_at(self, path: str, inputs: Inputs) -> CorpusSettings:
        return labelled_corpus(path, inputs.columns, inputs.keys)

    def labels_of(self, pair: Pair) -> Iterable[str]:
        return (plain(pair.target),)

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        seen = super().look(corpus)
        check_two_labels(corpus, plural(int(seen.amount), "line"), seen.labels)
        return seen

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        return {
            "data": {"cleaning": {"max_length": 0}},
            "text": {"character_coverage": 0.9999},
            "training": {"label_smoothing": 0.0},
        }
