"""Files that are damaged, named wrongly, or made to harm: one line that names the file and the
place, or the same document as ever; and time that grows with the file."""

from __future__ import annotations

import encodings.aliases
import io
import pkgutil
import random
import re
import resource
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import made_office
import made_texts
import pytest
from made_office import members, packed

from dragoman.formats import markdown, office, units, yaml_messages
from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import BadDocument, OutputOptions
from dragoman.formats.units.xml import Xml

pytestmark = pytest.mark.system

pytest.importorskip("docx")
pytest.importorskip("openpyxl")
pytest.importorskip("pptx")
pytest.importorskip("odf")

MAKERS: dict[str, Callable[[int], bytes]] = {
    "a.txt": made_texts.txt,
    "a.md": made_texts.markdown,
    "a.html": made_texts.page,
    "a.po": made_texts.po,
    "a.xlf": made_texts.xliff,
    "a.tmx": made_texts.tmx,
    "a.json": made_texts.json_messages,
    "a.yaml": made_texts.yaml_messages,
    "a.csv": made_texts.table,
    "a.srt": lambda seed: made_texts.subtitles(seed, vtt=False),
    "a.vtt": lambda seed: made_texts.subtitles(seed, vtt=True),
    "a.docx": made_office.docx,
    "a.pptx": made_office.pptx,
    "a.xlsx": made_office.xlsx,
    "a.odt": made_office.odt,
}


def translated(data: bytes, name: str) -> bytes:
    document = read_document(data, name)
    targets = [
        [one.upper() if isinstance(one, str) else one for one in unit.as_it_is]
        for unit in document.units
    ]
    return document.join(targets, OutputOptions("de"))


def refusal(data: bytes, name: str) -> str:
    with pytest.raises(BadDocument) as told:
        translated(data, name)
    message = str(told.value)
    assert "\n" not in message and name in message, message
    return message


