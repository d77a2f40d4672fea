"""A sane size and schedule of a model that labels texts, when a user gives nothing but examples.

``LABEL_TABLE`` is what is chosen: the number of examples chooses a row. In which column the labels
stand is found out: they repeat, and texts rarely do. A run that is begun from gives the model, and
the schedule is then a gentle one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.data.corpora import CorpusSettings, read_pairs
from dragoman.data.split import SplitSettings
from dragoman.errors import DataError, RecipeError
from dragoman.forms.identification import identify
from dragoman.forms.labels import MOST, plain
from dragoman.forms.languages import NAMES
from dragoman.recipe import Recipe

_LOOKED_AT = 20_000
"""Examples by which columns are told apart, and words counted."""
COLUMNS = "label,text", "text,label"


@dataclass(frozen=True)
class LabelSize:
    """One row: what is chosen below so many examples."""

    examples: float
    vocabulary: int
    model_dim: int
    heads: int
    layers: int
    dropout: float
    tokens_per_update: int
    warmup: int
    peak: float
    epochs: int
    """How long to train if no time is given."""


LABEL_TABLE = (
    LabelSize(2_000, 2_000, 64, 4, 1, 0.3, 1_024, 50, 2e-3, 30),
    LabelSize(20_000, 8_000, 128, 4, 2, 0.3, 4_096, 200, 1.5e-3, 15),
    LabelSize(200_000, 16_000, 256, 8, 3, 0.2, 8_192, 500, 1e-3, 8),
    LabelSize(float("inf"), 16_000, 256, 8, 4, 0.1, 16_384, 1_000, 1e-3, 4),
)
"""What is begun with, not tuned; docs/recipes.md shows it for users."""

EPOCHS_FROM = 4
"""Epochs where a run is begun from whose body has read text already."""


def labelled_corpus(path: str, columns: str | None, keys: tuple[str, str] | None) -> CorpusSettings:
    """A file of labelled texts, and where in it texts and labels are.

    ``columns``: one of ``COLUMNS``, of a tab-separated file; None: found out. ``keys``: of JSON
    Lines, where the text and where the label is.
    Errors: ``DataError`` for a file that cannot be used, ``RecipeError`` for other columns, or
    where it cannot be told which column holds the labels.
    """
    if keys is not None:
        return CorpusSettings(source=path, source_key=keys[0], target_key=keys[1])
    if not _is_tabbed(path):
        return CorpusSettings(source=path, source_key="text", target_key="label")
    if columns is None:
        columns = _columns_found(path)
    if columns not in COLUMNS:
        raise RecipeError(f"--columns {columns}: it is {' or '.join(COLUMNS)}")
    text, label = (2, 1) if columns == "label,text" else (1, 2)
    return CorpusSettings(source=path, format="tsv", source_column=text, target_column=label)


def _is_tabbed(path: str) -> bool:
    return not path.removesuffix(".gz").lower().endswith((".jsonl", ".ndjson", ".json"))


def _columns_found(path: str) -> str:
    """Of the first two columns, the one with fewer different values holds the labels."""
    different: tuple[set[str], set[str]] = (set(), set())
    lines = 0
    pairs = read_pairs(CorpusSettings(source=path, format="tsv"))
    for pair in islice(pairs, _LOOKED_AT):
        lines += 1
        for values, value in zip(different, (pair.source, pair.target), strict=True):
            values.add(plain(value))
    first, second = map(len, different)
    fewer = min(first, second)
    if first == second or (lines > 20 and fewer > lines / 2):
        raise RecipeError(
            f"{path}: it cannot be told which column holds the labels: among {lines:,} lines the "
            f"first has {first:,} different values and the second {second:,}. Say it: --columns "
            f"{' or --columns '.join(COLUMNS)}"
        )
    return COLUMNS[0] if first < second else COLUMNS[1]


def recipe_for_labels(
    train: CorpusSettings,
    dev: CorpusSettings | None,
    test: CorpusSettings | None,
    language: str,
    base: str | None = None,
) -> tuple[Recipe, float | None]:
    """A recipe for labelled texts, by ``LABEL_TABLE`` or by the recipe ``base``, and how many
    epochs it wants (None: ``base`` says how long).

    Errors: ``DataError`` for files that cannot be used.
    """
    examples = characters = 0
    words: set[str] = set()
    letters: set[str] = set()
    first: list[str] = []
    labels: set[str] = set()
    for pair in read_pairs(train):
        examples += 1
        if examples <= _LOOKED_AT:
            words.update(pair.source.split())
            letters.update(pair.source)
            characters += len(pair.source)
        if examples <= 100:
            first.append(pair.source)
        if len(labels) <= MOST:
            labels.add(plain(pair.target))
    if len(labels) < 2:
        raise DataError(
            f"{train.source}: all of its {examples:,} lines have the label {next(iter(labels))!r}: "
            "there is nothing to tell apart. Give examples of two labels at least"
        )
    if language == "und":
        found = [code for code in identify(first) if code in NAMES]
        language = found[0] if len(found) == 1 else "und"
    split = SplitSettings.for_pairs(examples, dev=dev is None, test=test is None)
    data = {
        "train": [train.model_dump(exclude_none=True)],
        "split": split.model_dump(),
        **({"dev": dev.model_dump(exclude_none=True)} if dev else {}),
        **({"test": test.model_dump(exclude_none=True)} if test else {}),
    }
    about: dict[str, Any] = {
        "name": Path(train.source).name.split(".")[0], "languages": {"source": language},
    }  # fmt: skip
    if base is not None:
        values = Recipe.load(base).model_dump(mode="json", exclude_none=True)
        if language == "und":
            about["languages"] = values["languages"]
        kept = {key: values["data"][key] for key in ("moses", "cleaning") if key in values["data"]}
        return Recipe.parse({**values, **about, "data": kept | data}), None
    row = next(row for row in LABEL_TABLE if examples < row.examples)
    # Every word and character of the text could be a token; 259 are the special and byte tokens.
    vocabulary = min(row.vocabulary, 259 + len(letters) + len(words) // 2)
    values = {
        **about,
        "task": "classification",
        "data": data | {"cleaning": {"max_length": 0}},
        "text": {"vocabulary": vocabulary, "character_coverage": 0.9999},
        "model": {
            "kind": "encoder", "model_dim": row.model_dim, "ffn_dim": 4 * row.model_dim,
            "layers": row.layers, "dropout": row.dropout, "attention": {"num_heads": row.heads},
        },
        "plan": {
            "tokens_per_update": row.tokens_per_update,
            "tokens_per_micro_batch": min(4096, row.tokens_per_update),
        },
        "training": {
            "updates": 10 * row.warmup,
            "clip_norm": 1.0,
            "label_smoothing": 0.0,
            "schedule": {"kind": "cosine", "warmup": row.warmup, "peak": row.peak},
        },
    }  # fmt: skip
    return Recipe.parse(values), row.epochs
