"""Where a list names a file that turns out to be unusable: the list and the line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.base.errors import DataError
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings


@contextmanager
def naming_lines(*corpora: CorpusSettings | None) -> Iterator[None]:
    """An error of a file that one of these lists names also says in which line.

    Files are decoded long after a list was read, many at once, and by then only their names are
    known; so lists are read once more, where there is an error. Its message begins with the file.
    """
    try:
        yield
    except DataError as error:
        told = str(error)
        for corpus in corpora:
            if corpus is None or not corpus.lists_files:
                continue
            for pair in read_pairs(corpus):
                file = pair.target if corpus.holds == "captions" else pair.source
                if told.startswith((f"{file} ", f"{file}:")):
                    raise DataError(f"{corpus.name}, line {pair.line}: {told}") from error
        raise
