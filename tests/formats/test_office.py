"""Word, PowerPoint and Excel: only text changes, as the libraries for these formats read it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import made_office
import pytest
from made_office import members

from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import Document, OutputOptions, Target

docx = pytest.importorskip("docx")
openpyxl = pytest.importorskip("openpyxl")
pptx = pytest.importorskip("pptx")
etree = pytest.importorskip("lxml.etree")

FEW, MANY = 20, 1000
MAKERS: dict[str, Callable[[int], bytes]] = {
    "a.docx": made_office.docx,
    "a.pptx": made_office.pptx,
    "a.xlsx": made_office.xlsx,
    "a.odt": made_office.odt,
}


def as_it_is(document: Document) -> list[Target]:
    return [unit.as_it_is for unit in document.units]


def upper(document: Document) -> list[Target]:
    return [
        [one.upper() if isinstance(one, str) else one for one in target]
        for target in as_it_is(document)
    ]


def raised(data: bytes, name: str) -> bytes:
    document = read_document(data, name)
    return document.join(upper(document), OutputOptions())


# ---- what other programs read


def flat(part: bytes) -> Any:
    """A part as a list of what it holds, by lxml: neighbouring runs of one font as one, and
    without the marks that Word makes anew."""
    found: list[Any] = []

    def name(element: Any) -> str:
        return etree.QName(element).localname if isinstance(element.tag, str) else "comment"

    def walk(element: Any) -> None:
        if name(element) in ("proofErr", "lastRenderedPageBreak", "t"):
            if name(element) == "t":
                say(element.text or "", ())
            return
        if name(element) == "r" and is_bare(element):
            fonts = [etree.tostring(one) for one in element if name(one) == "rPr"]
            for one in element:
                if name(one) == "t":
                    say(one.text or "", tuple(fonts))
                elif name(one) not in ("rPr", "proofErr", "lastRenderedPageBreak"):
                    found.append(("font", tuple(fonts)))
                    walk(one)
            return
        attributes = {k: v for k, v in element.attrib.items() if not k.endswith("space")}
        found.append((name(element), attributes, (element.text or "").strip()))
        for one in element:
            walk(one)
        found.append(("/", name(element)))

    def is_bare(element: Any) -> bool:
        return not any(name(one) in ("delText",) for one in element)

    def say(text: str, fonts: tuple[bytes, ...]) -> None:
        if found and found[-1][0] == "say" and found[-1][2] == fonts:
            text = found.pop()[1] + text
        if text:
            found.append(("say", text, fonts))

    walk(etree.fromstring(part))
    return found


def same_parts(before: bytes, after: bytes) -> None:
    old, new = members(before), members(after)
    assert list(old) == list(new), "members, in their order"
    for name in old:
        if old[name] == new[name]:
            continue
        one, other = flat(old[name]), flat(new[name])
        for a, b in zip(one, other, strict=True):
            if a[0] == "say":
                said = a[1] if a[1].startswith("https://") else a[1].upper()
                assert (said, a[2]) == b[1:], name
            else:
                assert a == b, name


def paragraphs(document: Any) -> Iterator[str]:
    for section in document.sections:
        yield from (one.text for one in section.header.paragraphs + section.footer.paragraphs)
    yield from (one.text for one in document.paragraphs)
    for table in document.tables:
        yield from (p.text for row in table.rows for cell in row.cells for p in cell.paragraphs)


def same_docx(before: bytes, after: bytes) -> None:
    one, other = (list(paragraphs(docx.Document(io.BytesIO(data)))) for data in (before, after))
    assert [text.upper() for text in one] == other


def same_pptx(before: bytes, after: bytes) -> None:
    def texts(data: bytes) -> Iterator[str]:
        for slide in pptx.Presentation(io.BytesIO(data)).slides:
            for shape in slide.shapes:
                if shape.has_text_frame:
                    yield shape.text_frame.text
                elif shape.has_table:
                    yield from (cell.text for row in shape.table.rows for cell in row.cells)
            if slide.has_notes_slide:
                yield slide.notes_slide.notes_text_frame.text

    assert [text.upper() for text in texts(before)] == list(texts(after))


def same_xlsx(before: bytes, after: bytes) -> None:
    def cells(data: bytes) -> Iterator[tuple[str, str, Any]]:
        book = openpyxl.load_workbook(io.BytesIO(data))
        for sheet in book:
            yield "sheet", sheet.title, sheet.sheet_state
            for row in sheet.iter_rows():
                yield from (("cell", one.coordinate, one.value) for one in row)

    for (_, place, old), (_, other, new) in zip(cells(before), cells(after), strict=True):
        assert place == other
        is_text = (
            isinstance(old, str)
            and not old.startswith(("=", "https://"))
            and old not in ("visible", "hidden")
        )
        assert (old.upper() if is_text else old) == new


def same_odt(before: bytes, after: bytes) -> None:
    odf = pytest.importorskip("odf.opendocument")
    teletype = pytest.importorskip("odf.teletype")
    text = pytest.importorskip("odf.text")

    def said(data: bytes) -> list[str]:
        document = odf.load(io.BytesIO(data))
        return [
            teletype.extractText(one)
            for kind in (text.P, text.H)
            for one in document.getElementsByType(kind)
        ]

    # The library gives each space as it lies in the file; in a text several are one.
    for one, other in zip(said(before), said(after), strict=True):
        assert _SPACES.sub(" ", one).upper() == _SPACES.sub(" ", other)
    same_spans(before, after)


_SPACES = re.compile(r"[ \n]+")
_FIELDS = {"page-number", "note-citation"}


def flat_paragraphs(part: bytes) -> list[Any]:
    """What an OpenDocument part holds, by lxml: elements, and text as it is shown."""
    found: list[Any] = []
    is_behind_space = False

    def say(text: str | None, is_kept: bool) -> None:
        nonlocal is_behind_space
        said = _SPACES.sub(" ", text or "")
        said = said.removeprefix(" ") if is_behind_space else said
        if said:
            is_behind_space = said.endswith(" ")
            found.append(("say", said, is_kept))

    def walk(element: Any) -> None:
        nonlocal is_behind_space
        name = etree.QName(element).localname
        if name in ("p", "h"):
            is_behind_space = False
        found.append((name, dict(element.attrib)))
        say(element.text, name in _FIELDS)
        for one in element:
            walk(one)
            say(one.tail, name in _FIELDS)
        found.append(("/", name))

    walk(etree.fromstring(part))
    return found


def same_spans(before: bytes, after: bytes) -> None:
    """Each element holds the same text."""
    old, new = members(before), members(after)
    assert list(old) == list(new), "members, in their order"
    for name in old:
        if not name.endswith(".xml") or old[name] == new[name]:
            assert old[name] == new[name], name
            continue
        one, other = flat_paragraphs(old[name]), flat_paragraphs(new[name])
        for a, b in zip(one, other, strict=True):
            if a[0] == "say" and not a[2]:
                a = (a[0], a[1].upper(), a[2])
            assert a == b, name


SAME = {"a.docx": same_docx, "a.pptx": same_pptx, "a.xlsx": same_xlsx, "a.odt": same_odt}


def check(name: str, seeds: range) -> None:
    for seed in seeds:
        data = MAKERS[name](seed)
        document = read_document(data, name)
        assert document.units, f"{name}, seed {seed}"
        assert document.join(as_it_is(document), OutputOptions()) == data, f"{name}, seed {seed}"
        translated = document.join(upper(document), OutputOptions())
        try:
            if name != "a.odt":
                same_parts(data, translated)
            SAME[name](data, translated)
        except AssertionError as error:
            raise AssertionError(f"{name}, seed {seed}: {error}") from error


@pytest.mark.parametrize("name", MAKERS)
def test_only_text_changes(name: str) -> None:
    check(name, range(FEW if name != "a.pptx" else 8))


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_only_text_changes_in_many(name: str) -> None:
    check(name, range(FEW, MANY))
