"""What is said in a recording, as files: text, SubRip, WebVTT, tab-separated or JSON.

The layout is that of Whisper's writers (https://github.com/openai/whisper), so that what reads
theirs reads ours. One thing differs: ``&`` and ``<`` are written as WebVTT wants them.
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
"""Of a file of each format."""


@dataclass(frozen=True)
class SpokenWord:
    """A word, and when it is said."""

    text: str
    begin: float
    """Seconds."""
    end: float
    """Seconds."""
    confidence: float | None = None
    """From 0 to 1."""


@dataclass(frozen=True)
class Segment:
    """What is said in a part of a recording."""

    text: str
    begin: float
    """Seconds."""
    end: float
    """Seconds."""
    words: Sequence[SpokenWord] = ()
    """Where they were asked for."""


def captions(
    segments: Iterable[Segment], layout: CaptionFormat, language: str | None = None
) -> str:
    """The whole file. Segments in which nothing is said are passed over. ``language``: a code, for
    JSON."""
    said = [segment for segment in segments if segment.text.strip()]
    match layout:
        case "text":
            return "".join(f"{_line(one.text)}\n" for one in said)
        case "srt":
            return "".join(
                f"{number}\n{_times(one, ',', hours=True)}\n{_cue(one.text)}\n\n"
                for number, one in enumerate(said, start=1)
            )
        case "vtt":
            cues = (f"{_times(one, '.')}\n{_escaped(_cue(one.text))}\n\n" for one in said)
            return "WEBVTT\n\n" + "".join(cues)
        case "tsv":
            rows = (
                f"{_thousandths(one.begin)}\t{_thousandths(one.end)}\t{_line(one.text)}\n"
                for one in said
            )
            return "start\tend\ttext\n" + "".join(rows)
        case "json":
            return json.dumps(_record(said, language), ensure_ascii=False) + "\n"


def _record(said: Sequence[Segment], language: str | None) -> dict[str, Any]:
    return {
        "text": " ".join(_line(one.text) for one in said),
        "segments": [
            {
                "id": number,
                "start": round(one.begin, 3),
                "end": round(one.end, 3),
                "text": _line(one.text),
                **({"words": [_of_word(word) for word in one.words]} if one.words else {}),
            }
            for number, one in enumerate(said)
        ],
        **({} if language is None else {"language": language}),
    }


def _of_word(word: SpokenWord) -> dict[str, Any]:
    told = {"word": word.text, "start": round(word.begin, 3), "end": round(word.end, 3)}
    return told if word.confidence is None else told | {"probability": round(word.confidence, 4)}


def _line(text: str) -> str:
    """On one line, without tabs."""
    return " ".join(text.split())


def _cue(text: str) -> str:
    """As the text of a cue, which no arrow may stand in."""
    return _line(text).replace("-->", "->")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _times(segment: Segment, mark: str, *, hours: bool = False) -> str:
    begin, end = (_clock(at, mark, hours=hours) for at in (segment.begin, segment.end))
    return f"{begin} --> {end}"


def _clock(seconds: float, mark: str, *, hours: bool) -> str:
    """``mark``: before the thousandths; ``hours``: also where there are none."""
    total, thousandths = divmod(_thousandths(seconds), 1_000)
    minutes, rest = divmod(total, 60)
    hour, minute = divmod(minutes, 60)
    shown = f"{hour:02d}:" if hours or hour else ""
    return f"{shown}{minute:02d}:{rest:02d}{mark}{thousandths:03d}"


def _thousandths(seconds: float) -> int:
    return round(seconds * 1_000)
