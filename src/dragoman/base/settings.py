"""The base of all settings: frozen, typed, complete; unknown keys are refused.

A component's settings are defined next to the component; ``runs/recipe/recipe.py`` only composes
them. The docstring under a field is its help text (``help_texts`` in ``console/options.py``).
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A frozen, typed set of settings. Nothing is derived or changed after parsing."""

    # Without pydantic's use_attribute_docstrings, which reads the source of every class when it is
    # imported: a tenth of a second before a first sentence is translated.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
