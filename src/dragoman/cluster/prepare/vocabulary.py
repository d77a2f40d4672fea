"""The vocabularies, learned of what cleaning has kept, as a training learns them.

A stage writes the lines of each vocabulary. One process reads them all and draws the sample, which
is all that is in memory (``text.sample_sentences``): which lines are drawn depends on how many come
before them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from dragoman.cluster.prepare.data_plan import DataPlan
from dragoman.cluster.prepare.first_stages import kept, read
from dragoman.cluster.prepare.later_stages import VOCABULARIES
from dragoman.cluster.prepare.stage import Content, PlanStage, place_of
from dragoman.data.files.pair import Pair
from dragoman.forms.subwords.text import Text
from dragoman.runs.vocabularies import lines_of_text, sides_of_vocabularies
from dragoman.stores.store import Store

LINES = "lines"


class Lines(PlanStage):
    """What each vocabulary is learned from, of the training examples of a part."""

    title = "lines for the vocabularies"
    folder = LINES
    last: ClassVar[str] = "json"

    def result(self, number: int, tools: None) -> Mapping[str, Content]:
        pairs = [pair for side, _, pair in kept(self.store, self.plan, number) if side == "train"]
        found: dict[str, Content] = {}
        for name, sides in sides_of_vocabularies(self.plan.recipe).items():
            texts = (getattr(pair, side) for pair in pairs for side in sides)
            # No line has a line feed in it, whatever else ends lines.
            lines = "".join(f"{line}\n" for text in texts for line in lines_of_text(text))
            found[place_of(LINES, number, name)] = lines.encode("utf-8", "surrogatepass")
        found[self.name(number)] = b"{}"
        return found


def learn(store: Store, plan: DataPlan, say: Callable[[str], None]) -> None:
    """Learn what a training learns before it begins, and write it beside the store; ``Lines`` is
    complete.

    Errors: as ``learn_vocabularies``.
    """
    if store.stat(VOCABULARIES) is not None:
        return
    recipe = plan.recipe
    with TemporaryDirectory() as given:
        folder = Path(given)
        for line in recipe.spec.learn_target(recipe, lambda: named_examples(store, plan), folder):
            say(line)
        for name, sides in sides_of_vocabularies(recipe).items():
            lines = training_lines(store, plan, name)
            text = Text.train(lines, recipe.text, seed=recipe.seed, symbols=recipe.spec.symbols)
            text.save(folder / name)
            say(f"learned {text.size:,} {' and '.join(sides)} {recipe.text.kind} tokens")
        files = sorted(path.name for path in folder.iterdir())
        for name in files:
            store.create(name, (folder / name).read_bytes())
    store.create(VOCABULARIES, json.dumps(files).encode())


def named_examples(store: Store, plan: DataPlan) -> Iterator[tuple[str, Pair]]:
    """The training examples of all parts in order, each with the name of its corpus."""
    for number, part in enumerate(plan.parts):
        for side, _, pair in kept(store, plan, number):
            if side == "train":
                yield plan.names[part.corpus], pair


def training_lines(store: Store, plan: DataPlan, name: str) -> Iterator[str]:
    """As ``runs.vocabularies`` has them, for the vocabulary of that name."""
    for number in range(len(plan.parts)):
        data = read(store, place_of(LINES, number, name))
        yield from data.decode("utf-8", "surrogatepass").split("\n")[:-1]
