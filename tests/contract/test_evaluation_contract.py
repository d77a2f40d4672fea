"""What measuring a finished run must do alike, whatever its task: a task is tested here from the
day on which it is listed in the catalogue."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from every_task import CELLS
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run

from dragoman.base.errors import DragomanError
from dragoman.runs.run import SCORES
from dragoman.tasks.catalogue import RUNTIMES, Run
from dragoman.tasks.shared.evaluation import EvaluationReport, RunEvaluation


@pytest.fixture(scope="module", params=RUNTIMES)
def run(
    request: pytest.FixtureRequest,
    run_of: Callable[..., Run],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """One of each task; those that are asked nothing are trained here."""
    cell = next((cell for cell in CELLS if cell[0] == request.param), None)
    if cell is not None:
        return run_of(*cell)
    folder = tmp_path_factory.mktemp(request.param)
    return trained_run(tiny_recipe_of(request.param, folder), folder / "run")


@pytest.fixture(scope="module")
def found(run: Run) -> EvaluationReport:
    """On the test set of its recipe."""
    (run.folder / SCORES).unlink(missing_ok=True)
    return RUNTIMES[run.task.name].evaluate(run)


def kept(run: Run) -> dict[str, object]:
    """What ``scores.json`` holds."""
    scores: dict[str, object] = json.loads((run.folder / SCORES).read_text(encoding="utf-8"))
    return scores


def test_all_tasks_are_measured_by_the_same_steps() -> None:
    for runtime in RUNTIMES.values():
        assert isinstance(runtime.evaluate, RunEvaluation)


def test_figures_are_those_of_the_run_and_named_by_the_task(
    run: Run, found: EvaluationReport
) -> None:
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["run"], told["weights"]) == (run.folder.name, run.weights_summary)
    assert told["test"] == found.test and told["seconds"] >= 0
    assert told["scores"], "nothing is measured"
    table = found.table()
    assert table.splitlines()[0].startswith(f"{run.folder.name} ({run.weights_summary}) on ")
    for name, score in told["scores"].items():
        assert {"value", "signature"} <= set(score) and isinstance(score["value"], float)
        assert run.task.measure(name).called in table


def test_figures_on_the_own_test_set_are_kept(run: Run, found: EvaluationReport) -> None:
    written = kept(run)
    own = json.loads(json.dumps(found.to_dict()))
    assert {name: written[name] for name in own} == own
    assert set(written) - set(own) <= {"samples"}
    assert Run.open(run.folder).scores() == written, "it can be read back"


def test_the_same_is_found_again(run: Run, found: EvaluationReport) -> None:
    again = RUNTIMES[run.task.name].evaluate(run)
    assert again.to_dict() | {"seconds": 0} == found.to_dict() | {"seconds": 0}
    assert list(again.outputs()) == list(found.outputs())


def test_figures_on_other_files_or_by_other_settings_are_not_kept(
    run: Run, found: EvaluationReport, caplog: pytest.LogCaptureFixture
) -> None:
    before = kept(run)
    (learned, *_) = run.recipe.data.train
    files = [Path(one) for one in (learned.source, learned.target) if one is not None]
    evaluate = RUNTIMES[run.task.name].evaluate
    other = evaluate(run, files)
    assert other.test == files[0].name
    change = "window=9" if run.task.name == "language-model" else "beam=3"
    with caplog.at_level("INFO", "dragoman"):
        if "beam" in run.task.evaluation_options or change.startswith("window"):
            evaluate(run, (), [change])
            assert f"{SCORES} is not changed" in caplog.text
        else:
            with pytest.raises(DragomanError, match=f"{change}: .* without a search"):
                evaluate(run, (), [change])
    assert kept(run) == before


def test_what_is_no_setting_and_no_file_is_refused(run: Run) -> None:
    evaluate = RUNTIMES[run.task.name].evaluate
    with pytest.raises(DragomanError, match="no_such_setting"):
        evaluate(run, (), ["no_such_setting=1"])
    with pytest.raises(DragomanError, match="missing"):
        evaluate(run, [Path("missing.tsv")])
    with pytest.raises(TypeError, match="no_such_option"):
        evaluate(run, (), (), no_such_option=1)
