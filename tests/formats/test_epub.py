"""Books: their pages and their tables of contents are translated, and nothing else changes."""

from __future__ import annotations

import io
import random
import re
import zipfile
from typing import Any

import made_texts
import pytest
from made_office import members
from upper_case import raised

from dragoman.formats import epub, units
from dragoman.formats.catalogue import format_of, read_document
from dragoman.formats.units.document import BadDocument, OutputOptions

etree = pytest.importorskip("lxml.etree")

PACKAGE = "EPUB/a book.opf"
XHTML = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
    '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en"><head><title>{}</title>'
    '<link rel="stylesheet" href="a.css"/></head><body>{}</body></html>\n'
)
NCX = (
    '<?xml version="1.0"?><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><docTitle><text>{}'
    '</text></docTitle><navMap><navPoint id="a"><navLabel><text>{}</text></navLabel>'
    '<content src="text/p%201.xhtml"/></navPoint></navMap></ncx>'
)


def book(seed: int, **more: str) -> bytes:
    make = made_texts.Maker(seed)
    draw = random.Random(seed)
    pages = {f"EPUB/text/p {n}.xhtml": page(make) for n in range(1, draw.randint(2, 5))}
    items = "".join(
        f'<item id="p{n}" href="text/p%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(1, len(pages) + 1)
    )
    links = "<nav><ol><li><a href='text/p%201.xhtml'>" + make.words() + "</a></li></ol></nav>"
    content = {
        "META-INF/container.xml": '<?xml version="1.0"?><container><rootfiles><rootfile '
        f'full-path="{PACKAGE}"/></rootfiles></container>',
        PACKAGE: '<?xml version="1.0"?>\n<package xmlns="http://www.idpf.org/2007/opf">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:language>en</dc:language>'
        f"<dc:title>A title</dc:title></metadata><manifest>{items}"
        '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
        '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        '<item id="css" href="a.css" media-type="text/css"/>'
        '<item id="off" href="http://a.example/x" media-type="application/xhtml+xml"/></manifest>'
        '<spine toc="ncx"><itemref idref="p1"/></spine></package>',
        **pages,
        "EPUB/nav.xhtml": XHTML.format(make.words(), links),
        "EPUB/toc.ncx": NCX.format(make.words(), make.words() + " &amp; on"),
        "EPUB/a.css": "p { color: red }",
        **more,
    }  # fmt: skip
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        kind = zipfile.ZipInfo("mimetype")
        archive.writestr(kind, "application/epub+zip", zipfile.ZIP_STORED)
        for name, text in content.items():
            archive.writestr(name, text)
    return file.getvalue()


def page(make: Any) -> str:
    pieces = [
        make.one_of(
            f"<p>{make.words()} <i>{make.words()}</i>, {make.words()}.</p>",
            f"<h1 id='x'>{make.words()}</h1>",
            f'<p>{make.words()}<a href="#n1"><sup>1</sup></a> &#233; {make.words()}</p>',
            f"<blockquote><p>{make.words()}<br/>{make.words()}</p></blockquote>",
            "<hr/>",
        )
        for _ in range(4)
    ]
    return XHTML.format(make.words(), "\n".join([*pieces, f"<p>{make.words()}</p>"]))


def shape(data: bytes) -> list[Any]:
    """A member as lxml reads it: elements with their attributes and texts."""
    return [
        (one.tag, dict(one.attrib), one.text, one.tail)
        for one in etree.fromstring(data).iter()
        if isinstance(one.tag, str)
    ]


def check(seed: int) -> None:
    data = book(seed)
    assert format_of(data, "file").name == "a book (EPUB)"
    document = read_document(data, "a.epub")
    assert document.join([unit.as_it_is for unit in document.units], OutputOptions()) == data
    translated = raised(data, "a.epub", OutputOptions())
    with zipfile.ZipFile(io.BytesIO(translated)) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert archive.testzip() is None
    before, after = members(data), members(translated)
    assert list(before) == list(after)
    for name, content in before.items():
        if not name.endswith((".xhtml", ".ncx")):
            assert after[name] == content, name
            continue
        for old, new in zip(shape(content), shape(after[name]), strict=True):
            upper = [text.upper() if text else text for text in old[2:]]
            assert [*old[:2], *upper] == list(new), name


def test_only_the_text_of_a_book_changes() -> None:
    for seed in range(20):
        check(seed)


@pytest.mark.slow
def test_only_the_text_of_many_books_changes() -> None:
    for seed in range(20, 1000):
        check(seed)


def test_the_package_gets_the_language_and_its_direction() -> None:
    data = book(1)
    package = members(raised(data, "a.epub", OutputOptions("he")))[PACKAGE].decode()
    assert "<dc:language>he</dc:language>" in package
    assert '<spine toc="ncx" page-progression-direction="rtl">' in package
    assert "<dc:title>A title</dc:title>" in package
    pages = members(raised(data, "a.epub", OutputOptions("he")))
    html = etree.fromstring(pages["EPUB/text/p 1.xhtml"])
    assert (html.get("dir"), html.get("lang")) == ("rtl", "he")
    back = members(
        raised(raised(data, "a.epub", OutputOptions("he")), "a.epub", OutputOptions("de"))
    )[PACKAGE]
    assert b'page-progression-direction="ltr"' in back


def test_all_pages_of_a_book_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small archive may hold thousands of them, and a million tags each."""
    data = book(1)
    tags = sum(one.count(b"<") for name, one in members(data).items() if name[-4:] != ".css")
    assert read_document(data, "a.epub").units
    monkeypatch.setattr(units.document, "MOST_PIECES", tags - 1)
    assert f"more than {tags - 1} pieces" in told(data)
    monkeypatch.undo()
    size = sum(len(one) for name, one in members(data).items() if name[-4:] != ".css")
    monkeypatch.setattr(epub, "MOST_BYTES", size - len("application/epub+zip") - 1)
    assert "unpacked file is too large" in told(data)


def test_the_table_of_contents_of_an_archive_is_read_as_often_for_many_members_as_for_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[object] = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *given: Any, **more: Any) -> None:
            opened.append(given)
            super().__init__(*given, **more)

    def times(data: bytes) -> int:
        opened.clear()
        document = read_document(data, "a.epub")
        document.join([one.as_it_is for one in document.units], OutputOptions("de"))
        return len(opened)

    few, many = (max((book(n) for n in range(9)), key=size) for size in (lambda b: -len(b), len))
    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    assert times(few) == times(many)


def told(data: bytes) -> str:
    with pytest.raises(BadDocument) as error:
        read_document(data, "a.epub")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_bad_books_are_told_in_one_line() -> None:
    lock = "<encryption><CipherReference URI='{}'/></encryption>"
    locked = {"META-INF/encryption.xml": lock.format("EPUB/text/p%201.xhtml")}
    assert re.search(r"a\.epub, EPUB/text/p 1\.xhtml: it is encrypted", told(book(1, **locked)))
    assert read_document(
        book(1, **{"META-INF/encryption.xml": lock.format("EPUB/a.otf")}), "a.epub"
    )
    assert "no member 'EPUB/gone.opf'" in told(
        book(1, **{"META-INF/container.xml": "<c><rootfile full-path='EPUB/gone.opf'/></c>"})
    )
    assert "lists no page" in told(book(1, **{PACKAGE: "<package/>"}))
    assert f"{PACKAGE}, line 1" in told(book(1, **{PACKAGE: "<package>"}))
    (note,) = read_document(book(1, **{"META-INF/signatures.xml": "<s/>"}), "a.epub").notes
    assert "signature" in note
