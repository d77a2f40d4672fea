"""How many operations it takes to train on a token, counted while plain torch computes it.

What is counted are matrix products and convolutions, forward and backward, a multiplication and an
addition each for itself (paper, table 2: "training cost"). Sentences go through alone, so nothing
is counted for padding; nor is what a faster way may compute twice to save memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from dragoman.data.batches import make_batch
from dragoman.data.files.pair import Pair
from dragoman.errors import RecipeError
from dragoman.models.interface import writing
from dragoman.runs.model import build_model
from dragoman.runs.run import Run
from dragoman.training.losses.loss import smoothed_cross_entropy


def operations_per_token(run: Run, pairs: Sequence[Pair]) -> float:
    """Of one update, for each target token of ``pairs``, end symbols counted.

    Errors: ``RunError`` for vocabularies that are missing.
    """
    try:
        # The formula in place of torch's fused kernel, which is not counted everywhere.
        recipe = run.recipe.change(["model.attention.path=plain"])
    except RecipeError:
        recipe = run.recipe  # no attention of that kind
    model = writing(build_model(recipe, run.source, run.target))
    read = run.source.tokens([pair.source for pair in pairs])
    written = run.target.tokens([pair.target for pair in pairs])
    counter, tokens = FlopCounterMode(display=False), 0
    with counter, torch.enable_grad():
        for one, other in zip(read, written, strict=True):
            source, target = np.array(one, np.int32), np.array(other, np.int32)
            batch = make_batch([source], [target], run.target.bos, run.target.eos)
            hidden = model.decode(batch.target_in, model.encode(batch.source))
            loss, _ = smoothed_cross_entropy(model.project(hidden), batch.target_out, 0.0)
            loss.backward()
            model.zero_grad()
            tokens += batch.target_tokens
    return float(counter.get_total_flops()) / max(1, tokens)
