"""How a finished run that chooses among labels is measured: on which examples, and step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from dragoman.data.files.columns import CorpusOf, file_at, is_tabbed
from dragoman.data.files.corpora import read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.pair import Pair
from dragoman.errors import DragomanError
from dragoman.runs.evaluation_set import own_test_set
from dragoman.runs.lineage import warn_of_learned
from dragoman.runs.run import Run
from dragoman.runs.scores import keep_scores
from dragoman.tasks.shared.label_report import LabelReport

Report = TypeVar("Report", bound=LabelReport)


_NO_GROUPS = dict.fromkeys(("group_column", "group_key", "group_pattern"))
"""Nothing is split that a run is measured on."""


class LabelledSet(NamedTuple):
    """The examples that runs are measured on."""

    pairs: Sequence[Pair]
    name: str
    left_out: int = 0
    """Examples of a label that training had not, where these are not measured."""


def evaluated(
    run: str | Path | Run,
    changes: Sequence[str],
    test_set: Callable[[Run], LabelledSet],
    report: Callable[[Run, LabelledSet], Report],
    keep: bool,
) -> Report:
    """A run measured by ``report``. With ``keep`` it is written to the run's scores.json.

    Errors: ``RunError`` for a run, those of ``test_set``, ``DragomanError`` for changes, since
    there is no search.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    if changes:
        raise DragomanError(
            f"{changes[0]}: {opened.folder} is a {opened.task.called} and is measured without a "
            "search; nothing can be set"
        )
    measured = test_set(opened)
    warn_of_learned(opened, measured.pairs)
    result = report(opened, measured)
    if keep:
        keep_scores(opened, result.to_dict(), own=True)
    return result


def examples_of(
    run: Run,
    files: Sequence[Path],
    columns: str | None,
    keys: tuple[str, str] | None,
    corpus_of: CorpusOf,
    usual: Callable[[str], CorpusSettings],
    wanted: str,
) -> LabelledSet:
    """The examples of a file, or of a file of texts and one of labels; without any, the test set of
    the run's recipe. One file is read by ``corpus_of`` where ``columns`` or ``keys`` are given, in
    the format of those that the run has learned from, or as is ``usual``.

    ``wanted``: what else is told of more than two files. Errors: ``DragomanError`` for these,
    ``DataError`` for files that cannot be used.
    """
    if len(files) > 2:
        raise DragomanError(
            f"a {run.task.called} is measured on one file of {wanted}; what is {files[2]}?"
        )
    placed = file_at(files, columns, keys, corpus_of)
    if not files:
        return LabelledSet(*own_test_set(run))
    source, *labels = map(str, files)
    if labels:
        corpus = CorpusSettings(source=source, target=labels[0])
    elif placed is not None:
        corpus = placed
    else:
        learned = [corpus for corpus in run.recipe.data.train if corpus.target is None]
        if not learned and not run.recipe.source.is_text:
            raise DragomanError(
                f"{source} has no labels: give the file of its labels too, as "
                f"{run.recipe.data.train[0].name} has it"
            )
        if not is_tabbed(source):  # records, which are not read as columns
            learned = [one for one in learned if not is_tabbed(one.source)]
        like = learned[0] if learned else usual(source)
        corpus = like.model_copy(update={"source": source, "weight": 1.0, **_NO_GROUPS})
    return LabelledSet(list(read_pairs(corpus)), files[0].name)
