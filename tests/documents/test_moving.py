"""Codes go where their words went, each as often as it may."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_echo import TEXT

from dragoman.documents.placing import MovedSentence, move_codes
from dragoman.documents.projection import Alignment, project
from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import Target, Unit
from dragoman.formats.units.inline import FoundCode, message_unit, unit_of, write_unit
from dragoman.forms.shown_words import ShownWord, words_of

MARK = re.compile(r"<(/?)([a-z]+)>|\{\d\}")


def unit(text: str, repeats: str = "") -> Unit:
    """A text with elements and placeholders; those named in ``repeats`` may stand several times."""
    found = []
    for one in MARK.finditer(text):
        name = one[2] or ""
        shows = one[0].startswith("{")
        opens, closes = ("", name) if one[1] else (name, "")
        found.append(FoundCode(*one.span(), opens, closes, shows, bool(name) and name in repeats))
    return unit_of(text, found)


def told(source: Unit, target: str, links: dict[str, str] | None = None) -> Target | None:
    """Where the codes go. ``links``: each word of the target and the one that it comes from; by
    itself each word comes from the same one."""
    (ids,), (others,) = TEXT.encode([source.text.strip()]), TEXT.encode([target])
    pieces = TEXT.pieces(ids)
    words = words_of(target, TEXT.pieces(others), [0.0] * len(others))
    alignment = np.zeros((len(others), len(ids)))
    begins = [one.first for one in words_of(source.text.strip(), pieces, [0.0] * len(ids))]
    texts = [one.text for one in words_of(source.text.strip(), pieces, [0.0] * len(ids))]
    for word in words:
        wanted = (links or {}).get(word.text, word.text)
        alignment[word.first : word.first + word.count, begins[texts.index(wanted)]] = 1
    return target_of(source, target, pieces, words, alignment)


def target_of(
    source: Unit, text: str, pieces: list[str], words: list[ShownWord], alignment: Alignment
) -> Target | None:
    begin, end = len(source.text) - len(source.text.lstrip()), len(source.text.rstrip())
    sentence = MovedSentence(begin, end, text, pieces, words, alignment)
    return move_codes(source, [sentence], [source.text[:begin], source.text[end:]])


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Where <b>is</b> the bread", "the bread is Where", "the bread <b>is</b> Where"),
        ("<b>Where is</b> the bread", "is the bread Where", "<b>is</b> the bread <b>Where</b>"),
        ("A <b>small <i>man</i></b> eats", "eats A man small", "eats A <b><i>man</i> small</b>"),
        ("{0} of {1}", "of", "{0} of {1}"),
        ("A {0} man eats", "eats A man", "eats A {0} man"),
        ("A man eats {0}.", "eats A man.", "eats A man {0}."),
        ("A <b>small</b> man", "A man", "A man"),
    ],
)
def test_codes_follow_their_words(source: str, target: str, expected: str) -> None:
    one = unit(source, repeats="bi")
    found = told(one, target)
    assert found is not None and write_unit(one, found) == expected


def test_an_element_that_must_stand_once_is_not_torn_apart() -> None:
    assert told(unit("<a>Where is</a> the bread"), "is the bread Where") is None
    assert told(unit("A <a>small</a> man"), "A man") is None
    assert told(unit("<a>Where is</a> the bread"), "the bread is Where") == [
        "the bread ", 0, "is Where", 1,
    ]  # fmt: skip


PIECES = st.sampled_from(["A ", "small ", "man ", "eats ", "<b>", "</b>", "<a>", "</a>", "{0} "])


@given(st.lists(PIECES, max_size=12).map("".join), st.integers(0, 999))
def test_whatever_was_looked_at_each_code_stands_as_often_as_it_may(text: str, seed: int) -> None:
    one = unit(text, repeats="b")
    target = "Das Tier, eats A small dinosaur."
    (ids,), (others,) = TEXT.encode([one.text.strip()]), TEXT.encode([target])
    alignment = np.random.default_rng(seed).dirichlet([0.1] * max(1, len(ids)), size=len(others))
    if not len(ids):
        return
    words = words_of(target, TEXT.pieces(others), [0.0] * len(others))
    found = target_of(one, target, TEXT.pieces(ids), words, alignment)
    if found is None:
        return
    assert "".join(part for part in found if isinstance(part, str)).strip() == target
    begun: list[int] = []
    for number in (part for part in found if isinstance(part, int)):
        code = one.tags[number]
        if code.partner is None:
            continue
        if code.opens:
            begun.append(number)
        else:
            assert begun.pop() == code.partner, "elements stand in each other"
    for number, code in enumerate(one.tags):
        if not code.repeats or code.partner is None:
            assert found.count(number) == 1


def test_placeholders_of_messages() -> None:
    for text, kept in (
        ("%(count)d files of %s", ["%(count)d", "%s"]),
        ("{name} has {{x}} ${y} %{z}", ["{name}", "{{x}}", "${y}", "%{z}"]),
        ("it has %1$s, %d%%", ["%1$s", "%d", "%%"]),
        ("100 % of it, 5 %", []),
        ("a <b>bold</b> &nbsp; word", ["<b>", "</b>", "&nbsp;"]),
        ("50% done", []),
    ):  # fmt: skip
        one = message_unit(text)
        assert [code.written for code in one.tags] == kept
        assert write_unit(one, one.as_it_is) == text


def test_each_cue_of_a_sentence_has_words_if_there_are_enough() -> None:
    """Wherever the model looked: an empty cue, or one of a full stop alone, reads like a fault."""
    times = "00:00:01,000 --> 00:00:02,000\n"
    data = f"1\n{times}one two\n\n2\n{times}three four\n\n3\n{times}five.\n".encode()
    (sentence,) = read_document(data, "a.srt").units
    pieces = ["one", " two", " three", " four", " five", "."]
    words = [ShownWord(" " * (n > 0), f"w{n}", 0.0, n, 1) for n in range(4)]
    words.append(ShownWord("", ".", 0.0, 4, 1))
    at_the_first = np.eye(6)[[0, 0, 0, 0, 5]]
    parts = project(sentence.tags, sentence.text, pieces, words, at_the_first)
    assert len(parts) == 3 and "".join(parts) == "w0 w1 w2 w3."
    assert all(any(map(str.isalnum, part)) for part in parts), parts
