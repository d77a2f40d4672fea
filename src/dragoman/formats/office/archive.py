"""ZIP archives that are read within limits, and written with some of their members replaced.

Every other member is copied packed, in its order. Nothing is unpacked to disk.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property

from dragoman.base.reading import zip_errors
from dragoman.formats.units.document import BadDocument

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
