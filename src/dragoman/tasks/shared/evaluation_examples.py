"""The examples for evaluation of a finished run: pairs or texts, from files or from the test set of
its recipe."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar, NamedTuple

from dragoman.base.errors import DragomanError
from dragoman.data.files.corpora import files_of, read_lines, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.file_kinds import NotLines, check_is_lines
from dragoman.forms.form import Pair
from dragoman.forms.identification import other_language
from dragoman.forms.languages import base, name_of
from dragoman.runs.evaluation_set import nothing_to_measure, own_test_set
from dragoman.runs.lineage import warn_of_learned, watch_texts
from dragoman.runs.run import Run
from dragoman.tasks.shared.evaluation import EvaluationRequest, Report, RunEvaluation

logger = logging.getLogger("dragoman")

_AT_ONCE = 100
"""The number of texts that a run reads at once."""
_SAMPLE_SIZE = 100
"""The number of texts from which the language of a file is identified."""


def require_one_file(run: Run, files: Sequence[Path], of: str) -> None:
    """Raise ``DragomanError`` for a second file. ``of``: the contents of the first."""
    if len(files) > 1:
        raise DragomanError(
            f"{run.folder} is a {run.task.called}: it is measured on one file of {of}. Leave "
            f"{files[1]} out"
        )


class ExampleSet(NamedTuple):
    """A set of examples for evaluation."""

    pairs: Sequence[Pair]
    name: str
    left_out: int = 0
    """The number of examples that are left out because their label did not occur in training."""


def corpus_like(run: Run, files: Sequence[Path]) -> CorpusSettings:
    """The corpus in ``files``, laid out like the first training corpus of ``run``.

    Errors: ``DragomanError`` for another number of files."""
    (learned, *_) = run.recipe.data.train
    wanted = 1 if learned.target is None else 2
    if len(files) != wanted:
        single = "a folder" if learned.format == "folders" else "a list of files"
        what = single if wanted == 1 else "two IDX files, of pictures and of their labels,"
        raise DragomanError(
            f"{run.folder} is measured on {what}, like in training, not on {len(files)}"
        )
    target = str(files[1]) if wanted == 2 else None
    return learned.model_copy(update={"source": str(files[0]), "target": target})


class PairsEvaluation(RunEvaluation[ExampleSet, Report]):
    """Evaluates runs on files of pairs, or on the recipe's test set."""

    wanted: ClassVar[tuple[str, str, str]]
    """The arguments of ``nothing_to_measure`` if there are no examples."""
    one_of: ClassVar[str] = ""
    """The contents of the file, for tasks that take a single one."""

    def corpus(self, run: Run, files: Sequence[Path]) -> CorpusSettings:
        """The settings with which the files are read."""
        return corpus_like(run, files)

    def read(self, asked: EvaluationRequest) -> ExampleSet:
        """Read all examples. Errors: those of ``read_fitting``."""
        run, files = asked.run, asked.files
        if self.one_of:
            require_one_file(run, files, self.one_of)
        if not files:
            return ExampleSet(*own_test_set(run))
        return ExampleSet(list(read_pairs(self.corpus(run, files))), files[0].name)

    def fitting(self, asked: EvaluationRequest, examples: ExampleSet) -> Sequence[Pair]:
        """Select the examples that can be evaluated. Errors: ``DataError``."""
        return examples.pairs

    def read_fitting(self, asked: EvaluationRequest) -> ExampleSet:
        """Read the examples, without a warning about those that the run has learned from.

        Errors: ``DataError`` for unusable files; ``DragomanError`` for too many files, or if there
        are no examples.
        """
        every = self.read(asked)
        pairs = self.fitting(asked, every)
        if not pairs:
            raise nothing_to_measure(asked.run, *self.wanted)
        return ExampleSet(pairs, every.name, len(every.pairs) - len(pairs))

    def examples(self, asked: EvaluationRequest) -> ExampleSet:
        examples = self.read_fitting(asked)
        warn_of_learned(asked.run, examples.pairs)
        return examples


class TextStream(NamedTuple):
    """Texts for evaluation, read one after the other as they are needed."""

    texts: Iterator[str]
    name: str

    def parts(self) -> Iterator[list[str]]:
        """Yield the texts in batches of at most ``_AT_ONCE``."""
        while part := list(islice(self.texts, _AT_ONCE)):
            yield part


def texts_of(run: Run, files: Sequence[Path]) -> TextStream:
    """Read the texts of a file, or of the run's test set, without blank ones. A warning is logged
    if the run has learned from any of them."""
    require_one_file(run, files, "texts, without references")
    if files:
        _warn_of_other_text(run, files[0])
        texts, name = read_like(run, files[0]), files[0].name
    else:
        pairs, name = own_test_set(run)
        texts = (pair.target for pair in pairs)
    return TextStream(watch_texts(run, (text for text in texts if text.strip())), name)


class TextsEvaluation(RunEvaluation[TextStream, Report]):
    """Evaluates runs on texts without references."""

    def examples(self, asked: EvaluationRequest) -> TextStream:
        return texts_of(asked.run, asked.files)


def no_texts(run: Run) -> DragomanError:
    """The error for a test set without texts."""
    return nothing_to_measure(run, "is no text", "a file of texts", "test.txt")


def _warn_of_other_text(run: Run, path: Path) -> None:
    """Log a warning if a file, or the first of a folder, is in another language than the run, or is
    no text of lines. Errors: ``DataError`` for an unreadable file."""
    first = files_of(str(path))[0]
    if not first.is_file() or not first.stat().st_size:
        return  # A pipe can be read only once, and an unreadable file fails where it is read.
    try:
        next(read_lines(first, check_is_lines), None)
    except NotLines as error:
        logger.warning("warning: %s", error)
        return
    code = base(run.recipe.languages.target)
    if reads := other_language(islice(read_like(run, first), _SAMPLE_SIZE), code):
        logger.warning("warning: %s should be %s and reads as %s", first, name_of(code), reads)


def read_like(run: Run, path: Path) -> Iterator[str]:
    """Read the texts of a file or folder, separated as in the training files of the run. Sections
    are made as long as possible, because no section has to be held out here."""
    learned = [corpus.format for corpus in run.recipe.data.train if corpus.layout.by]
    corpus = CorpusSettings(source=str(path), format=learned[0] if learned else "text")
    return (pair.target for pair in read_pairs(corpus))
