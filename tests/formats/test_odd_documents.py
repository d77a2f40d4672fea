"""What people and programs write beside the usual: it is kept, or translated, as its readers see
it."""

from __future__ import annotations

import json
import re

import pytest
from upper_case import GERMAN, raised, upper

from dragoman.formats.catalogue import read_document
from dragoman.formats.csv_cells import columns_of
from dragoman.formats.po import MessageCatalogue
from dragoman.formats.units.document import BadDocument, OutputOptions


def texts(data: str, name: str) -> list[str]:
    return [unit.text for unit in read_document(data.encode(), name).units]


# ---- messages


def test_a_message_with_flags_on_several_lines_is_fuzzy_by_any_of_them() -> None:
    data = '#, fuzzy\n#, c-format\nmsgid "one"\nmsgstr "eins"\n\n#, c-format\n#, no-wrap\n'
    data += 'msgid "two"\nmsgstr ""\n'
    assert MessageCatalogue.read(data.encode(), "a.po").pairs == []
    got = raised(data, "a.po").decode()
    assert '#, fuzzy, c-format\n#, no-wrap\nmsgid "two"\nmsgstr "TWO"' in got
    assert raised(got, "a.po").decode() == got


ARABIC = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : 4;"
SLOVENIAN = "nplurals=4; plural=(n%100==1 ? 1 : n%100==2 ? 2 : n%100==3 || n%100==4 ? 3 : 0);"
RUSSIAN = "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2);"
KOREAN = "nplurals=1; plural=0;"


@pytest.mark.parametrize(
    ("header", "one_is", "forms"),
    [(ARABIC, 1, 6), (SLOVENIAN, 1, 4), (RUSSIAN, 0, 3), (KOREAN, None, 1), ("nplurals=2;", 0, 2),
     ("nplurals=2; plural=n/0;", 0, 2), ("nplurals=2; plural=n n;", 0, 2),
     ("nplurals=2; plural=7;", None, 2)],
)  # fmt: skip
def test_the_form_for_one_thing_is_that_which_the_header_says(
    header: str, one_is: int | None, forms: int
) -> None:
    polib = pytest.importorskip("polib")
    data = f'msgid ""\nmsgstr "Plural-Forms: {header}\\n"\n\nmsgid "a file"\n'
    data += 'msgid_plural "%d files"\nmsgstr[0] ""\n'
    (entry,) = polib.pofile(raised(data, "a.po").decode())
    expected = {n: "A FILE" if n == one_is else "%d FILES" for n in range(forms)}
    assert entry.msgstr_plural == expected and list(entry.msgstr_plural) == list(expected)


@pytest.mark.parametrize(
    "kept",
    ["%1", "%L2", "%<name>s", "%<n>.2f", "%<PRIu64>", "%-05d", "%*d", "%.*f", "%2$@", "%(n)s", "{}",
     "{0}", "{name}", "{x!r}", "{0:>10}", "{n, number}", "{0, date, short}", "{$INTERPOLATION}",
     "{{name}}", "${name}", "$HOME", "%{name}", "$t(key)", "%name%"],
)  # fmt: skip
def test_placeholders_of_every_kind_are_kept(kept: str) -> None:
    (unit,) = read_document(json.dumps([f"one {kept} two, {kept}."]).encode(), "a.json").units
    assert [code.written for code in unit.tags] == [kept, kept]
    said = json.loads(raised(json.dumps({"a": f"one {kept} two, {kept}."}), "a.json"))["a"]
    assert said == f"ONE {kept} TWO, {kept}."


@pytest.mark.parametrize("plain", ["US$ 5 and $6", "100% of it", "a $1 note", "50 %, they say"])
def test_money_and_percents_are_no_placeholders(plain: str) -> None:
    (unit,) = read_document(json.dumps([plain]).encode(), "a.json").units
    assert unit.text == plain and not unit.tags


def test_halves_of_characters_in_json_are_written_as_they_were() -> None:
    assert json.loads(raised(r'{"a": "x \ud800 y", "b": "ü"}', "a.json")) == {
        "a": "X \ud800 Y",
        "b": "Ü",
    }


def test_blocks_and_tags_of_yaml() -> None:
    yaml = pytest.importorskip("yaml")
    data = """\
a: |  # told
  Dear {name},
  this is one
  sentence.

    indented <b>more</b>
  - an item
    goes on
  # no comment
b: >-
  folded
  text

  and more
c: !!binary aGVsbG8=
d: !own text
e: !!str text
f: "https://a.example/b"
g: |2+

   deep

"""
    got = yaml.safe_load(raised(data.replace("!own ", ""), "a.yaml"))
    assert got == {
        "a": "DEAR {name},\nTHIS IS ONE\nSENTENCE.\n\n  INDENTED <b>MORE</b>\n- AN ITEM\n"
        "  GOES ON\n# NO COMMENT\n",
        "b": "FOLDED TEXT\nAND MORE", "c": b"hello", "d": "TEXT", "e": "TEXT",
        "f": "https://a.example/b", "g": "\n DEEP\n\n",
    }  # fmt: skip
    assert "d: !own text\n" in raised(data, "a.yaml").decode()
    said = texts(data, "a.yaml")
    assert said[:2] == ["Dear, this is one sentence.", "indented more"]
    assert "an item goes on" in said


def test_a_word_that_yaml_reads_as_something_else_is_put_into_quotes() -> None:
    yaml = pytest.importorskip("yaml")
    document = read_document(b"a: one\nb: two\n", "a.yaml")
    got = document.join([["no"], ["ja"]], GERMAN)
    assert got == b'a: "no"\nb: ja\n' and yaml.safe_load(got) == {"a": "no", "b": "ja"}


# ---- subtitles


