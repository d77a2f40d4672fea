"""What a run learns of its training text before it trains: vocabularies, labels, brackets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from dragoman.data.corpora import Pair
from dragoman.errors import DataError
from dragoman.forms.labels import LONGEST, Labels, plain
from dragoman.forms.text import Text
from dragoman.forms.tree_form import tree_of
from dragoman.forms.tree_symbols import TreeSymbols
from dragoman.recipe import Recipe
from dragoman.runs.corpora import corpora_of
from dragoman.runs.prepare import Say
from dragoman.runs.run import BRACKETS, LABELS, vocabulary_name
from dragoman.task import TASKS

_FEW = 3
"""Examples of a label: fewer are more likely a slip than a label."""

_LEARNED_TOGETHER = 4000
"""Characters of a line that a vocabulary is learned from; what lies behind is another one."""


def learn_vocabularies(recipe: Recipe, folder: Path, say: Say, known: Collection[str] = ()) -> None:
    """Learn the vocabularies of a recipe from its training text, and its labels or brackets where
    it has any, and save them in ``folder``.

    Errors: ``DataError`` for text that cannot be used, or does not support so large a vocabulary,
    and for labels between which there is nothing to choose.
    ``known``: files that are there already.
    """
    if TASKS[recipe.task].target == "label":
        learn_labels(recipe, folder, say)
    if TASKS[recipe.task].target == "tree":
        learn_brackets(recipe, folder, say)
    kind = recipe.text.kind
    learned = []
    for name, sides in sides_of_vocabularies(recipe).items():
        if name in known:
            continue
        lines = training_lines(recipe, sides)
        text = Text.train(lines, recipe.text, seed=recipe.seed, symbols=TASKS[recipe.task].symbols)
        text.save(folder / name)
        learned.append(f"{text.size:,} {' and '.join(sides)}")
    if learned:
        say(f"learned {' and '.join(learned)} {kind} tokens")


def sides_of_vocabularies(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """The vocabularies of a recipe, by the names of their files: the sides that each is of."""
    sides_of: dict[str, tuple[str, ...]] = {}
    for side in TASKS[recipe.task].texts:
        name = vocabulary_name(recipe, side)
        sides_of[name] = (*sides_of.get(name, ()), side)
    return sides_of


def training_lines(recipe: Recipe, sides: Sequence[str]) -> Iterator[str]:
    """The training text of a recipe as a vocabulary is learned from it, some of its sides."""
    for corpus in corpora_of(recipe, "train"):
        for pair in corpus.pairs:
            for side in sides:
                yield from _lines(getattr(pair, side))


def learn_brackets(recipe: Recipe, folder: Path, say: Say) -> None:
    """The brackets and tags of the training trees of a recipe, saved in ``folder``."""
    trees = (tree_of(p.target) for corpus in corpora_of(recipe, "train") for p in corpus.pairs)
    symbols = TreeSymbols.learn(trees, recipe.trees)
    symbols.save(folder / BRACKETS)
    say(f"{symbols.size:,} symbols of trees")


def learn_labels(recipe: Recipe, folder: Path, say: Say) -> None:
    """The labels of the training examples of a recipe, saved in ``folder``.

    Errors: ``DataError`` for an example without one, or labels of which there is no choice.
    """

    found, counts = Labels.learn(pair.target for _, pair in _labelled(recipe))
    found.save(folder / LABELS)
    say(f"{found.size:,} labels: {found.in_words()}")
    if few := rare_labels(counts):
        say(f"warning: {few}")


def rare_labels(counts: Mapping[str, int]) -> str:
    """What to say of labels that have too few of the examples counted; empty if none has."""
    rare = sorted(name for name, count in counts.items() if count < _FEW)
    if not rare:
        return ""
    return (
        f"{len(rare):,} of {len(counts):,} labels have fewer than {_FEW} training examples, such "
        f"as {rare[0]!r} with {counts[rare[0]]}: too few to be learned. Is one the name of a "
        "column? A file of examples has no header"
    )


def check_labels(recipe: Recipe, labels: Labels, learned: Path) -> None:
    """Whether all labels of the training text are among those of the run ``learned``, which is to
    be trained further. Errors: ``DataError`` naming the first line whose label is not."""
    for name, pair in _labelled(recipe):
        if labels.value(pair.target) is None:
            raise DataError(
                f"{name}, line {pair.line}: {pair.target[:60]!r} is no label of {learned}, which "
                f"knows {labels.in_words()}. To begin with what it makes of text, and labels of "
                "your own: --init-part encoder or --init-part decoder, whichever its model is"
            )


def _labelled(recipe: Recipe) -> Iterator[tuple[str, Pair]]:
    """The training examples of a recipe, each with the name of its corpus.

    Errors: ``DataError`` for one without a label, or with one that is too long.
    """
    for corpus in corpora_of(recipe, "train"):
        for pair in corpus.pairs:
            if not pair.target.strip():
                raise DataError(f"{corpus.name}, line {pair.line}: the label is empty")
            if len(plain(pair.target)) > LONGEST:
                raise DataError(
                    f"{corpus.name}, line {pair.line}: the label has "
                    f"{len(plain(pair.target)):,} characters; at most {LONGEST:,} are allowed: "
                    f"{pair.target.strip()[:60]!r}. Does the label's column hold the text? "
                    "--columns sets which is which"
                )
            yield corpus.name, pair


def _lines(text: str) -> Iterator[str]:
    """What a vocabulary is learned from: the lines of a text, long ones in parts."""
    if len(text) <= _LEARNED_TOGETHER and "\n" not in text:
        yield text
        return
    for line in text.splitlines():
        while len(line) > _LEARNED_TOGETHER:
            end = line.rfind(" ", 1, _LEARNED_TOGETHER) + 1 or _LEARNED_TOGETHER
            yield line[:end]
            line = line[end:]
        yield line
