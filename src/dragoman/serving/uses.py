"""What runs are asked for, by their task, and where; and what one hears who asks elsewhere."""

from __future__ import annotations

from typing import Literal, NamedTuple

from dragoman.serving.http.refusals import Refusal

TaskName = Literal["translation", "language-model", "masked", "classification", "parsing"]
"""As in ``dragoman.task.TASKS``."""


class Use(NamedTuple):
    """What runs of one task are for."""

    does: str
    """What one of them does with texts."""
    path: str
    """Where it is asked to."""
    trained: str
    """What makes such a run."""


USES: dict[TaskName, Use] = {
    "translation": Use("translates", "/v1/translate", "dragoman train my.en my.de"),
    "language-model": Use(
        "goes on with a text", "/v1/write", "dragoman train my.txt --task language-model"
    ),
    "masked": Use("fills in blanks", "/v1/fill", "dragoman train my.txt --task masked"),
    "classification": Use(
        "labels texts", "/v1/classify", "dragoman train my.tsv --task classification"
    ),
    "parsing": Use("parses", "/v1/parse", "dragoman train my.mrg --task parsing"),
}


def another_use(name: str, task: TaskName) -> Refusal:
    """For a run that does something else."""
    use = USES[task]
    return Refusal(
        "other_task",
        f"{name} {use.does}, which is asked of {use.path}.",
        run=name,
        task=task,
        path=use.path,
    )


def no_such_use(task: TaskName) -> Refusal:
    """Where no run does it."""
    use = USES[task]
    return Refusal(
        "no_run_for_task",
        f"No run here {use.does}. What makes one that does: {use.trained}",
        task=task,
        command=use.trained,
    )
