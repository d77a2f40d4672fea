"""The base of all settings: frozen, typed, complete; unknown keys are refused.

A component's settings are defined next to the component; ``runs/recipe/recipe.py`` only composes
them. The docstring under a field is its help text (``help_texts`` in ``console/options.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Tag


class Settings(BaseModel):
    """A frozen, typed set of settings. Nothing is derived or changed after parsing."""

    # Two ways to start sooner: defer_build makes the check of a class when it is first used, and
    # use_attribute_docstrings is off, since it reads the source of every class that is imported.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def one_of(kinds: Mapping[str, type[Settings]], default: str, problem: str) -> Any:
    """Make the type of a field with settings of one of several kinds, which their ``kind`` selects;
    those that name no kind are of the default one. ``problem`` refuses another kind."""

    def kind_of(given: Any) -> str:
        is_new = isinstance(given, Mapping)
        kind = given.get("kind", default) if is_new else getattr(given, "kind", "")
        return kind if isinstance(kind, str) else ""

    tagged = (Annotated[settings, Tag(kind)] for kind, settings in kinds.items())
    return Annotated[
        reduce(or_, tagged),
        Discriminator(kind_of, custom_error_type="unknown_kind", custom_error_message=problem),
    ]
