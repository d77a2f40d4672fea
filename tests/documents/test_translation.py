"""Documents through a model: by one way, whoever asks."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import made_office
import made_texts
import pytest
from command_line import Dragoman
from serving_echo import echo_run

import dragoman as package
from dragoman.base.errors import FileError
from dragoman.documents.translation import translate_units
from dragoman.formats.catalogue import read_document
from dragoman.formats.units.document import BadDocument, OutputOptions
from dragoman.forms.form import Passage
from dragoman.search.hypothesis import Hypothesis

docx = pytest.importorskip("docx")
TEXT = f"{{{made_office.W}}}t"


def echoed(data: bytes, name: str) -> bytes:
    """A document translated by a model that writes what it reads."""
    engine = echo_run().engine
    document = read_document(data, name)

    def best(passages: Sequence[Passage]) -> list[Hypothesis]:
        requests = engine.requests(passages, engine.search_settings)
        return [found[0] for found in engine.search(requests)]

    done: list[int] = []
    targets = translate_units(document.units, engine, best, done.append)
    assert done[-1:] == [len(document.units)] or not document.units
    return document.join(targets, OutputOptions())


def letters(text: str) -> list[str]:
    return sorted("".join(text.split()))


def read(data: bytes) -> str:
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_writes_what_it_reads_changes_nothing(seed: int) -> None:
    """But where codes stand, as this model looks at nothing, and spaces around them."""
    for name, data in (
        ("a.txt", made_texts.txt(seed)),
        ("a.md", made_texts.markdown(seed)),
        ("a.srt", made_texts.subtitles(seed, vtt=False)),
    ):
        assert letters(read(echoed(data, name))) == letters(read(data))
    before = made_office.docx(seed)
    shown = [
        [letters("".join(t.text for t in p._p.iter(TEXT))) for p in document.paragraphs]
        for document in (
            docx.Document(io.BytesIO(data)) for data in (before, echoed(before, "a.docx"))
        )
    ]
    assert shown[0] == shown[1]


def test_from_python(tiny_run: Path, tmp_path: Path) -> None:
    translator = package.load(tiny_run)
    source, to = tmp_path / "a.docx", tmp_path / "b.docx"
    made = made_office.docx(1)  # its archive holds the time
    source.write_bytes(made)
    told: list[tuple[int, int]] = []
    data = translator.document(source, to, progress=lambda *both: told.append(both))
    assert to.read_bytes() == data and docx.Document(to).paragraphs
    assert told and told[-1][0] == told[-1][1]
    with pytest.raises(FileError, match="not overwritten"):
        translator.document(source, source)
    assert source.read_bytes() == made


def test_from_the_shell(tiny_run: Path, tmp_path: Path, dragoman: Dragoman) -> None:
    page, to = tmp_path / "a.html", tmp_path / "b.html"
    page.write_text("<p>The <b>dog</b> sleeps.", encoding="utf-8")
    said = dragoman("translate", tiny_run, page, "--to", to)
    assert said.code == 0 and "1 text translated" in said.err
    assert to.read_text(encoding="utf-8").startswith("<p>")
    empty = tmp_path / "empty.html"
    empty.write_text("<p></p>", encoding="utf-8")
    other = tmp_path / "c.html"
    for arguments, told in (
        ((page,), "Set a file for its translation"),
        ((page, "--to", page), "not overwritten"),
        ((page, "--to", to), f"remove it first: rm {to}"),
        (("The dog.", "--to", to), f"remove it first: rm {to}"),
        ((empty, "--to", other), "empty.html has no text to translate"),
        ((page, "--to", to, "--scores"), "--scores works only with lines"),
        ((page, "--to", tmp_path / "no" / "b.html"), "no folder"),
        (("The dog.", "--final"), "--final works only with documents"),
        (("The dog.", "--columns", "2"), "--columns works only with documents"),
        ((page, "--to", other, "--columns", "2"), "--columns works only with a table"),
    ):
        said = dragoman("translate", tiny_run, *arguments)
        assert said.code == 1 and told in said.err and "Traceback" not in said.err, said.err
    assert to.read_text(encoding="utf-8").startswith("<p>") and not other.exists()


def test_columns_of_a_table(tiny_run: Path, tmp_path: Path, dragoman: Dragoman) -> None:
    source, to = tmp_path / "a.csv", tmp_path / "b.csv"
    source.write_bytes(b"key,text,note\r\nthe dog,The dog sleeps.,the dog\r\n")
    said = dragoman("translate", tiny_run, source, "--to", to, "--columns", "text")
    assert said.code == 0 and "1 text translated" in said.err, said.err
    made = to.read_bytes()
    assert made.startswith(b"key,text,note\r\nthe dog,") and made.endswith(b",the dog\r\n")
    assert b"The dog sleeps." not in made
    translator = package.load(tiny_run)
    assert translator.document(source, columns=["text"]) == made
    assert translator.document(source, columns=[2]).endswith(made.split(b"\n", 1)[1])


def test_nothing_is_left_of_a_document_that_cannot_be_read(
    tiny_run: Path, tmp_path: Path, dragoman: Dragoman
) -> None:
    source, to = tmp_path / "a.docx", tmp_path / "b.docx"
    source.write_bytes(made_office.docx(1)[:-30])
    said = dragoman("translate", tiny_run, source, "--to", to)
    assert said.code == 1 and "cut off" in said.err and len(said.err.splitlines()) <= 2
    assert [one.name for one in tmp_path.iterdir()] == ["a.docx"]


def test_a_folder(tiny_run: Path, tmp_path: Path, dragoman: Dragoman) -> None:
    folder, to = tmp_path / "manual", tmp_path / "handbuch"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.md").write_text("# The *dog*\n", encoding="utf-8")
    (folder / "inner" / "b.txt").write_text("The dog sleeps.\n", encoding="utf-8")
    (folder / ".hidden.md").write_text("# no\n", encoding="utf-8")
    said = dragoman("translate", tiny_run, folder, "--to", to)
    assert said.code == 0, said.err
    assert sorted(str(one.relative_to(to)) for one in to.rglob("*")) == [
        "a.md",
        "inner",
        "inner/b.txt",
    ]
    (folder / "c.pdf").write_bytes(b"%PDF-1.4")
    said = dragoman("translate", tiny_run, folder, "--to", to)
    assert said.code == 1 and "pdftotext" in said.err and not (to / "c.pdf").exists()
    said = dragoman("translate", tiny_run, folder, "--to", folder / "de")
    assert said.code == 1 and "or one is inside the other" in said.err


def test_new_messages_are_fuzzy_unless_they_are_final(tiny_run: Path, tmp_path: Path) -> None:
    translator = package.load(tiny_run)
    document = read_document(b'msgid "The dog sleeps."\nmsgstr ""\n', "a.po")
    assert b"#, fuzzy\n" in translator.document(document)
    assert b"fuzzy" not in translator.document(document, final=True)
    with pytest.raises(BadDocument, match="line 1"):
        read_document(b'msgid "x\nmsgstr ""\n', "a.po")
