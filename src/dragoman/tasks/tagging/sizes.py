"""A sane size and schedule of a tagger, when a user gives nothing but tagged words.

``TAG_TABLE`` is what is chosen: the number of sentences chooses a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import ClassVar

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.annotated import CONLLU_COLUMNS, Layout, columns_of, is_conllu, layout_of
from dragoman.data.files.columns import numbered
from dragoman.data.files.corpora import files_of, read_lines
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Pair
from dragoman.recipe.spec import Spec
from dragoman.sizing.builder import CorpusSummary, Sections
from dragoman.sizing.inputs import Inputs, with_label_ends
from dragoman.sizing.labelled_texts import HeadBuilder
from dragoman.sizing.size import Size
from dragoman.tasks.tagging.metrics import has_spans
from dragoman.tasks.tagging.spec import TAGGING

_SAMPLE_LINES = 200

_CALLED: dict[Layout, str] = {
    "columns": "columns",
    "underscore": "lines of word_TAG",
    "trees": "bracketed trees",
}
"""What a file in each layout holds."""

TAG_TABLE = (
    Size(1_000, 1_000, 128, 4, 2, 0.3, 1_024, 50, 2e-3, 60),
    Size(10_000, 2_000, 128, 4, 3, 0.3, 1_024, 200, 2e-3, 15),
    Size(100_000, 8_000, 256, 8, 4, 0.2, 8_192, 500, 1e-3, 15),
    Size(float("inf"), 16_000, 256, 8, 6, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""The size of a tagger by the number of sentences; docs/tags.md shows it to users."""


class TaggingBuilder(HeadBuilder):
    """Sentences with a tag for each word."""

    task: ClassVar[Spec] = TAGGING
    noun = "tagged sentences"
    table: ClassVar[Sequence[Size]] = TAG_TABLE

    def check_label_ends(self, inputs: Inputs) -> None:
        """Tags may be those of trees: ``tagged_corpus`` sees what the file holds."""
        if not inputs.are_files:
            super().check_label_ends(inputs)

    def file_at(self, path: str, inputs: Inputs) -> CorpusSettings:
        return tagged_corpus(path, inputs.columns, inputs.keys, inputs.label_ends)

    def labels_of(self, pair: Pair) -> Iterable[str]:
        return pair.target.split()

    def look(self, corpus: CorpusSettings) -> CorpusSummary:
        seen = super().look(corpus)
        if not seen.amount:
            raise DataError(f"{corpus.source} holds no sentence")
        return seen

    def adds(self, row: Size, seen: CorpusSummary) -> Sections:
        metric = "f1" if has_spans(seen.labels) else "accuracy"
        return {
            "data": {"cleaning": {"max_length": 0}},
            "text": {"character_coverage": 0.9999, "sampling": 0.1},
            "training": {"label_smoothing": 0.0, "metric": metric},
        }


def tagged_corpus(
    path: str,
    columns: str | None,
    keys: tuple[str, str] | None,
    label_ends: str | None = None,
) -> CorpusSettings:
    """A file of tagged words, or a folder of such files, and where in it words and tags are.

    ``columns``: the numbers of both; None: the first and the last, in CoNLL-U those of words and
    parts of speech. ``keys``: of JSON Lines, where a line of words and where their tags are.
    ``label_ends``: of trees, as ``CorpusSettings`` has it.
    Errors: ``DataError`` for a file that cannot be used, ``RecipeError`` for other columns, and for
    what the layout of the file has no place for.
    """
    if keys is not None:
        _refuse(path, "lines of JSON", ("--columns", columns), ("--label-ends", label_ends))
        return CorpusSettings(source=path, source_key=keys[0], target_key=keys[1], format="jsonl")
    corpus = CorpusSettings(source=path, format="tags")
    first = files_of(path)[0]
    lines = list(islice(read_lines(first), _SAMPLE_LINES))
    layout = layout_of(lines, first)
    if layout != "columns":
        _refuse(path, _CALLED[layout], ("--columns", columns))
    if layout == "trees":
        return corpus if label_ends is None else with_label_ends(corpus, label_ends)
    _refuse(path, _CALLED[layout], ("--label-ends", label_ends))
    if layout == "underscore":
        return corpus
    if columns is not None:
        word, tag = numbered(columns)
    elif is_conllu(lines):
        word, tag = CONLLU_COLUMNS
    else:
        word, tag = 1, columns_of(lines)
    return corpus.model_copy(update={"source_column": word, "target_column": tag})


def _refuse(path: str, holds: str, *options: tuple[str, str | None]) -> None:
    """Errors: ``RecipeError`` for options that are given."""
    for option, value in options:
        if value is not None:
            raise RecipeError(f"{option}: {path} holds {holds}, which have no use for it")
