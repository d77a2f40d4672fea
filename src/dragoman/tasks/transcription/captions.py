"""Files with the words of a recording: text, SubRip, WebVTT, tab-separated or JSON.

The layout is that of Whisper's writers (https://github.com/openai/whisper), so programs that read
their files can read these. There is one difference: ``&`` and ``<`` are escaped as WebVTT requires.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

CaptionFormat = Literal["text", "srt", "vtt", "tsv", "json"]
ENDING: dict[CaptionFormat, str] = {
    "text": ".txt", "srt": ".srt", "vtt": ".vtt", "tsv": ".tsv", "json": ".json",
}  # fmt: skip
"""The file ending of each format."""


@dataclass(frozen=True)
class SpokenWord:
    """A word, and the times at which it is spoken."""

    text: str
    begin: float
    """The beginning of the word, in seconds."""
    end: float
    """The end of the word, in seconds."""
    confidence: float | None = None
    """The probability of the word given the words before it, from 0 to 1; None if it is not
    known."""


@dataclass(frozen=True)
class Segment:
    """A part of a recording with its text."""

    text: str
    begin: float
    """The beginning of the segment, in seconds."""
    end: float
    """The end of the segment, in seconds."""
    words: Sequence[SpokenWord] = ()
    """The words of the segment, if they were requested."""


def captions(
    segments: Iterable[Segment], layout: CaptionFormat, language: str | None = None
) -> str:
    """Return the content of a file in the format ``layout``. Segments without words are left out.
    ``language``: the code of the language, which only JSON contains."""
    parts = [segment for segment in segments if segment.text.strip()]
    match layout:
        case "text":
            return "".join(f"{_line(part.text)}\n" for part in parts)
        case "srt":
            return "".join(
                f"{number}\n{_times(part, ',', hours=True)}\n{_cue(part.text)}\n\n"
                for number, part in enumerate(parts, start=1)
            )
        case "vtt":
            cues = (f"{_times(part, '.')}\n{_escape(_cue(part.text))}\n\n" for part in parts)
            return "WEBVTT\n\n" + "".join(cues)
        case "tsv":
            rows = (
                f"{_thousandths(part.begin)}\t{_thousandths(part.end)}\t{_line(part.text)}\n"
                for part in parts
            )
            return "start\tend\ttext\n" + "".join(rows)
        case "json":
            return json.dumps(_record(parts, language), ensure_ascii=False) + "\n"


def _record(parts: Sequence[Segment], language: str | None) -> dict[str, Any]:
    return {
        "text": " ".join(_line(part.text) for part in parts),
        "segments": [
            {
                "id": number,
                "start": round(part.begin, 3),
                "end": round(part.end, 3),
                "text": _line(part.text),
                **({"words": [word_record(word) for word in part.words]} if part.words else {}),
            }
            for number, part in enumerate(parts)
        ],
        **({} if language is None else {"language": language}),
    }


def word_record(word: SpokenWord) -> dict[str, Any]:
    """Return the fields of a word in JSON, as the clients of OpenAI read them."""
    entry = {"word": word.text, "start": round(word.begin, 3), "end": round(word.end, 3)}
    return entry if word.confidence is None else entry | {"probability": round(word.confidence, 4)}


def _line(text: str) -> str:
    return " ".join(text.split())


def _cue(text: str) -> str:
    """Return the text of a caption, without arrows, which it must not contain."""
    return _line(text).replace("-->", "->")


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _times(segment: Segment, mark: str, *, hours: bool = False) -> str:
    begin, end = (_clock(at, mark, hours=hours) for at in (segment.begin, segment.end))
    return f"{begin} --> {end}"


def _clock(seconds: float, mark: str, *, hours: bool) -> str:
    """Format a time. ``mark`` comes before the thousandths; with ``hours``, hours are written even
    if they are 0."""
    total, thousandths = divmod(_thousandths(seconds), 1_000)
    minutes, rest = divmod(total, 60)
    hour, minute = divmod(minutes, 60)
    shown = f"{hour:02d}:" if hours or hour else ""
    return f"{shown}{minute:02d}:{rest:02d}{mark}{thousandths:03d}"


def _thousandths(seconds: float) -> int:
    return round(seconds * 1_000)
