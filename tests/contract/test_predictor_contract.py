"""What every predictor must do alike, whatever its task, its source and the kind of its model: a
task is tested here from the day on which it is listed in the catalogue."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from every_task import CELLS, given_of

from dragoman.base.errors import DataError, DragomanError, SearchError
from dragoman.engine.predictor import Predictor, SearchingPredictor
from dragoman.engine.settings import EngineSettings, TranslatorSettings
from dragoman.tasks.catalogue import RUNTIMES, Run
from dragoman.tasks.transcription.transcriber import Transcriber

UNREADABLE = {
    "masked": {"no blank": "'no blank'", "dog ___ " * 9000: "Give a part"},
    "parsing": {" \t": "no tree", "dog " * 9000: "line 2 has 9,001 tokens"},
    "painting": {" ": "is empty", "red " * 9000: "'red red"},
    "language-model": {"dog " * 9000: "shorten"},
}
"""Texts that a task cannot read, and what is said of them. Tasks that are not here read every text,
and all tasks that read files refuse the same ones."""
EVERYTHING = {"detection": {"threshold": 0.0}}
"""Options by which an answer holds all that is found."""
TRANSCRIBED = [
    ("transcription", source, kind)
    for task, source, kind in CELLS
    if (task, source) == ("translation", "frames")
]
"""The same runs, opened by another predictor."""


class Cell(NamedTuple):
    """A run that is asked."""

    task: str
    predictor: Predictor[Any]
    given: list[str]
    """Texts or files that it can read."""
    takes_files: bool

    def __call__(self, given: Any) -> Any:
        """What is answered."""
        return self.predictor(given, **EVERYTHING.get(self.task, {}))


@pytest.fixture(scope="module")
def cells(run_of: Callable[..., Run]) -> dict[tuple[str, str, str], Cell]:
    return {}


@pytest.fixture(params=[*CELLS, *TRANSCRIBED], ids="-".join)
def cell(
    request: pytest.FixtureRequest,
    run_of: Callable[..., Run],
    cells: dict[tuple[str, str, str], Cell],
) -> Cell:
    task, source, kind = request.param
    if request.param not in cells:
        run = run_of("translation" if task == "transcription" else task, source, kind)
        predictor: Predictor[Any]
        if task == "transcription":
            predictor = Transcriber(run, TranslatorSettings(precision="fp32"))
        else:
            opens = RUNTIMES[task].parts().predictor
            predictor = opens(run, EngineSettings(precision="fp32"))
        cells[request.param] = Cell(task, predictor, given_of(run), run.task.reads_files)
    return cells[request.param]


def alike(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    """Whether two answers say the same; numbers that are computed, to a tolerance."""
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return type(one) is type(other) and all(
            alike(getattr(one, name), getattr(other, name), tolerance) for name in names
        )
    if isinstance(one, float | np.ndarray):
        return np.shape(one) == np.shape(other) and np.allclose(
            one, other, rtol=tolerance, atol=tolerance, equal_nan=True
        )
    if isinstance(one, list | tuple):
        both = zip(one, other, strict=False)
        return len(one) == len(other) and all(alike(a, b, tolerance) for a, b in both)
    return bool(one == other)


def test_every_task_is_here_or_says_what_to_do(run_of: Callable[..., Run]) -> None:
    for task in RUNTIMES.keys() - {task for task, _, _ in CELLS}:
        any_run = run_of("painting", "text", "transformer")
        with pytest.raises(DragomanError, match="dragoman train"):
            RUNTIMES[task].parts().predictor(any_run, EngineSettings())


def test_one_is_answered_as_beside_others(cell: Cell) -> None:
    one_by_one = [cell(one) for one in cell.given]
    together = cell(cell.given)
    assert isinstance(together, list) and len(together) == len(cell.given)
    assert alike(one_by_one, together)


def test_answers_come_in_the_order_of_their_sources(cell: Cell) -> None:
    together = cell(cell.given)
    assert not alike(together[0], together[-1], 1e-7), "or their order is not seen"
    assert alike(cell(reversed(cell.given)), together[::-1])
    assert alike(cell(iter(cell.given)), together)


def test_nothing_is_answered_by_nothing(cell: Cell) -> None:
    assert cell([]) == list(cell.predictor.each([])) == []


def test_the_same_is_answered_again(cell: Cell) -> None:
    assert alike(cell(cell.given), cell(cell.given), 0.0)


def test_a_path_is_a_name(cell: Cell) -> None:
    path = Path(cell.given[0])
    assert alike(cell(path), cell(str(path)), 0.0)
    assert alike(cell([path]), [cell(str(path))])


def test_what_is_no_source_is_refused(cell: Cell) -> None:
    for wrong in ([cell.given[0], 3], [None], b"dog"):
        with pytest.raises(TypeError, match="counted from 0, is"):
            cell(wrong)
    with pytest.raises(TypeError, match="no_such_option"):
        cell.predictor(cell.given[0], no_such_option=1)


def unreadable_of(cell: Cell, folder: Path) -> dict[str, str]:
    """What cannot be read, and what is said of it."""
    if not cell.takes_files:
        return UNREADABLE.get(cell.task, {})
    (folder / "damaged.png").write_bytes(b"no picture, and no sound")
    return {str(folder / name): name for name in ("damaged.png", "missing.wav")}


def test_what_cannot_be_read_is_named(cell: Cell, tmp_path: Path) -> None:
    unreadable = unreadable_of(cell, tmp_path)
    if not unreadable:
        assert len(cell(["", " ", "dog " * 900])) == 3
    for given, told in unreadable.items():
        with pytest.raises((DataError, SearchError), match=told):
            cell([cell.given[0], given])
        with pytest.raises((DataError, SearchError)):
            cell(given)


def test_what_is_shown_is_what_the_model_believes(cell: Cell) -> None:
    """The score of an output is that which the model gives it where it is given."""
    for text in cell.given:
        shown: Any = cell.predictor.own_output(text)
        assert isinstance(shown.text, str)
        (scored,) = cell.predictor.score_ids([text], [shown.ids])
        assert scored.tokens == tuple(shown.ids)
        if getattr(shown, "finished", True):
            assert scored.score == pytest.approx(shown.score, rel=1e-4)
        else:  # it was cut, and has no end
            each = shown.token_log_probabilities
            assert scored.token_log_probabilities[: len(each)] == pytest.approx(each, rel=1e-4)


def test_a_beginning_is_kept_or_refused(cell: Cell) -> None:
    """Some outputs can be given a beginning."""
    try:
        shown = cell.predictor.own_output(cell.given[0], "a dog")
    except DragomanError:
        return
    (begun,) = cell.predictor.engine.target.tokens(["a dog"])
    assert list(shown.ids[: len(begun)]) == begun


def test_it_is_looked_into_or_says_why_not(cell: Cell) -> None:
    predictor, text = cell.predictor, cell.given[0]
    given = predictor.own_output(text).ids
    assert predictor.has_inside == (predictor.no_inside is None)
    if predictor.no_inside is not None:
        with pytest.raises(DragomanError, match=re.escape(predictor.no_inside)):
            predictor.look(text, given)
        return
    record = predictor.look(text, given)
    assert bool(record.kinds) == bool(predictor.plain.attentions)
    for kind in record.kinds:
        assert np.allclose(record.weights(kind).sum(axis=-1), 1, atol=1e-3)


def test_a_search_is_asked_for_and_answered(cell: Cell, tmp_path: Path) -> None:
    """What ``stream`` finds is what the server finds with a queue of its own; what cannot be read
    is told of when all before it is answered."""
    predictor = cell.predictor
    if not isinstance(predictor, SearchingPredictor):
        return
    asked = predictor.engine.search([predictor.ask(one) for one in cell.given])
    found = [predictor.answer(*both) for both in zip(cell.given, asked, strict=True)]
    assert alike(found, list(predictor.stream(iter(cell.given))))
    *_, unreadable = unreadable_of(cell, tmp_path)
    streamed = predictor.stream([*cell.given, unreadable, *cell.given])
    assert alike([next(streamed) for _ in cell.given], found)
    with pytest.raises(DataError):
        next(streamed)
