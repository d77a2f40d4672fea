"""What documents say of their languages, against those between which they are to be translated."""

from __future__ import annotations

from pathlib import Path

import docx
import pptx
import pytest
from command_line import Dragoman
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from made_office import packed, saved

from dragoman.formats.catalogue import fit_document, read_document
from dragoman.formats.units.document import BadDocument


def xliff(source: str, target: str) -> str:
    said = f' source-language="{source}"' + (f' target-language="{target}"' if target else "")
    return (
        f'<xliff version="1.2"><file{said}><body><trans-unit id="a"><source>The dog sleeps.'
        "</source></trans-unit></body></file></xliff>"
    )


def xliff_2(source: str, target: str) -> str:
    said = f' srcLang="{source}"' + (f' trgLang="{target}"' if target else "")
    return (
        f'<xliff version="2.0"{said}><file><unit id="a"><segment><source>The dog sleeps.'
        "</source></segment></unit></file></xliff>"
    )


BOOK = packed(
    {
        "META-INF/container.xml": b'<c><rootfile full-path="x.opf"/></c>',
        "x.opf": b"<package><metadata><language>en</language></metadata><manifest>"
        b'<item href="a" media-type="application/xhtml+xml"/></manifest></package>',
        "a": b"<p>The dog sleeps.</p>",
    }
)


def tmx(header: str, *languages: str) -> str:
    texts = "".join(f'<tuv xml:lang="{one}"><seg>{one} text</seg></tuv>' for one in languages)
    return f'<tmx version="1.4"><header srclang="{header}"/><body><tu>{texts}</tu></body></tmx>'


@pytest.mark.parametrize("made", [xliff, xliff_2])
def test_a_file_that_binds_is_refused_for_other_languages(made: object) -> None:
    assert callable(made)
    for source, target, fits in (
        ("en", "de", True),
        ("en-US", "de-AT", True),
        ("EN_gb", "", True),
        ("de", "en", False),
        ("en", "fr", False),
        ("fr", "de", False),
        ("tlh", "de", True),  # of a language that is not known nothing can be told
    ):
        document = read_document(made(source, target).encode(), "a.xlf")
        if fits:
            assert fit_document(document, "en", "de") == (document, [])
        else:
            with pytest.raises(BadDocument, match=r"a\.xlf, line 1: .* Use a run"):
                fit_document(document, "en", "de")
        # The source may be left open: then the target alone is compared.
        if target == "de":
            assert fit_document(document, None, "de")[0].source_language == source


def test_a_catalogue_says_the_language_of_its_translations() -> None:
    text = 'msgid ""\nmsgstr "Language: {}\\n"\n\nmsgid "One"\nmsgstr ""\n'
    for code, fits in (("de", True), ("de_AT", True), ("", True), ("fr", False), ("pt_BR", False)):
        document = read_document(text.format(code).encode(), "a.po")
        if fits:
            assert fit_document(document, "en", "de")[1] == []
        else:
            with pytest.raises(BadDocument, match=f"Language: {code}"):
                fit_document(document, "en", "de")


def test_a_weak_mark_is_told_and_no_more() -> None:
    for name, data in (
        ("a.html", b'<!DOCTYPE html>\n<html dir=ltr lang="en-GB"><p>The dog sleeps.'),
        ("a.html", b'<html xml:lang="en"><p>The dog sleeps.'),
        ("a.epub", BOOK),
    ):
        document = read_document(data, name)
        assert fit_document(document, "en", "de")[1] == []
        found, (doubt, *_) = fit_document(document, "fr", "de")
        assert found is document
        assert "English" in doubt and "French" in doubt and name in doubt
    page = read_document(b"<p>The dog sleeps.", "a.html")
    assert not page.languages


