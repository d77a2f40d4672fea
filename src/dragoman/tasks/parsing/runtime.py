"""The runtime of parsing: it connects the task to training, evaluation and prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from dragoman.forms.form import Pair
from dragoman.forms.sides import Forms
from dragoman.forms.tree import read_trees
from dragoman.forms.tree_form import tree_of
from dragoman.pictures.records import ShownSample
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.spec import Spec
from dragoman.runs.run import Run
from dragoman.tasks.parsing.metrics import Parseval, RightBranching, score_parse
from dragoman.tasks.parsing.spec import PARSING
from dragoman.tasks.shared.progress_made import MIN_ANSWERS, of_tokens, training_answers
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime

BEGUN_F1 = 40.0
"""The F1 below which a parser has hardly begun (docs/experiments/tokens-before-parsing.md)."""


class ParsingRuntime(Runtime):
    """Parsing: the model reads the words of a sentence and writes its tree."""

    spec: ClassVar[Spec] = PARSING
    begun: ClassVar[tuple[str, float]] = ("f1", BEGUN_F1)
    test_file: ClassVar[str] = "test.mrg"
    counts: ClassVar[str] = "labels of constituents"
    written: ClassVar[str] = "symbols of trees"

    def builders(self) -> Builders:
        from dragoman.tasks.parsing.sizes import ParsingBuilder

        return (ParsingBuilder,)

    def parts(self) -> Parts:
        from dragoman.tasks.parsing.evaluation import ParsingEvaluation, ParsingValidation, compare
        from dragoman.tasks.parsing.parser import Parser
        from dragoman.tasks.shared.examples import Pairs
        from dragoman.training.losses.objectives import next_token

        return Parts(Pairs, next_token, ParsingValidation, ParsingEvaluation(), Parser, compare)

    def count_target(self, counts: Counter[str], pair: Pair) -> None:
        for _, tree in read_trees([pair.target]):
            counts.update(bracket.label for bracket in tree.brackets())

    def chance(self, recipe: Recipe, forms: Forms, pairs: Sequence[Pair]) -> dict[str, float]:
        trees = forms.target.encode([pair.target for pair in pairs])
        return of_tokens(trees) | chance_of_trees(pairs, training_answers(recipe))

    def samples(self, run: Run, samples: list[ShownSample]) -> tuple[list[ShownSample], int]:
        """The samples as drawings, and the number of samples that were recorded only in part and
        are left out."""
        from dragoman.tasks.parsing.evaluation import tree_pair

        no_tag = run.forms.trees.no_tag
        drawn = [
            replace(sample, trees=pair)
            for sample in samples
            if (pair := tree_pair(sample.reference, sample.hypothesis, no_tag)) is not None
        ]
        return (drawn, len(samples) - len(drawn)) if drawn else (samples, 0)


def chance_of_trees(pairs: Sequence[Pair], learned: Sequence[str]) -> dict[str, float]:
    """The scores of right-branching trees on some sentences; empty if there are too few, or if the
    training trees (``training_answers``) are unknown."""
    if len(pairs) < MIN_ANSWERS or not learned:
        return {}
    trees = [tree_of(pair.target) for pair in pairs]
    guess = RightBranching(list(map(tree_of, learned)))
    scores = Parseval.of(score_parse(tree, guess.parse(tree.words)) for tree in trees).scores
    return {name: scores[name] for name in ("f1", "precision", "recall", "exact")}
