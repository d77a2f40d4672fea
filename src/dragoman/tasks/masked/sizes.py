"""The default size and schedule of a masked model, if a user gives only texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.sizing.builder import CorpusSummary, Sections, merge
from dragoman.sizing.size import Size
from dragoman.sizing.text_alone import TextsBuilder

_MASKED_CONTEXT, _MASKED_SHARE = 64, 0.3
"""A masked model must first learn that neighbours say more than the rest of a window. Long windows,
few masked tokens and high dropout delay this (docs/experiments/masked-model-windows.md)."""


class MaskedBuilder(TextsBuilder):
    """Builds recipes for texts. A blank should be a word or a large part of one, not a letter."""

    def rows(self, seen: CorpusSummary) -> Sequence[Size]:
        return [
            replace(row, vocabulary=max(2_000, row.vocabulary), dropout=0.0)
            for row in super().rows(seen)
        ]

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        own: Sections = {
            "text": {"kind": "bpe"},
            "plan": {"context": _MASKED_CONTEXT},
            "masking": {"share": _MASKED_SHARE},
        }
        return merge(super().adds(row, seen), own)
