"""Prints the Python reference, from the docstrings of the package: python docs/api.py"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import dragoman
from dragoman.console.options import help_texts

_HEAD = """\
# Python reference

Every public name of the package `dragoman`, from its docstrings. [From Python](python.md) is the
tour.
"""


def api_page() -> str:
    """The whole page: functions first, then classes."""
    names = sorted(dragoman.__all__, key=lambda name: (name[0].isupper(), name))
    return _HEAD + "".join(_entry(name, getattr(dragoman, name)) for name in names)


def _entry(name: str, thing: Any) -> str:
    page = f"\n## dragoman.{name}\n"
    if not inspect.isclass(thing):
        return page + _signature(name, thing) + _doc(thing)
    page += _signature(name, thing) + _doc(thing)
    helps = {field: text for field, text in help_texts(thing).items() if not field.startswith("_")}
    if helps:
        page += "\n| field | what it is |\n|---|---|\n"
        page += "".join(f"| `{field}` | {_cell(text)} |\n" for field, text in helps.items())
    for member, what in _members(thing):
        if isinstance(what, property):
            page += f"\n### {name}.{member}\n{_doc(what)}"
        else:
            page += f"\n### {name}.{member}()\n{_signature(member, what)}{_doc(what)}"
    return page


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """What a class and those above it in this package define for everybody, in their order."""
    seen = set()
    for one in kind.__mro__:
        if not one.__module__.startswith("dragoman"):
            continue
        for member, what in vars(one).items():
            if member in seen or (member.startswith("_") and member != "__call__"):
                continue
            what = getattr(what, "__func__", what)
            is_property = isinstance(what, property) or type(what).__name__ == "cached_property"
            if is_property:
                what = what if isinstance(what, property) else property(what.func)
            if (is_property or inspect.isfunction(what)) and inspect.getdoc(what):
                seen.add(member)
                yield member, what


def _signature(name: str, thing: Any) -> str:
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    signature = (
        re.sub(r"(: |-> )'([^']+)'", r"\1\2", signature)
        .replace("(self, ", "(")
        .replace("(self)", "()")
    )
    signature = re.sub(r"\b(?:[A-Za-z_]\w*\.)+(\w)", r"\1", signature)
    signature = re.sub(r"<function [^>]*<lambda> at 0x[0-9a-f]+>", "...", signature)
    signature = re.sub(r"<function (?:[^>]|<locals>)*?(\w+) at 0x[0-9a-f]+>", r"\1", signature)
    signature = re.sub(r"Annotated\[(.*?)(?:, [GL][et]\([^)]*\))+\]", r"\1", signature)
    if inspect.isclass(thing):
        signature = signature.removesuffix(" -> None")
    one_line = f"{name}{signature}"
    if len(one_line) > 96:
        inside, arrow, gives = signature.partition(") -> ")
        parts = re.split(r", (?=[\w*]+(?:[:=,]|$))", inside[1:] if arrow else inside[1:-1])
        one_line = (
            f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){arrow[1:]}{gives}"
        )
    return f"\n```text\n{one_line}\n```\n"


def _doc(thing: Any) -> str:
    text = inspect.getdoc(thing) or ""
    text = text.replace("``", "`")
    return f"\n{text}\n" if text else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("``", "`").split()).replace("|", "\\|")


if __name__ == "__main__":
    print(api_page(), end="")
