"""Tables of text (CSV, TSV): the cells of some columns, or of all, are units."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dragoman.base.wording import shorten
from dragoman.formats.units.document import (
    BadDocument,
    Splice,
    Target,
    Unit,
    check_pieces,
    line_of,
    says_something,
)
from dragoman.formats.units.encoding import TextDocument, decode
from dragoman.formats.units.inline import check_codes, message_unit, write_unit

_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r"sep=([,;\t|])\r?\n", re.IGNORECASE)
"""A first line that gives Excel the delimiter."""
_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"')
_FIRST = re.compile(r'(?:"(?:[^"]|"")*+"|[^\n"]|")*+')
"""The first row, whose cells may contain line breaks in quotes."""


def columns_of(text: str) -> list[str]:
    """Parse ``--columns``: numbers from 1, or names in the first row, separated by commas; a name
    with a comma is in quotation marks."""
    return [column.strip() for row in csv.reader([text], skipinitialspace=True) for column in row]


class _CsvCell(NamedTuple):
    begin: int
    end: int
    row: int
    column: int
    text: str
    quoted: bool

    @property
    def unit(self) -> Unit:
        return message_unit(self.text)


@dataclass(frozen=True)
class CsvTable(TextDocument[_CsvCell]):
    """A table (CSV, TSV) as a document. Its slots are the cells of the columns that are
    translated."""

    delimiter: str
    width: int
    """The number of columns of the widest row."""
    header: Sequence[str]
    """The cells of the first row."""
    first: int
    """The number of the first row, from 0: 1 after a line that gives Excel the delimiter."""

    @classmethod
    def read(cls, data: bytes, name: str) -> CsvTable:
        """Read a table with all of its columns. Errors: ``BadDocument``."""
        source = decode(data, name)
        check_codes(source.text, name)
        delimiter = _delimiter(source.text)
        cells, header, width = list[_CsvCell](), list[str](), 0
        first = 1 if _SEPARATOR.match(source.text) else 0
        for number, cell in enumerate(_cells(source.text, name, delimiter)):
            check_pieces(number, name)
            width = max(width, cell.column + 1)
            if cell.row == first:
                header.append(cell.text)
            if says_something(cell.text) and cell.row >= first:
                cells.append(cell)
        return cls(name, source, cells, delimiter, width, header, first)

    def in_columns(self, columns: Sequence[str]) -> CsvTable:
        numbers, named = set[int](), False
        for column in columns:
            places = [n for n, cell in enumerate(self.header, 1) if cell.strip() == column.strip()]
            named = named or bool(places)
            if not places and column.strip().isdecimal() and 1 <= int(column) <= self.width:
                places = [int(column)]
            if not places:
                names = shorten(", ".join(self.header), 100)
                raise BadDocument(f"{self.name} has no column {column}, only {self.width}: {names}")
            numbers.update(places)
        cells = [cell for cell in self.slots if cell.column + 1 in numbers]
        if named:  # the first row contains names of columns, which programs look up
            cells = [cell for cell in cells if cell.row > self.first]
        return replace(self, slots=cells)

    def splices(self, slot: _CsvCell, unit: Unit, target: Target) -> Iterator[Splice]:
        text = write_unit(unit, target)
        needs = slot.quoted or any(mark in text for mark in (self.delimiter, '"', "\n", "\r"))
        doubled = text.replace('"', '""')
        yield Splice(slot.begin, slot.end, f'"{doubled}"' if needs else text)


def _delimiter(text: str) -> str:
    if match := _SEPARATOR.match(text):
        return match[1]
    first = _FIRST.match(text)
    assert first is not None, "it matches nothing too"
    bare = re.sub(r'"(?:[^"]|"")*+"', "", first[0].partition("\n")[0] or first[0])
    return max(_DELIMITERS, key=lambda mark: (bare.count(mark), -_DELIMITERS.index(mark)))


def _cells(text: str, name: str, delimiter: str) -> Iterator[_CsvCell]:
    place, row, column = 0, 0, 0
    while place < len(text):
        begin = place
        if text[place] == '"':
            cell = _QUOTED.match(text, place)
            if cell is None:
                line = line_of(text, begin)
                raise BadDocument(f"{name}, line {line}: a quotation mark is not closed")
            end, said, quoted = cell.end(), cell[1].replace('""', '"'), True
            place = _cell_end(text, end, delimiter)
        else:
            place = end = _cell_end(text, place, delimiter)
            said, quoted = text[begin:end], False
        yield _CsvCell(begin, end, row, column, said, quoted)
        if text.startswith(delimiter, place):
            column, place = column + 1, place + 1
            if place == len(text):
                yield _CsvCell(place, place, row, column, "", False)
        else:
            row, column = row + 1, 0
            place += 2 if text.startswith("\r\n", place) else 1


def _cell_end(text: str, place: int, delimiter: str) -> int:
    while place < len(text) and text[place] not in (delimiter, "\n", "\r"):
        place += 1
    return place
