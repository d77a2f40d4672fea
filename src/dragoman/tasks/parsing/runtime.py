"""The specification and the runtime of parsing: a model reads the words of a sentence and writes
its tree. The runtime has what trains, evaluates and predicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dragoman.base.measure import LOSS, PERPLEXITY, percent
from dragoman.base.task import Side
from dragoman.data.store_writer import store_key
from dragoman.forms.form import Form, Pair
from dragoman.forms.sides import Forms
from dragoman.forms.tree import read_trees
from dragoman.forms.tree_form import TreeForm, TreeSymbols, tree_of
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import Sections
from dragoman.runs.recipe.spec import Examples, Spec
from dragoman.runs.run import Run
from dragoman.tasks.parsing.metrics import Parseval, RightBranching, score_parse
from dragoman.tasks.shared.progress_made import MIN_ANSWERS, of_tokens, training_answers
from dragoman.tasks.shared.runtime import Builders, Parts, Runtime

if TYPE_CHECKING:
    from dragoman.models.interface import Network
    from dragoman.models.settings import ModelSettings
    from dragoman.pictures.records import ShownSample

BEGUN_F1 = 40.0
"""The F1 below which a parser has hardly begun (docs/experiments/tokens-before-parsing.md)."""


@dataclass(frozen=True)
class ParsingSpec(Spec):
    """Sentences and trees. A search writes a tree as a text of brackets and tags."""

    sections: ClassVar[frozenset[str]] = frozenset({"search", "trees"})
    demo: ClassVar[str] = "demo-trees"
    target_file: ClassVar[str] = "target.json"
    only_format: ClassVar[tuple[str, str]] = ("trees", "bracketed trees")
    search_rules: ClassVar[str] = "a parse has its own rules"
    keeps_order: ClassVar[bool] = True
    fixed_words: ClassVar[bool] = True
    instead_of_links: ClassVar[str] = "; what a head is taught, the trees tell"

    def check_vocabularies(self, recipe: Sections) -> None:
        if recipe.model.shares_vocabulary:
            raise ValueError(
                'words and brackets cannot share one matrix: set model.tie = "target" or "none"'
            )

    def forms(self, given: Mapping[Side, Form], folder: Path, longest: int) -> Forms:
        return Forms(given["source"], TreeForm(TreeSymbols.load(folder / self.target_file)))

    def learn_target(self, recipe: Sections, examples: Examples, folder: Path) -> list[str]:
        symbols = TreeSymbols.learn((tree_of(pair.target) for _, pair in examples()), recipe.trees)
        symbols.save(folder / self.target_file)
        return [f"{symbols.size:,} symbols of trees"]

    def embedded_pairs(self, recipe: Sections, part: str) -> Iterator[Pair]:
        return trees_of_demo(part)

    def all_embedded_pairs(self) -> Iterable[Pair]:
        return trees_of_demo("train", "dev", "test")

    def embedded_fingerprint(self) -> str:
        return store_key(json.dumps([pair.target for pair in trees_of_demo("train")]))

    def new_network(self, settings: ModelSettings, forms: Forms) -> Network:
        import torch

        from dragoman.data.word_links import starts_of
        from dragoman.models.transformer.model import Transformer

        made = super().new_network(settings, forms)
        if isinstance(made, Transformer) and made.next_word is not None:
            begins = starts_of(forms.source)
            begins[forms.source.eos] = True
            made.next_word.tell(torch.from_numpy(begins), forms.trees.symbols.words)
        return made


def trees_of_demo(*parts: str) -> Iterator[Pair]:
    """The sentences and trees of parts of the demo corpus."""
    from dragoman.demo.trees import demo_trees

    trees = demo_trees()
    every = enumerate((tree for part in parts for tree in getattr(trees, part)), 1)
    return (Pair(line, " ".join(tree.words), str(tree)) for line, tree in every)


PARSING = ParsingSpec(
    name="parsing",
    called="parser",
    writes=True,
    noun="trees",
    counted="target tokens",
    metrics={
        "f1": percent("F1"),
        "precision": percent("precision"),
        "recall": percent("recall"),
        "exact": percent("exact"),
        "tags": percent("tags"),
        "loss": LOSS,
        "perplexity": PERPLEXITY,
    },
    finished={
        "f1_40": percent("F1 (≤ 40 words)"),
        "exact_40": percent("exact (≤ 40 words)"),
    },
    evaluation_options=("beam", "precision", "output"),
    begins=(5_500, 0),
    verbs=(("parse", "--draw 'A sentence of words .'"),),
    hub_tag="text2text-generation",
    limits=(
        "It parses sentences that are split into words as in its treebank.",
        "Each parse is a tree over all words, even if the sentence makes no sense.",
    ),
)


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
