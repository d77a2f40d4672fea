"""What makes several trainings comparable: as many updates, one dev set, one score."""

from __future__ import annotations

from dragoman.errors import DragomanError
from dragoman.plural import plural
from dragoman.recipe import Recipe
from dragoman.runs.prepare import Say
from dragoman.studies.records import Record
from dragoman.tasks.shared.chance import has_learned


def require_validation(recipe: Recipe, what: str) -> None:
    """Errors: ``DragomanError`` for a recipe whose trainings could not be told apart."""
    if not recipe.training.validate_every:
        raise DragomanError(
            f"{what} tells trainings apart by their scores on dev, and training.validate_every is "
            "0: set it"
        )
    data = recipe.data
    if not (data.dev or data.embedded or data.split.dev):
        raise DragomanError(
            f"{what} tells trainings apart by their scores on dev, and the recipe has no dev set: "
            "name one (data.dev), or hold one out (data.split.dev = 0.02)"
        )


def of_equal_length(recipe: Recipe, say: Say) -> Recipe:
    """The recipe as each of several trainings takes it: with all of its updates, so that what ends
    one earlier than another is left out."""
    training = recipe.training
    ends = [f"training.{name}" for name in ("patience", "minutes") if getattr(training, name)]
    if ends:
        say(
            f"{' and '.join(ends)} would end some trainings before others and is ignored: each "
            f"has {plural(training.updates, 'update')}"
        )
    same = {"patience": 0, "minutes": 0.0, "first_plan": None}
    return recipe.model_copy(update={"training": training.model_copy(update=same)})


def other_dev(changed: Recipe, recipe: Recipe) -> str:
    """A message about a recipe whose limits on length leave out other dev examples than those of
    ``recipe``; empty where both are measured on the same."""
    if len(recipe.spec.sides) < 2:
        return ""
    limits = [
        (one.max_source, one.max_target)
        for made in (changed, recipe)
        for one in [made.bounded_plan]
    ]
    if limits[0] == limits[1]:
        return ""
    return (
        f"is measured on other dev examples: sides of up to {max(limits[0]):,} tokens, not of up "
        f"to {max(limits[1]):,}; a table of positions (model.positions.maximum) must be as long as "
        "plan.max_source and plan.max_target"
    )


def judged_by(recipe: Recipe) -> str:
    """The score by which trainings are told apart: ``training.metric``, or that of the same meaning
    which compares across vocabularies."""
    return recipe.spec.compared or recipe.training.metric


def record_has_learned(record: Record, recipe: Recipe) -> bool:
    """Whether a training scores better than guessing would; True of an older record, which does not
    say what that scores."""
    name = judged_by(recipe)
    return has_learned(record.scores, record.chance, name, recipe.spec.measure(name))
