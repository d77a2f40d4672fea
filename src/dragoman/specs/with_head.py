"""What tasks have in common whose models are one stack that reads, with a head over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dragoman.data.files.pair import Pair
from dragoman.models.kinds import KINDS
from dragoman.specs.sections import Sections
from dragoman.specs.spec import Spec


@dataclass(frozen=True)
class WithHead(Spec):
    """A text is read, and a label chosen for it, or for each of its words."""

    has_head: ClassVar[bool] = True

    def check_model(self, recipe: Sections) -> None:
        stacks = [kind for kind, known in KINDS.items() if known.reads != known.writes]
        if recipe.model.kind not in stacks:
            raise ValueError(
                f'model.kind = "{recipe.model.kind}" reads one text and writes another, and a '
                f"{self.called} reads alone: choose one of {', '.join(stacks)}"
            )

    def for_overlap(self, pair: Pair) -> Pair:
        """The text alone: all labels overlap."""
        return Pair(pair.line, "", pair.source, pair.whole)