def test_arrows_names_and_voices_of_webvtt() -> None:
    data = """\
WEBVTT - a talk

NOTEBOOK
00:01.000 --> 00:02.000 align:start
a → b &amp; c --&gt; d

NOTE
00:02.000 --> 00:02.500
so they

NOTE kept
as it is

STYLE
::cue(b) { color: red }

00:03.000 --> 00:04.000
<v Ann>we go

00:04.000 --> 00:05.000
<v Ann>and on

00:04.500 --> 00:06.000
<v Bob>who speaks
"""
    got = raised(data, "a.vtt").decode()
    assert "A → B &amp; C --&gt; D" in got and "SO THEY" in got
    assert "NOTE kept\nas it is\n" in got and "color: red" in got and "NOTEBOOK" in got
    assert texts(data, "a.vtt")[-2:] == ["we go and on", "who speaks"]


def test_text_behind_an_empty_line_of_a_cue_is_translated() -> None:
    pysubs2 = pytest.importorskip("pysubs2")
    data = "\ufeff1\n00:00:01,000 --> 00:00:02,000\nHello.\n\nA world\n\n12\n\n2\n"
    data = (data + "00:00:01,500 --> 00:00:03,000\n{\\an8}<i>Bye</i>\n").replace("\n", "\r\n")
    before = pysubs2.SSAFile.from_string(data.removeprefix("\ufeff"), format_="srt")
    after = pysubs2.SSAFile.from_string(raised(data, "a.srt").decode("utf-8-sig"), format_="srt")
    assert [one.plaintext.upper() for one in before] == [one.plaintext for one in after]
    assert [(one.start, one.end) for one in before] == [(one.start, one.end) for one in after]


# ---- pages and texts


def test_elements_of_xhtml_end_themselves() -> None:
    etree = pytest.importorskip("lxml.etree")
    data = """\
<?xml version="1.0" encoding="utf-8"?>
<html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="a.js"/><style/></head>
<body><p>one <a id="x"/>two <img alt="a b" src="x"/></p><textarea/><p><code/>three</p><svg/>
<p translate="no">no</p><pre>no</pre><script><![CDATA[ if (a<b && c>d) ]]></script>
<p>four</p><iframe/><p title="five">six</p></body></html>
"""
    got = etree.fromstring(raised(data, "a.xhtml"))
    shown = " ".join("".join(got.itertext()).split())
    assert shown == "ONE TWO THREE nono if (a<b && c>d) FOURSIX"
    assert [one.get("alt") for one in got.iter("{*}img")] == ["A B"]
    assert [one.get("title") for one in got.iter("{*}p")][-1] == "FIVE"
    document = read_document(data.encode(), "a.xhtml")
    for one in document.units:
        assert "<" not in one.text
    hostile = document.join(
        [['a < b & "c"', *range(len(one.tags))] for one in document.units], GERMAN
    )
    etree.fromstring(hostile)


def test_front_matter_footnotes_tasks_formulas_and_containers_of_markdown() -> None:
    data = """\
+++
title = "kept"
+++

text[^1] and $x_i$ here, $5 and $6

[^1]: the note

$$
a_b = c
$$

- [ ] to do
- [x] done

:::note Kept
some *text*
:::

!!! tip "Kept"
    a tip

> [!NOTE]
> a call-out
"""
    expected = data
    for one in ("text", "and", "here", "the note", "to do", "done", "some", "a tip", "a call-out"):
        expected = expected.replace(f"{one}", one.upper())
    assert raised(data, "a.md").decode() == expected


def test_the_delimiter_that_a_table_tells_is_kept() -> None:
    assert raised("sep=;\na, b;c\n", "a.csv") == b"sep=;\nA, B;C\n"


def in_columns(columns: str, data: bytes) -> bytes:
    """A table, some of whose columns are in upper case."""
    document = read_document(data, "a.csv").in_columns(columns_of(columns))
    return document.join(upper(document), OutputOptions())


_TABLE = '\ufeffkey;"the text";note, more\r\na b;"one ""two""";c\r\nd;three {n};f\n;;e'.encode()


@pytest.mark.parametrize(
    ("columns", "changed"),
    [
        # By number, the first row is a row as all others.
        ("2", ["the text", "one", "two", "three"]),
        ("3,1", ["key", "note, more", "a b", "c", "d", "f", "e"]),
        # By name it holds the names, which others look for.
        ("the text", ["one", "two", "three"]),
        ("key, 2", ["a b", "d", "one", "two", "three"]),
        ('"note, more",key', ["a b", "c", "d", "f", "e"]),
    ],
)
def test_some_columns_of_a_table(columns: str, changed: list[str]) -> None:
    """Quotation marks, the mark of the encoding and ends of lines stay byte for byte."""
    expected = _TABLE.decode()
    for one in changed:
        expected = re.sub(rf"(?<![\w,{{]){one}(?![\w}}])", one.upper(), expected, count=1)
    assert in_columns(columns, _TABLE).decode() == expected


def test_the_names_of_columns_stand_behind_a_line_for_excel() -> None:
    table = b"sep=|\nsep|text\na|b\n"
    assert in_columns("text", table) == b"sep=|\nsep|text\na|B\n"
    assert in_columns("sep", table) == b"sep=|\nsep|text\nA|b\n"


@pytest.mark.parametrize("columns", ["4", "0", "-1", "Text", "1,,2", "²"])
def test_columns_that_are_not_there(columns: str) -> None:
    with pytest.raises(BadDocument, match=r"a\.csv has no column .*only 3: key, the text"):
        in_columns(columns, _TABLE)
    with pytest.raises(BadDocument, match="only with a table"):
        read_document(b"<p>one", "a.html").in_columns(["1"])
