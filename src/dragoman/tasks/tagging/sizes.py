"""A sensible size and schedule for a tagger, if a user gives only tagged words.

The number of sentences chooses a row of ``TAG_TABLE``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from dragoman.base.errors import RecipeError
from dragoman.data.files.annotated import CONLLU_COLUMNS, Layout, columns_of, is_conllu, layout_of
from dragoman.data.files.columns import parse_columns
from dragoman.data.files.corpora import files_of, read_lines
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Pair
from dragoman.sizing.builder import CorpusSummary, HeadBuilder, Sections, make_corpus
from dragoman.sizing.size import Size
from dragoman.tasks.tagging.metrics import has_spans

_SAMPLE_LINES = 200

_CALLED: dict[Layout, str] = {
    "columns": "columns",
    "underscore": "lines of word_TAG",
    "trees": "bracketed trees",
}
"""The contents of a file in each layout, in words."""

TAG_TABLE = (
    Size(1_000, 1_000, 128, 4, 2, 0.3, 1_024, 50, 2e-3, 60),
    Size(10_000, 2_000, 128, 4, 3, 0.3, 1_024, 200, 2e-3, 15),
    Size(100_000, 8_000, 256, 8, 4, 0.2, 8_192, 500, 1e-3, 15),
    Size(float("inf"), 16_000, 256, 8, 6, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""The size of a tagger by the number of sentences; docs/tags.md shows it to users."""


class TaggingBuilder(HeadBuilder):
    """Builds the recipe for sentences with a tag for each word."""

    noun = "tagged sentences"
    table = TAG_TABLE
    fits = ("label_ends",)

    def file_at(self, path: str) -> CorpusSettings:
        given = self.options
        return corpus_of_tags(path, given.columns, given.keys, given.label_ends)

    def labels_of(self, corpus: CorpusSettings, pair: Pair) -> Iterable[str]:
        return pair.target.split()

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        metric = "f1" if has_spans(seen.labels) else "accuracy"
        return {
            "data": {"cleaning": {"max_length": 0}},
            "text": {"character_coverage": 0.9999, "sampling": 0.1},
            "training": {"label_smoothing": 0.0, "metric": metric},
        }


def corpus_of_tags(
    path: str,
    columns: str | None,
    keys: tuple[str, str] | None,
    label_ends: str | None = None,
) -> CorpusSettings:
    """Describe a file or folder of tagged words: its layout, and the places of words and tags.

    ``columns``: the numbers of both; None: the first and the last, in CoNLL-U those of words and
    parts of speech. ``keys``: the keys of words and of tags in JSON Lines. ``label_ends``: for
    trees, see ``CorpusSettings``. Errors: ``DataError`` for a file that cannot be used,
    ``RecipeError`` for wrong columns, and for options that the layout of the file does not use.
    """
    if keys is not None:
        _refuse(path, "lines of JSON", ("--columns", columns), ("--label-ends", label_ends))
        return CorpusSettings(source=path, source_key=keys[0], target_key=keys[1], format="jsonl")
    about = {"source": path, "format": "tags"}
    first = files_of(path)[0]
    lines = list(islice(read_lines(first), _SAMPLE_LINES))
    layout = layout_of(lines, first)
    if layout != "columns":
        _refuse(path, _CALLED[layout], ("--columns", columns))
    if layout != "trees":
        _refuse(path, _CALLED[layout], ("--label-ends", label_ends))
    if label_ends is not None:
        return make_corpus({**about, "label_ends": label_ends}, "--label-ends", label_ends)
    corpus = CorpusSettings.model_validate(about)
    if layout != "columns":
        return corpus
    if columns is not None:
        word, tag = parse_columns(columns)
    elif is_conllu(lines):
        word, tag = CONLLU_COLUMNS
    else:
        word, tag = 1, columns_of(lines)
    return corpus.model_copy(update={"source_column": word, "target_column": tag})


def _refuse(path: str, holds: str, *options: tuple[str, str | None]) -> None:
    """Errors: ``RecipeError`` for the first option that is given."""
    for option, value in options:
        if value is not None:
            raise RecipeError(
                f"{option}: {path} contains {holds}, which do not need it. Leave it out"
            )
