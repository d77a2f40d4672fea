"""The faster ways to run a Transformer: int8 by native kernels, bf16 and fp32 on plain torch.

This module does not import torch; the functions that make a path do.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from dragoman.models.fast_path import (
    TRIAL_TOKENS,
    FastPath,
    WithoutTorch,
    on_plain_torch,
    trial,
)
from dragoman.models.searched import SearchModel
from dragoman.models.settings import TransformerSettings
from dragoman.models.shortlist import Shortlist
from dragoman.models.transformer import int8_weights
from dragoman.models.transformer.int8_search import Int8Search, why_never
from dragoman.models.transformer.int8_weights import Int8Model
from dragoman.native import library, loader
from dragoman.native.loader import NEVER_RUN
from dragoman.native.measured import measures

if TYPE_CHECKING:
    from dragoman.models.interface import Model
    from dragoman.models.transformer.int8 import Int8Transformer
    from dragoman.models.transformer.model import Transformer

UNITS = {
    "amx": "on Intel's tiles (AMX) and AVX512-VNNI, keys and values on bf16 units",
    "avx512": "on AVX512-VNNI, keys and values on bf16 units",
    "avx512vnni": "on AVX512-VNNI, without bf16 units",
    "avxvnni": "on AVX-VNNI, two thirds as fast as AVX512-VNNI",
    "avx2": "on AVX2 alone, at half the speed of AVX512-VNNI",
    "amxtwin": "on tiles in plain C++, for tests",
    "neon": f"on NEON with dot products: {NEVER_RUN['neon']}",
}
"""The processor units that the int8 kernels use at each level of ``loader.CHOICES``."""


def _int8(model: Transformer, shortlist: Shortlist | None) -> Model:
    from dragoman.models.transformer.int8 import Int8Transformer

    return Int8Transformer(model, shortlist)


def _search_of(made: Int8Transformer) -> SearchModel:
    """Return the interface for a search: that of the kernels, or one through torch if torch reads
    the source."""
    if made.model.front_end is None:
        return made.search
    from dragoman.models.on_torch import OnTorch

    return OnTorch(made)


def _plain(precision: Literal["bf16", "fp32"], model: Transformer, _: Shortlist | None) -> Model:
    import torch

    from dragoman.models.transformer.cpu import PreparedTransformer

    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[precision]
    return PreparedTransformer(model, dtype)


def _why_not_int8(level: str | None, settings: Any) -> str | None:
    if library.taken_as_compared():  # the decoder's kernels too: see native/measured.py
        return None if settings is None else why_never(settings)
    from dragoman.models.transformer import int8

    with loader.using(level):
        return int8.why_not_here() if settings is None else int8.why_not(settings)


def _small() -> Transformer:
    from dragoman.models.transformer.model import Transformer

    settings = TransformerSettings(model_dim=256, ffn_dim=1024, encoder_layers=1, decoder_layers=1)
    return Transformer(settings, TRIAL_TOKENS, TRIAL_TOKENS)


def _usual() -> Transformer:
    """Make a model so large that the contents of a processor's caches matter."""
    from dragoman.models.transformer.model import Transformer

    settings = TransformerSettings(model_dim=256, ffn_dim=1024, encoder_layers=1, decoder_layers=3)
    return Transformer(settings, 8_000, 8_000)


def paths() -> tuple[FastPath, ...]:
    """Return the paths: int8 by the kernels of each available instruction set, the best first (only
    of the best one if nothing is measured), then plain torch.

    Where there are no kernels, int8 is listed too, and gives the reason why it cannot be used.
    """
    levels = loader.decoding_levels() or (None,)
    by_kernels = [_by_kernels(level) for level in (levels if measures() else levels[:1])]
    return (*by_kernels, *on_plain_torch(_plain, _small))


def _by_kernels(level: str | None) -> FastPath:
    return FastPath(
        "int8",
        make=_int8,
        why_not=partial(_why_not_int8, level),
        trial=partial(trial, _small, _int8),
        line=lambda: f"int8, native kernels for {level}",
        units=lambda: f"int8 {UNITS[str(level)]}",
        level=level,
        takes_shortlist=True,
        more_rows=128,
        rows_trial=partial(trial, _usual, _int8, steps=20),
        trial_name=f"int8 {level}",
        searched=_search_of,
        without_torch=WithoutTorch(int8_weights.shapes, Int8Model, Int8Search, why_never),
    )
