"""The data on which finished runs are measured: the test set of their recipe, or other files."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.atomic import write_text
from dragoman.base.errors import DataError, DragomanError, RunError
from dragoman.base.wording import plural
from dragoman.data.corpus_checks import find_doubts
from dragoman.data.files.columns import file_at
from dragoman.data.files.corpora import read_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings, format_by_name
from dragoman.data.files.file_kinds import check_is_read
from dragoman.forms.form import Pair
from dragoman.runs.corpora import has_test_set, plain_pairs
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.run import TEST, Run
from dragoman.sources.frames.spoken import places_of

logger = logging.getLogger("dragoman")

_LOOKED_AT = 400
"""Pairs by which the languages of both sides are checked."""
_PLACES = {"source_key", "target_key", "source_column", "target_column"}
"""The settings that say where in a line the sides of an example are."""
_LARGEST = 20_000_000
"""Bytes of a copy of a test set."""


@dataclass(frozen=True)
class EvaluationSet:
    """Sources to translate, each with one reference or several."""

    pairs: Sequence[Pair]
    """Each source with its first reference."""
    references: Sequence[Sequence[str]]
    """One list for each reference that a source has, as long as the test set."""
    name: str

    @classmethod
    def of(
        cls,
        run: Run,
        files: Sequence[Path],
        columns: str | None = None,
        keys: tuple[str, str] | None = None,
    ) -> EvaluationSet:
        """The set in some files, sources first, or in one that holds both sides: where ``columns``
        or ``keys`` say (``data/files/columns.py``), else in the format of the run's training text;
        without files, the test set of the run's recipe.

        Errors: ``DragomanError`` where there is nothing to measure on, ``DataError`` for files
        whose lines do not pair up.
        """
        for file in files:
            check_is_read(file, "translation")
        if columns is None and keys is None and (spoken := _spoken_list(run, files)) is not None:
            pairs = list(read_pairs(spoken))
            return cls(pairs, _with_further(pairs, []), spoken.name)
        placed = file_at(files, columns, keys)
        if len(files) == 1 and format_by_name(str(files[0])) is None:
            raise DragomanError(
                "give both the source sentences and their references, or one file with both "
                "(.tsv, .jsonl), or neither"
            )
        if not files:
            pairs, name = own_test_set(run)
            if not pairs:
                raise _no_pairs(run)
            return cls(pairs, [[pair.target for pair in pairs]], name)
        source, *references = files
        if placed is not None:
            corpus = placed
        elif references:
            target = str(references[0])
            corpus = CorpusSettings(source=str(source), target=target, format="lines")
        else:
            learned = next((text for text in run.recipe.data.train if text.target is None), None)
            places = {} if learned is None else learned.model_dump(include=_PLACES)
            corpus = CorpusSettings(source=str(source), **places)
        holds = run.recipe.source.holds(with_texts=bool(references))
        corpus = corpus.model_copy(update={"holds": holds})
        pairs = list(read_pairs(corpus))
        languages = (run.recipe.languages.source, run.recipe.languages.target)
        looked_at = [] if corpus.names_files else [pairs[:_LOOKED_AT]]
        for doubt in find_doubts(corpus, looked_at, languages):
            if doubt.kind in ("language", "encoding"):
                logger.warning("warning: %s", doubt)
        return cls(pairs, _with_further(pairs, references[1:]), source.name)

    @classmethod
    def of_references(cls, references: Sequence[Path]) -> EvaluationSet:
        """References alone, for what is translated already. Errors: ``DataError``."""
        first, *further = references
        pairs = [Pair(n, "", line) for n, line in enumerate(read_lines(first), 1)]
        return cls(pairs, _with_further(pairs, further), first.name)


def _spoken_list(run: Run, files: Sequence[Path]) -> CorpusSettings | None:
    """Recordings with what is said in them, for a run that reads such; None for anything else, and
    for a list whose columns have no names. Errors: ``DataError``."""
    layout = run.recipe.source.listed_as
    if layout is None or len(files) != 1:
        return None
    places = places_of(files[0], read_lines)
    if not places and not files[0].is_dir():
        return None
    return CorpusSettings.model_validate(
        {"source": str(files[0]), "format": layout, **(places or {})}
    )


def _with_further(pairs: Sequence[Pair], further: Sequence[Path]) -> list[list[str]]:
    """All references, line by line. Errors: ``DataError``."""
    first = [pair.target for pair in pairs]
    return [first, *(read_line_for_each(pairs, path, "references") for path in further)]


def read_line_for_each(pairs: Sequence[Pair], path: Path, what: str) -> list[str]:
    """Read a file that has one line for each pair. ``what``: its content, in the plural.

    Errors: ``DataError`` for a file with more lines or fewer.
    """
    lines = list(read_lines(path))
    if len(lines) != len(pairs):
        raise DataError(
            f"{path} has {plural(len(lines), 'line')} for {plural(len(pairs), 'sentence')}. A file "
            f"of {what} needs one line for each"
        )
    return lines


def own_test_set(run: Run) -> tuple[list[Pair], str]:
    """The test set of a run's recipe, and what to call it; of a run that was moved away from its
    text, the copy that it keeps.

    Errors: ``RunError`` for text that is not where the recipe says, and of which there is no copy.
    """
    data = run.recipe.data
    name = "the demo's test set" if data.embedded else "the held-out test set"
    if data.test is not None:
        name = Path(data.test.source).name
    try:
        run.require_text("test")
    except RunError:
        kept = run.folder / TEST
        if not kept.is_file():
            raise
        return list(read_pairs(CorpusSettings(source=str(kept)))), name
    return plain_pairs(run.recipe, "test"), name


def keep_test_set(recipe: Recipe, folder: Path) -> None:
    """Write a copy of the test set into the folder of a run, unless it is part of this program, of
    files, or so large that nobody would want it twice."""
    if recipe.data.embedded is not None:
        return
    if any(corpus.names_files for corpus in recipe.data.train):
        return
    lines, size = [], 0
    for pair in plain_pairs(recipe, "test"):
        lines.append(json.dumps({"source": pair.source, "target": pair.target}) + "\n")
        size += len(lines[-1])
        if size > _LARGEST:
            return
    if lines:
        write_text(folder / TEST, "".join(lines))


def nothing_to_measure(run: Run, there: str, files: str, example: str) -> DragomanError:
    """The error for ``there`` "is no text"; ``files``: what to give, such as ``example``."""
    return DragomanError(
        f"there {there} to measure {run.folder} on. Give {files}: dragoman evaluate {run.quoted} "
        f"{example}"
    )


def _no_pairs(run: Run) -> DragomanError:
    why = "has no test set and holds none out"
    if has_test_set(run.recipe):
        why = (
            "holds out a share of the text for a test, but the text is too small: no pair is in it"
        )
    wanted = run.recipe.source.to_measure.format(noun=run.task.noun, run=run.quoted)
    return DragomanError(f"the recipe of {run.folder} {why}. Give {wanted}")
