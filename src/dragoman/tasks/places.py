"""Where one file that holds both sides has them, as ``--columns`` and ``--keys`` say it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.data.corpora import CorpusSettings
from dragoman.errors import DragomanError
from dragoman.tasks.label_sizing import is_tabbed, labelled_corpus, numbered


def file_at(
    files: Sequence[Path], columns: str | None, keys: tuple[str, str] | None, *, labelled: bool
) -> CorpusSettings | None:
    """The file, read by its columns or its keys; None where neither is named.

    ``labelled``: whether its sides are texts and labels, whose columns have names too.
    Errors: ``DragomanError`` where they do not go with what is measured on, ``RecipeError`` for
    columns that are none.
    """
    if columns is None and keys is None:
        return None
    option = "--keys" if keys is not None else "--columns"
    ending = ".jsonl" if keys is not None else ".tsv"
    if columns is not None and keys is not None:
        raise DragomanError("--columns is for a .tsv file, --keys for a .jsonl file: give one")
    if len(files) != 1 or is_tabbed(str(files[0])) != (keys is None):
        raise DragomanError(f"{option} goes with one {ending} file that holds both sides")
    path = str(files[0])
    if labelled:
        return labelled_corpus(path, columns, keys)
    if keys is not None:
        return CorpusSettings(source=path, source_key=keys[0], target_key=keys[1])
    assert columns is not None
    source, target = numbered(columns)
    return CorpusSettings(source=path, source_column=source, target_column=target)