@pytest.mark.parametrize("name", MAKERS)
def test_a_damaged_file_is_refused_in_one_line_or_translated(name: str) -> None:
    """Cut off anywhere, a byte changed, a piece doubled: never another error."""
    draw = random.Random(name)
    for seed in range(4 if name == "a.pptx" else 12):
        data = MAKERS[name](seed)
        for _ in range(6):
            place = draw.randrange(len(data) + 1)
            damaged = draw.choice(
                [
                    data[:place],
                    data[:place] + bytes([draw.randrange(256)]) + data[place + 1 :],
                    data[:place] + data[place // 2 :],
                    data[place:],
                ]
            )
            told = ""
            try:
                translated(damaged, name)
            except BadDocument as error:
                told = str(error)
            assert "\n" not in told and (name in told or not told)


def test_what_a_file_is_its_content_says() -> None:
    for name, make in MAKERS.items():
        if name not in ("a.txt", "a.md", "a.csv", "a.json", "a.yaml"):
            data = make(1)
            assert type(read_document(data, "file")) is type(read_document(data, name)), name
    word = made_office.docx(1)
    assert read_document(word, "a.pdf").units == read_document(word, "a.docx").units
    refusal(b"%PDF-1.7\n", "a.docx")
    refusal(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 600, "a.docx")
    encrypted = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")
    assert "password" in refusal(encrypted, "a.docx")
    refusal(bytes(range(256)) * 9, "a.dat")
    assert "archive" in refusal(packed({"x.txt": b"hello"}), "a.zip")
    book = {"mimetype": b"application/epub+zip", "META-INF/container.xml": b"<container/>"}
    assert "not an EPUB" in refusal(packed(book), "a.epub")


def test_bytes_of_another_encoding_are_named_with_their_line() -> None:
    assert "line 2" in refusal("one\nGrün und Straße".encode("latin-1"), "a.txt")
    assert "unknown" in refusal(b'<html><meta charset="klingon"><p>one', "a.html")
    message = refusal(b'<?xml version="1.0" encoding="klingon"?><xliff version="1.2"/>', "a.xlf")
    assert "klingon" in message


def test_a_file_may_name_encodings_of_characters_alone() -> None:
    """Whatever the bytes are, and whatever codec of Python a file names: one line, or the same
    bytes. Codecs that are no encodings of characters are not run."""
    draw = random.Random(1)
    codecs_of_python = {one.name for one in pkgutil.iter_modules(encodings.__path__)}
    for name in sorted({*codecs_of_python, *encodings.aliases.aliases} - {"mbcs", "oem"}):
        header = f'msgid ""\nmsgstr "Content-Type: text/plain; charset={name}\\n"\n\n'.encode()
        for _ in range(20):
            word = bytes(draw.choices(b"ab\x1b$B(J&@!~{}-\x0e\x0f\x81\xa4\xb1\xfe", k=12))
            data = header + b"# " + word + b"\n"
            told = ""
            try:
                assert read_document(data, "a.po").join([], OutputOptions()) == data
            except BadDocument as error:
                told = str(error)
            assert "\n" not in told, name
    for name in (
        "idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf-7", "hex",
        "base64", "rot13", "zlib", "bz2", "quopri", "uu", "palmos", "charmap",
    ):  # fmt: skip
        page = f'<html><meta charset="{name}"><p>one'.encode()
        assert "unknown" in refusal(page, "a.html"), name
    for name in ("windows-1252", "Shift_JIS", "EUC-KR", "Big5", "GB18030", "KOI8-R", "macintosh"):
        assert read_document(f'<meta charset="{name}"><p>one'.encode(), "a.html").units, name


def test_a_character_that_the_encoding_of_a_file_has_not_is_named() -> None:
    header = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n'
    data = header + b'msgid "one"\nmsgstr ""\n'
    document = read_document(data, "a.po")
    with pytest.raises(BadDocument, match=r"a\.po is in iso8859-1, which has no '개'"):
        document.join([["개"]], OutputOptions("ko"))
    page = read_document(b'<meta charset="iso-8859-2"><p>one', "a.html")
    assert b"&#44060;" in page.join([["개"]], OutputOptions("ko"))


def test_a_file_with_macros_keeps_them() -> None:
    content = members(made_office.docx(3))
    content["[Content_Types].xml"] = content["[Content_Types].xml"].replace(
        b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        b"application/vnd.ms-word.document.macroEnabled.main+xml",
    )
    content["word/vbaProject.bin"] = b"\xd0\xcf\x11\xe0 macros"
    data = packed(content)
    new = members(translated(data, "a.docm"))
    assert new["word/vbaProject.bin"] == content["word/vbaProject.bin"]
    assert new["word/document.xml"] != content["word/document.xml"]


def test_a_signed_file_is_told_of() -> None:
    content = members(made_office.docx(3)) | {"_xmlsignatures/sig1.xml": b"<Signature/>"}
    (note,) = read_document(packed(content), "a.docx").notes
    assert "signature" in note


# ---- archives made to harm


def with_member(name: str, data: bytes) -> bytes:
    return packed(members(made_office.docx(1)) | {name: data})


def test_members_that_lead_out_of_the_archive() -> None:
    for name in ("../evil.xml", "/etc/passwd", "word\\..\\..\\evil"):
        assert "leads out" in refusal(with_member(name, b"x"), "a.docx")


def test_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = b"<a>" + b" " * 300_000_000 + b"</a>"
    assert "too large" in refusal(with_member("word/document.xml", bomb), "a.docx")
    many = packed(members(made_office.docx(1)) | {f"x{n}": b"" for n in range(10_001)})
    assert "members" in refusal(many, "a.docx")
    # A member whose header says less than it holds.
    data = bytearray(with_member("word/document.xml", b"<a>" + b" " * 90_000 + b"</a>"))
    for mark, at in ((b"PK\x01\x02", 24),):
        place = data.rfind(mark, 0, data.rfind(b"word/document.xml"))
        struct.pack_into("<I", data, place + at, 10)
    refusal(bytes(data), "a.docx")
    # Two entries of one place.
    data = bytearray(made_office.docx(1))
    second = data.find(b"PK\x01\x02", data.find(b"PK\x01\x02") + 4)
    struct.pack_into("<I", data, second + 42, 0)
    refusal(bytes(data), "a.docx")


def test_an_encrypted_member() -> None:
    data = bytearray(made_office.docx(1))
    place = data.find(b"PK\x01\x02")
    data[place + 8] |= 1
    assert "encrypted" in refusal(bytes(data), "a.docx")


def test_a_member_in_a_packing_that_nothing_reads() -> None:
    data = bytearray(made_office.docx(1))
    for entry in re.finditer(rb"PK\x01\x02", bytes(data)):
        data[entry.start() + 8] |= 0x20  # a patch of another file
    assert "it is damaged (compressed patched data" in refusal(bytes(data), "a.docx")


def test_entities_and_a_million_nested_elements() -> None:
    laughs = (
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
        '<xliff version="1.2"><file><body><trans-unit><source>&b;</source></trans-unit></body>'
        "</file></xliff>"
    )
    assert "line 1" in refusal(laughs.encode(), "a.xlf")
    secret = laughs.replace('<!ENTITY b "&a;&a;">', '<!ENTITY b SYSTEM "file:///etc/passwd">')
    refusal(secret.encode(), "a.xlf")
    deep = b'<xliff version="1.2">' + b"<g>" * 1_000_000
    assert "nested" in refusal(deep, "a.xlf")
    assert "nested" in refusal(with_member("word/document.xml", b"<p>" * 1_000_000), "a.docx")
    refusal(b"[" * 1_000_000, "a.json")
    refusal(b'{"a":' * 300 + b'"one"' + b"}" * 300, "a.json")
    assert "nested" in refusal(b"[" * 1_000 + b"a" + b"]" * 1_000, "a.yaml")
    translated(b"<b>" * 100_000 + b"one two", "a.html")


W = made_office.W
LONG: dict[str, tuple[str, bytes]] = {
    "codes of a paragraph of Word": (
        "a.docx",
        f'<w:document xmlns:w="{W}"><w:p>'.encode()
        + b"<w:r><w:rPr><w:b/></w:rPr><w:t>a </w:t></w:r><w:perm/><w:r><w:t>b </w:t></w:r>" * 33_000
        + b"</w:p></w:document>",
    ),
    "codes of XLIFF": (
        "a.xlf",
        b'<xliff version="1.2"><file><body><trans-unit><source>'
        + b"one <x/>" * 100_000
        + b"</source></trans-unit></body></file></xliff>",
    ),
    "placeholders": ("a.po", b'msgid "' + b"one {0} " * 100_000 + b'"\nmsgstr ""\n'),
    "strings of a message": ("a.po", b'msgid ""\n' + b'"a"\n' * 2_000_000 + b'msgstr ""\n'),
    "marks of Markdown": ("a.md", b"one **two** " * 5_000),
    "blocks of Markdown": ("a.md", b"one *two* three\n\n" * 4_000),
    "brackets of Markdown": ("a.md", b"[" * 20_000 + b" one"),
    "tags": ("a.html", b"<p>" + b"one <b>two</b> " * 50_000),
    "lines": ("a.txt", b"one two three.\n" * 200_000),
    "cues": ("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\none and\n\n" * 30_000),
    "cells": ("a.csv", b'"one ""two""",3\n' * 100_000),
    "quotation marks": ("a.csv", b'"' * 500_000),
    "messages": ("a.json", b'{"a": [' + b'"one two", ' * 100_000 + b'"x"]}'),
}  # fmt: skip


LONG |= {
    "tabs of one run of Word": (
        "a.docx",
        f'<w:document xmlns:w="{W}"><w:p><w:r>'.encode()
        + b"<w:t>a</w:t><w:tab/>" * 150_000
        + b"</w:r></w:p></w:document>",
    ),
    "links that are fields": (
        "a.docx",
        f'<w:document xmlns:w="{W}"><w:p>'.encode()
        + b'<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>HYPERLINK</w:instrText>'
        b'</w:r><w:r><w:fldChar w:fldCharType="separate"/><w:t>a </w:t></w:r>' * 20_000
        + b"</w:p></w:document>",
    ),
    "spans around spans": (
        "a.odt",
        b'<d xmlns:text="t"><text:p>' + b"<text:span>" * 490 + b"a"
        + b"<text:span/>" * 200_000 + b"b</text:span>" * 490 + b"</text:p></d>",
    ),
    "lines of one unit": (
        "a.xlf",
        b'<xliff version="1.2"><file><body><trans-unit><source>' + b"a\n" * 800_000
        + b"</source></trans-unit></body></file></xliff>",
    ),
    "tags of one line": (
        "a.srt",
        b"1\n00:00:01,000 --> 00:00:02,000\n" + b"<b>one</b> " * 100_000 + b"\n",
    ),
}  # fmt: skip
LONG["elements that go on and cannot be open"] = (
    "a.html",
    b"<p>" + b"".join(b"<b x=%d>" % n for n in range(127)) + b"</p>" + b"<div>" * 128
    + b"a<br>" * 70_000,
)  # fmt: skip
LONG["comments in front"] = ("a.xlf", b"<!--a-->" * 500 + b"<tmp/>")
SOME = (
    "comments in front",
    "placeholders",
)


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=() if one in SOME else pytest.mark.slow) for one in LONG]
)
def test_time_grows_with_the_file(what: str, tmp_path: Path) -> None:
    """In a process of its own, which the system ends after far more processor time than a linear
    way needs on any machine."""
    name, content = LONG[what]
    data = with_member("word/document.xml", content) if name == "a.docx" else content
    if name == "a.odt":
        data = packed({"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": data})
    (tmp_path / name).write_bytes(data)
    program = "import test_bad_documents as it, sys; it.attempt(sys.argv[1])"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / name)],
        cwd=Path(__file__).parent, capture_output=True, text=True, preexec_fn=limit, check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def attempt(path: str) -> None:
    """Translate a file, or be refused."""
    try:
        translated(Path(path).read_bytes(), Path(path).name)
    except BadDocument as error:
        print(error)


