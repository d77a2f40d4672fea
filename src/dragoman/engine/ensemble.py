"""Checks which runs can form an ensemble (``models/ensemble.py``), and converts the source for
each."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from dragoman.base.errors import RunError
from dragoman.forms.form import Form
from dragoman.forms.subwords.text import Text
from dragoman.models.ensemble import Reader
from dragoman.nn.layout import Sequences
from dragoman.runs.run import Run


def readers_of(runs: Sequence[Run]) -> list[Reader | None]:
    """Return for each run the function that converts source tokens of the first run to its own;
    None for a run whose tokens are the same.

    Errors: ``RunError`` for a run that cannot form an ensemble with the first.
    """
    first = runs[0]
    for run in runs[1:]:
        _check(first, run)
    return [None if _reads_alike(first, run) else _reader(first.source, run.source) for run in runs]


def _check(first: Run, run: Run) -> None:
    if run.task.name != first.task.name:
        raise RunError(
            f"{run.folder} is a {run.task.called} and {first.folder} a {first.task.called}. Use "
            "runs of the same task"
        )
    text, other = first.target_text, run.target_text
    if text.size != other.size or _pieces(text) != _pieces(other):
        raise RunError(
            f"{run.folder} and {first.folder} have different target vocabularies ({other.size:,} "
            f"and {text.size:,} tokens), so they cannot form an ensemble. Train both on the same "
            "text with the same [text] settings, or one from the other (--from)"
        )


def _pieces(text: Text) -> list[str]:
    return text.pieces(range(text.size))


def _reads_alike(first: Run, run: Run) -> bool:
    """Return True if both runs split every text into the same tokens, or make the same rows of
    every file.

    Errors: ``RunError`` if one of them reads files and the other reads its source in another way.
    """
    if first.source.fingerprint != run.source.fingerprint:
        if first.task.reads_files or run.task.reads_files:
            raise RunError(
                f"{run.folder} reads {run.recipe.source.way} and {first.folder} "
                f"{first.recipe.source.way}. Use runs with the same section [source]"
            )
        return False
    moses = [member.recipe.data.moses and member.recipe.languages.source for member in (first, run)]
    return moses[0] == moses[1]


def _reader(given: Form, form: Form) -> Reader:
    """Return a function that converts tokens of ``given`` to those of ``form``, by way of text."""

    def read(source: Sequences) -> Sequences:
        sentences = source.values.split(list(source.layout.lengths))
        texts = given.raw([given.without_tag(sentence.tolist()) for sentence in sentences])
        values = [torch.tensor(values) for values in form.values(texts)]
        return Sequences.of(values).to(source.layout.device)

    return read
