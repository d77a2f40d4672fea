"""Documents of text: what is no text of theirs comes out byte for byte, and other programs read the
translation as the same document."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable
from typing import Any

import made_texts
import pytest

from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import Document, OutputOptions, Target
from dragoman.formats.units.inline import message_unit, write_unit

FEW, MANY = 20, 1000
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
}


def as_it_is(document: Document) -> list[Target]:
    return [unit.as_it_is for unit in document.units]


def upper(document: Document) -> list[Target]:
    return [
        [one.upper() if isinstance(one, str) else one for one in target]
        for target in as_it_is(document)
    ]


def text_of(data: bytes) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return data.decode(encoding).replace("\r\n", "\n")


# ---- what other programs read; each raises AssertionError where a document is another one


def same_text(before: bytes, after: bytes) -> None:
    assert text_of(after) == text_of(before).upper()


def same_markdown(before: bytes, after: bytes) -> None:
    markdown = pytest.importorskip("markdown")
    selectolax = pytest.importorskip("selectolax.lexbor")
    shown = []
    for data in (before, after):
        text = re.sub(r"\A---\n.*?\n---\n", "", text_of(data), flags=re.DOTALL)
        shown.append(markdown.markdown(text, extensions=["tables"]))
    assert shown[0].casefold() == shown[1].casefold()
    tree = selectolax.LexborHTMLParser(shown[1])
    for kept in tree.css("code, pre, div"):
        kept.decompose()
    text = re.sub(r"https?://\S+", "", tree.body.text() if tree.body else "")
    assert text == text.upper()


def same_page(before: bytes, after: bytes) -> None:
    selectolax = pytest.importorskip("selectolax.lexbor")
    trees = [selectolax.LexborHTMLParser(text_of(data)) for data in (before, after)]
    first, second = (re.sub(r"[ \n]+", " ", tree.html).casefold() for tree in trees)
    assert first.replace('lang="en"', 'lang="de"') == second
    for node in trees[1].css("img[alt], [title]"):
        shown = node.attributes.get("alt") or node.attributes.get("title") or ""
        assert shown == shown.upper()
    for kept in trees[1].css("script, pre, code, [translate=no]"):
        kept.decompose()
    text = trees[1].body.text() + trees[1].head.text()
    assert text == text.upper()


def same_messages(before: bytes, after: bytes) -> None:
    polib = pytest.importorskip("polib")
    placeholder = re.compile(r"(%\(name\)s|%d|\{\d\}|<[^>]+>)")
    one, other = (polib.pofile(data.decode()) for data in (before, after))
    assert one.metadata == other.metadata and len(one) == len(other)
    plurals = int(re.search(r"nplurals=(\d)", one.metadata["Plural-Forms"])[1])  # type: ignore[index]

    def raised(text: str) -> str:
        if not any(map(str.isalpha, placeholder.sub("", text))):
            return ""
        return "".join(n if placeholder.match(n) else n.upper() for n in placeholder.split(text))

    for old, new in zip(one, other, strict=True):
        assert (old.msgid, old.msgctxt, old.msgid_plural) == (
            new.msgid,
            new.msgctxt,
            new.msgid_plural,
        )
        assert (old.comment, old.occurrences, old.obsolete) == (
            new.comment,
            new.occurrences,
            new.obsolete,
        )
        flags = set(old.flags)
        if old.obsolete or old.msgstr or any(old.msgstr_plural.values()):
            assert (old.msgstr, old.msgstr_plural) == (new.msgstr, new.msgstr_plural)
        elif old.msgid_plural:
            first = [raised(old.msgid)] if plurals > 1 else []
            forms = first + [raised(old.msgid_plural)] * (plurals - len(first))
            found = [new.msgstr_plural[number] for number in range(plurals)]
            assert found == forms
            flags |= {"fuzzy"}
        else:
            assert new.msgstr == raised(old.msgid)
            flags |= {"fuzzy"} if new.msgstr else set()
        assert set(new.flags) == flags


def same_subtitles(before: bytes, after: bytes) -> None:
    pysubs2 = pytest.importorskip("pysubs2")
    form = "vtt" if text_of(before).startswith("WEBVTT") else "srt"
    one, other = (
        pysubs2.SSAFile.from_string(text_of(data), format_=form) for data in (before, after)
    )
    assert len(one) == len(other)
    for old, new in zip(one, other, strict=True):
        assert (old.start, old.end) == (new.start, new.end)
        assert old.text.casefold() == new.text.casefold()
        shown = html.unescape(new.plaintext)
        assert shown == shown.upper()


def same_xliff(before: bytes, after: bytes) -> None:
    etree = pytest.importorskip("lxml.etree")
    placeholder = re.compile(r"(%s|\{0\}|\{n\})")

    def name(element: Any) -> str:
        return etree.QName(element).localname

    def raised(text: str) -> str:
        return "".join(n if placeholder.match(n) else n.upper() for n in placeholder.split(text))

    def content(element: Any, *, up: bool) -> list[Any]:
        """Texts and codes in their order; what a protected code holds is not raised."""
        found: list[Any] = [raised(element.text or "") if up else element.text or ""]
        for one in element:
            kept = one.get("mtype") == "protected" or name(one) in ("bpt", "ept", "ph")
            found += [(name(one), dict(one.attrib)), content(one, up=up and not kept)]
            found.append(raised(one.tail or "") if up else one.tail or "")
        return found

    old, new = (etree.fromstring(data) for data in (before, after))
    units = [list(tree.iter("{*}trans-unit", "{*}segment")) for tree in (old, new)]
    for one, other in zip(*units, strict=True):
        assert etree.tostring(one.find("{*}source"), with_tail=False) == etree.tostring(
            other.find("{*}source"), with_tail=False
        )
        states = [el.get("state") for el in (one, one.find("{*}target")) if el is not None]
        holder = one.getparent() if name(one) == "segment" else one
        has = bool(one.findtext("{*}target"))
        done = holder.get("translate") == "no" or one.get("approved") or "final" in states or has
        source = one.find("{*}source")
        if done or not re.search(r"[^\W\d_]", placeholder.sub("", shown(source))):
            assert etree.tostring(one) == etree.tostring(other)
            continue
        target = other.find("{*}target")
        assert squeezed(content(target, up=False)) == squeezed(content(source, up=True))
        state = other.get("state") if name(one) == "segment" else target.get("state")
        assert state == ("translated" if name(one) == "segment" else "needs-review-translation")


def shown(element: Any) -> str:
    """What is translated of a source."""
    kept = element.get("mtype") == "protected" or element.tag.endswith(("bpt", "ept", "}ph"))
    inside = (
        "" if kept else (element.text or "") + "".join(shown(e) + (e.tail or "") for e in element)
    )
    return inside


def squeezed(found: list[Any]) -> str:
    return re.sub(r"\s", "", repr(found))


def same_memory(before: bytes, after: bytes) -> None:
    etree = pytest.importorskip("lxml.etree")
    old, new = (etree.fromstring(data) for data in (before, after))
    for one, other in zip(old.iter("tu"), new.iter("tu"), strict=True):
        variants = {tuv.get("{http://www.w3.org/XML/1998/namespace}lang"): tuv for tuv in other}
        added = variants.pop("de", None)
        was = [tuv.get("{http://www.w3.org/XML/1998/namespace}lang") for tuv in one]
        assert list(variants) == was
        assert (added is None) == ("de-DE" in was)
        for tuv in one:
            kept = variants[tuv.get("{http://www.w3.org/XML/1998/namespace}lang")]
            assert etree.tostring(tuv, with_tail=False) == etree.tostring(kept, with_tail=False)
        if added is not None:
            source, target = one.find("tuv/seg"), added.find("seg")
            assert [e.tag for e in source.iter()] == [e.tag for e in target.iter()]
            texts = ["".join(seg.itertext()).casefold() for seg in (source, target)]
            assert texts[0] == texts[1]
            bare = re.sub(r"</?b>", "", "".join(target.itertext()))
            assert bare == bare.upper()


def same_json(before: bytes, after: bytes) -> None:
    def raised(value: Any) -> Any:
        if isinstance(value, str):
            return value.upper().replace("{{NAME}}", "{{name}}")
        if isinstance(value, list):
            return [raised(one) for one in value]
        if isinstance(value, dict):
            return {k: v if k.startswith("@") else raised(v) for k, v in value.items()}
        return value

    assert json.loads(after) == raised(json.loads(before))


def same_yaml(before: bytes, after: bytes) -> None:
    yaml = pytest.importorskip("yaml")

    def raised(value: Any) -> Any:
        if isinstance(value, str):
            return value.upper().replace("%{NAME}", "%{name}")
        if isinstance(value, list):
            return [raised(one) for one in value]
        return {k: raised(v) for k, v in value.items()} if isinstance(value, dict) else value

    assert yaml.safe_load(after) == raised(yaml.safe_load(before))
    assert after.count(b"#") == before.count(b"#")


def same_table(before: bytes, after: bytes) -> None:
    old, new = (data.decode("utf-8-sig") for data in (before, after))
    delimiter = next(one for one in ";\t," if one in old)
    one, other = (
        csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) for text in (old, new)
    )
    for before_row, after_row in zip(one, other, strict=True):
        assert [c if c.startswith("http") else c.upper() for c in before_row] == after_row


SAME = {
    "a.txt": same_text,
    "a.md": same_markdown,
    "a.html": same_page,
    "a.po": same_messages,
    "a.xlf": same_xliff,
    "a.tmx": same_memory,
    "a.json": same_json,
    "a.yaml": same_yaml,
    "a.csv": same_table,
    "a.srt": same_subtitles,
    "a.vtt": same_subtitles,
}


def check(name: str, seeds: range) -> None:
    for seed in seeds:
        data = MAKERS[name](seed)
        document = read_document(data, name)
        if name not in ("a.po", "a.xlf", "a.tmx"):  # a message that is its own translation has one
            assert document.join(as_it_is(document), OutputOptions()) == data, f"{name} {seed}"
        translated = document.join(upper(document), OutputOptions("de"))
        try:
            SAME[name](data, translated)
        except AssertionError as error:
            raise AssertionError(
                f"{name}, seed {seed}:\n{text_of(data)}\n---\n{text_of(translated)}"
            ) from error


@pytest.mark.parametrize("name", MAKERS)
def test_only_text_changes(name: str) -> None:
    check(name, range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_only_text_changes_in_many(name: str) -> None:
    check(name, range(FEW, MANY))


@pytest.mark.parametrize("kept", ["%d", "%s", "%1$s", "%1", "%L1", "$name", "%@"])
def test_a_particle_behind_a_placeholder_is_not_of_it(kept: str) -> None:
    for source in (f"{kept}개의 파일", f"파일 {kept}을", f"ファイル {kept}を"):
        assert [one.written for one in message_unit(source).tags] == [kept]
    assert message_unit("100%für 5%p, %name").tags == ()


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("{count}개의 파일", [0, "files"], "{count} files"),
        ("파일{count}", ["files", 0], "files {count}"),
        ("%d個のファイル", [0, "Dateien"], "%d Dateien"),
        ("파일 {name}을", ["fi", 0, "le"], "fi {name} le"),
        ("님{name}씨", ["様", 0, "先生"], "様{name}先生"),
        ("저자{name}", ["著者", 0], "著者{name}"),
        ("{count} files", [0, "개"], "{count} 개"),
        ("{count}th", [0, "te"], "{count}te"),
        ("파일 {count}개.", ["files", " ", 0, "."], "files {count}."),
    ],
)
def test_a_placeholder_stays_glued_to_no_word_of_another_script(
    source: str, target: Target, wanted: str
) -> None:
    assert write_unit(message_unit(source), target) == wanted
    xliff = (
        '<xliff version="1.2"><file><body><trans-unit id="a"><source>{}</source></trans-unit>'
        "</body></file></xliff>"
    )
    document = read_document(xliff.format(source).encode(), "a.xlf")
    assert f">{wanted}</target>" in document.join([target], OutputOptions()).decode()
