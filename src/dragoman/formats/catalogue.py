"""The table of all formats, and the detection of a file's format, by content before name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dragoman.formats.csv_cells import CsvTable
from dragoman.formats.epub import Book
from dragoman.formats.html.document import HtmlPage
from dragoman.formats.json_messages import JsonMessages
from dragoman.formats.markdown import Markdown
from dragoman.formats.office.archive import Archive
from dragoman.formats.office.open_xml import OfficeDocument
from dragoman.formats.office.opendocument import OpenDocument
from dragoman.formats.plain_text import PlainText
from dragoman.formats.po import MessageCatalogue
from dragoman.formats.subtitles import Subtitles
from dragoman.formats.tmx import TranslationMemory
from dragoman.formats.units.document import BadDocument, Document
from dragoman.formats.units.encoding import MARKS
from dragoman.formats.xliff import Xliff
from dragoman.formats.yaml_messages import YamlMessages


@dataclass(frozen=True)
class Format:
    """A format of documents, and how to open it."""

    name: str
    """The name of the format for people."""
    endings: tuple[str, ...]
    """The endings of names of such files; the first is the usual one."""
    media: str
    read: Callable[[bytes, str], Document]


_OFFICE = "application/vnd.openxmlformats-officedocument."
FORMATS = {
    "txt": Format("plain text", (".txt", ".text"), "text/plain", PlainText.read),
    "markdown": Format("Markdown", (".md", ".markdown"), "text/markdown", Markdown.read),
    "html": Format("HTML", (".html", ".htm", ".xhtml"), "text/html", HtmlPage.read),
    "po": Format(
        "messages (PO)", (".po", ".pot"), "text/x-gettext-translation", MessageCatalogue.read
    ),
    "xliff": Format(
        "XLIFF", (".xlf", ".xliff", ".sdlxliff", ".mqxliff"), "application/xliff+xml", Xliff.read
    ),
    "docx": Format(
        "Word", (".docx", ".docm", ".dotx", ".dotm"), f"{_OFFICE}wordprocessingml.document",
        OfficeDocument.read,
    ),
    "pptx": Format(
        "PowerPoint", (".pptx", ".pptm", ".ppsx"), f"{_OFFICE}presentationml.presentation",
        OfficeDocument.read,
    ),
    "xlsx": Format(
        "Excel", (".xlsx", ".xlsm"), f"{_OFFICE}spreadsheetml.sheet", OfficeDocument.read
    ),
    "odt": Format(
        "OpenDocument", (".odt", ".ods", ".odp", ".ott"),
        "application/vnd.oasis.opendocument.text", OpenDocument.read,
    ),
    "epub": Format("a book (EPUB)", (".epub",), "application/epub+zip", Book.read),
    "tmx": Format("a translation memory (TMX)", (".tmx",), "application/x-tmx+xml",
                  TranslationMemory.read),
    "json": Format("messages in JSON", (".json", ".arb"), "application/json", JsonMessages.read),
    "yaml": Format("messages in YAML", (".yaml", ".yml"), "application/yaml", YamlMessages.read),
    "csv": Format("a table (CSV, TSV)", (".csv", ".tsv"), "text/csv", CsvTable.read),
    "srt": Format("subtitles (SubRip)", (".srt",), "application/x-subrip",
                  partial(Subtitles.read, escapes=False)),
    "vtt": Format("subtitles (WebVTT)", (".vtt",), "text/vtt",
                  partial(Subtitles.read, escapes=True)),
}  # fmt: skip

_GZIP = b"\x1f\x8b"

_REFUSED = (
    (b"%PDF-", "a PDF, which has no running text. Convert it: pdftotext FILE.pdf FILE.txt"),
    (b"{\\rtf", "Rich Text. Convert it: soffice --convert-to docx FILE.rtf"),
    (b"\xde\x12\x04\x95", "a compiled catalogue. Convert it: msgunfmt FILE.mo -o FILE.po"),
    (b"\x95\x04\x12\xde", "a compiled catalogue. Convert it: msgunfmt FILE.mo -o FILE.po"),
    (_GZIP, "packed by gzip. Unpack it: gunzip FILE"),
    (b"BZh", "packed by bzip2. Unpack it"),
    (b"\xfd7zXZ\x00", "packed by xz. Unpack it"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd. Unpack it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive. Unpack it"),
    (b"Rar!\x1a\x07", "a RAR archive. Unpack it"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
)  # fmt: skip
"""The first bytes of files that are not supported, with the remedy."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_LOOKED_AT = 4096
_AS_LINES = {"csv", "markdown"}
_COMMENTS = r"\s*+(?>(?:<\?.*?\?>|<!--.*?-->)\s*+)*+"
"""Comments and instructions before the first element. The pattern matches them in one way only:
otherwise its time would double with each comment."""
_PROLOG = r"\s*+(?>(?:<\?.*?\?>|<!--.*?-->|<!\w[^\[>]*+(?:\[[^\]]*+\][^>]*+)?>)\s*+)*+"
"""Comments, instructions and a DOCTYPE before the first element."""
_PAGE = re.compile(rf"{_COMMENTS}(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE | re.DOTALL)
_XLIFF = re.compile(rf"{_PROLOG}<(?:[\w.\-]{{1,20}}:)?xliff[\s>]", re.DOTALL)
_TMX = re.compile(rf"{_PROLOG}<tmx[\s>]", re.DOTALL)
_MESSAGES = re.compile(r'^msgid[ \t]+"', re.MULTILINE)
_SRT = re.compile(r"\s*\d+[ \t]*\r?\n[ \t]*(?:\d+:)?\d+:\d\d[,.]\d{1,3}[ \t]*-->")


def format_of(data: bytes, name: str) -> Format:
    """The format of a file. Errors: ``BadDocument`` for a file that is not supported."""
    for begins, what in _REFUSED:
        if data.startswith(begins):
            raise BadDocument(f"{name} is {what}")
    if data.startswith(_OLE):
        if _ENCRYPTED in data:
            raise BadDocument(f"{name} is encrypted. Save it without a password")
        raise BadDocument(
            f"{name} is an older Office document (.doc, .xls, .ppt). Convert it: "
            "soffice --convert-to docx FILE.doc (xlsx for .xls, pptx for .ppt)"
        )
    is_archive = data.startswith(b"PK\x03\x04")
    kind = _detect_archive(data, name) if is_archive else _detect(data) or _detect_by_name(name)
    if kind is None:
        kind = "txt"
        if b"\0" in data[:_LOOKED_AT] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise BadDocument(f"{name} is not text: it contains NUL bytes. {_all_read()}")
    return FORMATS[kind]


def looks_like_a_document(start: bytes, name: str, *, or_lines: bool) -> bool:
    """True if a file is read as a document, and not line by line; ``start``: its beginning.
    ``or_lines``: tables and Markdown, which only their names identify, count as lines."""
    begins = (*(mark for mark, _ in _REFUSED), _OLE, b"PK\x03\x04")
    lines = {None, "txt", *(_AS_LINES if or_lines else ())}
    if start.startswith(_GZIP):  # compressed lines are read too
        return _detect_by_name(name.removesuffix(".gz")) not in lines
    return start.startswith(begins) or (_detect(start) or _detect_by_name(name)) not in lines


def format_name(start: bytes, name: str) -> str:
    """The name of a file's format for people, by its beginning."""
    kind = _detect(start) or _detect_by_name(name)
    return FORMATS[kind].name if kind else "a document"


def read_document(data: bytes, name: str) -> Document:
    """Read a file in the format of its content. Errors: ``BadDocument``, which names the place."""
    return format_of(data, name).read(data, name)


def _detect(data: bytes) -> str | None:
    """The format that the content shows, or None."""
    start = _start(data)
    if start.startswith("WEBVTT"):
        return "vtt"
    if _SRT.match(start):
        return "srt"
    if _PAGE.match(start):
        return "html"
    if _XLIFF.match(start):
        return "xliff"
    if _TMX.match(start):
        return "tmx"
    if _MESSAGES.search(start) and re.search(r'^msgstr(?:\[0\])?[ \t]+"', start, re.MULTILINE):
        return "po"
    return None


def _detect_archive(data: bytes, name: str) -> str:
    """The format of an archive, by its members."""
    members = Archive.read(data, name).members
    for folder, kind in (("word/", "docx"), ("ppt/", "pptx"), ("xl/", "xlsx")):
        if "[Content_Types].xml" in members and any(path.startswith(folder) for path in members):
            return kind
    if "content.xml" in members and "mimetype" in members:
        return "odt"
    if "META-INF/container.xml" in members:
        return "epub"
    raise BadDocument(f"{name} is an archive, not a supported document. Unpack it. {_all_read()}")


def _detect_by_name(name: str) -> str | None:
    """The format by the ending of a file's name, or None."""
    lower = name.lower()
    return next((kind for kind, entry in FORMATS.items() if lower.endswith(entry.endings)), None)


def _start(data: bytes) -> str:
    """The beginning of a file, decoded as far as possible."""
    head = data[:_LOOKED_AT]
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return head[len(mark) :].decode(encoding, "replace")
    for unmarked in ("utf-16-le", "utf-16-be"):
        if head[:4].decode(unmarked, "replace") == "<?":
            return head.decode(unmarked, "replace")
    return head.decode("utf-8", "replace")


def _all_read() -> str:
    endings = ", ".join(entry.endings[0] for entry in FORMATS.values())
    return f"Supported documents: {endings}"
