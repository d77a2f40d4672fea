"""Documents that are ZIP archives (office documents and books): read within limits, and written
with some of their members replaced.

Every other member is copied packed, in its order. Nothing is unpacked to disk.

Each text of an office document has two languages, one for Western and one for East Asian scripts.
Programs that generate documents leave English in both, and office programs leave the language of
their menus in one. So a document declares a language only if all of its texts and styles have the
same one, and it is not English.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar, Generic, Protocol, TypeVar

from dragoman.base.reading import zip_errors
from dragoman.formats.units.document import (
    BadDocument,
    Document,
    OutputOptions,
    SaidLanguage,
    Target,
    Unit,
)
from dragoman.formats.units.inline import is_asian
from dragoman.formats.units.xml import MOST_TOKENS, MixedUnit, Xml, splice_xml

MOST_MEMBERS = 10_000
MOST_BYTES = 200_000_000
"""The maximum unpacked size of all members that are read."""
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_ENCRYPTED, _DESCRIPTOR = 0x1, 0x8
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Archive:
    """A ZIP archive that has been checked."""

    name: str
    data: bytes
    members: dict[str, zipfile.ZipInfo]
    central: int
    """The place of its central directory."""

    @classmethod
    def read(cls, data: bytes, name: str) -> Archive:
        """Errors: ``BadDocument`` for an archive that is damaged, encrypted, or malicious."""
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as opened:
                entries = opened.infolist()
                central = opened.start_dir
        except zip_errors() as error:
            raise BadDocument(f"{name} is a damaged or cut off archive ({error})") from None
        if len(entries) > MOST_MEMBERS:
            raise BadDocument(f"{name} has {len(entries):,} members; the most is {MOST_MEMBERS:,}")
        members: dict[str, zipfile.ZipInfo] = {}
        end = 0
        for entry in sorted(entries, key=lambda entry: entry.header_offset):
            where = f"{name}, member {entry.filename[:80]!r}"
            if entry.flag_bits & _ENCRYPTED:
                raise BadDocument(f"{where}: it is encrypted. Save the file without a password")
            path = entry.filename.replace("\\", "/")
            if path.startswith("/") or ".." in path.split("/"):
                raise BadDocument(f"{where}: its name leads out of the archive")
            if entry.filename in members:
                raise BadDocument(f"{where}: it occurs twice")
            if entry.header_offset < end:
                raise BadDocument(f"{where}: it overlaps another member, as in a zip bomb")
            end = entry.header_offset + 30 + entry.compress_size
            members[entry.filename] = entry
        if end > central:
            raise BadDocument(f"{name} is a damaged or cut off archive")
        return cls(name, data, {entry.filename: entry for entry in entries}, central)

    @cached_property
    def _opened(self) -> zipfile.ZipFile:
        """The archive, opened once: that reads a directory of up to ten thousand members."""
        return zipfile.ZipFile(io.BytesIO(self.data))

    def member(self, name: str, left: int) -> bytes:
        """A member, unpacked, with at most ``left`` bytes. Errors: ``BadDocument``."""
        info = self.members[name]
        where = f"{self.name}, member {name[:80]!r}"
        if info.file_size > left:
            raise BadDocument(f"{where}: the unpacked file is too large. Split it into parts")
        if info.compress_type not in _PACKINGS:
            raise BadDocument(f"{where}: its compression method is not used in documents")
        try:
            with self._opened.open(info) as file:
                content = file.read(left + 1)
        except zip_errors() as error:
            raise BadDocument(f"{where}: it is damaged ({error})") from None
        if len(content) > left:
            raise BadDocument(f"{where}: it is larger than it says, as in a zip bomb")
        return content

    def with_members(self, new: dict[str, bytes]) -> bytes:
        """The archive with some members replaced."""
        if not new:
            return self.data
        in_order = sorted(self.members.values(), key=lambda entry: entry.header_offset)
        begins = [entry.header_offset for entry in in_order]
        ends = [*begins[1:], self.central]
        written = bytearray(self.data[: begins[0] if begins else self.central])
        moved: dict[str, tuple[int, bytes | None, int]] = {}
        for entry, begin, end in zip(in_order, begins, ends, strict=True):
            place = len(written)
            if entry.filename not in new:
                written += self.data[begin:end]
                moved[entry.filename] = place, None, 0
                continue
            content = new[entry.filename]
            packed = content
            if entry.compress_type == zipfile.ZIP_DEFLATED:
                packer = zlib.compressobj(6, zlib.DEFLATED, -15)
                packed = packer.compress(content) + packer.flush()
            header = list(_LOCAL.unpack_from(self.data, begin))
            name_length, extra_length = header[9], header[10]
            header[2] &= ~_DESCRIPTOR
            header[6:9] = zlib.crc32(content), len(packed), len(content)
            names = begin + _LOCAL.size
            extra = _without_sizes(
                self.data[names + name_length : names + name_length + extra_length]
            )
            header[10] = len(extra)
            written += _LOCAL.pack(*header) + self.data[names : names + name_length] + extra
            written += packed
            moved[entry.filename] = place, content, len(packed)
        return bytes(written) + self._contents(len(written), moved)

    def _contents(self, begin: int, moved: dict[str, tuple[int, bytes | None, int]]) -> bytes:
        """The central directory, with the new places and sizes."""
        table = bytearray()
        at = self.central
        for entry in self.members.values():
            header = list(_CENTRAL.unpack_from(self.data, at))
            lengths = header[10:13]
            names = at + _CENTRAL.size
            at = names + sum(lengths)
            place, content, packed = moved[entry.filename]
            extra = self.data[names + lengths[0] : names + lengths[0] + lengths[1]]
            if content is not None:
                header[3] &= ~_DESCRIPTOR
                header[7:10] = zlib.crc32(content), packed, len(content)
                extra = _without_sizes(extra)
                header[11] = len(extra)
            elif header[8] == 0xFFFFFFFF or header[9] == 0xFFFFFFFF:
                raise BadDocument(
                    f"{self.name}: {entry.filename!r} has 64-bit sizes, which are not supported"
                )
            header[-1] = place
            table += _CENTRAL.pack(*header) + self.data[names : names + lengths[0]] + extra
            table += self.data[names + lengths[0] + lengths[1] : at]
        comment = self.data[self.data.rfind(b"PK\x05\x06") :][_END.size :]
        count = len(self.members)
        end = _END.pack(b"PK\x05\x06", 0, 0, count, count, len(table), begin, len(comment))
        return bytes(table) + end + comment


def _without_sizes(extra: bytes) -> bytes:
    """An extra field without 64-bit sizes, which would be the old ones."""
    kept, at = b"", 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind != 1:
            kept += extra[at : at + 4 + length]
        at += 4 + length
    return kept


class Members:
    """Reads members of an archive within limits: bytes and tokens are counted over all of them,
    since a small archive may contain a lot."""

    def __init__(self, archive: Archive, most: int = MOST_BYTES) -> None:
        self.archive = archive
        self._bytes, self._tokens = most, MOST_TOKENS

    def content(self, member: str) -> bytes:
        """Unpack a member of the archive. Errors: ``BadDocument``."""
        content = self.archive.member(member, self._bytes)
        self._bytes -= len(content)
        return content

    def xml(self, member: str, content: bytes) -> Xml:
        """The content of a member, cut into tokens. Errors: ``BadDocument``."""
        xml = Xml.read(content, f"{self.archive.name}, {member}", self._tokens)
        self._tokens -= len(xml.tokens)
        return xml


class PackedPart(Protocol):
    """A member of the archive that is translated."""

    @property
    def units(self) -> Sequence[Unit]:
        """The units of the member, in reading order."""

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes | None:
        """The member with a translation for each unit; None if it stays as it is."""


@dataclass(frozen=True)
class XmlPart:
    """A file of XML in an archive, with its units."""

    xml: Xml
    mixed: Sequence[MixedUnit]

    @property
    def units(self) -> Sequence[Unit]:
        return [mixed.unit for mixed in self.mixed]

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes | None:
        """The file with a translation for each unit; None if it stays as it is."""
        pairs = zip(self.mixed, targets, strict=True)
        changed = [
            mixed.replacement(target) for mixed, target in pairs if target != mixed.unit.as_it_is
        ]
        return splice_xml(self.xml, changed) if changed else None


Part = TypeVar("Part", bound=PackedPart)


@dataclass(frozen=True)
class PackedDocument(Document, Generic[Part]):
    """An archive and its members that are translated, by name, in reading order."""

    signed_by: ClassVar[str]
    """The prefix, in lower case, of the names of members that sign such a document."""

    name: str
    archive: Archive
    parts: dict[str, Part]

    @property
    def units(self) -> Sequence[Unit]:
        return [unit for part in self.parts.values() for unit in part.units]

    @property
    def notes(self) -> Sequence[str]:
        if any(member.lower().startswith(self.signed_by) for member in self.archive.members):
            return [f"{self.name} is signed. The signature of the translation is invalid"]
        return ()

    def join(self, targets: Sequence[Target], wanted: OutputOptions) -> bytes:
        return self.archive.with_members(self.new_members(targets, wanted))

    def new_members(self, targets: Sequence[Target], wanted: OutputOptions) -> dict[str, bytes]:
        """The members that change, with their new content."""
        new, every = dict[str, bytes](), iter(targets)
        for member, part in self.parts.items():
            own = list(islice(every, len(part.units)))
            if (content := part.join(own, wanted)) is not None:
                new[member] = content
        return new


_WESTERN, _ASIAN = (
    re.compile(
        rf"(?:<w:lang(?=\s)[^<>]{{0,200}}?\sw:{word}|<a:rPr(?=\s)[^<>]{{0,200}}?\slang|\s{written})"
        r'="([a-z]{2,3})\b'
    )
    for word, written in (("val", "fo:language"), ("eastAsia", "style:language-asian"))
)
"""The Western and the East Asian language, as Word, PowerPoint and OpenDocument write them."""
_OF_ASIA = {"ja", "ko", "zh"}
_LOOKED_AT = 1_000
"""The number of letters that decide which of the two counts."""


def language_of_xml(name: str, xml: Iterable[str], units: Iterable[Unit]) -> list[SaidLanguage]:
    """The language that a document's XML declares for its units; empty if it is not certain."""
    letters = (letter for unit in units for letter in unit.text if letter.isalpha())
    looked_at = list(islice(letters, _LOOKED_AT))
    of_asia = 2 * sum(map(is_asian, looked_at)) > len(looked_at)
    codes = {code for text in xml for code in (_ASIAN if of_asia else _WESTERN).findall(text)}
    code = codes.pop() if len(codes) == 1 else "en"
    if code == "en" or (code in _OF_ASIA) != of_asia:
        return []
    where = f"{name}: the language of its text, {code},"
    return [SaidLanguage("source", code, where, is_binding=False)]
