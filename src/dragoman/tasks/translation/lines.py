"""Which parts of a line are translated by themselves, and what is searched for of them: the same
for ``Translator`` and the server. One line comes back for one line.

A line may name a file: a recording is cut as ``sources/frames/cutting.py`` says, a picture is not.

A line of several sentences is cut into them where the model has learned from single sentences, or
where it has more tokens than are read at once; a sentence that is still too long is cut into
pieces. The bullet or number of a list's item, which a model of single sentences would lose, stays
as it is. How a text is cut belongs to its form; running text, which a server is sent and
``paragraphs`` takes, always is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dragoman.base.errors import RunError
from dragoman.base.reading import readable
from dragoman.base.wording import shortened
from dragoman.engine.engine import Engine
from dragoman.forms.passage import Passage, Piece
from dragoman.forms.segmentation import list_marker, segment
from dragoman.runs.run import SEVERAL_SENTENCES, Run
from dragoman.search.request import Request
from dragoman.search.settings import SearchSettings
from dragoman.sources.frames.cutting import RecordingCutter
from dragoman.tasks.translation.ranking import candidates_of

logger = logging.getLogger("dragoman")

_ROWS_AT_ONCE = 100_000
"""Rows of files that are in memory together: those of 17 minutes of sound have 16 MB."""


class LinePlan:
    """How the lines that a run translates are cut."""

    def __init__(self, engine: Engine, run: Run, *, cut_off: bool) -> None:
        """``cut_off``: of a line with more tokens than are read at once the end is left out."""
        self._engine = engine
        self._cut_off = cut_off
        self._single = learned_single_sentences(run)
        self._has_warned = False
        self._has_split = False

    def cut(self, lines: Sequence[str], *, whole: bool) -> Iterator[list[Passage]]:
        """Each line in the pieces that are searched for, none where it says nothing; they come all
        together. ``whole``: a line stays together unless it is too long."""
        values = self._engine.source.values(lines)
        yield [
            self._passage(line, read, whole=whole) for line, read in zip(lines, values, strict=True)
        ]

    def _passage(self, line: str, values: list[int], *, whole: bool) -> Passage:
        longest = self._engine.longest
        if len(values) == 1 or not line.strip():
            return Passage("", ())
        if len(values) > longest and self._cut_off:
            logger.warning("a line of %d tokens is cut to %d", len(values), longest)
            values = [*values[: longest - 1], self._engine.source.eos]
        elif len(values) > longest:
            if not self._has_split:  # nothing is lost, and a corpus may have thousands of them
                self._has_split = True
                logger.warning(
                    "%r has %d tokens, more than %d, and is split, as all lines are that are so "
                    "long; they are not told one by one",
                    shortened(readable(line), 60), len(values), longest,
                )  # fmt: skip
            return _on_one_line(*self._engine.cut([line], whole=True))
        elif not whole and self._is_cut(line):
            return _on_one_line(*self._engine.cut([line], whole=False))
        return Passage("", (Piece(line, "", tuple(values)),))

    def _is_cut(self, line: str) -> bool:
        """Whether its sentences are translated one by one; says so where it may matter and is not
        known."""
        if self._single is False or (self._single is None and self._has_warned):
            return False
        language = self._engine.source.language
        if self._single and list_marker(line.lstrip(), language):
            return True
        several = sum(bool(sentence.text) for sentence in segment(line, language)) > 1
        if several and not self._single:
            self._has_warned = True
            logger.warning(
                "%r has more than one sentence and is translated as one. A model that has learned "
                "from single sentences may leave out all but the first: --paragraphs (from Python: "
                "translator.paragraphs) translates them one by one",
                shortened(readable(line), 60),
            )
        return several and bool(self._single)


class FilePlan:
    """How the files that a run translates are cut."""

    def __init__(self, engine: Engine, run: Run) -> None:
        self._engine = engine
        self._cutter = RecordingCutter.of(engine.source, run.recipe.bounded_plan.max_source)

    def cut(self, files: Sequence[str], *, whole: bool) -> Iterator[list[Passage]]:
        """Each file in the pieces that are searched for, none where it says nothing; they come in
        groups of about ``_ROWS_AT_ONCE`` rows. ``whole``: a recording is read whole."""
        waiting, rows = list[Passage](), 0
        for file in files:
            if self._cutter is None or whole:
                waiting += self._engine.cut([file], whole=True)
            else:
                waiting.append(self._cutter.passage(file))
            rows += sum(len(piece.values) for piece in waiting[-1].pieces)
            if rows >= _ROWS_AT_ONCE:
                yield waiting
                waiting, rows = [], 0
        if waiting:
            yield waiting


def plan_of(engine: Engine, run: Run, *, cut_off: bool) -> LinePlan | FilePlan:
    """How what a run reads is cut. ``cut_off``: as of ``LinePlan``."""
    return FilePlan(engine, run) if run.task.reads_files else LinePlan(engine, run, cut_off=cut_off)


def _on_one_line(passage: Passage) -> Passage:
    """The translation of a line is a line: what breaks it is a space, and no space is around it."""
    if not passage.pieces:
        return Passage("", ())
    pieces = [replace(piece, behind=piece.behind.replace("\n", " ")) for piece in passage.pieces]
    pieces[-1:] = [replace(last, behind="") for last in pieces[-1:]]
    return Passage(passage.before.lstrip().replace("\n", " "), tuple(pieces))


def learned_single_sentences(run: Run) -> bool | None:
    """Whether hardly a line of the training text had more than one sentence; None: not known.

    Runs of Moses tokens do not say.
    """
    try:
        share = run.notes().get(SEVERAL_SENTENCES)
    except RunError:  # a damaged note must not keep anybody from translating
        return None
    return share < _SEVERAL if isinstance(share, float) else None


_SEVERAL = 0.02
"""Below this share of training lines with several sentences a model has not learned to go on: 0.0
of the demo's lines have several, 0.0001 of Multi30k's and Tatoeba's, 0.37 of Python's manual's."""


def requests_of(
    engine: Engine,
    passages: Sequence[Passage],
    settings: SearchSettings,
    begun: Sequence[Sequence[int]],
    candidates: int = 0,
) -> list[Request]:
    """A request for each piece of each passage. ``begun``: for each passage the tokens with which
    the output of its first piece begins. ``candidates``: of which minimum Bayes risk will choose
    one; 0: the most probable is wanted."""
    asked = candidates_of(settings, candidates) if candidates else settings
    pieces = [piece.values for one in passages for piece in one.pieces]
    begins = [
        begin if place == 0 else ()
        for one, begin in zip(passages, begun, strict=True)
        for place in range(len(one.pieces))
    ]
    sources = engine.source.arrays(pieces)
    return [
        engine.request(source, asked, begin) for source, begin in zip(sources, begins, strict=True)
    ]
