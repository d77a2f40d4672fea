"""The table of all formats, the detection of a file's format, by content before name, and documents
as files: read whole, checked to be of the languages that are wanted, written whole or not at all,
never over the original. Nothing here loads torch.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dragoman.base.atomic import check_is_file, replacing_file
from dragoman.base.errors import DataError, FileError
from dragoman.formats.csv_cells import CsvTable
from dragoman.formats.epub import Book
from dragoman.formats.html.document import HtmlPage
from dragoman.formats.json_messages import JsonMessages
from dragoman.formats.markdown import Markdown
from dragoman.formats.office.archive import Archive
from dragoman.formats.office.open_xml import OfficeDocument
from dragoman.formats.office.opendocument import OpenDocument
from dragoman.formats.po import MessageCatalogue
from dragoman.formats.subtitles import Subtitles
from dragoman.formats.tmx import TranslationMemory
from dragoman.formats.units.document import BadDocument, Document
from dragoman.formats.units.encoding import MARKS, PlainText
from dragoman.formats.xliff import Xliff
from dragoman.formats.yaml_messages import YamlMessages
from dragoman.forms.languages import NAMES, base, name_of

MOST_BYTES = 1 << 30
"""The most bytes of a file from the shell or from Python; a server has limits of its own."""


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


def open_document(path: Path) -> Document:
    """Errors: ``DataError`` for a file that cannot be read, ``BadDocument`` for one of no format
    that is read."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise BadDocument(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are allowed")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    return read_document(data, str(path))


def write_document(path: Path, data: bytes) -> None:
    """Whole or not at all. Errors: ``FileError``."""
    with replacing_file(path) as temporary:
        temporary.write_bytes(data)


def is_document(path: Path, *, or_lines: bool = False) -> bool:
    """True for a file of a format of documents, by its beginning and its name; plain text is none.
    ``or_lines``: tables and Markdown are none either."""
    try:
        return path.is_file() and looks_like_a_document(
            _read_start(path), path.name, or_lines=or_lines
        )
    except OSError:
        return False


def format_name_of(path: Path) -> str:
    """The name of a file's format for people, by its beginning and its name."""
    kind = _detect(_read_start(path)) or _detect_by_name(path.name)
    return FORMATS[kind].name if kind else "a document"


def _read_start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LOOKED_AT)


def check_is_another(source: Path, to: Path) -> None:
    """Errors: ``FileError`` where a translation would take the place of what is translated, or of
    what is no file."""
    check_is_file(to)
    if to.exists() and os.path.samefile(source, to):
        raise FileError(f"{to} is the document itself and is not overwritten. Choose another file")
    if not to.parent.is_dir():
        raise FileError(f"cannot write {to}: there is no folder {to.parent}")


def check_is_new(to: Path, *, or_lines: bool = False) -> None:
    """Errors: ``FileError`` where a document would be overwritten, with what a person may have
    corrected in it. ``or_lines``: as ``is_document`` has it."""
    if is_document(to, or_lines=or_lines):
        raise FileError(
            f"{to} is an existing document and is not overwritten. Choose another file with "
            f"--to, or remove it first: rm {shlex.quote(str(to))}"
        )


def files_in(folder: Path, to: Path) -> Iterator[tuple[Path, Path]]:
    """The files of a folder and of those in it, and where their translations go. Hidden ones and
    links are left out. Errors: ``FileError`` if one folder is inside the other."""
    inside, outside = folder.resolve(), to.resolve()
    if inside == outside or inside in outside.parents or outside in inside.parents:
        raise FileError(
            f"{to} and {folder} are the same folder, or one is inside the other. Choose a folder "
            "outside of the one that is translated"
        )
    if to.exists() and not to.is_dir():
        raise FileError(f"{to} is a file. Choose a folder for the translations of a folder")
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not path.is_symlink() and not is_hidden:
            yield path, to / relative


_SAME = {"nb": "no", "nn": "no", "iw": "he", "in": "id"}


def fit_document(document: Document, source: str | None, target: str) -> tuple[Document, list[str]]:
    """The document as it is translated from ``source`` (None: whichever it is in) into ``target``,
    and what is doubtful about its languages. Errors: ``BadDocument`` where it says that it is of
    others."""
    doubts = []
    for declared in document.languages:
        language = source if declared.side == "source" else target
        if language is None or not _differ(declared.code, language):
            continue
        problem = (
            f"{declared.where} says {name_of(declared.code)}, but it is to be translated "
            f"{'from' if declared.side == 'source' else 'into'} {name_of(language)}"
        )
        if declared.is_binding:
            raise BadDocument(
                f"{problem}. Use a run for these languages, or correct the language in the document"
            )
        doubts.append(f"{problem}. If the document is right, use another run")
    return document.between(source, target), doubts


def _differ(first: str, second: str) -> bool:
    """True if two codes are of two known languages; a region makes no difference."""
    both = {_SAME.get(base(code), base(code)) for code in (first, second)}
    return len(both) == 2 and both <= NAMES.keys()
