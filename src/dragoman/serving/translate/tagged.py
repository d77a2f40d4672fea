"""Translated texts with the tags of their originals, as a server makes them: the model's thread
aligns, and the threads of texts do the rest in turns."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.documents.placing import Translated, placed, plan_of
from dragoman.formats.units.unit import Target
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.serving.service.served_run import ServedRun


async def with_tags(
    run: ServedRun, translated: Sequence[Translated], texts: FairExecutor, client: str
) -> list[Target]:
    """Each translation with the tags of its text."""
    plans = await texts.all(client, map(plan_of, translated))
    found = iter(await run.align([pair for plan in plans for pair in plan.pairs], client))
    alignments = [[next(found) for _ in plan.pairs] for plan in plans]
    answers = (placed(run.engine, *both) for both in zip(plans, alignments, strict=True))
    return await texts.all(client, answers)
