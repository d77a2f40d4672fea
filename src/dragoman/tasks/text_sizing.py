"""A sane size and schedule of a language model, or of a masked one, when a user gives nothing but a
text.

``TEXT_TABLE`` is what is chosen: the characters of the text choose a row. How its texts are told
apart and how much is held out follow from the text too; all of it is written into the recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.data.corpora import BY, CorpusSettings, read_pairs
from dragoman.data.split import SplitSettings
from dragoman.errors import DataError, RecipeError
from dragoman.forms.identification import identify
from dragoman.forms.languages import NAMES
from dragoman.recipe import Recipe

_SECTIONS = 200
"""A text is cut into so many at least, so that a part can be held out; but none is shorter than"""
_SHORTEST = 500
"""characters."""
_LOOKED_AT = 50


@dataclass(frozen=True)
class TextSize:
    """One row: what is chosen below so many characters of text."""

    characters: float
    kind: str
    vocabulary: int
    model_dim: int
    heads: int
    layers: int
    dropout: float
    context: int
    tokens_per_update: int
    warmup: int
    peak: float
    epochs: int
    """How long to train if no time is given."""


TEXT_TABLE = (
    TextSize(300_000, "char", 1_000, 128, 4, 3, 0.2, 256, 4_096, 100, 2e-3, 40),
    TextSize(3_000_000, "bpe", 2_000, 192, 6, 4, 0.3, 256, 4_096, 400, 2e-3, 30),
    TextSize(30_000_000, "bpe", 4_000, 256, 8, 4, 0.2, 256, 8_192, 1_000, 1.5e-3, 10),
    TextSize(300_000_000, "bpe", 8_000, 384, 6, 6, 0.1, 512, 16_384, 2_000, 1e-3, 3),
    TextSize(float("inf"), "bpe", 16_000, 512, 8, 6, 0.1, 512, 16_384, 2_000, 7e-4, 1),
)
"""Chosen by experience with texts of these sizes; docs/recipes.md shows it for users."""


def recipe_for_texts(
    path: str,
    how: str | None,
    language: str,
    base: str | None = None,
    task: str = "language-model",
) -> tuple[Recipe, int | None]:
    """A recipe for a file or a folder of texts, by ``TEXT_TABLE`` or by the recipe ``base``, and
    how many epochs it wants (None: ``base`` says how long).

    ``how``: what ends a text, as ``CorpusSettings.format``; None: as ``base`` has it, or found out.
    Errors: ``DataError`` for files that cannot be used, ``RecipeError`` for another ``how``.
    """
    if how not in (None, *BY):
        raise RecipeError(f"--texts {how}: it is text, documents or file")
    model = None if base is None else Recipe.load(base)
    corpus = CorpusSettings.model_validate({"source": path, "format": how or _format(path, model)})
    texts = characters = 0
    first: list[str] = []
    words: set[str] = set()
    letters: set[str] = set()
    for pair in read_pairs(corpus):
        texts += 1
        characters += len(pair.target)
        if texts <= _LOOKED_AT:
            first.append(pair.target)
            words.update(pair.target.split())
            letters.update(pair.target)
    if not words and not any(pair.target.strip() for pair in read_pairs(corpus)):
        raise DataError(f"{path} holds nothing but spaces")
    if corpus.format != "text" and texts < _SECTIONS:
        section = max(_SHORTEST, min(corpus.section, characters // _SECTIONS))
        corpus = corpus.model_copy(update={"section": section})
        texts = max(texts, characters // section)
    if language == "und":
        language = _language(first)
    if language == "und" and model is not None:
        language = model.languages.target
    split = SplitSettings.for_pairs(texts)
    data = {"train": [corpus.model_dump(exclude_none=True)], "split": split.model_dump()}
    about: dict[str, Any] = {
        "name": Path(path).name.split(".")[0], "languages": {"target": language},
    }  # fmt: skip
    if model is not None:
        values = model.model_dump(mode="json", exclude_none=True)
        kept = {key: value for key, value in values["data"].items() if key in _KEPT}
        return Recipe.parse({**values, **about, "data": kept | data}), None
    row = next(row for row in TEXT_TABLE if characters < row.characters)
    masked = task == "masked"
    # A blank is to be a word, or a good part of one, and no letter.
    kind, most = (row.kind, row.vocabulary) if not masked else ("bpe", max(2_000, row.vocabulary))
    # Every word and character of the text could be a token; 259 are the special and byte tokens.
    vocabulary = min(most, 259 + masked + len(letters) + len(words) // 2)
    values = {
        **about,
        "task": task,
        "data": data | {"cleaning": _CLEANING},
        "text": {"kind": kind, "vocabulary": vocabulary, "lossless": True},
        "model": {
            "kind": "encoder" if masked else "decoder",
            "model_dim": row.model_dim, "ffn_dim": 4 * row.model_dim,
            "layers": row.layers, "dropout": row.dropout, "attention": {"num_heads": row.heads},
        },
        "plan": {
            "tokens_per_update": row.tokens_per_update,
            "tokens_per_micro_batch": min(4096, row.tokens_per_update),
            "context": row.context,
        },
        "training": {
            "updates": 10 * row.warmup,
            "clip_norm": 1.0,
            "label_smoothing": 0.0,
            "schedule": {"kind": "cosine", "warmup": row.warmup, "peak": row.peak},
        },
    }  # fmt: skip
    return Recipe.parse(values), row.epochs


_CLEANING = {"max_length": 0, "control_characters": False, "invalid_utf8": False}
"""A section is many lines: one odd character is no reason to lose them all."""

_KEPT = ("moses", "cleaning")
"""Of a recipe's section ``data``: how text is treated, as against what it is."""


def _format(path: str, base: Recipe | None) -> str:
    """How the texts of a file are told apart, where nobody says it."""
    if base is not None and base.data.train:
        return base.data.train[0].format
    if base is not None and base.data.embedded is not None:
        return "text"
    if Path(path).is_dir():
        return "file"
    # Blank lines part texts; without any the file is one, which is read in sections.
    texts = read_pairs(CorpusSettings(source=path, format="documents", section=100_000))
    return "documents" if len(list(islice(texts, 2))) == 2 else "file"


def _language(texts: list[str]) -> str:
    """What the texts are written in, if that is sure."""
    found = [code for code in identify(texts) if code in NAMES]
    return found[0] if len(found) == 1 else "und"
