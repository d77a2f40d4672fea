"""Reranks the hypotheses of a beam by CTC and the decoder together (Watanabe et al., 2017):

    (1 - λ) · log P(y | x) of the decoder + λ · log P(y | x) of CTC

The decoder may leave out or repeat words; CTC does not, since it goes through the recording from
beginning to end. The sum has no length penalty, because CTC does not favour short texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dragoman.engine.engine import Engine
from dragoman.forms.form import Values
from dragoman.runs.recipe.recipe import Recipe
from dragoman.search.hypothesis import Hypothesis, rank
from dragoman.search.settings import SearchSettings

if TYPE_CHECKING:
    from torch import Tensor


class CtcRanking:
    """Ranks the hypotheses of one recording by the decoder and CTC together."""

    def __init__(self, engine: Engine, weight: float) -> None:
        """``weight``: λ, the share of CTC in the score."""
        self._engine = engine
        self._weight = weight

    @classmethod
    def of(cls, engine: Engine, recipe: Recipe, weight: float) -> CtcRanking:
        """Return the ranking for a run. It changes nothing for a run without CTC, with weight 0, or
        where CTC takes part in the search."""
        ranks = recipe.training.ctc_weight and not engine.search_settings.ctc_weight
        return cls(engine, weight if ranks else 0.0)

    @property
    def ranks(self) -> bool:
        """True if CTC is used; otherwise the hypotheses keep their order."""
        return bool(self._weight)

    def with_n_best(self, settings: SearchSettings) -> SearchSettings:
        """Return the settings of the search whose hypotheses are ranked: ``n_best`` is raised to
        the beam. Where nothing is ranked, and for sampling, return ``settings`` unchanged."""
        if settings.sampling is not None or not self.ranks:
            return settings
        return settings.model_copy(update={"n_best": settings.beam})

    def __call__(self, values: Values, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses, the best first; those that were cut come after those that the
        model ended. ``values``: the rows of the recording. Where CTC cannot fit any of the texts
        into the recording, the order does not change."""
        if len(hypotheses) < 2 or not self.ranks:
            return list(hypotheses)
        known = ctc_log_probabilities(self._engine, values)
        by_ctc = text_log_probabilities(known, [hypothesis.tokens for hypothesis in hypotheses])
        weight = self._weight

        def joint(place: int) -> tuple[bool, float]:
            hypothesis = hypotheses[place]
            decoder = math.fsum(hypothesis.token_log_probabilities)
            return rank(hypothesis.finished, (1 - weight) * decoder + weight * by_ctc[place])

        return [hypotheses[place] for place in sorted(range(len(by_ctc)), key=joint)]


def ctc_log_probabilities(engine: Engine, values: Values) -> Tensor:
    """Return log P of each output and of the blank in each row of a recording, (T, V + 1)."""
    import torch

    from dragoman.nn.layout import Sequences

    network = engine.network
    head = network.ctc
    assert head is not None, "the run was trained with training.ctc_weight"
    with torch.inference_mode():
        memory = network.encode(Sequences.of([torch.from_numpy(np.asarray(values))]))
        return torch.log_softmax(head(memory.rows).float(), dim=-1)


def text_log_probabilities(known: Tensor, texts: Sequence[Sequence[int]]) -> list[float]:
    """Return log P of each text by CTC, in nats; -inf for a text that does not fit into the
    recording. ``known`` (T, V + 1): the result of ``ctc_log_probabilities``."""
    import torch
    from torch.nn import functional as F

    rows, outputs = known.shape
    losses = F.ctc_loss(
        known[:, None].expand(rows, len(texts), outputs),
        torch.tensor([token for text in texts for token in text], dtype=torch.int64),
        torch.tensor([rows] * len(texts)),
        torch.tensor([len(text) for text in texts]),
        blank=outputs - 1,
        reduction="none",
    )
    return [-float(loss) for loss in losses]
