"""What each format asks for beside keeping all but its text."""

from __future__ import annotations

import io
import re

import made_office
import pytest
from made_office import W, members, packed
from markdown_it import MarkdownIt

from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import OutputOptions, Target

GERMAN = OutputOptions("de")


def word(body: str) -> bytes:
    """A document of Word with a body of one's own."""
    content = members(made_office.docx(1))
    head = f'<w:document xmlns:w="{W}" xmlns:mc="{made_office.MC}">'
    content["word/document.xml"] = f"{head}<w:body>{body}</w:body></w:document>".encode()
    return packed({name: data for name, data in content.items() if "header" not in name})


def texts(data: bytes, name: str) -> list[str]:
    return [unit.text for unit in read_document(data, name).units]


def joined(data: bytes, name: str, *targets: Target, wanted: OutputOptions = GERMAN) -> str:
    made = read_document(data, name).join(list(targets), wanted)
    return members(made)["word/document.xml"].decode() if name == "a.docx" else made.decode()


def run(text: str, font: str = "") -> str:
    font = f"<w:rPr><w:{font}/></w:rPr>" if font else ""
    return f'<w:r>{font}<w:t xml:space="preserve">{text}</w:t></w:r>'


def test_neighbouring_runs_of_one_font_are_read_as_one() -> None:
    body = (
        f"<w:p>{run('trans', 'b')}<w:proofErr/>{run('lation', 'b')}{run(' of ')}{run('it')}</w:p>"
    )
    (unit,) = read_document(word(body), "a.docx").units
    assert unit.text == "translation of it" and len(unit.tags) == 2
    got = joined(word(body), "a.docx", [0, "davon ", 1, "Übersetzung"])
    assert f"<w:p>{run('davon ')}{run('Übersetzung', 'b')}</w:p>" in got


def test_fields_and_deleted_text_are_kept_and_links_are_translated() -> None:
    def field(instruction: str, shown: str) -> str:
        parts = ("begin", "separate", "end")
        begin, middle, end = (f'<w:r><w:fldChar w:fldCharType="{p}"/></w:r>' for p in parts)
        told = f"<w:r><w:instrText> {instruction} </w:instrText></w:r>"
        return begin + told + middle + run(shown) + end

    body = f"<w:p>{run('Page ')}{field('PAGE', 'seven')}{run(' of it')}</w:p>"
    body += f"<w:p>{field('HYPERLINK x', 'a link')}</w:p><w:p>{field('TOC', 'Contents')}</w:p>"
    body += f"<w:p>{run('new')}<w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
    assert texts(word(body), "a.docx") == ["Page  of it", "a link", "new"]


def test_both_branches_of_a_text_box_are_translated() -> None:
    box = made_office.text_box("one", "one")
    body = f"<w:p>{run('before ')}<w:r>{box}</w:r>{run('behind')}</w:p>"
    document = read_document(word(body), "a.docx")
    targets: list[Target] = [
        [one.upper() if isinstance(one, str) else one for one in unit.as_it_is]
        for unit in document.units
    ]
    got = members(document.join(targets, GERMAN))["word/document.xml"].decode()
    assert got.count(">ONE<") == 2 and ">one<" not in got and "BEFORE " in got


def test_right_to_left() -> None:
    body = f'<w:p><w:pPr><w:jc w:val="left"/></w:pPr>{run("one", "b")}</w:p>'
    got = joined(word(body), "a.docx", ["אחת"], wanted=OutputOptions("he"))
    assert '<w:pPr><w:bidi/><w:jc w:val="left"/></w:pPr>' in got
    assert "<w:rPr><w:b/><w:rtl/></w:rPr>" in got
    page = joined(b'<html lang="en"><p>one', "a.html", ["אחת"], wanted=OutputOptions("he"))
    assert page == '<html dir="rtl" lang="he"><p>אחת'


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ('<html lang="he"dir="rtl">', '<html lang="de"dir="ltr">'),
        ("<html class='x'lang='en'>", "<html class='x'lang=\"de\">"),
        ("<HTML LANG = en id=/a/b/>", '<HTML LANG = "de" id=/a/b/>'),
        ("<html lang dir=RTL>", '<html lang="de" dir="ltr">'),
    ],
)
def test_a_page_is_of_its_new_language_however_its_attributes_are_written(
    tag: str, expected: str
) -> None:
    page = joined(f"{tag}<p>one".encode(), "a.html", ["eins"], wanted=OutputOptions("de"))
    assert page == f"{expected}<p>eins"


@pytest.mark.parametrize("unseen", ["<!-- -->", "<wbr>"])
def test_there_is_no_space_beside_what_nobody_sees(unseen: str) -> None:
    source = f"<p>東京{unseen}、大阪です。".encode()
    document = read_document(source, "a.html")
    page = document.join([["Tokyo", 0, ", Osaka."]], OutputOptions("en"))
    assert page.decode() == f"<p>Tokyo{unseen}, Osaka."


def test_headings_of_tables_in_sheets_are_kept() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    from openpyxl.worksheet.table import Table

    book = openpyxl.Workbook()
    for row in (["Name", "Place"], ["a house", "the river"]):
        book.active.append(row)
    book.active.add_table(Table(displayName="T", ref="A1:B2"))
    file = io.BytesIO()
    book.save(file)
    assert texts(file.getvalue(), "a.xlsx") == ["a house", "the river"]


