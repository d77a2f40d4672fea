"""Bases for tasks whose models are one stack that reads, with a head over it; and for tasks
whose examples are single texts, which are read in windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dragoman.base.errors import DataError
from dragoman.base.task import Side
from dragoman.forms.form import Pair
from dragoman.forms.labels import Labels
from dragoman.models.settings import KINDS
from dragoman.runs.recipe.sections import Sections
from dragoman.runs.recipe.spec import Spec


@dataclass(frozen=True)
class WithHead(Spec):
    """A task that reads a text and chooses a label for it, or for each of its words."""

    has_head: ClassVar[bool] = True
    overlaps_by_source: ClassVar[bool] = True

    def check_model(self, recipe: Sections) -> None:
        stacks = [kind for kind, known in KINDS.items() if known.reads != known.writes]
        if recipe.model.kind not in stacks:
            raise ValueError(
                f'model.kind = "{recipe.model.kind}" reads one text and writes another, which a '
                f"{self.called} does not. Choose one of {', '.join(stacks)}"
            )

    def check_known(self, labels: Labels, label: str, line: str, run: Path, noun: str) -> None:
        """Raise ``DataError`` for a label, called ``noun``, that a run has not learned."""
        if labels.value(label) is None:
            raise DataError(
                f"{line}: {label[:60]!r} is not a {noun} of {run}, which has {labels.summary()}. "
                f"To start from its weights with your own {noun}s, use --init-part encoder or "
                "--init-part decoder, whichever its model is"
            )


@dataclass(frozen=True, kw_only=True)
class OneText(Spec):
    """A task whose examples are single texts."""

    sides: tuple[Side, ...] = ("target",)
    texts: tuple[Side, ...] = ("target",)
    noun: str = "texts"
    fixed_tokens: ClassVar[bool] = True

    def check_rest(self, recipe: Sections) -> None:
        context, window = recipe.plan.context, recipe.evaluation.window or recipe.plan.context
        if (recipe.evaluation.stride or 1) > window:
            raise ValueError(
                f"evaluation.stride {recipe.evaluation.stride} is greater than the window of "
                f"{window} tokens (evaluation.window, plan.context)"
            )
        longest = recipe.model.longest
        if longest is not None and max(context, window) > longest:
            raise ValueError(
                f"windows of {max(context, window)} tokens (plan.context, evaluation.window) are "
                f"longer than the model's {longest} positions. Raise model.positions.maximum"
            )

    def embedded_pairs(self, recipe: Sections, part: str) -> Iterator[Pair]:
        return texts_of_demo(part, recipe.languages.target)


def texts_of_demo(part: str, language: str) -> Iterator[Pair]:
    """Return the demo's sentences without translations: English, or else German."""
    from dragoman.demo.corpus import demo_corpus

    corpus = demo_corpus()
    of = "source" if language == "en" else "target"
    # Two English sentences may have the same German translation, and the reverse; sentences that
    # are held out must not be trained on.
    trained = {getattr(pair, of) for pair in corpus.train} if part != "train" else set()
    texts = ((line, getattr(pair, of)) for line, pair in enumerate(getattr(corpus, part), 1))
    return (Pair(line, "", text) for line, text in texts if text not in trained)
