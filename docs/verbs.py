"""Writes verbs.md from the command line itself: python docs/verbs.py > docs/verbs.md

A verb's text is its docstring, an option's the one under its field; a test holds the page to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

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
    context, helps = verb.context_class(verb), verb.help_of_fields()
    given, options = [], []
    for param in verb.get_params(context)[:-1]:  # the last is --help
        names, told = param.get_help_record(context)
        text = _cell(helps.get(param.name, ""))
        if param.param_type_name == "argument":
            value = param.metavar or param.name.upper()
            given.append(f"| `{_piped(value)}` | {text} |\n")
        else:
            default = re.search(r"default: ([^];]+)", told)
            value = f"`{default[1]}`" if default else ""
            options.append(f"| `{_piped(names)}` | {value} | {text} |\n")
    usage = " ".join(["dragoman", name, *verb.collect_usage_pieces(context)])
    page = f"\n### dragoman {name}\n\n```text\n{usage}\n```\n\n{_prose(verb.help)}"
    if given:
        page += "\n| argument | what it is |\n|---|---|\n" + "".join(given)
    if options:
        page += "\n| option | default | what it does |\n|---|---|---|\n" + "".join(options)
    return page


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


if __name__ == "__main__":
    print(verbs_page(), end="")
