"""Sampling of tokens: temperature, top-k (Fan et al. 2018), top-p (Holtzman et al. 2020).

A draw depends only on the seed and the source of the request, the number of the sample, and the
place in the output. Other requests in the batch, and the time when they came, change nothing.

Shapes: M rows that sample, V vocabulary, K candidates that top-k leaves.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dragoman.data.hashing import STEP, mix
from dragoman.models.searched import Source
from dragoman.search.hypothesis import Floats, Floats32, Integers
from dragoman.search.settings import SamplingSettings

if TYPE_CHECKING:
    from torch import Tensor


def sampling_key(seed: int, source: Source, sample: int) -> int:
    """Return 64 bits from which all draws of one sample of one source follow.

    They also depend on the source, so that one seed does not give all sentences the same draws.
    """
    digest = hashlib.blake2b(np.array([seed, sample], dtype=np.int64).tobytes(), digest_size=8)
    digest.update(np.asarray(source).tobytes())
    return int.from_bytes(digest.digest(), "little")


def uniform(keys: npt.NDArray[np.uint64], places: Integers) -> Floats:
    """Return numbers (M,) in [0, 1): the numbers at ``places`` of the random streams ``keys``
    (``data.hashing.mix``)."""
    state = mix(keys + places.astype(np.uint64) * STEP) >> np.uint64(11)
    return state.astype(np.float64) * 2.0**-53


def draw_from_all(log_probabilities: Floats32, temperature: float, numbers: Floats) -> Integers:
    """Sample one token per row as ``draw`` does without top-k and top-p, without torch and several
    times as fast. Return ids (M,). ``log_probabilities`` (M, V), ``numbers`` (M,) in [0, 1)."""
    with np.errstate(invalid="ignore"):  # a row in which everything is forbidden
        scaled = log_probabilities - log_probabilities.max(axis=1, keepdims=True)
        mass = np.exp(scaled if temperature == 1.0 else scaled / np.float32(temperature))
        heap = mass.cumsum(axis=1, dtype=np.float64)
        # The first place at which the heap exceeds the number; a place without mass is never that.
        places = (heap <= numbers[:, None] * heap[:, -1:]).sum(axis=1)
        # A number that rounds up to the whole heap belongs to the last place with mass.
        last = mass.shape[1] - 1 - (mass > 0)[:, ::-1].argmax(axis=1)
    chosen: Integers = np.minimum(places, last)
    return chosen


def draw(log_probabilities: Tensor, settings: SamplingSettings, numbers: Tensor) -> Tensor:
    """Sample one token per row by inverting the cumulative distribution. Return ids (M,) int64.

    ``log_probabilities`` (M, V), -inf for forbidden tokens; ``numbers`` (M,) fp64 in [0, 1). A row
    in which everything is forbidden gets any id.
    """
    import torch  # which searches that draw nothing do without

    scaled = log_probabilities / settings.temperature
    vocabulary = scaled.shape[-1]
    kept = min(settings.top_k or vocabulary, vocabulary)
    ids = None
    if kept < vocabulary or settings.top_p < 1.0:
        # Best first, so that what top-p keeps is the beginning of a row.
        scaled, ids = torch.topk(scaled, kept, dim=-1)  # (M, K)
    # fp64: summing over a big vocabulary must not round small probabilities away.
    mass = torch.softmax(scaled.double(), dim=-1).nan_to_num(0.0)
    if settings.top_p < 1.0:
        before = mass.cumsum(dim=-1) - mass
        mass = mass * (before < settings.top_p)
    heap = mass.cumsum(dim=-1)
    # The first place at which the heap exceeds the number; a place without mass is never that.
    places = torch.searchsorted(heap, numbers[:, None] * heap[:, -1:], right=True)  # (M, 1)
    # A number that rounds up to the whole heap belongs to the last place with mass.
    last = ((mass > 0) * torch.arange(kept, device=mass.device)).amax(dim=-1, keepdim=True)
    places = torch.minimum(places, last)
    return (places if ids is None else ids.gather(-1, places)).squeeze(-1)
