"""A sane size and schedule of a masked model, when a user gives nothing but texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.sizing.builder import CorpusSummary, Sections, merged
from dragoman.sizing.size import Size
from dragoman.sizing.text_alone import TextsBuilder

_MASKED_CONTEXT, _MASKED_SHARE = 64, 0.3
"""A masked model has to find out that neighbours tell more than the rest of a window does. The
longer windows are, the less is asked for and the more is dropped, the longer it stands still before
that (docs/experiments/masked-model-windows.md)."""


class MaskedBuilder(TextsBuilder):
    """The same texts. A blank is to be a word, or a good part of one, and no letter."""

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
        return merged(super().adds(row, seen), own)
