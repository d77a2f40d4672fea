"""What is seen in translations without the model: what they lost, and sources that are of another
language."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from command_line import Dragoman

from dragoman.formats.units.document import Code, Unit
from dragoman.forms.lexicon import Lexicon
from dragoman.tasks.translation import verb
from dragoman.tasks.translation.proofreading.plain import PlainCheck, find_lost
from dragoman.tasks.translation.result import Translation
from dragoman.tasks.translation.verb import TranslateArguments

KEPT = (
    "{name}", "{0}", "{}", "%s", "%(x)d", "%1$s", "${x}", "{{user}}", "https://example.org/a?b=c",
    "me.too+x@mail.example.org",
)  # fmt: skip


@pytest.mark.parametrize("kept", KEPT)
def test_what_a_translation_has_lost(kept: str) -> None:
    source = f"Send it to {kept}, please, and again {kept}."
    both = [(place, source[slice(*place)]) for place in find_lost(source, "Bitte senden.")]
    assert [text for _, text in both] == [kept, kept]
    assert [place[0] for place, _ in both] == [11, source.rindex(kept)]
    assert len(find_lost(source, f"Bitte an {kept} senden.")) == 1
    assert find_lost(source, f"An {kept} und {kept}.") == []


def test_text_without_them_has_lost_nothing() -> None:
    for text in (
        "50 % of it, 100% sure, $5 or 5 $.",
        "a < b {",
        "me @ home: x/y",
        "The dog. <b>",
        "0.5%p 올랐다",
        "5%für alle",
        "5%부터10%까지",
        "https://",
    ):
        assert find_lost(text, "") == [], text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("문서는 https://docs.example.org/3/에서 볼 수 있습니다.", "See https://docs.example.org/3/."),
        ("me@mail.example.org으로 보내세요.", "Send it to me@mail.example.org."),
        ("请访问https://example.org/a。谢谢", "Visit https://example.org/a. Thanks"),
        ("请发到me@example.org。", "Send it to me@example.org."),
        ("「https://example.org」を見て", "See https://example.org"),
        ("서버는 ``http://localhost:1234/``\\의 루트", "The root of ``http://localhost:1234/``."),
        ("파일 %d개를 지웁니다", "Delete %d files"),
        ("$name님, 안녕하세요", "Hello, $name"),
        ("Nüfusun %50 ve %5 kadarı", "50% and 5 % of the population"),
    ],
)  # fmt: skip
def test_words_that_touch_what_is_kept_are_not_of_it(source: str, text: str) -> None:
    assert find_lost(source, text) == []
    assert len(find_lost(source, "no such thing")) == 1 + ("%5" in source)


def test_all_that_is_kept_loses_nothing() -> None:
    draw = random.Random(1)
    for _ in range(300):
        pieces = [draw.choice([*KEPT, "the dog", "50 %", "(", "."]) for _ in range(6)]
        text = " ".join(pieces)
        draw.shuffle(pieces)
        assert find_lost(text, " ".join(pieces)) == []


ENGLISH = Lexicon.count(["the dog sleeps and the small bird sings in the green house"])
FRENCH = "le chien dort dans la maison et les oiseaux sont dans le jardin"


def found(*sources: str, lexicon: Lexicon | None = ENGLISH, language: str = "en") -> list[str]:
    check = PlainCheck(language, lambda: lexicon)
    for one in sources:
        check.take(one, "")
    return [one.code for one in check.doubts]


@pytest.mark.parametrize("lexicon", [ENGLISH, None])
def test_a_source_of_another_language(lexicon: Lexicon | None) -> None:
    assert found(FRENCH, lexicon=lexicon) == ["language"]
    assert found("강아지가 집에서 잠을 잔다", lexicon=lexicon) == ["language"]
    assert found("the dog sleeps in the green house", lexicon=lexicon) == []
    assert found("Zebras, quaggas", "42", "", "?!", lexicon=lexicon) == []
    assert found(FRENCH, lexicon=lexicon, language="fr") == []
    assert found(FRENCH, lexicon=lexicon, language="und") == []
    # One of a hundred is left to chance.
    assert found(FRENCH, *["the dog sleeps"] * 99, lexicon=lexicon) == []
    assert found(*[FRENCH] * 3, *["the dog sleeps"] * 97, lexicon=lexicon) == ["language"]


def test_what_is_told() -> None:
    check = PlainCheck("en", lambda: ENGLISH)
    check.take("the dog {name}", "der Hund")
    check.take("the dog {name}", "der Hund {name}")
    check.take(FRENCH, "…")
    # Of a document the placeholders of messages are codes, which are kept.
    check.take_targets([Unit("the dog", (Code(7, "{0}"),))], [["der Hund", 0]])
    first, second = map(str, check.doubts)
    assert first.startswith("1 of 4 texts") and "{name}" in first
    assert "1 of 4 texts reads as French" in second and "translates from English" in second


def test_from_the_shell(tiny_run: Path, tmp_path: Path, dragoman: Dragoman) -> None:
    """Once for all lines, by default; the answer itself is as ever."""
    lines, to = tmp_path / "a.en", tmp_path / "a.de"
    lines.write_text("The dog {name} sleeps.\n" * 3 + "The dog sleeps.\n", encoding="utf-8")
    said = dragoman("translate", tiny_run, lines, "--to", to)
    assert said.code == 0 and len(to.read_text(encoding="utf-8").splitlines()) == 4
    kept = to.read_text(encoding="utf-8").count("{name}")
    assert (f"{3 - kept} of 4 texts" in said.err) == (kept < 3)
    assert said.err.count("placeholder") == (kept < 3)
    said = dragoman("translate", tiny_run, FRENCH)
    assert said.code == 0 and "reads as French" in said.err
    page, to = tmp_path / "a.html", tmp_path / "b.html"
    page.write_text(f"<p>{FRENCH}.", encoding="utf-8")
    said = dragoman("translate", tiny_run, page, "--to", to)
    assert said.code == 0 and "1 of 1 text reads as French" in said.err, said.err


@pytest.mark.parametrize(
    "how", [{}, {"scores": True}, {"n_best": 2}, {"n_best": 1, "scores": True}]
)
def test_a_check_of_a_part_reads_the_best_translation_alone(how: dict[str, object]) -> None:
    args = cast(TranslateArguments, SimpleNamespace(**{"scores": False, "n_best": None} | how))
    other = SimpleNamespace(text="Ein Hund.", score=-2.5, expected_chrf=None)
    best = SimpleNamespace(
        text="Der\tHund 7.", score=-1.25, expected_chrf=None, alternatives=(other,)
    )
    written = verb._format(args, cast(Translation, best))
    assert verb._best_text(args, written) == "Der\tHund 7."
