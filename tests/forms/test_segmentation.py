"""Sentences out of running text, and the text back from them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.forms.segmentation import Sentence, segment

LANGUAGES = ["en", "de", "ko", "fr", "es", "it", "pt", "nl", "ja", "xx", "de-AT"]

# Sentences are separated by "|", which stands for one space.
SPLITS = {
    "en": [
        "It rains.|Does it?|Yes!|We stay in.",
        "Mr. Smith met Dr. J. Doe at 5 p.m. in Rome.|They talked, e.g. about No. 7 and Fig. 3.",
        "He lives in the U.S. Army barracks.|She left the U.S.|They wrote.",
        "Bring apples, pears, etc. and wine.|We have bread, cheese, etc.|The rest is yours.",
        'He said: "Stop!" and went.|"Why?" asked she.|(Nobody knew.)|Then it was 3.5 degrees.',
        "Wait... what?|Well…|That was it.",
        "It closes at 5 p.m.|Bring a coat.",
        "Use ``a. B`` for that.|``open`` is a function.|:func:`x` too.",
        "The answer was no.|He left.",
    ],
    "de": [
        "Am 3. Oktober kam Dr. Braun.|Im 19. Jahrhundert war das z.B. anders.",
        "Er wurde 1998 geboren.|Das war um 10 Uhr.|Friedrich II. König von Preußen schwieg.",
        "Wir haben Äpfel, Birnen usw. gekauft.|Sie kosteten ca. 5 Euro bzw. Franken.",
        "„Halt!“, rief er.|„Warum?“|Niemand wusste es, vgl. Abb. 3 auf S. 12.",
        "Das geschah 1998.|Danach kam nichts mehr.",
    ],
    "ko": [
        "비가 옵니다.|우리는 집에 있어요.|왜요?|모릅니다!",
        "``open`` 은 함수입니다.|``close`` 도 그렇습니다.|버전 3.12에서 바뀌었습니다, e.g. 여기.",
        "이것은 모듈입니다.|os 모듈도 있습니다.",
    ],
    "fr": ["M. Dupont est là.|Il a payé 3,50 euros, etc.|Le reste est à vous."],
}


@pytest.mark.parametrize(
    ("language", "marked"), [(code, text) for code, texts in SPLITS.items() for text in texts]
)
def test_sentences(language: str, marked: str) -> None:
    found = segment(marked.replace("|", " "), language)
    assert [sentence.text for sentence in found] == marked.split("|")


def test_scripts_without_spaces() -> None:
    text = "今日は雨です。「行こう。」と言った！明日は？"
    found = segment(text, "ja")
    assert [s.text for s in found] == ["今日は雨です。", "「行こう。」", "と言った！", "明日は？"]
    assert [s.text for s in segment("갔다.그리고 왔다.", "ko")] == ["갔다.", "그리고 왔다."]


def test_lines_and_paragraphs() -> None:
    text = (
        "  A title\n"
        "This paragraph was wrapped by whoever wrote it, since the next word\n"
        "Had no room. The last line is short.\n"
        "\n\n"
        "1. First point\n"
        "2. Second. With two sentences.\r\n"
        "- a dash\n"
    )
    found = segment(text, "en")
    assert found == [
        Sentence("", "  "),
        Sentence("A title", "\n"),
        Sentence(
            "This paragraph was wrapped by whoever wrote it, since the next word\nHad no room.", " "
        ),
        Sentence("The last line is short.", "\n\n\n"),
        Sentence("1. First point", "\n"),
        Sentence("2. Second.", " "),
        Sentence("With two sentences.", "\r\n"),
        Sentence("- a dash", "\n"),
    ]


def test_short_lines_are_not_wrapped() -> None:
    assert len(segment("roses are red\nviolets are blue\nsugar is sweet", "en")) == 3


@given(
    st.one_of(st.text(), st.text(alphabet="aB1.。!? \n\t\r\"'`)다한*-…", max_size=60)),
    st.sampled_from(LANGUAGES),
)
@example("", "en")
@example(" \n ", "en")
@example("a.\n\n b", "en")
def test_nothing_is_lost(text: str, language: str) -> None:
    found = segment(text, language)
    assert "".join(sentence.text + sentence.gap for sentence in found) == text
    for place, sentence in enumerate(found):
        assert sentence.text == sentence.text.strip()
        assert sentence.text or place == 0
        assert not sentence.gap.strip()
        assert "\n\n" not in sentence.text


@pytest.mark.parametrize("part", [" ", ".", "`", "``", "\n", "a\n", '."', "x", "3. ", "。", " ."])
def test_long_texts_take_time_in_proportion(part: str) -> None:
    """Half a million characters; anything quadratic would run into the time limit of the suite."""
    text = part * (500_000 // len(part) // (10 if len(part) == 3 else 1)) + "x"
    assert "".join(s.text + s.gap for s in segment(text, "de")) == text
