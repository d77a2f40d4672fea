"""A recipe is one TOML file with all settings of a run.

Each section is the settings of one component, defined next to it; here they are only composed,
checked and written. A recipe has the sections of its task. The class in ``tasks/catalogue.py``
knows all tasks, and loaded recipes are of that class. Paths in a recipe file are relative to that
file; in a recipe that ships with the program, to the current folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import tomli_w
from pydantic import ValidationError, field_validator, model_validator

from dragoman.base.atomic import write_text
from dragoman.base.errors import RecipeError
from dragoman.data.plan import PlanSettings
from dragoman.runs.recipe.recipe_text import (
    explain,
    map_paths,
    merge,
    parse_toml,
    read_text,
    text_of_shipped,
    without_gone,
)
from dragoman.runs.recipe.sections import FORMAT, Sections
from dragoman.runs.recipe.spec import Spec
from dragoman.sources.file_examples import SOURCES
from dragoman.sources.shared.rows import TextSource

OPTIONAL = ("trees", "boxes", "painting", "masking", "search")
"""The sections that only some tasks have (``Spec.sections``)."""


class Recipe(Sections):
    """The complete settings of a run. In Python, ``Recipe.load`` reads a recipe file, and ``save``
    writes one with all settings."""

    tasks: ClassVar[Mapping[str, Spec]] = {}
    """All tasks, by their names in recipes."""

    @field_validator("task")
    @classmethod
    def _is_known(cls, task: str) -> str:
        if task not in cls.tasks:
            raise ValueError(f"there is no such task. Use one of {', '.join(cls.tasks)}")
        return task

    @model_validator(mode="before")
    @classmethod
    def _of_task(cls, values: Any) -> Any:
        """Drop the sections of other tasks, which recipes of earlier versions have, and use the
        first metric of the task if a recipe names none."""
        if not isinstance(values, Mapping):
            return values
        if (task := cls.tasks.get(str(values.get("task", "translation")))) is None:
            return values
        others = {name for name in OPTIONAL if name not in task.sections}
        kept = {name: value for name, value in values.items() if name not in others}
        training, source = kept.get("training", {}), kept.get("source")
        if not isinstance(training, Mapping) or "metric" in training:
            return kept
        if isinstance(source, Mapping):
            known = SOURCES.get(str(source.get("kind")), TextSource)
            task = task.of(known.model_validate({}))
        return {**kept, "training": {**training, "metric": next(iter(task.metrics))}}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        spec = self.spec
        if self.training.metric not in spec.metrics:
            raise ValueError(
                f'training.metric = "{self.training.metric}" cannot be measured for a '
                f"{spec.called}. Use one of {', '.join(spec.metrics)}"
            )
        spec.check(self)
        if self.training.blend and self.data.old is None:
            raise ValueError(
                "training.blend needs the old text of the run that is tuned (data.old), which "
                "--keep names"
            )
        return self

    @property
    def spec(self) -> Spec:
        """The specification of the task, with the source."""
        return self.tasks[self.task].of(self.source)

    def override(self, **sections: Mapping[str, Any]) -> Self:
        """Return the recipe with other values of some settings, by section, which are not checked
        again."""
        changed = {
            name: getattr(self, name).model_copy(update=values) for name, values in sections.items()
        }
        return self.model_copy(update=changed)

    @property
    def of_old_text(self) -> Self | None:
        """The recipe with the old text instead of the new; None if there is no old text. A corpus
        from which nothing is learned again has the weight 0."""
        old = self.data.old
        if old is None:
            return None
        train = tuple(
            corpus.model_copy(update={"weight": corpus.weight * old.weight}) for corpus in old.train
        )
        held = {name: getattr(old, name) for name in ("dev", "test", "split")}
        return self.override(data={"train": train, "old": None, **held}, training={"blend": False})

    @property
    def bounded_plan(self) -> PlanSettings:
        """The section ``plan``, within the positions of the model on either side."""
        longest, source = self.model.longest, self.source
        if longest is None:
            return self.plan
        return self.plan.within(longest * source.shortens, longest)

    @classmethod
    def load(cls, source: str | Path, changes: Sequence[str] = ()) -> Self:
        """Read a recipe file, or one that ships by its name ("multi30k-en-de").

        ``changes`` are ``section.key=value`` and are merged before anything is checked. Errors:
        ``RecipeError`` with the file, the key and the allowed values.
        """
        path = Path(source)
        if path.suffix == ".toml" or path.is_file():
            text, base, where = read_text(path), path.resolve().parent, str(path)
        else:
            text, base, where = text_of_shipped(str(source)), Path.cwd(), f"recipe {source}"
        if not text.strip():
            raise RecipeError(f"{where} is empty")
        try:
            values = parse_toml(text)
        except (ValueError, RecursionError) as error:
            if path.suffix == ".toml":
                raise RecipeError(f"{where} is not valid TOML: {error}") from error
            raise RecipeError(
                f"{where} is not a recipe. To train on text, give two files (dragoman train "
                "my.en my.de), or a .tsv or .jsonl file with both sides. (As a recipe it is not "
                f"valid TOML: {error})"
            ) from error
        return cls.parse(
            map_paths(values, lambda p: os.path.normpath(os.path.join(base, p))), changes, where
        )

    @classmethod
    def parse(
        cls, values: Mapping[str, Any], changes: Sequence[str] = (), where: str = "the recipe"
    ) -> Self:
        """Check plain values of TOML after merging ``changes``."""
        version = values.get("format", FORMAT)
        if isinstance(version, int) and version > FORMAT:
            raise RecipeError(
                f"{where} has format {version} and was written by a newer dragoman; this one "
                f"reads formats up to {FORMAT}. Update dragoman"
            )
        merged = without_gone(values)
        for change in changes:
            merged = merge(merged, change)
        _check_sections(cls.tasks, str(merged.get("task", "translation")), changes)
        try:
            return cls.model_validate(merged)
        except ValidationError as error:
            raise RecipeError(explain(error, cls, where)) from None

    def change(self, changes: Sequence[str]) -> Self:
        """Return the recipe with ``section.key=value`` merged in and checked again."""
        return self.parse(self.model_dump(mode="json", exclude_none=True), changes)

    def to_toml(self, base: Path) -> str:
        """Return the whole recipe as TOML, with defaults; paths are relative to ``base``."""
        others = {"source", *OPTIONAL} - self.spec.sections - self.source.sections
        values = self.model_dump(mode="json", exclude_none=True, exclude=others)
        return tomli_w.dumps(map_paths(values, lambda p: os.path.relpath(p, base)))

    def save(self, path: Path) -> None:
        """Write ``to_toml`` for the folder of ``path``, all or nothing."""
        write_text(path, self.to_toml(path.resolve().parent))


def _check_sections(known: Mapping[str, Spec], task: str, changes: Sequence[str]) -> None:
    """Raise ``RecipeError`` for a change of a section that the task does not have."""
    spec = known.get(task)
    if spec is None:
        return  # the check of the recipe reports it
    changed = {change.partition("=")[0].partition(".")[0].strip() for change in changes}
    for name in changed & (set(OPTIONAL) - spec.sections):
        tasks = ", ".join(other.name for other in known.values() if name in other.sections)
        raise RecipeError(
            f"a {spec.called} has no section {name} (it is of {tasks}). Leave it out of --set"
        )