def test_members_that_do_not_change_are_copied_as_they_lie() -> None:
    """Also of an archive that other programs have packed: stored, with descriptors, a comment."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = b"a comment"
        for number, (name, data) in enumerate(members(made_office.docx(2)).items()):
            kind = zipfile.ZIP_STORED if number % 2 else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (2001, 2, 3, 4, 5, 6)), data, kind)
    before = file.getvalue()
    after = translated(before, "a.docx")
    with zipfile.ZipFile(io.BytesIO(before)) as old, zipfile.ZipFile(io.BytesIO(after)) as new:
        assert new.testzip() is None and new.comment == b"a comment"
        for one, other in zip(old.infolist(), new.infolist(), strict=True):
            assert (one.filename, one.date_time, one.compress_type) == (
                other.filename, other.date_time, other.compress_type,
            )  # fmt: skip


@pytest.mark.parametrize(
    "name", ["a.txt", "a.md", "a.json", "a.yaml", "a.docx", "a.xlsx", "a.odt", "a.xlf"]
)
def test_more_pieces_than_are_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece takes far more memory than its bytes, so their number has a bound of its own."""
    few = {"a.txt": b"one\n\n" * 9, "a.json": b'["a", "b", "c", "d", "e", "f"]'}
    data = few[name] if name in few else MAKERS[name](1)
    translated(data, name)
    for module in (
        units.document,
        units.xml,
        office.archive,
        markdown,
        yaml_messages,
    ):
        for most in ("MOST_PIECES", "MOST_TOKENS", "MOST_MARKS", "MOST_EVENTS"):
            if hasattr(module, most):
                monkeypatch.setattr(module, most, 4)
    monkeypatch.setattr(Xml.read.__func__, "__defaults__", (4,))
    assert "into parts" in refusal(data, name)