def test_plural_forms_are_those_of_the_header() -> None:
    head = 'msgid ""\nmsgstr "Plural-Forms: nplurals={};\\n"\n\n'
    body = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    for forms, told in (
        (1, ['msgstr[0] "V %d"', 'msgstr[1] ""']),
        (3, ['msgstr[0] "E %d"', 'msgstr[1] "V %d"', 'msgstr[2] "V %d"']),
    ):
        data = (head.format(forms) + body).encode()
        targets: list[Target] = [["E ", 0], ["V ", 0]] if forms > 1 else [["V ", 0]]
        assert re.findall(r"^msgstr\[.*", joined(data, "a.po", *targets), re.MULTILINE) == told


def test_a_mark_of_fuzzy_messages_stands_where_gettext_has_it() -> None:
    entry = '#. told\n#: a.c:1\n{}#| msgid "before"\nmsgctxt "x"\nmsgid "one"\nmsgstr ""\n'
    for flags, wanted in (("", "#, fuzzy\n"), ("#, c-format\n", "#, fuzzy, c-format\n")):
        got = joined(entry.format(flags).encode(), "a.po", ["eins"])
        assert got == entry.format(wanted).replace('msgstr ""', 'msgstr "eins"')
        final = joined(
            entry.format(flags).encode(), "a.po", ["eins"], wanted=OutputOptions("de", True)
        )
        assert final == entry.format(flags).replace('msgstr ""', 'msgstr "eins"')


OLD = (
    b'<xliff version="1.2"><file><body><trans-unit><source>a</source></trans-unit></body></file>'
    b"</xliff>"
)
NEW = (
    b'<xliff version="2.1"><file><unit><segment state="initial"><source>a</source></segment></unit>'
    b"</file></xliff>"
)


@pytest.mark.parametrize(
    ("data", "default", "final"),
    [
        (OLD, 'target state="needs-review-translation"', 'target state="translated"'),
        (NEW, 'segment state="translated"', 'segment state="final"'),
    ],
)
def test_states_of_segments(data: bytes, default: str, final: str) -> None:
    assert default in joined(data, "a.xlf", ["b"])
    assert final in joined(data, "a.xlf", ["b"], wanted=OutputOptions("de", True))


def test_locked_segments_stay() -> None:
    unit = b"<trans-unit%s><source>one</source></trans-unit>"
    for told, count in ((b"", 1), (b' mq:locked="locked"', 0), (b' approved="yes"', 0)):
        data = (
            b'<xliff version="1.2" xmlns:mq="x"><file><body>'
            + unit % told
            + b"</body></file></xliff>"
        )
        assert len(texts(data, "a.xlf")) == count


def test_a_sentence_over_several_cues_is_one_and_divided_again() -> None:
    cue = "{0}\n00:00:0{0},000 --> 00:00:0{0},900\n{1}\n"
    lines = ("A man in a blue shirt", "is standing on a ladder", "- Yes?\n- No.", "Go on.")
    data = "\n".join(cue.format(n, line) for n, line in enumerate(lines, 1)).encode()
    assert texts(data, "a.srt") == [
        "A man in a blue shirt is standing on a ladder", "Yes?", "No.", "Go on.",
    ]  # fmt: skip
    got = joined(data, "a.srt", ["Ein Mann ", 0, "steht"], [0, "Ja?"], [0, "Nein."], ["Los."])
    expected = ("Ein Mann", "steht", "- Ja?\n- Nein.", "Los.")
    assert got == "\n".join(cue.format(n, line) for n, line in enumerate(expected, 1))


HOSTILE = ["# one", "1. two", "* _ ` [x](y) <b> &amp;", "---", "a | b", "> c", "```", "a\\", "!["]


@pytest.mark.parametrize("said", HOSTILE)
def test_marks_of_markdown_are_afterwards_what_they_were(said: str) -> None:
    """Whatever the translation holds."""
    source = "# A *b* `c`\n\n> d\n> e  \n> f\n\n- [g](h) i\n\n| j | k |\n|---|---|\n| **l** | m |\n"
    document = read_document(source.encode(), "a.md")
    targets: list[Target] = [
        [said if isinstance(one, str) and not one.isspace() else one for one in unit.as_it_is]
        for unit in document.units
    ]
    got = document.join(targets, GERMAN).decode()
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    kinds = [[one.type for one in parser.parse(text)] for text in (source, got)]
    assert kinds[0] == kinds[1], got
    for one in parser.parse(got):
        if one.type == "inline":
            assert said in "".join(child.content for child in one.children or ()), got


@pytest.mark.parametrize("address", ["https://a.example/x?y=1", "www.a.example", "me@a.example"])
def test_an_address_alone_is_kept_in_every_format(address: str) -> None:
    for name, data in {
        "a.po": f'msgid "{address}"\nmsgstr ""\n\nmsgid "One"\nmsgstr ""\n',
        "a.csv": f"{address},One\n",
        "a.yaml": f"a: {address}\nb: One\n",
        "a.txt": f"{address}\n\nOne\n",
        "a.html": f"<p><a href=x>{address}</a><p>One",
        "a.srt": f"1\n00:00:01,000 --> 00:00:02,000\n{address}\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\nOne\n",
    }.items():
        document = read_document(data.encode(), name)
        assert [unit.text for unit in document.units] == ["One"], name
