"""What a run has learned from, in short: for those who are about to ask something of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from dragoman.demo.corpus import NOTICE
from dragoman.errors import RunError
from dragoman.runs.run import Run
from dragoman.serving.http.messages import Message

logger = logging.getLogger("dragoman")


class Knowledge(Message):
    """What a run has learned from."""

    notice: str
    """What must be said first, as that the text was generated."""
    verdict: str
    """That it has hardly learned its task, or writes the same whatever it reads; empty of any other
    run, and where it was not written down when the run was trained."""
    pairs: int | None
    """Examples that it was trained on, where that is known."""
    words: int | None
    """Different words of the source among them, where they were written down."""
    commonest: list[str]
    """The commonest of these, at most 300."""
    longest: int | None
    """Words that all but one in a thousand of its training sources have at most, where that is
    known. Of longer sentences it may leave parts out."""
    examples: list[str]
    """Sentences to try: such as it was measured on, and has not learned."""
    label_smoothing: float
    """Share of the probability that training told it to leave to other words even where it is
    certain. So 1 less this share, and a little more, is as sure as it gets."""


_COMMONEST = 300
_EXAMPLES = 4
_PAIR = (
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
)
"""What the demo's grammar was made to show: one word decides what "it" is, and so the pronoun."""
_MAX_EXAMPLE = 90
"""Characters."""


def knowledge_of(run: Run, examples: Callable[[Run], list[str]]) -> Knowledge:
    """What stands in a run's folder of its training, and what ``examples`` gives to try. What is
    damaged there is left out and said."""
    recipe = run.recipe
    known = Knowledge(
        notice=NOTICE if recipe.data.embedded else "",
        verdict="",
        pairs=None,
        words=None,
        commonest=[],
        longest=None,
        examples=[],
        label_smoothing=recipe.training.label_smoothing,
    )
    try:
        lexicon, verdict = run.lexicon(), " ".join(run.verdict())
        if verdict:
            logger.warning("%s: %s", run.folder, verdict)
        return known.model_copy(
            update={
                "verdict": verdict,
                "pairs": run.notes().get("pairs", {}).get("train"),
                "words": None if lexicon is None else len(lexicon),
                "commonest": [] if lexicon is None else list(lexicon.counts)[:_COMMONEST],
                "longest": run.longest_words(),
                "examples": examples(run),
            }
        )
    except RunError as error:  # it must not keep the run from translating
        logger.warning("%s", error)
        return known


def measured_on(run: Run) -> list[str]:
    """The texts that it was measured on: in the end, or last while it learned."""
    sources = [sample["source"] for sample in run.scores().get("samples", [])]
    return sources or while_learning(run)


def while_learning(run: Run) -> list[str]:
    """What it was measured on last while it learned."""
    samples: list[dict[str, str]] = []
    for line in run.metrics():
        if line["kind"] == "validation":
            samples = line.get("samples", [])
    return [sample["source"] for sample in samples]


def sentences_of(run: Run) -> list[str]:
    """Some of the sentences that it was measured on; of the demo's, those that show most."""
    if run.recipe.data.embedded and run.recipe.languages.source == "en":
        return short((*_PAIR, *measured_on(run)))
    return sorted(short(measured_on(run)), key=len)


def short(texts: Iterable[str]) -> list[str]:
    """Some of them, each once."""
    found = dict.fromkeys(one for one in texts if one and len(one) <= _MAX_EXAMPLE)
    return list(found)[:_EXAMPLES]
