"""Documents of Word and Excel as other programs write them: comments in them, names with other
prefixes, fields over several paragraphs, runs inside runs of changes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import made_office
import pytest
from made_office import MC, W, members, packed
from upper_case import GERMAN, raised

from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import OutputOptions

pytest.importorskip("docx")
etree = pytest.importorskip("lxml.etree")

A = "http://schemas.openxmlformats.org/drawingml/2006/main"
HEBREW = OutputOptions("he")


def word(body: str, prefix: str = "w") -> bytes:
    """A document of Word with a body of one's own."""
    content = members(made_office.docx(1))
    name = f"{prefix}:" if prefix else ""
    space = f"xmlns:{prefix}" if prefix else "xmlns"
    content["word/document.xml"] = (
        f'<{name}document {space}="{W}" xmlns:mc="{MC}" xmlns:a="{A}"><{name}body>{body}'
        f"</{name}body></{name}document>"
    ).encode()
    return packed({member: data for member, data in content.items() if "header" not in member})


def body_of(data: bytes) -> str:
    return members(data)["word/document.xml"].decode()


def same(data: bytes) -> bytes:
    document = read_document(data, "a.docx")
    return document.join([unit.as_it_is for unit in document.units], GERMAN)


def run(text: str, font: str = "") -> str:
    font = f"<w:rPr><w:{font}/></w:rPr>" if font else ""
    return f'<w:r>{font}<w:t xml:space="preserve">{text}</w:t></w:r>'


def test_comments_and_instructions_stay_where_they_were() -> None:
    body = (
        f"<w:p><!-- 1 -->{run('one ')}<!-- 2 -->{run('two')}<w:r><!-- 3 --><w:t>three</w:t>"
        "<?go on?><w:t>four</w:t></w:r></w:p>"
    )
    made = word(body)  # once: a ZIP holds the time at which it was made
    assert same(made) == made
    got = body_of(raised(made, "a.docx"))
    for kept in ("<!-- 1 -->", "<!-- 2 -->", "<!-- 3 -->", "<?go on?>"):
        assert got.count(kept) == 1, kept
    assert "".join(re.findall(r"<w:t[^>]*>([^<]*)", got)) == "ONE TWOTHREEFOUR"
    shown = "<!-- 1 -->ONE <!-- 2 -->TWO<!-- 3 -->THREE<?go on?>FOUR"
    assert re.sub(r"</?w:[^>]*>", "", got) == shown


@pytest.mark.parametrize("prefix", ["w", "x", ""])
def test_right_to_left_is_written_with_the_names_of_the_file(prefix: str) -> None:
    name = f"{prefix}:" if prefix else ""
    body = (
        "<w:p><w:r><w:t>one</w:t></w:r></w:p>"
        '<w:p><w:pPr/><w:r><w:rPr><w:b/></w:rPr><w:t>two</w:t></w:r></w:p>'
        "<w:p><w:pPr></w:pPr><w:r><w:rPr/><w:t>three</w:t></w:r></w:p>"
    ).replace("w:", name)  # fmt: skip
    got = body_of(raised(word(body, prefix), "a.docx", HEBREW))
    tree = etree.fromstring(got.encode())
    for paragraph in tree.iter(f"{{{W}}}p"):
        (properties,) = paragraph.findall(f"{{{W}}}pPr")
        assert [one.tag for one in properties] == [f"{{{W}}}bidi"]
        (font,) = paragraph.iter(f"{{{W}}}rPr")
        assert font.find(f"{{{W}}}rtl") is not None
        assert paragraph[0] is properties, "properties come first"


def test_paragraphs_of_drawings_have_no_direction_of_word() -> None:
    drawn = "<w:drawing><a:p><a:r><a:t>two</a:t></a:r></a:p></w:drawing>"
    body = f"<w:p>{run('one')}<w:r>{drawn}</w:r></w:p>"
    got = body_of(raised(word(body), "a.docx", HEBREW))
    tree = etree.fromstring(got.encode())
    (inside,) = tree.iter(f"{{{A}}}p")
    assert "TWO" in "".join(inside.itertext())
    assert {etree.QName(one).namespace for one in inside.iter()} == {A}


# ---- drawn at random


