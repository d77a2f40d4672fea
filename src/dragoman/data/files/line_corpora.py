"""Lines -> pairs, in the layouts in which a line of one file is an example: tab-separated, JSON
Lines. The lines may be some of a file, if it is said which is the first."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.base.reading import readable
from dragoman.base.wording import plural, shortened
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Pair

_ARRAY = re.compile(r"\s*\[\s*(\{|$)")
"""How an array of records begins."""


def tsv_pairs(lines: Iterable[str], corpus: CorpusSettings, first: int = 1) -> Iterator[Pair]:
    """Of tab-separated lines. ``first``: the number of the first one in its file.

    Errors: ``DataError`` for a line without the columns of the corpus.
    """
    path, group = corpus.source, corpus.group_column
    source, target = corpus.source_column, corpus.target_column
    last = max(source, target, group or 0)
    for line, text in enumerate(lines, start=first):
        columns = text.split("\t")
        if len(columns) < 2:
            raise DataError(f"{path}, line {line}: no tab between two columns: {_shown(text)}")
        if len(columns) < last:
            raise DataError(
                f"{path}, line {line}: column {last} is wanted, and there are "
                f"{len(columns)}: {_shown(text)}"
            )
        told = "" if group is None else columns[group - 1].strip()
        yield Pair(line, columns[source - 1], columns[target - 1], group=told)


def jsonl_pairs(lines: Iterable[str], corpus: CorpusSettings, first: int = 1) -> Iterator[Pair]:
    """Of JSON Lines. ``first``: as ``tsv_pairs`` has it.

    Errors: ``DataError`` for a line that is no record, or has no text where the corpus says.
    """
    path = Path(corpus.source)
    for line, text in enumerate(lines, start=first):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            _refuse_array(path, line, text)
            raise DataError(f"{path}, line {line}: not JSON ({error}): {_shown(text)}") from error
        if isinstance(record, list):
            _refuse_array(path, line, text)
        sides = [_at(record, key, path, line) for key in (corpus.source_key, corpus.target_key)]
        told = "" if corpus.group_key is None else _at(record, corpus.group_key, path, line).strip()
        yield Pair(line, sides[0], sides[1], group=told)


def different_counts(
    source: str | Path, sources: int, target: str | Path, targets: int
) -> DataError:
    """What is said of two files whose lines do not pair up."""
    return DataError(
        f"{source} has {plural(sources, 'line')} but {target} has {targets:,}: line n of one must "
        "be the translation of line n of the other"
    )


def _refuse_array(path: Path, line: int, text: str) -> None:
    """Errors: ``DataError`` for a file of which the first line begins an array of JSON."""
    if line == 1 and _ARRAY.match(text):
        raise DataError(
            f"{path} is a JSON array; needed is one record a line (JSON Lines): "
            f"jq -c '.[]' {shlex.quote(path.name)} > {shlex.quote(path.stem + '.jsonl')}"
        )


def _at(record: object, key: str, path: Path, line: int) -> str:
    """The text at a dotted key."""
    found = record
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            has = f" (it has {', '.join(map(str, found))})" if isinstance(found, dict) else ""
            raise DataError(
                f"{path}, line {line}: no {key!r} in this record{has}. train, evaluate and "
                "data show take the right names by --keys SOURCE TARGET, a recipe by source_key "
                "and target_key"
            )
        found = found[part]
    if not isinstance(found, str):
        quoted = ': write it in quotes, "…"' if isinstance(found, int | float) else ""
        raise DataError(f"{path}, line {line}: {key!r} is {_written(found)}, not a text{quoted}")
    return found


def _written(value: object) -> str:
    """A value of JSON, for showing."""
    try:
        return _shown(json.dumps(value))
    except RecursionError:
        return f"a {type(value).__name__} with too many others within each other"


def _shown(text: str, width: int = 60) -> str:
    return repr(shortened(readable(text), width))
