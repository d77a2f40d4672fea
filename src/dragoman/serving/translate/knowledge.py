"""What a run has learned from, in short: for those who are about to ask it for a translation."""

from __future__ import annotations

import logging

from dragoman.data.demo_corpus import NOTICE
from dragoman.errors import RunError
from dragoman.serving import schema
from dragoman.tasks.run import Run

logger = logging.getLogger("dragoman")

NOTHING_KNOWN = schema.Knowledge(
    notice="", pairs=None, words=None, commonest=[], examples=[], label_smoothing=0.0
)
_COMMONEST = 300
_EXAMPLES = 4
_LONGEST_EXAMPLE = 90
"""Characters."""
_FIRST_WORDS = 3
"""Of a text to go on with."""


def knowledge_of(run: Run) -> schema.Knowledge:
    """What stands in a run's folder of its training. What is damaged there is left out and said."""
    recipe = run.recipe
    known = NOTHING_KNOWN.model_copy(
        update={
            "notice": NOTICE if recipe.data.embedded else "",
            "label_smoothing": recipe.training.label_smoothing,
        }
    )
    try:
        lexicon = run.lexicon()
        return known.model_copy(
            update={
                "pairs": run.notes().get("pairs", {}).get("train"),
                "words": None if lexicon is None else len(lexicon),
                "commonest": [] if lexicon is None else list(lexicon.counts)[:_COMMONEST],
                "examples": _examples(run) if run.source.reads else _beginnings(run),
            }
        )
    except RunError as error:  # it must not keep the run from translating
        logger.warning("%s", error)
        return known


def _beginnings(run: Run) -> list[str]:
    """How some texts begin that a language model was measured on while it learned."""
    samples: list[dict[str, str]] = []
    for line in run.metrics():
        if line["kind"] == "validation":
            samples = line.get("samples", [])
    beginnings = (" ".join(one["source"].split()[:_FIRST_WORDS]) for one in samples)
    short = dict.fromkeys(one for one in beginnings if one and len(one) <= _LONGEST_EXAMPLE)
    return list(short)[:_EXAMPLES]


def _examples(run: Run) -> list[str]:
    """Some sources of different lengths that it was measured on."""
    sources = [sample["source"] for sample in run.scores().get("samples", [])]
    short = dict.fromkeys(one for one in sources if one and len(one) <= _LONGEST_EXAMPLE)
    return sorted(list(short)[:_EXAMPLES], key=len)
