"""Readers of files that contain translations (TMX, XLIFF, PO, CSV) and of files with an example on
each line (tab-separated, JSON Lines).

A translation memory may have any size: it is read in pieces, and only one entry is held.
``formats/units/document.py`` decides for all of them which translations are examples. Lines may be
a part of a file, if the number of the first one is given.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from xml.parsers import expat

from dragoman.base.errors import DataError
from dragoman.base.reading import csv_rows, readable
from dragoman.base.wording import plural, shorten
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.data.files.lines import decode_lines
from dragoman.formats.units.document import teaches
from dragoman.forms.form import Pair
from dragoman.forms.languages import base, code_among

if TYPE_CHECKING:
    from dragoman.formats.po import MessageCatalogue
    from dragoman.formats.xliff import Xliff

_BLOCK = 1 << 20
_MOST_BYTES = 1 << 28
"""The largest catalogue or XLIFF, which is held whole."""
_CODES = {"bpt", "ept", "ph", "it", "ut"}
"""Elements of a TMX that contain the markup of a program and no text."""
_DELIMITERS = ",;\t"
_QUOTED = re.compile(r'"[^"]*+"')


def read_messages(file: BinaryIO, name: str, how: str) -> Iterator[Pair]:
    """Yield the translated messages of a PO or segments of an XLIFF, each with its number. Errors:
    ``DataError``."""
    for number, (source, target) in enumerate(_parse(file, name, how).pairs, 1):
        yield Pair(number, _on_one_line(source), _on_one_line(target))


def read_csv(file: BinaryIO, name: str, source: int, target: int) -> Iterator[Pair]:
    """Yield the rows of a CSV, which may contain line breaks. ``source`` and ``target``: columns,
    from 1. Errors: ``DataError``."""
    lines = decode_lines(file, name)
    first = next(lines, "")
    bare = _QUOTED.sub("", first)
    delimiter = max(_DELIMITERS, key=lambda sign: (bare.count(sign), -_DELIMITERS.index(sign)))
    ended = (f"{line}\n" for line in chain([first], lines))
    for begins, row in csv_rows(ended, delimiter, name):
        if len(row) < max(source, target):
            raise DataError(
                f"{name}, line {begins} has no column {max(source, target)}; its last is {len(row)}"
            )
        yield Pair(begins, _on_one_line(row[source - 1]), _on_one_line(row[target - 1]))


def read_tmx(file: BinaryIO, name: str, source: str | None, target: str | None) -> Iterator[Pair]:
    """Yield the entries of a translation memory in flat memory. ``source`` and ``target``: codes of
    languages; None: those of the file, if it has two. Errors: ``DataError``."""
    memory = _Memory(name, source, target)
    while block := file.read(_BLOCK):
        yield from memory.feed(block)
    yield from memory.feed(b"", is_last=True)


def languages_in(
    file: BinaryIO, name: str, how: str, source: str | None, target: str | None
) -> tuple[str, str]:
    """Return the codes of both languages, without regions, that a TMX, an XLIFF or a PO names;
    "und" for a language that is not named. ``source`` and ``target``: as for ``read_tmx``. Errors:
    ``DataError``, also for an XLIFF that names several languages of a side."""
    if how == "tmx":
        memory = _Memory(name, source, target)
        while not memory.languages and (block := file.read(_BLOCK)):
            memory.feed(block)
        return memory.languages or ("und", "und")
    codes = {"source": "und", "target": "und"}
    for mention in _parse(file, name, how).languages:
        before, code = codes[mention.side], base(mention.code)
        if before not in ("und", code):
            raise DataError(
                f"{mention.where}, but an earlier one is {before}. Train on one pair of languages, "
                "and give files with only that pair"
            )
        codes[mention.side] = code
    return codes["source"], codes["target"]


class _Memory:
    """The parser of a TMX, with the current entry and the complete ones."""

    def __init__(self, name: str, source: str | None, target: str | None) -> None:
        self._name = name
        self._source, self._target = source, target
        self._header = "*all*"
        self.languages: tuple[str, str] | None = None
        """The codes of both sides of the first complete entry, without regions."""
        self._entry: dict[str, str] = {}
        self._line = 0
        self._language = ""
        self._made_by = ""
        """The author of the current entry."""
        self._teaches = True
        """True if the current text is used for training."""
        self._text: list[str] | None = None
        self._inside_code = 0
        self._read: list[Pair] = []
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)

    def feed(self, data: bytes, *, is_last: bool = False) -> Sequence[Pair]:
        """Return the entries that end in the next bytes."""
        try:
            self._parser.Parse(data, is_last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise DataError(f"{self._name}, line {error.lineno} is damaged: {reason}") from None
        read, self._read = self._read, []
        return read

    def _entity(self, *_: object) -> None:
        line = self._parser.CurrentLineNumber
        raise DataError(f"{self._name}, line {line}: it declares an entity, which is not supported")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "header":
            self._header = attributes.get("srclang", "*all*").lower()
        elif tag == "tu":
            self._entry, self._line = {}, self._parser.CurrentLineNumber
            self._made_by = attributes.get("creationid", "")
        elif tag == "tuv":
            self._language = (attributes.get("xml:lang") or attributes.get("lang") or "").lower()
            self._teaches = teaches("", attributes.get("creationid", self._made_by))
        elif tag == "seg":
            self._text = []
        elif self._text is not None and tag in _CODES:
            self._inside_code += 1

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._inside_code:
            self._text.append(text)

    def _end(self, tag: str) -> None:
        if tag == "seg" and self._text is not None:
            text = _on_one_line("".join(self._text))
            if self._teaches:
                self._entry.setdefault(self._language, text)
            self._text = None
        elif self._inside_code and tag in _CODES:
            self._inside_code -= 1
        elif tag == "tu":
            self._take()

    def _take(self) -> None:
        source = code_among(self._entry, self._source or self._own_source())
        others = [name for name in self._entry if name != source]
        target = code_among(self._entry, self._target) if self._target else next(iter(others), None)
        if source is None or target is None:
            return
        pair = base(source), base(target)
        self.languages = self.languages or pair
        if self._target is None and (len(others) > 1 or pair != self.languages):
            named = ", ".join(dict.fromkeys([*self._entry, *self.languages]))
            raise DataError(
                f"{self._name}, line {self._line}: there are more than two languages ({named}). "
                "Choose two with --keys SOURCE TARGET, or in a recipe with source_key and "
                "target_key"
            )
        self._read.append(Pair(self._line, self._entry[source], self._entry[target]))

    def _own_source(self) -> str:
        """Return the language of the source: of the header, the first entry, or the first text."""
        known = (self._header, *(self.languages or ())[:1])
        own = next(iter(self._entry), "")
        return next((code for code in known if code_among(self._entry, code) is not None), own)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _parse(file: BinaryIO, name: str, how: str) -> Xliff | MessageCatalogue:
    from dragoman.formats.po import MessageCatalogue
    from dragoman.formats.xliff import Xliff

    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise DataError(f"{name} has more than the {_MOST_BYTES:,} bytes that are allowed")
    return Xliff.read(data, name) if how == "xliff" else MessageCatalogue.read(data, name)


_ARRAY = re.compile(r"\s*\[\s*(\{|$)")
"""The beginning of an array of records."""


def tsv_pairs(lines: Iterable[str], corpus: CorpusSettings, first: int = 1) -> Iterator[Pair]:
    """Yield the pairs of tab-separated lines. ``first``: the number of the first line in its file.

    Errors: ``DataError`` for a line without the columns of the corpus.
    """
    path, group, last = corpus.source, corpus.group_column, max(corpus.columns)
    source, target = corpus.source_column, corpus.target_column
    for line, text in enumerate(lines, start=first):
        columns = text.split("\t")
        if len(columns) < 2:
            raise DataError(
                f"{path}, line {line}: there is no tab, so there is only one column: {_show(text)}"
            )
        if len(columns) < last:
            raise DataError(
                f"{path}, line {line}: no column {last}; the last is {len(columns)}: {_show(text)}"
            )
        group_name = "" if group is None else columns[group - 1].strip()
        yield Pair(line, columns[source - 1], columns[target - 1], group=group_name)


def jsonl_pairs(lines: Iterable[str], corpus: CorpusSettings, first: int = 1) -> Iterator[Pair]:
    """Yield the pairs of JSON Lines. ``first``: as for ``tsv_pairs``.

    Errors: ``DataError`` for a line that is no record, or has no text at the keys of the corpus.
    """
    path, keys = Path(corpus.source), corpus.keys
    for line, text in enumerate(lines, start=first):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            _refuse_array(path, line, text)
            raise DataError(f"{path}, line {line} is not JSON ({error}): {_show(text)}") from error
        if isinstance(record, list):
            _refuse_array(path, line, text)
        source, target, *group = (_at(record, key, path, line) for key in keys)
        yield Pair(line, source, target, group=group[0].strip() if group else "")


def different_counts(
    source: str | Path, sources: int, target: str | Path, targets: int
) -> DataError:
    """Return the error for two files with different numbers of lines."""
    return DataError(
        f"{source} has {plural(sources, 'line')} but {target} has {targets:,}: line n of one must "
        "be the translation of line n of the other"
    )


def _refuse_array(path: Path, line: int, text: str) -> None:
    """Raise ``DataError`` for a file whose first line begins a JSON array."""
    if line == 1 and _ARRAY.match(text):
        raise DataError(
            f"{path} is a JSON array. Convert it to one record per line (JSON Lines): jq -c "
            f"'.[]' {shlex.quote(path.name)} > {shlex.quote(path.stem + '.jsonl')}"
        )


def _at(record: object, key: str, path: Path, line: int) -> str:
    """Return the text at a dotted key."""
    value = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            has = f" (it has {', '.join(map(str, value))})" if isinstance(value, dict) else ""
            raise DataError(
                f"{path}, line {line}: there is no {key!r} in this record{has}. Set the names with "
                "--keys SOURCE TARGET, or in a recipe with source_key and target_key"
            )
        value = value[part]
    if not isinstance(value, str):
        quoted = ': write it in quotes, "…"' if isinstance(value, int | float) else ""
        raise DataError(f"{path}, line {line}: {key!r} is {_show_json(value)}, not a text{quoted}")
    return value


def _show_json(value: object) -> str:
    """Return a value of JSON as text for a message."""
    try:
        return _show(json.dumps(value))
    except RecursionError:
        return f"a {type(value).__name__} with too many others within each other"


def _show(text: str, width: int = 60) -> str:
    return repr(shorten(readable(text), width))
