"""Plural and select forms of ICU: each branch is translated, and the message says the same."""

from __future__ import annotations

import json
import random
import re

import pytest
from upper_case import GERMAN, raised, upper

from dragoman.formats.catalogue import read_document
from dragoman.formats.units.icu import pattern_of


def texts(message: str) -> list[str]:
    document = read_document(json.dumps({"key": message}).encode(), "a.json")
    return [unit.text for unit in document.units]


def in_upper_case(message: str) -> str:
    found: str = json.loads(raised(json.dumps({"key": message}), "a.json"))["key"]
    return found


# ---- what a program shows, by a reading of its own


def shown(message: str, values: dict[str, str]) -> str:
    """A message as ICU shows it; a number is shown as its digits."""
    text, end = _shown(message, 0, values, None)
    assert end == len(message), message
    return text


def _shown(message: str, at: int, values: dict[str, str], number: str | None) -> tuple[str, int]:
    made = ""
    while at < len(message) and message[at] != "}":
        here, following = message[at], message[at + 1 : at + 2]
        if here == "'" and following == "'":
            made, at = made + "'", at + 2
        elif here == "'" and following and following in ("{}#" if number else "{}"):
            at += 1
            while message[at] != "'" or message[at + 1 : at + 2] == "'":
                made += message[at]
                at += 2 if message[at] == "'" else 1
            at += 1
        elif here == "#" and number:
            made, at = made + number, at + 1
        elif here == "{":
            head = re.compile(r"\{\s*(\w+)\s*(?:,\s*(\w+)\s*)?").match(message, at)
            assert head is not None
            if message[head.end()] == "}":
                made, at = made + values[head[1]], head.end() + 1
                continue
            branches, at = {}, head.end() + 1
            own = values[head[1]] if head[2] == "plural" else number
            while message[at:].lstrip()[0] != "}":
                selector = re.compile(r"\s*([^\s{]+)\s*\{").match(message, at)
                assert selector is not None
                branches[selector[1]], at = _shown(message, selector.end(), values, own)
                at += 1
            at = message.index("}", at) + 1
            value = values[head[1]]
            chosen = "one" if head[2] == "plural" and value == "1" else value
            exact = branches.get(f"={value}") if head[2] == "plural" else None
            made += exact or branches.get(chosen, branches["other"])
        else:
            made, at = made + here, at + 1
    return made, at


def drawn(draw: random.Random, deep: int = 0, counts: bool = False) -> str:
    """A message, or a branch of one."""
    pieces = []
    for _ in range(draw.randint(1, 4)):
        pieces.append(
            draw.choice(
                ["one two ", "it''s ", "a'b ", "{0} ", "<b>word</b> ", "'{'braces'}' ", "x. ",
                 "{ 0 }", "# ", "'#'" if counts else "n", "&amp; ", '<a href="{0}">it</a>', "''"]
            )
        )  # fmt: skip
        if deep < 3 and draw.random() < 0.4:
            kind = draw.choice(["plural", "select"])
            names = ["=0", "one", "other"] if kind == "plural" else ["a", "other", "b"]
            branches = " ".join(
                f"{one}{{{drawn(draw, deep + 1, counts or kind == 'plural')}}}" for one in names
            )
            space = draw.choice(["", " ", "\n  "])
            pieces.append(f"{{{kind[0]},{space}{kind},{space} {branches}{space}}}")
    return "".join(pieces)


def test_a_program_shows_the_same_in_upper_case() -> None:
    draw = random.Random(1)
    read = 0
    for _ in range(120):
        message = drawn(draw)
        if "plural" not in message and "select" not in message:
            continue
        assert pattern_of(message) is not None, message
        read += 1
        made = in_upper_case(message)
        for count in ("0", "1", "5"):
            for kind in ("a", "b", "c"):
                values = {"p": count, "s": kind, "0": "7"}
                before, after = shown(message, values), shown(made, values)
                for kept in ("<b>", "</b>", '<a href="7">', "</a>", "&amp;"):
                    before = before.replace(kept.upper(), kept)
                assert re.sub(r"<.*?>|&amp;|\s", lambda m: m[0].strip(), before).upper() == (
                    re.sub(r"<.*?>|&amp;|\s", lambda m: m[0].strip(), after).upper()
                ), message
                words = re.sub(r"<.*?>|&amp;", "", after)
                assert words == words.upper(), made
    assert read > 40


def test_each_branch_is_a_text_and_the_form_a_code() -> None:
    message = "You have {n, plural, =0 {no files} one {# file} other {# files}} in <b>{where}</b>."
    assert texts(message) == ["You have in .", "no files", "file", "files"]
    assert in_upper_case(message) == (
        "YOU HAVE {n, plural, =0 {NO FILES} one {# FILE} other {# FILES}} IN <b>{where}</b>."
    )
    inner = "{n, plural, offset:1 one {# cat} other {{when, date, ''yy} '{#}' cats}}"
    raised_inner = inner.replace("cats", "CATS").replace("cat", "CAT")
    assert in_upper_case(f"{{g,select,her {{She has {inner}}} other{{}}}}") == (
        f"{{g,select,her {{SHE HAS {raised_inner}}} other{{}}}}"
    )


@pytest.mark.parametrize(
    "message",
    [
        "{n, plural, one {# file}}",  # no other
        "{n, plural, one {# file} other {# files}",
        "{n, plural, one {# file} other {# files}}}",
        "{n, plural, uno {# file} other {# files}}",
        "{n, plural, one {# file} other}",
        "{n, plural, other {a '{ b}}",
        "{, plural, other {a}} and {n, plural, other {b}}",
        "{a, select, other {" * 12 + "one two" + "}}" * 12,
    ],
)
def test_what_is_no_form_of_icu_is_kept_and_told(message: str) -> None:
    data = json.dumps({"key": message, "other": "a word"}).encode()
    document = read_document(data, "a.json")
    assert [unit.text for unit in document.units] == ["a word"]
    assert document.join(upper(document), GERMAN) == data.replace(b"a word", b"A WORD")
    (note,) = document.notes
    assert note == "a.json: 1 message with invalid ICU plural or select forms stays as written"


@pytest.mark.parametrize("answer", ["l'", "{", "a } b", "#", "'", "''", "'{", "x, plural, {"])
def test_no_translation_breaks_a_form(answer: str) -> None:
    message = "One {x} of {n, plural, one {# file} other {# {x} files}}"
    check_answer(message, answer)


def test_a_translation_does_not_go_on_with_a_quotation() -> None:
    check_answer("a'{'b {n, plural, one {# file} other {'#'x files}}", "'s")


def check_answer(message: str, answer: str) -> None:
    document = read_document(json.dumps([message]).encode(), "a.json")
    targets = [
        [answer if isinstance(one, str) else one for one in unit.as_it_is]
        for unit in document.units
    ]
    (made,) = json.loads(document.join(targets, GERMAN))
    told = shown(made, {"x": "7", "n": "1"})
    assert answer in told or made == message
    assert made == message or told.count(answer) >= 2
