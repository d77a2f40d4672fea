"""Splits lines into the parts that are translated separately. Each line gives one line.

A line may name a file: recordings are cut (``sources/frames/cutting.py``), pictures are not.

A line of several sentences is split if the model was trained on single sentences, or if the line
exceeds the longest input; a sentence that is still too long is split into pieces. List markers,
which such a model would lose, are kept as they are. The form of a text decides how it is split.
Running text, as sent to a server or given to ``paragraphs``, is always split.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dragoman.base.errors import RunError
from dragoman.base.reading import readable
from dragoman.base.wording import shorten
from dragoman.engine.engine import Engine
from dragoman.forms.form import Passage, Piece
from dragoman.forms.segmentation import list_marker, segment
from dragoman.runs.run import SEVERAL_SENTENCES, Run
from dragoman.sources.frames.cutting import RecordingCutter

logger = logging.getLogger("dragoman")

_ROWS_AT_ONCE = 100_000
"""The most rows of files in memory at once: those of 17 minutes of sound take 16 MB."""


class LinePlan:
    """Splits lines of text for a run."""

    def __init__(self, engine: Engine, run: Run, *, cut_off: bool) -> None:
        """Prepare to split lines for a run. ``cut_off``: the end of a line that exceeds the longest
        input is dropped."""
        self._engine = engine
        self._cut_off = cut_off
        self._single = learned_single_sentences(run)
        self._has_warned = False
        self._has_split = False

    def cut(self, lines: Sequence[str], *, whole: bool) -> Iterator[list[Passage]]:
        """Split lines into pieces that are translated separately, and yield those of all lines in
        one group. Blank lines have no pieces. ``whole``: a line is split only if it is too long."""
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
            if not self._has_split:  # warn once: a corpus may have thousands of such lines
                self._has_split = True
                logger.warning(
                    "%r has %d tokens, more than %d, and is split, like all other lines of this "
                    "length",
                    shorten(readable(line), 60), len(values), longest,
                )  # fmt: skip
            return _on_one_line(*self._engine.cut([line], whole=True))
        elif not whole and self._is_cut(line):
            return _on_one_line(*self._engine.cut([line], whole=False))
        return Passage("", (Piece(line, "", tuple(values)),))

    def _is_cut(self, line: str) -> bool:
        """Decide whether a line is translated sentence by sentence. Warn, once, if the line has
        several sentences and is translated as one."""
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
                shorten(readable(line), 60),
            )
        return several and bool(self._single)


class FilePlan:
    """Cuts recordings into pieces for a run; pictures stay whole."""

    def __init__(self, engine: Engine, run: Run) -> None:
        self._engine = engine
        self._cutter = RecordingCutter.of(engine.source, run.recipe.bounded_plan.max_source)

    def cut(self, files: Sequence[str], *, whole: bool) -> Iterator[list[Passage]]:
        """Split files into pieces that are translated separately, in groups of about
        ``_ROWS_AT_ONCE`` rows. Silent recordings have no pieces. ``whole``: a recording is not
        cut."""
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
    """Return the plan for the input of a run: ``FilePlan`` for recordings and pictures,
    ``LinePlan`` for text. ``cut_off``: see ``LinePlan``."""
    return FilePlan(engine, run) if run.task.reads_files else LinePlan(engine, run, cut_off=cut_off)


def _on_one_line(passage: Passage) -> Passage:
    """Turn line breaks between pieces into spaces, and strip the ends: a line gives one line."""
    if not passage.pieces:
        return Passage("", ())
    pieces = [replace(piece, behind=piece.behind.replace("\n", " ")) for piece in passage.pieces]
    pieces[-1:] = [replace(last, behind="") for last in pieces[-1:]]
    return Passage(passage.before.lstrip().replace("\n", " "), tuple(pieces))


def learned_single_sentences(run: Run) -> bool | None:
    """Return True if few training lines of a run had more than one sentence, and None if that is
    not known.

    Runs with Moses tokens do not record it.
    """
    try:
        share = run.notes().get(SEVERAL_SENTENCES)
    except RunError:  # a damaged note must not prevent translation
        return None
    return share < _SEVERAL if isinstance(share, float) else None


_SEVERAL = 0.02
"""If a smaller share of training lines than this has several sentences, a model has not learned to
continue after a sentence. The share is 0.0 in the demo, 0.0001 in Multi30k and Tatoeba, 0.37 in
Python's manual."""
