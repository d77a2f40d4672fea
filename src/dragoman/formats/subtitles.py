"""Subtitles: SubRip (``.srt``) and WebVTT (``.vtt``), https://www.w3.org/TR/webvtt1/.

A sentence that continues in the next cue is one unit, so that it is translated as a whole; its
translation is divided at the ends of the cues. Times, numbers, notes and styles stay as they are.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dragoman.formats.units.document import (
    BadDocument,
    Code,
    Splice,
    Target,
    Unit,
    line_of,
    says_something,
)
from dragoman.formats.units.encoding import TextDocument, decode
from dragoman.formats.units.inline import break_lines

_TIME = r"(?:\d{1,3}:)?\d{1,2}:\d{2}[,.]\d{1,3}"
_TIMES = re.compile(rf"[ \t]*({_TIME})[ \t]*-->[ \t]*({_TIME})(?:[ \t][^\r\n]*)?\r?(?:\n|\Z)")
_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_MARK = re.compile(r"</?[A-Za-z][^<>\n]{0,200}>|<\d[\d:.]{3,20}>|</>|\{\\[^{}\n]{0,200}\}")
_BLOCK = re.compile(r"(?:NOTE(?:[ \t].*)?|(?:STYLE|REGION)[ \t]*)\r?\n?\Z", re.DOTALL)
"""The beginning of a block of WebVTT that is not a cue."""
_SPEAKS = re.compile(r"\s*(?:[-–—]\s?|>>)")
"""The mark with which another speaker begins."""
_VOICE = re.compile(r"<v[ .][^<>\n]{0,200}>")
"""The tag with the speaker of a cue of WebVTT."""
_ENDS = re.compile(r"[.!?…。！？♪♫:][\"'”’»)\]]*\s*\Z")
_GOES_ON = re.compile(r"[\s.…]*[^\W\d_A-Z]")
_MOST_CUES = 6
"""The most cues of one sentence; a longer text has no punctuation."""
_ELEMENTS = {"b", "i", "u", "c", "v", "lang", "ruby", "rt", "font", "s"}


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a cue: its text, without the space around it."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _CueSlot:
    """A unit: the lines of one cue, or of several."""

    unit: Unit
    cues: tuple[tuple[_Line, ...], ...]
    codes: tuple[str | None, ...]
    """Each code as written; None for the end of a cue."""
    shown: tuple[tuple[str, tuple[int, ...]], ...]
    """The text of each cue, and the places of the spaces at which its lines end."""


@dataclass(frozen=True)
class Subtitles(TextDocument[_CueSlot]):
    """A file of subtitles as a document."""

    escapes: bool
    """True if ``&`` and ``<`` are written as entities."""

    @classmethod
    def read(cls, data: bytes, name: str, *, escapes: bool) -> Subtitles:
        """``escapes``: True for WebVTT, which has entities."""
        source = decode(data, name)
        cues = list(_cues(source.text, name, is_vtt=escapes))
        slots = [_slot(source.text, group, escapes) for group in _sentences(source.text, cues)]
        return cls(
            name, source, [slot for slot in slots if says_something(slot.unit.text)], escapes
        )

    def splices(self, slot: _CueSlot, unit: Unit, target: Target) -> Iterator[Splice]:
        """Divide a translation among the cues of a slot."""
        parts: list[Target] = [[]]
        for piece in target:
            if isinstance(piece, int) and slot.codes[piece] is None:
                parts.append([])
            else:
                parts[-1].append(piece)
        newline = "\r\n" if "\r\n" in self.source.text[:10_000] else "\n"
        for lines, part, (text, ends) in zip(slot.cues, parts, slot.shown, strict=True):
            written = ""
            for piece in break_lines(_strip(part), text, [(end, newline) for end in ends]):
                code = slot.codes[piece] if isinstance(piece, int) else None
                written += code or (self._escape(piece) if isinstance(piece, str) else "")
            # An empty line would end the cue, and many programs do not accept an empty cue.
            yield Splice(lines[0].begin, lines[-1].end, written.strip() or "\u200b")

    def _escape(self, text: str) -> str:
        return html.escape(text, quote=False) if self.escapes else text.replace("-->", "→")


def _strip(part: Target) -> Target:
    """Strip the space at the beginning and the end."""
    pieces = list(part)
    for place, side in ((0, str.lstrip), (-1, str.rstrip)):
        if pieces and isinstance(pieces[place], str):
            pieces[place] = side(str(pieces[place]))
    return pieces


def _cues(text: str, name: str, *, is_vtt: bool) -> Iterator[tuple[_Line, ...]]:
    """The text lines of each cue. SubRip does not know empty lines within a cue; text after one
    counts as another cue."""
    place, has_times = 0, False
    while place < len(text):
        times = _TIMES.match(text, place)
        if times is None:
            line = _line_at(text, place)
            if is_vtt and _BLOCK.match(line[0]) and not _TIMES.match(text, line.end()):
                place = _block_end(text, line.end())
                continue
            if "-->" in line[0]:
                raise BadDocument(
                    f"{name}, line {line_of(text, place)}: {line[0].strip()[:60]!r} is not the "
                    "time of a cue, such as 00:00:01,000 --> 00:00:02,500"
                )
            bare = line[0].strip()
            if is_vtt or not has_times or not bare or bare.isdigit():
                place = line.end()
                continue
        else:
            has_times = True
            place = times.end()
        lines = []
        while place < len(text):
            line = _line_at(text, place)
            bare = line[0].strip()
            if not bare or _TIMES.match(text, place):
                break
            begin = place + line[0].index(bare)
            lines.append(_Line(begin, begin + len(bare)))
            place = line.end()
        # Without an empty line between cues, the number of the next cue would count as text.
        if lines and _TIMES.match(text, place) and text[lines[-1].begin : lines[-1].end].isdigit():
            lines.pop()
        if lines:
            yield tuple(lines)
    if not has_times:
        raise BadDocument(
            f"{name} is not a subtitle file: it has no times, such as 00:00:01,000 --> 00:00:02,500"
        )


def _line_at(text: str, place: int) -> re.Match[str]:
    line = _LINE.match(text, place)
    assert line is not None, "there is always a line"
    return line


def _block_end(text: str, place: int) -> int:
    while place < len(text):
        line = _line_at(text, place)
        place = line.end()
        if not line[0].strip():
            break
    return place


def _sentences(text: str, cues: Sequence[tuple[_Line, ...]]) -> Iterator[list[tuple[_Line, ...]]]:
    """Group the cues that contain one sentence together. The speakers of one cue are separate."""
    group: list[tuple[_Line, ...]] = []
    for cue in cues:
        shown = [_MARK.sub("", text[line.begin : line.end]) for line in cue]
        if sum(_SPEAKS.match(line) is not None for line in shown) > 1:
            if group:
                yield group
            group = []
            speakers: list[list[_Line]] = []
            for line, said in zip(cue, shown, strict=True):
                if not speakers or _SPEAKS.match(said):
                    speakers.append([])
                speakers[-1].append(line)
            yield from ([tuple(lines)] for lines in speakers)
            continue
        if group:
            last = group[-1][-1]
            before = _MARK.sub("", text[last.begin : last.end])
            ended = _ENDS.search(before) or not _goes_on(before, shown[0])
            voices = {_voice(text, group[-1][0]), _voice(text, cue[0])}
            speaks = len(voices) > 1 or _SPEAKS.match(shown[0]) is not None
            if ended or speaks or len(group) == _MOST_CUES:
                yield group
                group = []
        group.append(cue)
    if group:
        yield group


def _voice(text: str, line: _Line) -> str:
    match = _VOICE.match(text, line.begin)
    return match[0] if match else ""


def _goes_on(before: str, text: str) -> bool:
    """True if a sentence continues in ``text``: after a comma, or with a small letter."""
    return (_GOES_ON.match(text) is not None and not text.lstrip()[:1].isupper()) or (
        before.rstrip().endswith((",", "-"))
    )


def _slot(text: str, cues: Sequence[tuple[_Line, ...]], escapes: bool) -> _CueSlot:
    unit_text, codes, written = "", list[Code](), list[str | None]()
    shown = []
    for number, cue in enumerate(cues):
        if number:
            # The code opens and closes an element, so that each cue with words keeps some.
            codes.append(Code(len(unit_text), opens=True, closes=True))
            written.append(None)
            unit_text += " "
        begins, ends = len(unit_text), []
        for line_number, line in enumerate(cue):
            if line_number:
                ends.append(len(unit_text) - begins)
                unit_text += " "
            said = text[line.begin : line.end]
            speaks = _SPEAKS.match(said)
            edges = [(0, speaks.end())] if speaks else []
            edges += [match.span() for match in _MARK.finditer(said, speaks.end() if speaks else 0)]
            for (_, end), (begin, until) in pairwise([(0, 0), *edges, (len(said), len(said))]):
                plain = said[end:begin]
                unit_text += html.unescape(plain) if escapes else plain
                if begin == len(said):
                    break
                tag = said[begin:until]
                name = re.match(r"</?([A-Za-z]+)", tag)
                is_element = name is not None and name[1].lower() in _ELEMENTS
                is_end = tag.startswith("</")
                opens, closes = is_element and not is_end, is_element and is_end
                codes.append(Code(len(unit_text), tag, opens=opens, closes=closes))
                written.append(tag)
        shown.append((unit_text[begins:], tuple(ends)))
    return _CueSlot(Unit(unit_text, tuple(codes)), tuple(cues), tuple(written), tuple(shown))
