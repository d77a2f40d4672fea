"""A sane size and schedule of a language model, or of a masked one, when a user gives nothing but a
text.

``TEXT_TABLE`` is what is chosen: the characters of the text choose a row. How its texts are told
apart and how much is held out follow from the text too; all of it is written into the recipe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from dragoman.data.corpora import BY, CorpusSettings, read_lines, read_pairs
from dragoman.data.split import SplitSettings
from dragoman.errors import DataError, RecipeError
from dragoman.forms.identification import language_of
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.sizing.families import DEFAULT, shape_of, training_of
from dragoman.sizing.held_out import held_corpus
from dragoman.sizing.size import Size, data_of, like
from dragoman.specs.catalogue import TASKS

_SECTIONS = 200
"""A text is cut into so many at least, so that a part can be held out; but none is shorter than"""
_SHORTEST = 500
"""characters."""
_LOOKED_AT = 50
_WHOLES = 100_000
"""Texts by which it is told which share of them to hold out."""


class TextSize(NamedTuple):
    """One row: what is chosen below so many characters of text."""

    kind: str
    """The kind of vocabulary."""
    context: int
    size: Size


TEXT_TABLE = (
    TextSize("char", 256, Size(300_000, 1_000, 128, 4, 3, 0.2, 2_048, 100, 2e-3, 40)),
    TextSize("bpe", 256, Size(3_000_000, 2_000, 192, 6, 4, 0.3, 1_024, 400, 2e-3, 30)),
    TextSize("bpe", 256, Size(30_000_000, 4_000, 256, 8, 4, 0.2, 1_024, 1_000, 2e-3, 10)),
    TextSize("bpe", 512, Size(300_000_000, 8_000, 384, 6, 6, 0.1, 16_384, 2_000, 1e-3, 3)),
    TextSize("bpe", 512, Size(float("inf"), 16_000, 512, 8, 6, 0.1, 16_384, 2_000, 7e-4, 1)),
)
"""Chosen by experience with texts of these sizes; docs/language-models.md shows it to users. Small
updates teach a language model the most (docs/experiments.md, "Language models in an hour")."""

_BETA2 = 0.999
"""They are noisy, so Adam's mean squared gradient remembers more of them than the paper's."""
_MASKED_CONTEXT, _MASKED_SHARE = 64, 0.3
"""A masked model has to find out that neighbours tell more than the rest of a window does. The
longer windows are, the less is asked for and the more is dropped, the longer it stands still before
that (docs/experiments.md, "A masked model that stands still")."""


def largest(rows: Sequence[Size]) -> Size:
    """The first of ``rows``: what suits a text if time does not matter."""
    return rows[0]


def recipe_for_texts(
    path: str,
    how: str | None,
    language: str,
    base: str | None = None,
    task: str = "language-model",
    dev: Sequence[str] | None = None,
    test: Sequence[str] | None = None,
    size_of: Callable[[Sequence[Size]], Size] = largest,
    family: str = DEFAULT,
    say: Callable[[str], None] = print,
) -> tuple[Recipe, int | None]:
    """A recipe for a file or a folder of texts, by ``TEXT_TABLE`` or by the recipe ``base``, and
    how many epochs it wants (None: ``base`` says how long). ``size_of`` chooses among the rows that
    are not too large for the text, the largest first.

    ``how``: what ends a text, as ``CorpusSettings.format``; None: as ``base`` has it, or found out.
    ``dev``, ``test``: files of their own; without one, a part of the text is held out. ``family``:
    of the model (``families.py``).
    Errors: ``DataError`` for files that cannot be used, ``RecipeError`` for another ``how``.
    """
    if how not in (None, *BY):
        raise RecipeError(f"--texts {how}: it is text, documents or file")
    model = None if base is None else Recipe.load(base)
    corpus = CorpusSettings.model_validate({"source": path, "format": how or _format(path, model)})
    texts = characters = 0
    first: list[str] = []
    wholes: Counter[str] = Counter()
    for pair in read_pairs(corpus):
        texts += 1
        characters += len(pair.target)
        if pair.whole and (pair.whole in wholes or len(wholes) < _WHOLES):
            wholes[pair.whole] += len(pair.target)
        if texts <= _LOOKED_AT:
            first.append(pair.target)
    if not any(pair.target.strip() for pair in read_pairs(corpus)):
        raise DataError(f"{path} holds nothing but spaces")
    if corpus.format != "text" and texts < _SECTIONS:
        section = max(_SHORTEST, min(corpus.section, characters // _SECTIONS))
        corpus = corpus.model_copy(update={"section": section})
        texts = max(texts, characters // section)
    if language == "und":
        language = language_of(first)
    if language == "und" and model is not None:
        language = model.languages.target
    held = (held_corpus(option, files, corpus, "texts")
            for option, files in (("--dev", dev), ("--test", test)))  # fmt: skip
    data = data_of([corpus], texts, *held)
    split = SplitSettings(**data["split"]).for_whole(wholes)
    if texts < _SECTIONS:
        few = [pair.target for pair in read_pairs(corpus)]
        texts = len(few)
        split = split.for_few(few, dev=dev is None, test=test is None)
    data["split"] = split.model_dump()
    if corpus.format != "text" and how is None and model is None and not Path(path).is_dir():
        some = "" if texts < _SECTIONS else "about "
        lines = sum(1 for _ in read_lines(Path(path)))
        say(
            f"{Path(path).name}: {plural(lines, 'line')}, read as {some}{plural(texts, 'passage')}"
            "; --texts text makes each line a text of its own"
        )
    about = {
        "name": Path(path).name.split(".")[0],
        "languages": {"target": language},
        "data": data,
    }
    if model is not None:
        return like(model, about), None
    at = next(at for at, row in enumerate(TEXT_TABLE) if characters < row.size.below)
    kind = TEXT_TABLE[at].kind
    rows = [one.size for one in TEXT_TABLE[at::-1] if one.kind == kind]
    masked = task == "masked"
    if masked:  # a blank is to be a word, or a good part of one, and no letter
        kind = "bpe"
        rows = [replace(row, vocabulary=max(2_000, row.vocabulary), dropout=0.0) for row in rows]
    row = size_of(rows)
    context = next(one.context for one in TEXT_TABLE if one.size.below == row.below)
    values = {
        **about,
        "task": task,
        "data": data | {"cleaning": _CLEANING},
        "text": {"kind": kind, "vocabulary": row.vocabulary, "lossless": True},
        "model": shape_of(family, TASKS[task])(row),
        "plan": {**row.plan, "context": _MASKED_CONTEXT if masked else context},
        **({"masking": {"share": _MASKED_SHARE}} if masked else {}),
        "training": {
            **training_of(family, row, "cosine"),
            "label_smoothing": 0.0,
            "optimizer": {"beta2": _BETA2},
        },
    }
    return Recipe.parse(values), row.epochs


_CLEANING = {"max_length": 0, "control_characters": False, "invalid_utf8": False}
"""A section is many lines: one odd character is no reason to lose them all."""


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
