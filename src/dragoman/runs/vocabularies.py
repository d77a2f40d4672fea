"""What a run learns of its training text before it trains: vocabularies, labels, brackets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path

from dragoman.forms.subwords.text import Text
from dragoman.recipe import Recipe
from dragoman.runs.corpora import corpora_of, named_examples
from dragoman.runs.prepare import Say
from dragoman.runs.run import vocabulary_name

_LEARNED_TOGETHER = 4000
"""Characters of a line that a vocabulary is learned from; what lies behind is another one."""


def learn_vocabularies(recipe: Recipe, folder: Path, say: Say, known: Collection[str] = ()) -> None:
    """Learn the vocabularies of a recipe from its training text, and its labels or brackets where
    it has any, and save them in ``folder``.

    Errors: ``DataError`` for text that cannot be used, or does not support so large a vocabulary,
    and for labels between which there is nothing to choose.
    ``known``: files that are there already.
    """
    for line in recipe.spec.learn_target(recipe, partial(named_examples, recipe), folder):
        say(line)
    kind = recipe.text.kind
    learned = []
    for name, sides in sides_of_vocabularies(recipe).items():
        if name in known:
            continue
        lines = training_lines(recipe, sides)
        text = Text.train(lines, recipe.text, seed=recipe.seed, symbols=recipe.spec.symbols)
        text.save(folder / name)
        learned.append(f"{text.size:,} {' and '.join(sides)}")
    if learned:
        say(f"learned {' and '.join(learned)} {kind} tokens")


def sides_of_vocabularies(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """The vocabularies of a recipe, by the names of their files: the sides that each is of."""
    sides_of: dict[str, tuple[str, ...]] = {}
    for side in recipe.spec.texts:
        name = vocabulary_name(recipe, side)
        sides_of[name] = (*sides_of.get(name, ()), side)
    return sides_of


def training_lines(recipe: Recipe, sides: Sequence[str]) -> Iterator[str]:
    """The training text of a recipe as a vocabulary is learned from it, some of its sides."""
    for corpus in corpora_of(recipe, "train"):
        for pair in corpus.pairs:
            for side in sides:
                yield from lines_of_text(getattr(pair, side))


def lines_of_text(text: str) -> Iterator[str]:
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
