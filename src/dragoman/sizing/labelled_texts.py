"""What is chosen for a model that labels texts or their words, whatever the labels are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from dragoman.data.files.columns import is_tabbed
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Pair
from dragoman.forms.labels import MOST, plain
from dragoman.recipe.recipe import Recipe
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder
from dragoman.sizing.inputs import Inputs, absolute, two_files
from dragoman.sizing.start_from import for_fine_tuning, for_part, gently

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

    def labels_of(self, pair: Pair) -> Iterable[str]:
        """Of an example."""
        return (plain(pair.target),)

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
