"""``scores.json`` holds what a run scores by its own recipe, whatever else it is measured by."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from command_line import Dragoman
from tiny_tasks import tiny_recipe_of
from trained_run import trained_run

from dragoman.server.info import view_of
from dragoman.tasks.catalogue import TASKS
from dragoman.tasks.report import write_report


@pytest.mark.system
@pytest.mark.parametrize(
    ("task", "others", "same"),
    [
        (
            "translation",
            [
                ("--set", "sampling.temperature=3"), ("--beam", "2"), ("--mbr", "3"),
                ("--set", "length_penalty=0.1"), ("--precision", "fp32"),
            ],
            ("--set", "beam=4"),
        ),
        ("language-model", [("--set", "window=8"), ("--set", "stride=3")], ("--set", "stride=12")),
        (
            "parsing",
            [("--beam", "2"), ("--set", "length_penalty=1.5"), ("--precision", "fp32")],
            ("--beam", "4"),
        ),
    ],
)  # fmt: skip
def test_other_settings_leave_them_as_they_are(
    task: str,
    others: list[tuple[str, ...]],
    same: tuple[str, ...],
    tiny_run: Path,
    tmp_path: Path,
    dragoman: Dragoman,
) -> None:
    folder = tmp_path / "run"
    if task == "translation":
        shutil.copytree(tiny_run, folder)
    else:
        search = [] if task == "language-model" else ["search.beam=4"]
        trained_run(tiny_recipe_of(task, tmp_path, *search), folder)
    kept = folder / "scores.json"
    kept.unlink(missing_ok=True)
    said = dragoman("evaluate", folder, *others[0])
    assert said.code == 0 and not kept.exists(), said.err
    assert dragoman("evaluate", folder).code == 0
    own = kept.read_text(encoding="utf-8")
    for options in others:
        said = dragoman("evaluate", folder, *options)
        assert said.code == 0 and "scores.json is not changed" in said.err, said.err
        assert kept.read_text(encoding="utf-8") == own, options
    kept.unlink()  # the recipe's own settings, written out
    said = dragoman("evaluate", folder, *same)
    assert said.code == 0 and kept.exists() and "is not changed" not in said.err


@pytest.mark.parametrize("task", ["masked", "classification"])
def test_terminal_report_card_and_page_write_a_score_alike(
    task: str, tmp_path: Path, dragoman: Dragoman
) -> None:
    """Accuracy is a share where tokens are masked, and in percent where texts are labelled."""
    run = trained_run(tiny_recipe_of(task, tmp_path), tmp_path / "run")
    table = dragoman("evaluate", run.folder).out
    page = write_report(run).read_text(encoding="utf-8")
    card = (run.folder / "card.md").read_text(encoding="utf-8")
    seen = {one.called: one for one in view_of(run, "run", "en", "en").scores}
    scores = {name: one["value"] for name, one in run.scores()["scores"].items()}
    assert set(scores) == {*TASKS[task].metrics, *TASKS[task].finished}
    for name, value in scores.items():
        measure = TASKS[task].measure(name)
        written = measure.text(value)
        assert (written.endswith(" %")) == (name in ("accuracy", "macro_f1"))
        assert re.search(rf"^{measure.called} +{re.escape(written)}$", table, re.MULTILINE), table
        assert f'<span class="value">{written}</span>' in page
        assert f"| {measure.called} | {written} |" in card
        shown = seen[measure.called]
        assert (shown.value, shown.name) == (value, name), "the server's values are raw"
        assert f"{value * shown.times:.{shown.digits}f}{shown.unit}" == written
    counted = TASKS[task].counted
    for text in (page, card):
        assert f"{counted}/s" in text.replace("\\", "") and "nats per token" not in text
    assert f" {counted}/s" in page and f"nats per {TASKS[task].one_counted}" in page
