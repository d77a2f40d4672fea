"""Captions are laid out as Whisper's are, and subtitles are read again as they were written."""

from __future__ import annotations

import json

import pytest

from dragoman.formats.catalogue import read_document
from dragoman.tasks.transcription.captions import CaptionFormat, Segment, SpokenWord, captions

SAID = [
    Segment("the cat sleeps", 0.0, 1.2345),
    Segment("   ", 2.0, 3.0),
    Segment("a\tb --> c\nd & <e>", 3_599.9996, 3_661.5),
]


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        ("text", "the cat sleeps\na b --> c d & <e>\n"),
        (
            "srt",
            (
                "1\n00:00:00,000 --> 00:00:01,234\nthe cat sleeps\n\n"
                "2\n01:00:00,000 --> 01:01:01,500\na b -> c d & <e>\n\n"
            ),
        ),
        (
            "vtt",
            (
                "WEBVTT\n\n00:00.000 --> 00:01.234\nthe cat sleeps\n\n"
                "01:00:00.000 --> 01:01:01.500\na b -> c d &amp; &lt;e>\n\n"
            ),
        ),
        (
            "tsv",
            "start\tend\ttext\n0\t1234\tthe cat sleeps\n3600000\t3661500\ta b --> c d & <e>\n",
        ),
    ],
)
def test_each_format(layout: CaptionFormat, wanted: str) -> None:
    assert captions(SAID, layout) == wanted


def test_json_has_words_where_there_are_some() -> None:
    word = SpokenWord("cat", 0.40001, 0.7, 0.98765)
    told = json.loads(captions([Segment("cat", 0.4, 0.7, [word]), *SAID], "json", "en"))
    assert told["text"] == "cat the cat sleeps a b --> c d & <e>" and told["language"] == "en"
    assert told["segments"][0] == {
        "id": 0, "start": 0.4, "end": 0.7, "text": "cat",
        "words": [{"word": "cat", "start": 0.4, "end": 0.7, "probability": 0.9877}],
    }  # fmt: skip
    assert "words" not in told["segments"][1] and len(told["segments"]) == 3
    assert "language" not in json.loads(captions(SAID, "json"))


@pytest.mark.parametrize("layout", ["srt", "vtt"])
def test_subtitles_are_read_again(layout: CaptionFormat) -> None:
    """By what translates subtitles."""
    content = captions([Segment("One & two < three.", 0.5, 2)], layout).encode()
    (unit,) = read_document(content, f"a.{layout}").units
    assert unit.text == "One & two < three."


@pytest.mark.parametrize("layout", ["text", "srt", "vtt", "tsv", "json"])
def test_nothing_said(layout: CaptionFormat) -> None:
    empty = {
        "text": "", "srt": "", "vtt": "WEBVTT\n\n", "tsv": "start\tend\ttext\n",
        "json": '{"text": "", "segments": []}\n',
    }  # fmt: skip
    assert captions([], layout) == captions(SAID[1:2], layout) == empty[layout]