class Drawn:
    """A body of Word, and the text that is translated of it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def text(self) -> str:
        self.count += 1
        texts = ["word{}", "two words{} ", " x{}", "A &amp; B{}", "é{}ü", "{}. "]
        return self.random.choice(texts).format(f"n{self.count}")

    def run(self) -> str:
        font = self.random.choice(
            ["", "", "", "<w:rPr><w:b/></w:rPr>", "<w:rPr/>",
             '<w:rPr><w:i/><w:lang w:val="en"/></w:rPr>']
        )  # fmt: skip
        inside = [f'<w:t xml:space="preserve">{self.text()}</w:t>']
        if self.random.random() < 0.4:
            inside.insert(
                self.random.randrange(2),
                self.random.choice(
                    ["<w:tab/>", "<w:br/>", "<w:noBreakHyphen/>", "<w:softHyphen/>", "<!-- c -->",
                     "<w:t/>", "<w:lastRenderedPageBreak/>", "<w:t>more</w:t>",
                     '<w:footnoteReference w:id="2"/>', '<w:sym w:char="F0E0"/>',
                     "<w:t><![CDATA[a < b]]></w:t>"]
                ),
            )  # fmt: skip
        return f"<w:r w:rsidR='0{self.random.randrange(3)}'>{font}{''.join(inside)}</w:r>"

    def field(self, deep: int) -> str:
        kind = self.random.choice(["PAGE", "HYPERLINK x", "TOC", "REF x"])
        begin, middle, end = (
            f'<w:r><w:fldChar w:fldCharType="{one}"/></w:r>' for one in ("begin", "separate", "end")
        )
        told = f"<w:r><w:instrText> {kind} </w:instrText></w:r>"
        return begin + told + middle + self.pieces(deep) + end

    def piece(self, deep: int) -> str:
        inner = self.pieces(deep + 1) if deep < 3 else self.run()
        return self.random.choice(
            [
                self.run(), self.run(), self.run(), self.run(),
                f'<w:hyperlink w:anchor="a">{inner}</w:hyperlink>',
                f'<w:ins w:id="1">{inner}</w:ins>',
                '<w:del w:id="2"><w:r><w:delText>gone</w:delText></w:r></w:del>',
                '<w:moveFrom w:id="3"><w:r><w:t>moved</w:t></w:r></w:moveFrom>',
                f"<w:sdt><w:sdtPr><w:id/></w:sdtPr><w:sdtContent>{inner}</w:sdtContent></w:sdt>",
                "<w:sdt><w:sdtPr/></w:sdt>", "<w:sdt><w:sdtPr/><w:sdtContent/></w:sdt>",
                f"<w:smartTag>{inner}</w:smartTag>",
                '<w:bookmarkStart w:id="4"/>', "<w:proofErr/>", "<!-- c -->", "<w:hyperlink/>",
                "<w:fldSimple w:instr='PAGE'><w:r><w:t>7</w:t></w:r></w:fldSimple>",
                self.field(deep + 1) if deep < 2 else "",
                f"<w:r>{made_office.text_box(self.text(), self.text())}</w:r>" if deep < 2 else "",
                "<w:r/>", "\n  ",
            ]
        )  # fmt: skip

    def pieces(self, deep: int = 0) -> str:
        return "".join(self.piece(deep) for _ in range(self.random.randint(0, 5)))

    def body(self) -> str:
        made = []
        for _ in range(self.random.randint(1, 4)):
            properties = self.random.choice(["", "<w:pPr/>", '<w:pPr><w:jc w:val="left"/></w:pPr>'])
            paragraph = f"<w:p>{properties}{self.pieces()}</w:p>"
            if self.random.random() < 0.2:
                paragraph = f"<w:tbl><w:tr><w:tc>{paragraph}</w:tc></w:tr></w:tbl>"
            made.append(paragraph)
        return "".join(made)


def flat(part: str, *, up: bool = False) -> list[Any]:
    """What a body holds, runs taken apart: each piece with the font that it has."""
    found: list[Any] = []

    def name(element: Any) -> str:
        return etree.QName(element).localname if isinstance(element.tag, str) else "comment"

    def walk(element: Any, font: bytes, state: dict[str, int]) -> None:
        for one in element:
            kind = name(one)
            if kind in ("rPr", "proofErr", "lastRenderedPageBreak"):
                continue
            if kind == "r":
                (*_, own) = [
                    b"",
                    *(etree.tostring(x, with_tail=False) for x in one if name(x) == "rPr"),
                ]
                walk(one, own, state)
            elif kind == "t":
                say(one.text or "", font)
            elif kind in ("comment",):
                found.append((kind, one.text))
            else:
                found.append((kind, dict(one.attrib), (one.text or "").strip(), font))
                walk(one, b"", state)
                found.append(("/", kind))

    def say(text: str, font: bytes) -> None:
        if found and found[-1][0] == "say" and found[-1][2] == font:
            text = found.pop()[1] + text
        if text:
            found.append(("say", text, font))

    walk(etree.fromstring(part.encode()), b"", {})
    return found


_KEPT = {"fldSimple", "moveFrom", "del"}


def kept_texts(found: list[Any]) -> Iterator[tuple[bool, Any]]:
    """Each piece of a body with whether it is kept, by a reading of the fields of its own; a text
    box has its own fields."""
    stack: list[list[str]] = []
    outside: list[list[list[str]]] = []
    within: list[str] = []
    for one in found:
        if one[0] == "txbxContent":
            outside.append(stack)
            stack = []
        elif one == ("/", "txbxContent"):
            stack = outside.pop()
        if one[0] == "fldChar":
            kind = next(iter(one[1].values()))
            if kind == "begin":
                stack.append([""])
            elif kind == "end" and stack:
                stack.pop()
        elif one[0] == "instrText" and stack:
            stack[-1][0] += one[2]
        if one[0] == "/":
            within.pop()
        elif one[0] not in ("say", "comment"):
            within.append(one[0])
        hidden = any(not field[0].startswith("HYPERLINK") for field in stack)
        yield hidden or bool(_KEPT & set(within)), one


def check(seed: int) -> None:
    body = Drawn(seed).body()
    data = word(body)
    assert same(data) == data
    for wanted in (GERMAN, HEBREW):
        before, after = flat(body_of(data)), flat(body_of(raised(data, "a.docx", wanted)))
        if wanted is HEBREW:
            before, after = without_direction(before), without_direction(after)
        expected = [
            ("say", one[1] if kept else one[1].upper(), one[2]) if one[0] == "say" else one
            for kept, one in kept_texts(before)
        ]
        assert expected == after, body


def without_direction(found: list[Any]) -> list[Any]:
    made = []
    for one in found:
        if one[0] == "bidi" or one == ("/", "bidi"):
            continue
        if one[0] == "pPr" or one == ("/", "pPr"):
            continue
        if one[0] == "say":
            one = ("say", one[1], b"")
        elif one[0] not in ("/", "comment"):
            one = (*one[:3], b"")
        if made and one[0] == made[-1][0] == "say":
            one = ("say", made.pop()[1] + one[1], b"")
        made.append(one)
    return made


def test_only_text_changes_whatever_a_paragraph_holds() -> None:
    for seed in range(60):
        check(seed)


@pytest.mark.slow
def test_only_text_changes_whatever_many_paragraphs_hold() -> None:
    for seed in range(60, 3000):
        check(seed)


def test_fields_that_touch_stay_without_a_space_between_them() -> None:
    fields = "<w:fldSimple><w:r><w:t>7</w:t></w:r></w:fldSimple>"
    fields += "<w:hyperlink><w:fldSimple/></w:hyperlink>"
    body = f"<w:p>{run('page ')}{fields}{run(' of it')}</w:p>"
    got = body_of(raised(word(body), "a.docx"))
    assert got.count(fields) == 1 and re.sub("<[^>]*>", "", got) == "PAGE 7 OF IT"


def test_sheets_without_text_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sheet of numbers takes a hundred times its bytes once it is read."""
    from dragoman.formats.office import archive

    content = members(made_office.xlsx(3))
    sheet, types = "xl/worksheets/sheet1.xml", "[Content_Types].xml"
    override = re.search(rb'<Override PartName="/xl/worksheets/sheet1.xml"[^>]*/>', content[types])
    assert override is not None
    content[types] = content[types].replace(
        override[0], override[0] + override[0].replace(b"sheet1", b"sheet9")
    )
    head = content[sheet][: content[sheet].find(b">") + 1]
    content["xl/worksheets/sheet9.xml"] = head + b"<row/>" * 4000 + b"</worksheet>"
    monkeypatch.setattr(archive, "MOST_TOKENS", 4000)
    assert read_document(packed(content), "a.xlsx").units
