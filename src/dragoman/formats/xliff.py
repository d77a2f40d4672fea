"""XLIFF 1.2 and 2: segments without a translation get one.

https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html and
https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html. Segments that are
translated, approved, locked, or not to be translated stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.formats.units.document import (
    MACHINE,
    WAITS,
    BadDocument,
    Document,
    OutputOptions,
    SaidLanguage,
    Side,
    Target,
    Unit,
    says_something,
    teaches,
)
from dragoman.formats.units.inline import check_codes
from dragoman.formats.units.xml import (
    MixedUnit,
    Replacement,
    Role,
    Xml,
    XmlToken,
    mixed_unit,
    put,
    splice_xml,
    with_attribute,
)

_BEGINS, _ENDS = {"bpt", "bx", "sc", "sm"}, {"ept", "ex", "ec", "em"}
_AROUND = {"g", "mrk", "pc"}
_IDS = ("rid", "startRef", "id")
_SAYS = {
    True: ("xliff", ("srcLang", "trgLang")),
    False: ("file", ("source-language", "target-language")),
}
"""True for version 2 -> the element that declares the languages, and its attributes."""
_SIDES: tuple[Side, Side] = ("source", "target")
_LOCKED = {"locked", "true", "yes"}
"""The true values of attributes such as ``mq:locked``."""


@dataclass(frozen=True, slots=True)
class _XliffSegment:
    """A text and its translation, by the numbers of their start tags."""

    source: int
    target: int | None
    holder: int
    """The number of the start tag of the element that has the state in version 2."""
    behind: int
    """The number of the tag after which a new target is inserted."""
    mixed: MixedUnit
    waits: bool
    """True if it waits for a translation."""
    teaches: bool
    """True if its translation may be learned from."""


@dataclass(frozen=True)
class Xliff(Document):
    """A file of XLIFF as a document."""

    name: str
    xml: Xml
    is_2: bool
    segments: Sequence[_XliffSegment]
    translated: Sequence[tuple[str, str]]

    @classmethod
    def read(cls, data: bytes, name: str) -> Xliff:
        xml = Xml.read(data, name)
        check_codes(xml.source.text, name, "%{$")
        root = xml.root
        if root.name != "xliff":
            raise BadDocument(f"{name} is not XLIFF: its first element is not xliff")
        version = root.attributes.get("version", "")
        if version.partition(".")[0] not in ("1", "2"):
            raise BadDocument(
                f"{name}, line 1: version {version[:20]!r} of XLIFF is not supported. Use "
                "version 1 or 2"
            )
        segments: list[_XliffSegment] = []
        pairs: list[tuple[str, str]] = []
        for segment in _segments(xml, is_2=version.startswith("2")):
            if segment.waits and says_something(segment.mixed.unit.text):
                segments.append(segment)
            elif segment.teaches and segment.target is not None:
                pairs.append((_text(xml, segment.source), _text(xml, segment.target)))
        return cls(name, xml, version.startswith("2"), segments, pairs)

    @property
    def units(self) -> Sequence[Unit]:
        return [segment.mixed.unit for segment in self.segments]

    @property
    def languages(self) -> Sequence[SaidLanguage]:
        element, (source, target) = _SAYS[self.is_2]
        return [
            SaidLanguage(
                side, code, f'{self.name}, line {self.xml.line(token.begin)}: {name}="{code}"'
            )
            for _, token in self.xml.elements(element)
            for side, name in zip(_SIDES, (source, target), strict=True)
            if (code := token.attributes.get(name))
        ]

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """The texts with translations, for training."""
        return [pair for pair in self.translated if all(map(str.strip, pair))]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        replacements: list[Replacement] = []
        for segment, target in zip(self.segments, targets, strict=True):
            replacements += self._write(segment, target, wanted)
        if replacements and wanted.language != "und":
            replacements += self._languages(wanted.language)
        return splice_xml(self.xml, replacements)

    def _write(
        self, segment: _XliffSegment, target: Target, wanted: OutputOptions
    ) -> Iterator[Replacement]:
        xml, tokens = self.xml, self.xml.tokens
        text = segment.mixed.write(target, xml.text_between)
        if self.is_2:
            holder = tokens[segment.holder]
            tag = xml.text_between(holder.begin, holder.end)
            if wanted.final:
                tag = with_attribute(tag, "state", "final")
            else:
                tag = with_attribute(tag, "state", "translated")
                tag = with_attribute(tag, "subState", f"{MACHINE}:machine")
            yield put(holder.begin, holder.end, tag)
        if segment.target is None:
            source = tokens[segment.source]
            prefix = xml.text_between(source.begin + 1, source.end).partition(source.name)[0]
            tag = self._tag(f"<{prefix}target>", wanted)
            end = tokens[segment.behind].end
            written = f"{_space_before(xml, source.begin)}{tag}{text}</{prefix}target>"
            yield put(end, end, written)
            return
        start = tokens[segment.target]
        tag = self._tag(xml.text_between(start.begin, start.end), wanted)
        if xml.is_empty(segment.target):
            name = tag[1:].split("/")[0].split()[0]
            tag = f"{tag[:-2].rstrip()}>"
            yield put(start.begin, start.end, f"{tag}{text}</{name}>")
        else:
            yield put(start.begin, tokens[start.partner].begin, tag + text)

    def _tag(self, tag: str, wanted: OutputOptions) -> str:
        """The start tag of a target with its state, which is there in version 1."""
        if self.is_2:
            return tag
        state = "translated" if wanted.final else "needs-review-translation"
        return with_attribute(tag, "state", state)

    def _languages(self, language: str) -> Iterator[Replacement]:
        """Declare the language of the targets, if the file does not."""
        element, (_, attribute) = _SAYS[self.is_2]
        for _, token in self.xml.elements(element):
            if attribute not in token.attributes:
                tag = self.xml.text_between(token.begin, token.end)
                yield put(token.begin, token.end, with_attribute(tag, attribute, language))


def _segments(xml: Xml, *, is_2: bool) -> Iterator[_XliffSegment]:
    """Yield every segment of the file in order."""
    unit = "segment" if is_2 else "trans-unit"
    translates = [True]
    tokens = xml.tokens
    for number, token in enumerate(tokens):
        if token.name not in ("file", "group", "unit", "trans-unit", "segment"):
            continue
        if token.kind == "end":
            translates.pop()
            continue
        if token.kind != "start":
            continue
        said = token.attributes.get("translate")
        translates.append(translates[-1] if said is None else said != "no")
        if token.name == unit:
            segment = _segment(xml, number, is_2=is_2, translates=translates[-1])
            if segment is not None:
                yield segment


def _segment(xml: Xml, number: int, *, is_2: bool, translates: bool) -> _XliffSegment | None:
    tokens = xml.tokens
    parts: dict[str, int] = {}
    for at in xml.children(number):
        parts.setdefault(tokens[at].name, at)
    if "source" not in parts:
        return None
    source, target = parts.get("seg-source", parts["source"]), parts.get("target")
    attributes = tokens[number].attributes
    held = {} if target is None else tokens[target].attributes
    says = attributes if is_2 else held
    state, approved = says.get("state", ""), attributes.get("approved")
    # The approval counts only if the state leaves it open.
    if approved == "yes" and state in ("", "translated"):
        stands = "final"
    else:
        stands = "needs-review" if approved == "no" and not state else state
    machine = attributes.get("subState", "").partition(":")[0] if is_2 else ""
    origin = machine or held.get("state-qualifier", "")
    has_text = target is not None and bool(_mixed_unit(xml, target).unit.text.strip())
    is_locked = any(k.endswith(":locked") and v in _LOCKED for k, v in attributes.items())
    # Without a state, a segment with a translation counts as translated.
    waits = state in WAITS and (bool(state) or not has_text)
    return _XliffSegment(
        source,
        target,
        number,
        tokens[source].partner,
        _mixed_unit(xml, source),
        waits=waits and translates and not is_locked and approved != "yes",
        teaches=teaches(stands, origin),
    )


def _mixed_unit(xml: Xml, number: int, *, placeholders: bool = True) -> MixedUnit:
    inside = range(number + 1, xml.tokens[number].partner)
    return mixed_unit(xml, inside, _role, _IDS, placeholders=placeholders)


def _text(xml: Xml, number: int) -> str:
    """A text without its inline codes, but with its placeholders."""
    return _mixed_unit(xml, number, placeholders=False).unit.text


def _role(token: XmlToken) -> Role:
    attributes = token.attributes
    if attributes.get("mtype") == "protected" or attributes.get("translate") == "no":
        return "kept"
    if token.name in _AROUND:
        return "pair"
    if token.name in _BEGINS:
        return "begins"
    return "ends" if token.name in _ENDS else "kept"


def _space_before(xml: Xml, place: int) -> str:
    """The line break and the indent before a tag."""
    begin = place
    while xml.data[begin - 1 : begin] in (b" ", b"\t", b"\n", b"\r"):
        begin -= 1
    return xml.text_between(begin, place)
