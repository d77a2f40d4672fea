"""The docstring under a field is its help text: of settings, and of what a verb takes.

Needs nothing but the source, so that ``dragoman VERB --help`` answers at once.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise


def help_texts(kind: type) -> dict[str, str]:
    """Field -> the docstring under it, read from the source of a class and of those above it."""
    texts = {}
    for one in reversed(kind.__mro__):
        if one.__module__.partition(".")[0] in ("builtins", "pydantic"):
            continue
        (made,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(made, ast.ClassDef)
        for field, text in pairwise(made.body):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    texts[name] = inspect.cleandoc(words)
    return texts
