"""Dev and test files that a user names: they are laid out as the training files are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.data.corpora import read_pairs
from dragoman.data.corpus_settings import CorpusSettings
from dragoman.errors import RecipeError


def held_files(
    option: str, files: Sequence[str] | None, train: CorpusSettings
) -> CorpusSettings | None:
    """The corpus of ``option``, of recordings or pictures that lie as those of ``train`` do.

    Errors: ``RecipeError`` for another number of files, ``DataError`` for files that cannot be
    read.
    """
    named = [str(Path(name).absolute()) for name in files or () if name]
    if not named:
        return None
    wanted = 1 if train.target is None else 2
    if len(named) != wanted:
        one = "one folder" if train.format == "folders" else "one list"
        what = one if wanted == 1 else "two files, of pictures and of their labels"
        raise RecipeError(f"{option} {' '.join(files or ())}: give {what}, as for training")
    target = named[1] if wanted == 2 else None
    corpus = train.model_copy(update={"source": named[0], "target": target})
    if next(read_pairs(corpus), None) is None:
        raise RecipeError(f"{option} {named[0]}: there are no examples in it")
    return corpus


def held_corpus(
    option: str, files: Sequence[str] | None, train: CorpusSettings, noun: str
) -> CorpusSettings | None:
    """The corpus of ``option``: one file in the format of the training file, or two files of lines.

    ``noun``: what the examples of the task are called. Errors: ``RecipeError`` for another number
    of files than the task has, ``DataError`` for files that cannot be read.
    """
    named = [str(Path(name).absolute()) for name in files or () if name]
    if not named:
        return None
    one_side = train.is_alone or train.format == "trees"
    if len(named) > 1 and one_side:
        raise RecipeError(
            f"{option} {' '.join(files or ())}: {noun} are in one file, or in a folder of files"
        )
    if len(named) > 1:
        corpus = CorpusSettings(source=named[0], target=named[1])
    elif train.target is not None:
        corpus = CorpusSettings(source=named[0])
    else:
        corpus = train.model_copy(update={"source": named[0]})
    if next(read_pairs(corpus), None) is None:
        raise RecipeError(f"{option} {named[0]}: there are no {noun} in it")
    return corpus
