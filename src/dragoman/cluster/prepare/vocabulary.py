"""The vocabularies, learned of what cleaning has kept, as a training learns them.

One process reads all of it once for each vocabulary and draws the sample, which is all that is in
memory (``text.sample_sentences``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman.cluster.prepare.data_plan import DataPlan
from dragoman.cluster.prepare.first_stages import kept
from dragoman.cluster.prepare.later_stages import VOCABULARIES
from dragoman.data.files.pair import Pair
from dragoman.forms.subwords.text import Text
from dragoman.runs.vocabularies import lines_of_text, sides_of_vocabularies
from dragoman.stores.store import Store


def learn(store: Store, plan: DataPlan, say: Callable[[str], None]) -> None:
    """Learn what a training learns before it begins, and write it beside the store.

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
            lines = training_lines(store, plan, sides)
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


def training_lines(store: Store, plan: DataPlan, sides: Sequence[str]) -> Iterator[str]:
    """As ``runs.vocabularies`` has them."""
    for _, pair in named_examples(store, plan):
        for side in sides:
            yield from lines_of_text(getattr(pair, side))
