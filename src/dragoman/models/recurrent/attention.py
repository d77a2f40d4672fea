"""How a recurrent decoder finds what it needs in its source.

    score(q, m) = q · m                              dot: q is the decoder's row itself
    score(q, m) = q · m,   q = W_a h                 general (Luong et al., 2015, §3.1)
    score(q, m) = v · tanh(q + k)                    additive (Bahdanau et al., 2015, A.1.2):
                                                     q = W_a h, k = U_a m

    found = Σ_s softmax(score)_s m_s

One head. Products are divided by √D, which the papers do not: rows begin at the size of embeddings.

Shapes: B sources, S longest source, R queries of a source, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.models.source import Source
from dragoman.native.additive import additive_scores
from dragoman.nn.attention import softmax
from dragoman.nn.linear import Computing, Precision


class Energy(Computing):
    """Additive attention: its vector v, and what it finds in the sources."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1, width))
        nn.init.xavier_uniform_(self.weight)

    def choose(self, precision: Precision, by_kernels: bool) -> None:
        """Nothing to choose: v takes the type of the rows that it is multiplied by."""

    def forward(self, query: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """(B, R, D) over a source -> what is found (B, R, D), and weights (B, R, S)."""
        scores = additive_scores(query, source.keys, self.weight[0], source.allowed)
        weights = softmax(scores, source.allowed[:, None])
        return weights @ source.values, weights
