"""Files that are named to measure a run of files on: read as its training files are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.errors import DragomanError
from dragoman.runs.run import Run


def corpus_like(run: Run, files: Sequence[Path]) -> CorpusSettings:
    """The corpus in ``files``, laid out as the first one that ``run`` has learned from. Errors:
    ``DragomanError`` for another number of files."""
    (learned, *_) = run.recipe.data.train
    wanted = 1 if learned.target is None else 2
    if len(files) != wanted:
        one = "a folder" if learned.format == "folders" else "a list of files"
        what = one if wanted == 1 else "two IDX files, of pictures and of their labels,"
        raise DragomanError(
            f"{run.folder} is measured on {what} as it has learned from, and {len(files)} are named"
        )
    target = str(files[1]) if wanted == 2 else None
    return learned.model_copy(update={"source": str(files[0]), "target": target})
