"""A sane size and schedule of a tagger, when a user gives nothing but tagged words.

``TAG_TABLE`` is what is chosen: the number of sentences chooses a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import ClassVar

from dragoman.data.columns import numbered
from dragoman.data.corpora import CorpusSettings, Pair, files_of, read_lines
from dragoman.data.tagged import CONLLU_COLUMNS, columns_of, is_conllu, layout_of
from dragoman.errors import DataError
from dragoman.metrics.tagging import is_iob
from dragoman.sizing.builder import CorpusSummary, Sections
from dragoman.sizing.heads import HeadBuilder
from dragoman.sizing.size import Size
from dragoman.specs.spec import Spec
from dragoman.specs.tagging import TAGGING

_LOOKED_AT = 200

TAG_TABLE = (
    Size(1_000, 1_000, 128, 4, 2, 0.3, 1_024, 50, 2e-3, 60),
    Size(10_000, 2_000, 128, 4, 3, 0.3, 1_024, 200, 2e-3, 15),
    Size(100_000, 8_000, 256, 8, 4, 0.2, 8_192, 500, 1e-3, 15),
    Size(float("inf"), 16_000, 256, 8, 6, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""The size of a tagger by the number of sentences; docs/recipes.md shows it for users."""


class TaggingBuilder(HeadBuilder):
    """Sentences with a tag for each word."""

    task: ClassVar[Spec] = TAGGING
    noun = "tagged sentences"
    table: ClassVar[Sequence[Size]] = TAG_TABLE

    def file_at(
        self, path: str, columns: str | None, keys: tuple[str, str] | None
    ) -> CorpusSettings:
        return tagged_corpus(path, columns, keys)

    def labels_of(self, pair: Pair) -> Iterable[str]:
        return pair.target.split()

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        seen = super().look(corpus)
        if not seen.amount:
            raise DataError(f"{corpus.source} holds no sentence")
        return seen

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        metric = "f1" if is_iob(seen.labels) else "accuracy"
        return {
            "data": {"cleaning": {"max_length": 0}},
            "text": {"character_coverage": 0.9999, "sampling": 0.1},
            "training": {"label_smoothing": 0.0, "metric": metric},
        }


def tagged_corpus(path: str, columns: str | None, keys: tuple[str, str] | None) -> CorpusSettings:
    """A file of tagged words, or a folder of such files, and where in it words and tags are.

    ``columns``: the numbers of both; None: the first and the last, in CoNLL-U those of words and
    parts of speech. ``keys``: of JSON Lines, where a line of words and where their tags are.
    Errors: ``DataError`` for a file that cannot be used, ``RecipeError`` for other columns.
    """
    if keys is not None:
        return CorpusSettings(source=path, source_key=keys[0], target_key=keys[1], format="jsonl")
    corpus = CorpusSettings(source=path, format="tags")
    first = files_of(path)[0]
    lines = list(islice(read_lines(first), _LOOKED_AT))
    if columns is not None:
        word, tag = numbered(columns)
    elif layout_of(lines, first) != "columns":
        return corpus
    elif is_conllu(lines):
        word, tag = CONLLU_COLUMNS
    else:
        word, tag = 1, columns_of(lines)
    return corpus.model_copy(update={"source_column": word, "target_column": tag})