def test_too_many_tags_are_refused_before_they_are_read() -> None:
    message = refusal(b'<xliff version="1.2">' + b"<x/>" * 2_000_000 + b"</xliff>", "a.xlf")
    assert "2,000,000 tags" in message and "line" not in message, "no line: it was not parsed"


@pytest.mark.parametrize("name", ["a.po", "a.json", "a.yaml", "a.csv", "a.xlf", "a.tmx"])
def test_more_placeholders_than_are_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count as no characters of text, and each takes four hundred bytes of memory."""
    many = "one " + "%%" * 400
    data = {
        "a.po": f'msgid "{many}"\nmsgstr ""\n',
        "a.json": f'["{many}"]',
        "a.yaml": f'a: "{many}"\n',
        "a.csv": f"{many},b\n",
        "a.xlf": f'<xliff version="1.2"><trans-unit><source>{many}</source></trans-unit></xliff>',
        "a.tmx": f'<tmx><body><tu><tuv xml:lang="en"><seg>{many}</seg></tuv></tu></body></tmx>',
    }[name].encode()
    translated(data, name)
    monkeypatch.setattr(units.document, "MOST_PIECES", 700)
    assert "more than 700" in refusal(data, name)


def test_more_paragraphs_of_a_block_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"a: |\n" + b"  one\n\n" * 9
    translated(data, "a.yaml")
    monkeypatch.setattr(units.document, "MOST_PIECES", 8)
    assert "more than 8" in refusal(data, "a.yaml")


@pytest.mark.parametrize(
    "front",
    [
        "<!-- > -->\n<!-- <b> -->",
        "<?a?><?b ?>\n",
        '<!DOCTYPE x SYSTEM "x.dtd">',
        "<!DOCTYPE x [<!ELEMENT a (b)> <!-- c -->]>",
    ],
)
def test_what_stands_in_front_of_the_first_element(front: str) -> None:
    for name, element in (("a.xlf", "<xliff version='1.2'/>"), ("a.tmx", "<tmx version='1.4'/>")):
        kind = type(read_document(element.encode(), name))
        assert type(read_document(f"{front}{element}".encode(), "file")) is kind
    if "DOCTYPE" not in front:
        page = read_document(b"<html><p>one", "file")
        assert type(read_document(f"{front}<html><p>one".encode(), "file")) is type(page)
