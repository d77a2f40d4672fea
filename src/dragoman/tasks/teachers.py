"""The teachers of a run: finished translators whose vocabularies and predictions it learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch

from dragoman.base.errors import RunError
from dragoman.base.wording import plural
from dragoman.data.batches import Batch
from dragoman.data.chunks import fit, sizes_of
from dragoman.data.hashing import torch_seed
from dragoman.data.plan import limits_of
from dragoman.data.store import TokenStore
from dragoman.engine.ensemble import readers_of
from dragoman.models.ensemble import Ensemble
from dragoman.nn.dropout import drawing
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import Run
from dragoman.tasks import catalogue
from dragoman.tasks.shared.examples import Pairs
from dragoman.training.losses.objectives import Likely, predict


def teacher_runs(recipe: Recipe) -> list[Run]:
    """Open the teachers that a recipe names.

    Errors: ``RunError`` if a teacher is missing, or the recipe has other settings of the text than
    the first one, and those of ``check_teachers``.
    """
    runs: list[Run] = []
    for teacher in recipe.data.teachers:
        folder = Path(teacher.run)
        if not folder.is_dir():
            raise RunError(
                f"the teacher {folder} is missing. Bring the folder back, or set "
                "training.teaching = 0 to learn without it"
            )
        runs.append(catalogue.Run.open(folder))
    check_teachers(runs)
    if runs and runs[0].recipe.text != recipe.text:
        raise RunError(
            f"the section text differs from that of the teacher {runs[0].folder}, but a student "
            "uses the vocabularies of its teacher. Use the same section text"
        )
    return runs


def check_teachers(runs: Sequence[Run]) -> None:
    """Check that runs can teach together.

    Errors: ``RunError`` if one of them is not a translator of text, or writes with another
    vocabulary than the first.
    """
    for run in runs:
        run.require_task("translation", "which cannot teach a translator")
        if run.task.reads_files:
            raise RunError(
                f"{run.folder} is a {run.task.called}, which reads files. Give translators of text"
            )
    if runs:
        readers_of(runs)


def predictions_of(
    recipe: Recipe, examples: Pairs, store: TokenStore, device: torch.device, say: Say
) -> Callable[[Batch], Likely]:
    """Return the function that predicts the target of a batch with all teachers together: the mean
    of their distributions, with dropout, because what they have learned by heart they would predict
    with certainty (docs/experiments/several-runs-into-one.md).

    If the pairs are the same in each epoch, and few enough, all of them are predicted for the first
    batch and kept in memory, so that the updates that follow take equally long.
    """
    runs, drawn = teacher_runs(recipe), torch_seed(recipe.seed, 12)
    networks = [run.model().to(device).train() for run in runs]
    ensemble = Ensemble(networks, readers_of(runs))  # type: ignore[arg-type]

    def predicting(batch: Batch) -> Likely:
        # The update that asks has begun to draw: it goes on as if nothing were drawn here.
        with torch.random.fork_rng(devices=[]), drawing(drawn, by_kernels=True):
            return predict(ensemble, batch)

    is_fixed = not (recipe.text.sampling or recipe.training.noise.is_on)
    if not is_fixed or store.total("target") + len(store) > MOST_KEPT:
        return predicting
    sizes = sizes_of(store, slice(None))
    learned = fit(sizes, limits_of(store, recipe.bounded_plan))
    begins = np.concatenate([[0], np.cumsum(np.where(learned, sizes[-1], 0))])

    @cache  # for the first batch: a run that has ended does not wait for it
    def predict_all() -> Likely:
        teachers = plural(len(runs), "teacher predicts", "teachers predict")
        say(f"{teachers} {len(store):,} pairs once")
        ids, parts = np.flatnonzero(learned), list[Likely]()
        for block in np.split(ids, np.flatnonzero(np.diff(ids // _TOGETHER)) + 1):
            likely = predicting(examples.batch(0, block.tolist()).to(device))
            parts.append(Likely(likely.probabilities.half().cpu(), likely.tokens.int().cpu()))
        return Likely(*(torch.cat(part) for part in zip(*parts, strict=True)))

    def kept(batch: Batch) -> Likely:
        places = np.concatenate([np.arange(*begins[i : i + 2]) for i in batch.ids])
        rows = torch.from_numpy(places)
        probabilities, tokens = (part[rows].to(device) for part in predict_all())
        return Likely(probabilities.float(), tokens.long())

    return kept


MOST_KEPT = 1 << 20
"""The most target tokens of a store whose predictions are kept: these take 100 MB."""
_TOGETHER = 16
"""This many neighbours are predicted together, always the same ones: so a resumed training computes
the same to the last bit."""
