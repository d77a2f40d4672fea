"""Documents as large as a server takes them, made to be dear: see ``document_costs.py``."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

BYTES = 9_900_000
CHARACTERS = 990_000
_TEXT = "one two "
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override '
    'PartName="/{}" ContentType="application/vnd.openxmlformats-officedocument.{}+xml"/></Types>'
)
_MEMBERS = {"word": "word/x.xml", "pres": "ppt/x.xml", "spre": "xl/x.xml"}
_ODF = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
)

Shape = Callable[[float], bytes]
"""A file; a share of its size is asked for."""


def filled(begin: str, piece: str, end: str, share: float, most: int) -> bytes:
    """A piece as often as the limits allow; ``share``: of them."""
    often = min(BYTES // len(piece.encode()), most)
    if piece == _TEXT:
        often = CHARACTERS // len(_TEXT)
    return (begin + piece * max(1, int(often * share)) + end).encode()


def packed(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def office(kind: str, begin: str, piece: str, end: str, share: float, most: int) -> bytes:
    member = _MEMBERS[kind[:4]]
    types = _TYPES.format(member, kind).encode()
    return packed({"[Content_Types].xml": types, member: filled(begin, piece, end, share, most)})


def word(piece: str, most: int, begin: str = "<w:p>", end: str = "</w:p>") -> Shape:
    around = f'<w:document xmlns:w="{W}"><w:body>{begin}', f"{end}</w:body></w:document>"
    kind = "wordprocessingml.document.main"
    return lambda share: office(kind, around[0], piece, around[1], share, most)


def slide(piece: str, most: int, begin: str = "", end: str = "") -> Shape:
    around = f'<p:sld xmlns:p="p" xmlns:a="{A}">{begin}', f"{end}</p:sld>"
    return lambda share: office("presentationml.slide", around[0], piece, around[1], share, most)


def sheet(piece: str, most: int, begin: str = "", end: str = "") -> Shape:
    around = f"<sst>{begin}", f"{end}</sst>"
    kind = "spreadsheetml.sharedStrings"
    return lambda share: office(kind, around[0], piece, around[1], share, most)


def text(piece: str, most: int, begin: str = "", end: str = "") -> Shape:
    around = f"{_ODF}{begin}", f"{end}</office:document-content>"
    mimetype = b"application/vnd.oasis.opendocument.text"
    return lambda share: packed(
        {"mimetype": mimetype, "content.xml": filled(around[0], piece, around[1], share, most)}
    )


def book(piece: str, most: int, begin: str = "<p>", end: str = "</p>") -> Shape:
    container = (
        b'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
        b'full-path="x.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        b'<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml" '
        b'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine>'
        b"</package>"
    )
    around = f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{begin}', f"{end}</body></html>"
    return lambda share: packed(
        {
            "mimetype": b"application/epub+zip",
            "META-INF/container.xml": container,
            "x.opf": package,
            "a.xhtml": filled(around[0], piece, around[1], share, most),
        }
    )


def plain(begin: str, piece: str, end: str = "", most: int = CHARACTERS) -> Shape:
    return lambda share: filled(begin, piece, end, share, most)


_PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
_XLIFF = '<xliff version="1.2"><file><body>'
_XLIFF_END = "</body></file></xliff>"
_UNIT, _UNIT_END = "<trans-unit><source>", "</source></trans-unit>"
_TU, _TU_END = '<tu><tuv xml:lang="en"><seg>', "</seg></tuv></tu>"
_CUE = "1\n00:00:01,000 --> 00:00:02,000\n"
_VTT = "00:01.000 --> 00:02.000\n"
_RUN = "<w:r><w:rPr><w:b/></w:rPr><w:t>a </w:t></w:r>"

SHAPES: dict[str, dict[str, Shape]] = {
    "po": {
        "messages of one letter": plain(_PO, 'msgid "a"\nmsgstr ""\n\n'),
        "empty entries": plain(_PO, 'msgid "1"\nmsgstr ""\n\n'),
        "translated entries": plain(_PO, 'msgid "a"\nmsgstr "b"\n'),
        "placeholders of one message": plain(f'{_PO}msgid "', "a {0} ", '"\nmsgstr ""\n', 480_000),
        "strings of one message": plain(f'{_PO}msgid ""\n', '"a"\n', 'msgstr ""\n'),
        "empty strings of one message": plain(
            f'{_PO}msgid "a"\n', '""\n', 'msgstr ""\n', 3_000_000
        ),
        "one line": plain(f'{_PO}msgid "', _TEXT, '"\nmsgstr ""\n'),
        "escapes": plain(f'{_PO}msgid "a', "\\n", '"\nmsgstr ""\n'),
        "comments": plain(_PO, "#\n", 'msgid "a"\nmsgstr ""\n', 4_000_000),
        "flags of one message": plain(_PO, "#, c-format\n", 'msgid "a"\nmsgstr ""\n'),
        "plural forms": plain(
            'msgid ""\nmsgstr "Plural-Forms: nplurals=10; plural=0;\\n"\n\n',
            'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n\n',
        ),
    },
    "csv": {
        "cells of one letter": plain("", "a,", "a"),
        "rows of one letter": plain("", "a\n"),
        "quoted cells": plain("", '"a",', '"a"'),
        "empty cells": plain("", ",", "a", 990_000),
        "one huge cell": plain('"', _TEXT, '"'),
        "quotation marks in one cell": plain('"a', '""', '"', 4_000_000),
        "placeholders in one cell": plain('"', "a {0} ", '"', 900_000),
        "line breaks in one cell": plain('"', "a\n", '"'),
    },
    "xliff": {
        "units of one letter": plain(_XLIFF, f"{_UNIT}a{_UNIT_END}", _XLIFF_END),
        "empty units": plain(_XLIFF, "<trans-unit/>", _XLIFF_END),
        "translated units": plain(
            _XLIFF, "<trans-unit><source>a</source><target>b</target></trans-unit>", _XLIFF_END
        ),
        "codes of one unit": plain(_XLIFF + _UNIT, "a <x/>", _UNIT_END + _XLIFF_END, 490_000),
        "codes without text": plain(_XLIFF + _UNIT + "a", "<x/>", _UNIT_END + _XLIFF_END, 900_000),
        "pairs of one unit": plain(
            _XLIFF + _UNIT, "a <g id='1'>b</g>", _UNIT_END + _XLIFF_END, 490_000
        ),
        "placeholders and codes": plain(
            _XLIFF + _UNIT, "a {0} <x/>", _UNIT_END + _XLIFF_END, 300_000
        ),
        "entities of one unit": plain(
            _XLIFF + _UNIT + "a", "&lt;", _UNIT_END + _XLIFF_END, 980_000
        ),
        "one line": plain(_XLIFF + _UNIT, _TEXT, _UNIT_END + _XLIFF_END),
        "lines of one unit": plain(_XLIFF + _UNIT, "a\n", _UNIT_END + _XLIFF_END),
        "nested": lambda share: (
            _XLIFF
            + _UNIT
            + "<g>" * 490
            + "a <x/>" * int(300_000 * share)
            + "</g>b" * 490
            + _UNIT_END
            + _XLIFF_END
        ).encode(),
        "spaces between units": plain(
            _XLIFF + " " * 4_000_000,
            "<trans-unit> <source>a</source></trans-unit>",
            _XLIFF_END,
            100_000,
        ),
    },
    "tmx": {
        "entries of one letter": plain(
            '<tmx version="1.4"><body>', f"{_TU}a{_TU_END}", "</body></tmx>"
        ),
        "codes of one entry": plain(
            f'<tmx version="1.4"><body>{_TU}', "a <ph/>", f"{_TU_END}</body></tmx>", 490_000
        ),
        "languages of one entry": plain(
            f'<tmx version="1.4"><body>{_TU[:4]}',
            _TU[4:] + "a" + _TU_END[:-5],
            "</tu></body></tmx>",
        ),
        "empty entries": plain('<tmx version="1.4"><body>', "<tu/>", "</body></tmx>"),
        "one line": plain(f'<tmx version="1.4"><body>{_TU}', _TEXT, f"{_TU_END}</body></tmx>"),
    },
    "json": {
        "values of one letter": plain("[", '"a",', '"a"]', 990_000),
        "objects of one value": plain("[", '{"a":"a"},', "1]", 490_000),
        "empty values": plain("[", '"",', '"a"]', 980_000),
        "placeholders of one value": plain('["', "a {0} ", '"]', 900_000),
        "escapes of one value": plain('["a', "\\n", '"]'),
        "one line": plain('["', _TEXT, '"]'),
        "nested": lambda share: (
            "[" * 190 + '"a",' * int(900_000 * share) + '"a"' + "]" * 190
        ).encode(),
        "plural forms": plain("[", '"{n, plural, other {a}}",', '"a"]'),
        "branches of one message": plain('["{n, plural, ', "=1 {a} ", 'other {a}}"]'),
        "nested plural forms": lambda share: (
            '["'
            + "{n, plural, other {a " * int(400_000 * share)
            + "}}" * int(400_000 * share)
            + '"]'
        ).encode(),
        "open plural forms": plain('["', "{n, plural, ", '"]', 900_000),
    },
    "yaml": {
        "values of one letter": plain("", "- a\n", "", 280_000),
        "one block of paragraphs": plain("a: |\n", "  a\n\n", ""),
        "one line": plain("a: ", _TEXT, ""),
        "placeholders of one value": plain('a: "', "b {0} ", '"', 900_000),
        "nested": lambda share: ("[" * 190 + "a, " * int(290_000 * share) + "]" * 190).encode(),
    },
    "html": {
        "tags of one unit": plain("<p>", "a <b>b</b> ", "", 240_000),
        "tags without text": plain("<p>a", "<b></b>", "", 480_000),
        "paragraphs": plain("", "<p>a", "", 990_000),
        "nested": plain("", "<b>", "a", 990_000),
        "lists in lists": plain("", "<ul><li>a", "", 400_000),
        "attributes": plain("<p ", "a=b ", ">a", 2_400_000),
        "texts of pictures": plain("<p>", '<img alt="a">', "", 700_000),
        "entities": plain("<p>a", "&lt;", ""),
        "comments": plain("<p>a", "<!---->", "b", 990_000),
        "brackets": plain("<p>a", "<", ""),
        "one line": plain("<p>", _TEXT, ""),
        "tables": plain("<table>", "<tr><td>a", "", 400_000),
    },
    "markdown": {
        "paragraphs": plain("", "a\n\n", "", 66_000),
        "marks": plain("", "**a** ", "", 60_000),
        "one line": plain("", _TEXT, ""),
        "links": plain("", "[a](b) ", "", 40_000),
        "quotes": plain("", "> ", "a", 100_000),
    },
    "txt": {
        "paragraphs": plain("", "a\n\n", ""),
        "one line": plain("", _TEXT, ""),
        "lines": plain("", "a\n", ""),
        "spaces": plain("a", " ", "b", 9_900_000),
        "empty lines": plain("a", "\n", "b", 9_900_000),
    },
    "srt": {
        "cues": plain("", f"{_CUE}a\n\n"),
        "cues of one sentence": plain("", f"{_CUE}a,\n\n"),
        "tags of one line": plain(_CUE, "<b>a</b>", "\n", 490_000),
        "tags without text": plain(f"{_CUE}a", "<b>", "\n", 3_000_000),
        "lines of one cue": plain(_CUE, "a\n", "\n"),
        "empty lines": plain(f"{_CUE}a", "\n", "", 9_900_000),
        "one line": plain(_CUE, _TEXT, "\n"),
        "speakers of one cue": plain(_CUE, "- a\n", "\n"),
    },
    "vtt": {
        "cues": plain("WEBVTT\n\n", f"{_VTT}a\n\n"),
        "tags of one line": plain(f"WEBVTT\n\n{_VTT}", "<b>a</b>", "\n", 490_000),
        "entities": plain(f"WEBVTT\n\n{_VTT}a", "&lt;", "\n"),
        "notes": plain("WEBVTT\n\n", "NOTE\n\n", f"{_VTT}a\n"),
        "one note": plain("WEBVTT\n\nNOTE ", "a ", f"\n\n{_VTT}a\n"),
    },
    "docx": {
        "runs of one paragraph": word(_RUN + "<w:perm/><w:r><w:t>b </w:t></w:r>", 110_000),
        "paragraphs": word("<w:p><w:r><w:t>a</w:t></w:r></w:p>", 240_000, "", ""),
        "tabs of one run": word("<w:t>a</w:t><w:tab/>", 330_000, "<w:p><w:r>", "</w:r></w:p>"),
        "tabs without text": word("<w:tab/>", 900_000, "<w:p><w:r><w:t>a</w:t>", "</w:r></w:p>"),
        "texts of one run": word("<w:t>a</w:t>", 600_000, "<w:p><w:r>", "</w:r></w:p>"),
        "links": word("<w:hyperlink><w:r><w:t>a </w:t></w:r></w:hyperlink>", 200_000),
        "fields": word(
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:t>a</w:t></w:r>', 200_000
        ),
        "text boxes": word(
            "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>a</w:t></w:r></w:p></w:txbxContent>"
            "</w:pict></w:r>",
            100_000,
            "<w:p><w:r><w:t>b</w:t></w:r>",
            "</w:p>",
        ),
        "nested": word(
            "<w:r><w:t>a</w:t></w:r>",
            230_000,
            "<w:p>" + "<w:ins>" * 490,
            "</w:ins>" * 490 + "</w:p>",
        ),
        "comments": word(
            "<!---->", 900_000, "<w:p><w:r><w:t>a</w:t></w:r>", "<w:r><w:t>b</w:t></w:r></w:p>"
        ),
        "one line": word(_TEXT, CHARACTERS, "<w:p><w:r><w:t>", "</w:t></w:r></w:p>"),
    },
    "pptx": {
        "paragraphs": slide("<a:p><a:r><a:t>a</a:t></a:r></a:p>", 240_000),
        "breaks of one paragraph": slide(
            "<a:r><a:t>a</a:t></a:r><a:br/>", 240_000, "<a:p>", "</a:p>"
        ),
        "fonts of one paragraph": slide(
            '<a:r><a:rPr b="1"/><a:t>a</a:t></a:r><a:r><a:t>b</a:t></a:r>',
            120_000,
            "<a:p>",
            "</a:p>",
        ),
        "shapes without text": slide("<p:sp><a:p/></p:sp>", 480_000),
        "one line": slide(_TEXT, CHARACTERS, "<a:p><a:r><a:t>", "</a:t></a:r></a:p>"),
    },
    "xlsx": {
        "strings": sheet("<si><t>a</t></si>", 330_000),
        "runs of one string": sheet(
            "<r><rPr><b/></rPr><t>a</t></r><r><t>b</t></r>", 140_000, "<si>", "</si>"
        ),
        "empty strings": sheet("<si/>", 900_000),
        "lines of one string": sheet("a\n", CHARACTERS, "<si><t>", "</t></si>"),
        "phonetics of one string": sheet("<rPh><t>a</t></rPh>", 300_000, "<si><t>a</t>", "</si>"),
    },
    "odt": {
        "paragraphs": text("<text:p>a</text:p>", 600_000),
        "spans of one paragraph": text(
            "a<text:span>b</text:span>", 400_000, "<text:p>", "</text:p>"
        ),
        "spaces of one paragraph": text("a<text:s/>", 600_000, "<text:p>", "</text:p>"),
        "tabs of one paragraph": text("a<text:tab/>", 600_000, "<text:p>", "</text:p>"),
        "nested": text(
            "<text:span/>",
            600_000,
            "<text:p>" + "<text:span>" * 490 + "a",
            "b</text:span>" * 490 + "</text:p>",
        ),
        "notes": text(
            "a<text:note><text:note-body><text:p>b</text:p></text:note-body></text:note>",
            120_000,
            "<text:p>",
            "</text:p>",
        ),
        "lines of one paragraph": text("a\n", CHARACTERS, "<text:p>", "</text:p>"),
    },
    "epub": {
        "tags of one paragraph": book("a <b>b</b> ", 240_000),
        "paragraphs": book("<p>a</p>", 600_000, "", ""),
        "nested": book("a <i/>", 400_000, "<p>" + "<b>" * 490, "</b>" * 490 + "</p>"),
        "one line": book(_TEXT, CHARACTERS),
    },
}
ENDINGS = {"xliff": "xlf", "markdown": "md"}
