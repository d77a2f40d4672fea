"""What a run has learned from, in short: for those who are about to ask it for a translation."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from dragoman.demo.corpus import NOTICE
from dragoman.errors import RunError
from dragoman.runs.run import Run
from dragoman.serving import schema
from dragoman.tasks.masked.filler import BLANK

logger = logging.getLogger("dragoman")

NOTHING_KNOWN = schema.Knowledge(
    notice="", pairs=None, words=None, commonest=[], longest=None, examples=[], label_smoothing=0.0
)
_COMMONEST = 300
_EXAMPLES = 4
_PAIR = (
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
)
"""What the demo's grammar was made to show: one word decides what "it" is, and so the pronoun."""
_LONGEST_EXAMPLE = 90
"""Characters."""
_FIRST_WORDS = 3
"""Of a text to go on with."""
_AROUND = 6
"""Words on either side of a blank."""


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
                "longest": run.longest_words(),
                "examples": _examples(run) if run.task.reads else _beginnings(run),
            }
        )
    except RunError as error:  # it must not keep the run from translating
        logger.warning("%s", error)
        return known


def _beginnings(run: Run) -> list[str]:
    """How some texts begin that a language model was measured on while it learned."""
    return _short(" ".join(text.split()[:_FIRST_WORDS]) for text in _while_learning(run))


def _examples(run: Run) -> list[str]:
    """Some texts of different lengths that it was measured on, with blanks where it fills them."""
    sources = [sample["source"] for sample in run.scores().get("samples", [])]
    texts = sources or _while_learning(run)
    is_demo = run.recipe.data.embedded and run.recipe.languages.source == "en"
    if is_demo and "source" in run.task.sides and run.task.demo == "demo":
        return _short((*_PAIR, *texts))
    return sorted(_short(texts) or _short(map(_around_blank, texts)), key=len)


def _around_blank(text: str) -> str:
    """The words around the first one that is missing whole; nothing, where none is."""
    words = text.split()
    place = next((n for n, word in enumerate(words) if BLANK.fullmatch(word)), None)
    if place is None:
        return ""
    return " ".join(words[max(0, place - _AROUND) : place + _AROUND + 1])


def _while_learning(run: Run) -> list[str]:
    """What it was measured on last while it learned."""
    samples: list[dict[str, str]] = []
    for line in run.metrics():
        if line["kind"] == "validation":
            samples = line.get("samples", [])
    return [sample["source"] for sample in samples]


def _short(texts: Iterable[str]) -> list[str]:
    """Some of them, each once."""
    short = dict.fromkeys(one for one in texts if one and len(one) <= _LONGEST_EXAMPLE)
    return list(short)[:_EXAMPLES]
