"""The default size and schedule of a translator, if a user gives only two files.

The number of pairs chooses a row of ``TABLE``. Minutes become a number of updates once, by a short
measurement on this machine. That number is written into the recipe, so the run is as reproducible
as any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.columns import paired_corpus
from dragoman.data.files.corpora import languages_of, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings, format_by_name
from dragoman.sizing.builder import CorpusSummary, RecipeBuilder, Sections
from dragoman.sizing.monolingual import (
    BYTES_A_TOKEN,
    for_each_pair,
    monolingual_corpus,
    monolingual_texts,
)
from dragoman.sizing.options import given_languages
from dragoman.sizing.size import Size, row_of

TABLE = (
    Size(5_000, 2_000, 128, 4, 2, 0.3, 2_048, 300, 4e-3, 100, "muon", 2.86e-3),
    Size(30_000, 8_000, 128, 4, 4, 0.3, 2_048, 300, 4e-3, 60, "muon", 2.86e-3),
    Size(100_000, 8_000, 256, 8, 3, 0.3, 4_096, 500, 3e-3, 40, "muon", 2.14e-3),
    Size(1_000_000, 16_000, 256, 8, 4, 0.2, 8_192, 2_000, 1.5e-3, 15),
    Size(10_000_000, 32_000, 512, 8, 6, 0.1, 16_384, 4_000, 7e-4, 6),
    Size(float("inf"), 37_000, 512, 8, 6, 0.1, 25_000, 4_000, 7e-4, 3),
)
"""Sizes by the number of pairs, chosen by experience with corpora of these sizes; docs/training.md
shows them."""

_SAMPLE_SIZE = 100_000


class TranslationBuilder(RecipeBuilder):
    """Builds recipes for parallel text, in two files or in one that holds both sides."""

    table = TABLE
    fits = ("keep", "blend", "mono_target", "mono_source", "mono_ratio", "rounds")

    def takes(self) -> bool:
        return len(self.options.inputs) > 1 or format_by_name(self.options.inputs[0]) is not None

    def check(self) -> None:
        super().check()
        if monolingual_texts(self.options) and self.learned is not None:
            raise RecipeError(
                "--mono-target trains new models, and --from tunes one. Leave one of them out"
            )

    def data(
        self, corpus: CorpusSettings, seen: CorpusSummary, held: Mapping[str, CorpusSettings]
    ) -> dict[str, Any]:
        texts = [text.model_dump() for text in monolingual_texts(self.options)]
        return {**super().data(corpus, seen, held), "monolingual": texts}

    def file_at(self, path: str) -> CorpusSettings:
        return paired_corpus(path, self.options.columns, self.options.keys)

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        """Count the pairs, and the different sources among the first ``_SAMPLE_SIZE`` pairs; all
        later sources count as different."""
        pairs = read_pairs(corpus)
        different: set[int] = set()
        looked_at = written = 0
        for pair in islice(pairs, _SAMPLE_SIZE):
            different.add(hash(pair.source or pair.target))
            looked_at += 1
            written += len(pair.target.encode("utf-8", "surrogateescape"))
        if not looked_at:
            raise DataError("the corpora contain no pairs")
        more = sum(1 for _ in pairs)
        length = written / looked_at / BYTES_A_TOKEN
        return CorpusSummary(looked_at + more, len(different) + more, length=length)

    def row(self, seen: CorpusSummary) -> Size:
        amount = seen.amount
        for text in monolingual_texts(self.options):
            if text.side == "target":
                most = math.ceil(for_each_pair(self.options, math.inf, amount) * amount)
                lines = sum(1 for _ in islice(read_pairs(monolingual_corpus(text)), most))
                amount += lines
        return self.row_in_time(self.task, rows_for(amount), seen.length, amount * seen.length)

    def languages(self) -> dict[str, str]:
        said = None if self.options.languages else languages_of(self.corpus())
        codes = "-".join(said) if said else self.options.languages
        source, target = given_languages(codes, self.options.inputs)
        return {"source": source, "target": target}

    def name(self, corpus: CorpusSettings, languages: Mapping[str, str]) -> str:
        """The languages, or the name of the first file if they are not known."""
        if "und" in languages.values():
            return super().name(corpus, languages)
        return "-".join(languages.values())

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        return {"text": {"character_coverage": 0.9999}, "training": {"average_last": 5}}


def rows_for(pairs: float) -> Sequence[Size]:
    """Return the row of ``TABLE`` for this number of pairs if time does not matter, and all rows of
    smaller sizes, the largest first."""
    return TABLE[TABLE.index(row_of(TABLE, pairs)) :: -1]
