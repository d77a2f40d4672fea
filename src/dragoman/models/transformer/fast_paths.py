"""The faster ways to run a Transformer: int8 by native kernels, bf16 and fp32 on plain torch.

The list is read without torch; what needs it is imported by what makes a path.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from dragoman.models.fast_path import TRIAL_TOKENS, FastPath, WithoutTorch, on_plain_torch, trial
from dragoman.models.settings import TransformerSettings
from dragoman.models.shortlist import Shortlist
from dragoman.models.transformer import int8_weights
from dragoman.models.transformer.int8_model import Int8Model
from dragoman.models.transformer.int8_search import Int8Search, why_never
from dragoman.native import library
from dragoman.native.loader import NEVER_RUN

if TYPE_CHECKING:
    from dragoman.models.interface import Model
    from dragoman.models.transformer.int8 import Int8Transformer
    from dragoman.models.transformer.model import Transformer

UNITS = {
    "avx512": "on AVX512-VNNI, keys and values on bf16 units",
    "avx512vnni": "on AVX512-VNNI, without bf16 units",
    "avxvnni": "on AVX-VNNI, two thirds as fast as AVX512-VNNI",
    "avx2": "on AVX2 alone, at half the speed of AVX512-VNNI",
    "neon": f"on NEON with dot products: {NEVER_RUN['neon']}",
}
"""What the int8 kernels run on at each of ``library.LEVELS``."""


def _int8(model: Transformer, shortlist: Shortlist | None) -> Model:
    from dragoman.models.transformer.int8 import Int8Transformer

    return Int8Transformer(model, shortlist, checked=True)


def _search_of(made: Int8Transformer) -> Int8Search:
    return made.search


def _plain(precision: Literal["bf16", "fp32"], model: Transformer, _: Shortlist | None) -> Model:
    import torch

    from dragoman.models.transformer.cpu import CpuTransformer

    return CpuTransformer(model, {"bf16": torch.bfloat16, "fp32": torch.float32}[precision])


def _why_not_int8(settings: Any) -> str | None:
    if library.taken_as_compared():  # the decoder's kernels too: see inference/measured.py
        return None if settings is None else why_never(settings)
    from dragoman.models.transformer import int8

    return int8.why_not_here() if settings is None else int8.why_not(settings)


def _small() -> Transformer:
    from dragoman.models.transformer.model import Transformer

    settings = TransformerSettings(model_dim=256, ffn_dim=1024, encoder_layers=1, decoder_layers=1)
    return Transformer(settings, TRIAL_TOKENS, TRIAL_TOKENS)


PATHS = (
    FastPath(
        "int8",
        make=_int8,
        why_not=_why_not_int8,
        trial=partial(trial, _small, _int8),
        line=lambda: f"int8, native kernels for {library.status().level}",
        units=lambda: f"int8 {UNITS[str(library.status().level)]}",
        takes_shortlist=True,
        searched=_search_of,
        without_torch=WithoutTorch(int8_weights.shapes, Int8Model, Int8Search, why_never),
    ),
    *on_plain_torch(_plain, _small),
)
"""The first is the fastest nearly everywhere; the others too stand in order."""