def office(kind: str, text: str, *said: tuple[str, str]) -> bytes:
    """A document, each of whose texts says its language for the letters of Europe and of Asia."""
    if kind == "odt":
        styles = "".join(
            f'<s:s xmlns:s="s"><s:text-properties xmlns:fo="f" xmlns:style="y" fo:language="{one}" '
            f'fo:country="X" style:language-asian="{other}"/></s:s>'
            for one, other in said
        )
        content = f'<o xmlns:text="t"><text:p>{text}</text:p>{styles}</o>'
        return packed(
            {
                "mimetype": b"application/vnd.oasis.opendocument.text",
                "content.xml": content.encode(),
            }
        )
    if kind == "docx":
        document = docx.Document()
        for one in document.styles.element.iter(qn("w:lang")):
            one.set(qn("w:val"), said[0][0]), one.set(qn("w:eastAsia"), said[0][1])
        for one, other in said:
            language = OxmlElement("w:lang")
            language.set(qn("w:val"), one), language.set(qn("w:eastAsia"), other)
            document.add_paragraph().add_run(text)._r.get_or_add_rPr().append(language)
    else:
        document = pptx.Presentation()
        slide = document.slides.add_slide(document.slide_layouts[0])
        for one, other in said:
            run = slide.shapes.title.text_frame.paragraphs[0].add_run()
            run.text = text
            run._r.get_or_add_rPr().set("lang", other if text == KOREAN else one)
    return saved(document)


KOREAN = "개가 잠을 잔다."


@pytest.mark.parametrize("kind", ["odt", "docx", "pptx"])
def test_office_documents_tell_a_language_that_all_of_their_texts_have(kind: str) -> None:
    for text, said, told in (
        ("Le chien dort.", [("fr-FR", "ko-KR")], "French"),
        ("Le chien dort.", [("fr-FR", "ko-KR"), ("fr-CA", "ja-JP")], "French"),
        ("Le chien dort.", [("en-US", "ko-KR")], None),  # as most programs leave it
        ("Le chien dort.", [("en-US", "ko-KR"), ("fr-FR", "ko-KR")], None),
        ("Le chien dort.", [("ko-KR", "ko-KR")], None),
        (KOREAN, [("en-US", "ko-KR")], "Korean"),
        (KOREAN, [("fr-FR", "en-US")], None),
    ):
        codes = said if kind != "odt" else [(a[:2], b[:2]) for a, b in said]
        document = read_document(office(kind, text, *codes), f"a.{kind}")
        _, doubts = fit_document(document, "de", "es")
        assert len(doubts) == bool(told), (text, said, doubts)
        if told:
            assert f"a.{kind}: the language of its text, " in doubts[0] and told in doubts[0]
            assert fit_document(document, "ko" if text == KOREAN else "fr", "es")[1] == []


def test_a_memory_is_translated_from_the_language_that_is_wanted() -> None:
    document = read_document(tmx("en", "en-GB", "fr").encode(), "a.tmx")
    assert [one.text for one in document.between("fr", "de").units] == ["fr text"]
    assert [one.text for one in document.between("en", "de").units] == ["en-GB text"]
    assert [one.text for one in document.between(None, "de").units] == ["en-GB text"]
    assert not document.between("en", "fr-CA").units, "it is there"
    with pytest.raises(BadDocument, match=r"a\.tmx has no text in ko: its languages are en-gb, fr"):
        document.between("ko", "de")


def test_a_memory_that_joins_regions_by_underlines() -> None:
    waits = read_document(tmx("en_US", "en_US").encode(), "a.tmx")
    assert len(fit_document(waits, "en", "de")[0].units) == 1
    done = read_document(tmx("en_US", "en_US", "de_AT").encode(), "a.tmx")
    assert fit_document(done, "en", "de")[0].units == []


def test_from_the_shell(tiny_run: Path, tmp_path: Path, dragoman: Dragoman) -> None:
    """The run translates from English into German."""
    folder, to = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for name, text in (
        ("good.xlf", xliff("en", "de")),
        ("other.xlf", xliff("de", "en")),
        ("none.tmx", tmx("fr", "fr", "es")),
        ("full.tmx", tmx("en", "en", "de")),
        ("page.html", '<html lang="fr"><p>The dog sleeps.'),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    said = dragoman("translate", tiny_run, folder, "--to", to)
    assert said.code == 1 and "Traceback" not in said.err
    assert sorted(one.name for one in to.iterdir()) == ["full.tmx", "good.xlf", "page.html"]
    assert 'other.xlf, line 1: source-language="de" says German' in said.err
    assert "none.tmx has no text in en" in said.err
    assert "full.tmx: 0 texts translated" in said.err
    assert 'page.html: lang="fr" says French' in said.err
    assert (to / "full.tmx").read_bytes() == (folder / "full.tmx").read_bytes()
