"""What documents say of their languages, against those between which they are to be translated."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Dragoman
from made_office import packed

from dragoman.documents.languages import fitted
from dragoman.formats.catalogue import read_document
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
            assert fitted(document, "en", "de") == (document, [])
        else:
            with pytest.raises(BadDocument, match=r"a\.xlf, line 1: .* choose a run"):
                fitted(document, "en", "de")
        # The source may be left open: then the target alone is compared.
        if target == "de":
            assert fitted(document, None, "de")[0].source_language == source


def test_a_catalogue_says_the_language_of_its_translations() -> None:
    text = 'msgid ""\nmsgstr "Language: {}\\n"\n\nmsgid "One"\nmsgstr ""\n'
    for code, fits in (("de", True), ("de_AT", True), ("", True), ("fr", False), ("pt_BR", False)):
        document = read_document(text.format(code).encode(), "a.po")
        if fits:
            assert fitted(document, "en", "de")[1] == []
        else:
            with pytest.raises(BadDocument, match=f"Language: {code}"):
                fitted(document, "en", "de")


def test_a_weak_mark_is_told_and_no_more() -> None:
    for name, data in (
        ("a.html", b'<!DOCTYPE html>\n<html dir=ltr lang="en-GB"><p>The dog sleeps.'),
        ("a.html", b'<html xml:lang="en"><p>The dog sleeps.'),
        ("a.epub", BOOK),
    ):
        document = read_document(data, name)
        assert fitted(document, "en", "de")[1] == []
        found, (doubt, *_) = fitted(document, "fr", "de")
        assert found is document
        assert "English" in doubt and "French" in doubt and name in doubt
    page = read_document(b"<p>The dog sleeps.", "a.html")
    assert not page.languages


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
    assert len(fitted(waits, "en", "de")[0].units) == 1
    done = read_document(tmx("en_US", "en_US", "de_AT").encode(), "a.tmx")
    assert fitted(done, "en", "de")[0].units == []


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
