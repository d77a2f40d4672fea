"""Translation: a text is read, and another one written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dragoman.measure import BLEU, CHRF, LOSS, PERPLEXITY, Measure
from dragoman.specs.spec import Spec


@dataclass(frozen=True)
class TranslationSpec(Spec):
    """Two texts."""

    sections: ClassVar[frozenset[str]] = frozenset({"search"})
    reads_rows: ClassVar[bool] = True


TRANSLATION = TranslationSpec(
    name="translation",
    called="translation",
    sides=("source", "target"),
    texts=("source", "target"),
    reads=True,
    writes=True,
    noun="pairs",
    counted="target tokens",
    metrics={"bleu": BLEU, "chrf": CHRF, "loss": LOSS, "perplexity": PERPLEXITY},
    finished={
        "BLEU": BLEU,
        "chrF": CHRF,
        "chrF++": Measure("chrF++", "higher"),
        "TER": Measure("TER", "lower"),
    },
    evaluation_options=(
        *("beam", "mbr", "precision", "shortlist", "ensemble", "output"),
        *("columns", "keys"),
    ),
    begins=(10_000, 250),
    verbs=(("translate", "< input.txt > output.txt"), ("look", "'A sentence.'")),
    hub_tag="translation",
    limits=(
        "It translates sentence by sentence and knows nothing of those around.",
        "It may leave out, add or invent; figures and names deserve a second look.",
    ),
)
