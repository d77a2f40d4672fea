"""Writes verbs.md from the command line itself: python docs/verbs.py > docs/verbs.md

A verb's text is its docstring, an option's the one under its field; a test holds the page to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from dragoman.cli.app import PANELS
from dragoman.cli.data import GROUP

_HEAD = """\
<!-- Generated: python docs/verbs.py > docs/verbs.md. Do not edit this page. -->

# Commands

This page lists every command of dragoman, with its arguments and options. `dragoman COMMAND --help`
prints the same text. The exit code is 0 for success, 1 for an error, 2 for a wrong command line,
and 130 if the command was interrupted.
"""


def verbs_page() -> str:
    """The whole page."""
    parts = [_HEAD, _contents()]
    for panel, verbs in PANELS.items():
        parts.append(f"\n## {panel}\n")
        for name, verb in verbs.items():
            if verb is GROUP:
                parts += [_verb(f"data {one}", made) for one, made in GROUP.commands.items()]
            else:
                parts.append(_verb(name, verb))
    return "".join(parts)


def verbs() -> Iterator[tuple[str, Any]]:
    """Every verb with its name, as ``data show`` is one."""
    for panel in PANELS.values():
        for name, verb in panel.items():
            if verb is GROUP:
                yield from ((f"data {one}", made) for one, made in GROUP.commands.items())
            else:
                yield name, verb


def _contents() -> str:
    rows = [
        f"| [`{name}`](#dragoman-{name.replace(' ', '-')}) | {_first_sentence(verb)} |\n"
        for name, verb in verbs()
    ]
    return "\n| command | what it does |\n|---|---|\n" + "".join(rows)


def _first_sentence(verb: Any) -> str:
    (first, *_) = re.split(r"\n\s*\n", verb.help or "")
    return _cell(re.split(r"(?<=[.:])\s", " ".join(first.split()))[0].rstrip(":."))


def _verb(name: str, verb: Any) -> str:
    kind = arguments_of(verb)
    hints, helps = get_type_hints(kind), verb.help_of_fields()
    usage, given, options = [], [], []
    for one in fields(kind):
        default, value = _default(one), _placeholder(one, hints[one.name])
        text = _cell(helps.get(one.name, ""))
        if "is_argument" in one.metadata:
            usage.append(value if one.metadata["default"] is ... else f"[{value.strip('[]')}]")
            given.append(f"| `{_piped(value)}` | {text} |\n")
            continue
        names = ", ".join(f"`{name}`" for name in option_names(one))
        value = f" `{_piped(value)}`" if value else ""
        options.append(f"| {names}{value} | {default} | {text} |\n")
    pieces = ([] if not options else ["[OPTIONS]"]) + usage
    head = f"\n### dragoman {name}\n\n```text\ndragoman {' '.join([name, *pieces])}\n```\n"
    page = f"{head}\n{_prose(verb.help)}"
    if given:
        page += "\n| argument | what it is |\n|---|---|\n" + "".join(given)
    if options:
        page += "\n| option | default | what it does |\n|---|---|---|\n" + "".join(options)
    return page


def arguments_of(verb: Any) -> Any:
    """The class whose fields are the arguments and options of a verb."""
    return next(iter(get_type_hints(verb.verb).values()))


def option_names(one: Field[Any]) -> list[str]:
    """How an option may be given: ``--no-page`` too where it is on by itself."""
    long = "--" + one.name.strip("_").replace("_", "-")
    off = [f"--no-{long[2:]}"] if _value(one) is True else []
    return [long, *off, *one.metadata.get("short", ())]


def _value(one: Field[Any]) -> Any:
    """The default of an option."""
    if "default" in one.metadata:
        return one.metadata["default"]
    if "of" in one.metadata:
        return one.metadata["of"]().model_fields[one.name].default
    return None if one.default is MISSING else one.default


def _placeholder(one: Field[Any], hint: Any) -> str:
    """What stands for the value of an argument or option; nothing for a switch."""
    if one.metadata.get("metavar"):
        return str(one.metadata["metavar"])
    if "of" in one.metadata:
        hint = one.metadata["of"]().model_fields[one.name].annotation
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not NoneType]
    if kinds and get_origin(kinds[0]) is tuple:
        hint, kinds = kinds[0], list(get_args(kinds[0]))
    if get_origin(hint) is Literal:
        return "|".join(map(str, kinds))
    if bool in kinds:
        return ""
    if "is_argument" in one.metadata:
        return one.name.strip("_").upper()
    told = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}
    if get_origin(hint) is tuple:
        return " ".join(told[kind] for kind in kinds)
    return told.get(kinds[0], "VALUE")


def _prose(text: str) -> str:
    """A docstring as Markdown; its examples become one block."""
    prose, examples = [], []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        line = " ".join(paragraph.split()).removeprefix("Example: ")
        if line.rstrip(":") == "Examples":
            continue
        if re.match(r"(dragoman [a-z]|printf )", line) and not re.search(r"[a-z]\.$", line):
            examples.append(line.replace("\\\\", "\\"))
        else:
            prose.append(line)
    page = "".join(f"{_escaped(line)}\n\n" for line in prose)
    if examples:
        page += "```sh\n" + "".join(f"{line}\n" for line in examples) + "```\n"
    return page.rstrip("\n") + "\n"


def _escaped(text: str) -> str:
    return text.replace("``", "`").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _piped(text: str) -> str:
    return text.replace("|", "\\|")


def _default(one: Field[Any]) -> str:
    value = _value(one)
    if value in (None, False, ..., "", []):
        return ""
    return "on" if value is True else f"`{value}`"


if __name__ == "__main__":
    print(verbs_page(), end="")
