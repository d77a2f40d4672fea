"""The base of all settings: frozen, typed, complete; unknown keys are refused (STYLE 14).

A component's settings stand beside the component; ``recipe.py`` only composes them. The docstring
under a field is its help text (``help_texts``).
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A frozen, typed set of settings. Nothing is derived or changed after parsing."""

    # Without pydantic's use_attribute_docstrings, which reads the source of every class when it is
    # imported: a tenth of a second before a first sentence is translated.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def help_texts(settings: type[BaseModel]) -> dict[str, str]:
    """Field -> the docstring under it, read from the source of a class and of those above it."""
    found = {}
    for one in reversed(settings.__mro__[: settings.__mro__.index(BaseModel)]):
        (made,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(made, ast.ClassDef)
        for field, text in pairwise(made.body):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    found[name] = inspect.cleandoc(words)
    return found
