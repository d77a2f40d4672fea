"""What verbs take: one declaration an option, with its help and its bounds."""

from __future__ import annotations

import re
from dataclasses import fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from command_line import Dragoman

from dragoman.cli.app import PANELS
from dragoman.cli.data import GROUP
from dragoman.console.lines import PartsArguments
from dragoman.console.options import (
    VerbCommand,
    arguments,
    option,
    setting,
    translator_settings,
    values_of,
)

VERBS = [one for verbs in PANELS.values() for one in verbs.values() if one is not GROUP]
VERBS += GROUP.commands.values()


def taken(verb: VerbCommand) -> type[Any]:
    (kind,) = (hint for name, hint in get_type_hints(verb.verb).items() if name != "return")
    return kind  # type: ignore[no-any-return]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb.name))
def test_every_option_has_help(verb: VerbCommand) -> None:
    helps = verb.help_of_fields()
    assert {one.name for one in fields(taken(verb)) if len(helps.get(one.name, "")) < 4} == set()


def plain(annotation: Any) -> Any:
    """``str`` of a choice, a tuple of what may be repeated, what may be missing without None."""
    if get_origin(annotation) is list:
        return tuple[get_args(annotation)[0], ...]
    if get_origin(annotation) is Literal:
        return str
    one, *others = (part for part in get_args(annotation) or (annotation,) if part is not NoneType)
    return annotation if others else one


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb.name))
def test_an_option_that_is_a_setting_is_of_its_type(verb: VerbCommand) -> None:
    hints = get_type_hints(taken(verb))
    for one in fields(taken(verb)):
        if "of" in one.metadata:
            of = one.metadata["of"]().model_fields[one.name]
            assert plain(hints[one.name]) == plain(of.annotation), one.name
            may_be_none = NoneType in get_args(hints[one.name])
            if get_origin(hints[one.name]) is list:  # given never, it is empty
                continue
            assert may_be_none == (one.metadata.get("default", of.default) is None), one.name


@arguments
class DigArguments:
    """What a verb of this test takes."""

    depth: int = option(3, "-d", ge=1)
    """How deep."""
    mbr: int = setting(translator_settings)
    whole: bool = setting(translator_settings)
    """The whole garden."""


def test_an_option_is_declared_once(capsys: pytest.CaptureFixture[str]) -> None:
    given: list[DigArguments] = []

    def dig(args: DigArguments) -> None:
        """Dig."""
        given.append(args)

    dig.__annotations__["args"] = DigArguments

    def call(*words: str) -> int:
        with pytest.raises(SystemExit) as end:
            VerbCommand(dig)(list(words))
        return int(str(end.value.code))

    assert call("-d", "4", "--whole") == 0
    assert (given[-1].depth, given[-1].mbr, given[-1].whole) == (4, 0, True)
    assert values_of(given[-1], translator_settings) == {"mbr": 0, "whole": True}
    assert call("--depth=5") == 0 and given[-1].depth == 5
    assert call("--depth", "0") == call("--mbr", "2000") == 2
    err = capsys.readouterr().err
    assert "'--mbr'" in err and "1024" in err and len(given) == 2
    assert call("--help") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "-d, --depth" in told and "How deep. [default: 3; x>=1]" in told
    assert "Minimum Bayes risk decoding" in told and "0<=x<=1024" in told
    assert "The whole garden." in told and "single ones" not in told  # what stands here goes first


@pytest.mark.parametrize("verb", ["classify", "fill", "parse", "score", "tag", "translate"])
def test_how_a_verb_works_in_parts_is_listed_last(dragoman: Dragoman, verb: str) -> None:
    kind = taken(next(one for one in VERBS if one.name == verb))
    names = [f"--{name}" for name in ("on", "part", "lines", "field", "into", "mixed")]
    listed = re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", dragoman(verb, "--help").out, re.MULTILINE)
    assert listed[-7:] == [*names, "--help"] and "--to" in listed
    assert issubclass(kind, PartsArguments)
