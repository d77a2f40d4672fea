"""Files, text or standard input, as the verbs that read lines take them."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command_line import Dragoman
from tiny_recipe import TINY
from untrained_run import untrained_run

from dragoman.console.output import UNREADABLE
from dragoman.tasks.translation.proofreading.plain import ProofWarning
from dragoman.tasks.translation.verb import WarningsTold

SRT = b"1\n00:00:01,000 --> 00:00:02,500\nThe dog sleeps.\n"
MODEL = [change for change in TINY if not change.startswith("model.decoder")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each verb that reads lines."""
    folder = tmp_path_factory.mktemp("runs")
    made = {}
    for verb, recipe in (
        ("translate", "demo"), ("classify", "demo-labels"), ("parse", "demo-trees"),
        ("fill", "demo-masked"), ("write", "demo-letters"),
    ):  # fmt: skip
        (folder / verb).mkdir()
        made[verb] = untrained_run(folder / verb, recipe_name=recipe)
    return made


TEXT = {
    "translate": "The dog sleeps.", "classify": "The dog sleeps.", "parse": "the dog sleeps",
    "fill": "The ___ sleeps.",
}  # fmt: skip
MORE = {"translate": ("--set", "max_length=4", "--beam", "1"), "parse": ("--beam", "1")}


@pytest.mark.parametrize("verb", TEXT)
def test_a_file_is_read(
    verb: str, runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    ask, text = (verb, runs[verb], *MORE.get(verb, ())), TEXT[verb]
    (tmp_path / "my.txt").write_text(f"{text}\n{text}\n", encoding="utf-8")
    found = dragoman(*ask, tmp_path / "my.txt")
    assert found.code == 0, found.err
    assert found.out == dragoman(*ask, stdin=f"{text}\n{text}\n".encode()).out
    once = dragoman(*ask, text).out
    assert found.out.count(once.rstrip("\n")) == 2


@pytest.mark.parametrize("verb", TEXT)
def test_a_file_that_is_read_is_not_written_over(
    verb: str, runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    mine, same = tmp_path / "my.txt", tmp_path / "same.txt"
    mine.write_text(f"{TEXT[verb]}\n", encoding="utf-8")
    same.hardlink_to(mine)
    for to in (mine, same):
        said = dragoman(verb, runs[verb], *MORE.get(verb, ()), mine, "--to", to)
        assert said.code == 1 and f"{to} is an input file" in said.err
    assert mine.read_text(encoding="utf-8") == f"{TEXT[verb]}\n"


@pytest.mark.parametrize("verb", TEXT)
@pytest.mark.parametrize("how", ["file", "standard input"])
def test_what_is_no_plain_text_is_refused_by_every_verb(
    verb: str, how: str, runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    ask = (verb, runs[verb], *MORE.get(verb, ()))
    for content, words in (
        (SRT, "subtitles"), ("개가 잠을 잔다.\n고양이도 잔다.\n".encode("cp949"), "CP949"),
    ):  # fmt: skip
        path = tmp_path / "given"
        path.write_bytes(content)
        said = dragoman(*ask, path) if how == "file" else dragoman(*ask, stdin=content)
        assert said.code == 1 and said.out == ""
        (line,) = (one for one in said.err.splitlines() if one.startswith("error"))
        assert words in line and (str(path) if how == "file" else "standard input") in line
        assert ("--plain" in line) == (words == "subtitles")


def test_plain_reads_whatever_it_looks_like(
    runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    (tmp_path / "film.srt").write_bytes(SRT)
    ask = ("translate", runs["translate"], *MORE["translate"])
    for said in (
        dragoman(*ask, tmp_path / "film.srt", "--plain"), dragoman(*ask, "--plain", stdin=SRT)
    ):  # fmt: skip
        assert said.code == 0 and said.out.count("\n") == 3
    running = dragoman(*ask, "--paragraphs", stdin=SRT)
    assert running.code == 1 and "subtitles" in running.err
    assert dragoman(*ask, "--paragraphs", "--plain", stdin=SRT).code == 0


def test_single_bytes_that_are_not_utf8_are_told_once(
    runs: dict[str, Path], dragoman: Dragoman
) -> None:
    given = b"The dog.\n" * 3 + "Le garçon dort.\n".encode("latin-1") * 2
    said = dragoman("translate", runs["translate"], *MORE["translate"], stdin=given)
    assert said.code == 0 and said.out.count("\n") == 5
    assert said.err.count("not UTF-8") == 1
    assert "standard input, line 4 has bytes that are not UTF-8" in said.err


def test_the_name_of_a_file_that_is_taken_as_text_is_said(
    runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("once").write_text("The dog", encoding="utf-8")
    said = dragoman("write", runs["write"], "once", "--longest", "2")
    assert said.code == 0 and "once is a file, but its name is taken as text" in said.err
    assert '"$(cat once)"' in said.err
    assert "is a file" not in dragoman("write", runs["write"], "upon", "--longest", "2").err
    said = dragoman("classify", runs["classify"], "once", "--text")
    assert said.code == 0 and said.out.count("\n") == 1
    said = dragoman("classify", runs["classify"], "and/or")
    assert said.code == 0 and "there is no file and/or; its name is taken as text" in said.err
    Path("letter.docx").write_bytes(b"x")
    for name, meant in (("leter.docx", " Did you mean letter.docx?"), ("no.txt", ""), ("no/", "")):
        said = dragoman("classify", runs["classify"], name)
        assert said.code == 1 and f"there is no file {name}.{meant} To take it as text:" in said.err
        assert dragoman("classify", runs["classify"], name, "--text").code == 0
    for verb, wrong in (("classify", ("once", "a text")), ("fill", ("once", "a ___"))):
        said = dragoman(verb, runs[verb], *wrong)
        assert said.code == 1 and "once is a file and " in said.err
        assert ("--text" in said.err) == (verb == "classify")
    said = dragoman("parse", runs["parse"], runs["fill"])
    assert said.code == 1 and "is a run folder" in said.err


def test_a_pipe_of_the_shell_is_read_as_a_file(
    runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    """<(zcat my.gz) hands over the name of a pipe."""
    os.mkfifo(tmp_path / "pipe")
    given = b"The dog sleeps.\n" * 2
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(given,))
    writer.start()
    said = dragoman("classify", runs["classify"], tmp_path / "pipe")
    writer.join()
    assert said.code == 0 and said.out == dragoman("classify", runs["classify"], stdin=given).out


@pytest.mark.system
def test_bytes_that_are_not_utf8_are_shown_as_unreadable(
    runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    """A question mark would be another word, which may stand in any text."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=UNREADABLE)
    out.write("caf\udce9 ol\udce9\udce9?")
    out.flush()
    assert out.buffer.getvalue().decode("utf-8") == "caf\ufffd ol\ufffd\ufffd?"  # type: ignore[attr-defined]
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "parse", runs["parse"], "--beam", "1"],
        input=b"the caf\xe9 sleeps\n", capture_output=True, check=True,
    )  # fmt: skip
    words = re.findall(r"[^\s()]+(?=\))", done.stdout.decode("utf-8"))
    assert words == ["the", "caf\ufffd", "sleeps"]


@pytest.mark.parametrize("how", ["file", "standard input"])
def test_warnings_are_counted(
    how: str, runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    """First, where all of the input is there; at the end of what is piped."""
    given = b"The dog sleeps.\n\nThe cat sleeps.\n"
    ask = ("translate", runs["translate"], *MORE["translate"], "-q", "--warn")
    (tmp_path / "my.txt").write_bytes(given)
    (tmp_path / "empty.txt").write_bytes(b"\n")
    said = dragoman(*ask, tmp_path / "my.txt") if how == "file" else dragoman(*ask, stdin=given)
    place = 0 if how == "file" else -1
    lines = said.err.splitlines()
    summary = lines.pop(place)
    assert lines and all(line.startswith("line ") for line in lines)
    doubted = {line.split(":")[0] for line in lines}
    assert summary.startswith(f"{len(doubted)} of 3 lines have warnings: ")
    assert sum(map(int, re.findall(r" (\d+)(?=,|$)", summary.partition(":")[2]))) == len(lines)
    nothing = dragoman(*ask, tmp_path / "empty.txt")
    assert nothing.err == "no warnings about 1 line\n"


def test_what_is_known_is_told_when_an_error_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    def work(told: WarningsTold) -> None:
        with told:
            told.take([ProofWarning.at("unknown", "source", "A café.", (2, 6))])
            told.take([])
            assert capsys.readouterr().err == ""
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work(WarningsTold(held=True))
    summary, line = capsys.readouterr().err.splitlines()
    assert summary == "1 of 2 lines has warnings: unknown 1" and line.startswith("line 1: ")


@pytest.mark.parametrize("verb", ["translate", "evaluate", "classify"])
def test_a_folder_in_the_place_of_a_file_is_refused_before_the_work(
    verb: str, runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    (tmp_path / "my.txt").write_text("The dog sleeps.\n", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    files, option = [tmp_path / "my.txt"], "--to"
    if verb == "evaluate":
        files, option = files * 2, "--output"
    said = dragoman(verb, runs.get(verb, runs["translate"]), *files, option, tmp_path / "folder")
    assert said.code == 1 and said.out == ""
    assert "folder: it is a folder. Use a file" in said.err and "int8" not in said.err
    assert "translating" not in said.err


def test_what_is_no_file_is_said(
    runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    for given, words in (("pipe", "is not a regular file"), ("folder", "folder is a folder")):
        for verb in (("train",), ("data", "show")):
            said = dragoman(*verb, given)
            assert said.code == 1 and words in said.err and "nor an included recipe" not in said.err
    said = dragoman("write", runs["write"], "pipe", "--longest", "2")
    assert "pipe is a pipe or a device, but its name is taken as text" in said.err


def test_columns_that_are_read_as_one_text_are_told_of(
    runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    (tmp_path / "el.pairs.tsv").write_text("A dog.\tEin Hund.\n" * 2, encoding="utf-8")
    ask = ("translate", runs["translate"], *MORE["translate"], tmp_path / "el.pairs.tsv")
    found, plain = dragoman(*ask), dragoman(*ask, "--plain")
    assert found.code == plain.code == 0 and found.out == plain.out
    assert "2 columns between tabs" in found.err and "columns" not in plain.err


@pytest.mark.system
@pytest.mark.parametrize("verb", ["translate", "classify", "parse", "write"])
def test_a_folder_and_a_table_are_told(
    verb: str,
    runs: dict[str, Path],
    dragoman: Dragoman,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ask = (verb, runs[verb], *MORE.get(verb, ()))
    (tmp_path / "books").mkdir()
    said = dragoman(*ask, tmp_path / "books")
    if verb == "write":  # which reads no files
        assert said.code == 0 and "books is a folder, but its name is taken as text" in said.err
    else:
        to = r"translate RUN \S+books --to translated"
        words = to if verb == "translate" else r"To read its files: \S+books/\*; .* --text"
        assert (
            said.code == 1 and not said.out and re.search(rf"books is a folder.* {words}", said.err)
        )
        assert dragoman(*ask, tmp_path / "books", "--text").code == 0
    (tmp_path / "my.csv").write_text('"The dog, it sleeps.",animals\n', encoding="utf-8")
    said = dragoman(*ask, tmp_path / "my.csv")
    words = "is a file, but its name" if verb == "write" else "commas and quotation marks included"
    assert said.code == 0 and words in said.err + caplog.text
    if verb != "write":
        caplog.clear()
        said = dragoman(*ask, tmp_path / "my.csv", "--plain")
        assert words not in said.err + caplog.text


@pytest.mark.parametrize("verb", ["classify", "fill", "parse", "tag", "translate", "write"])
def test_a_run_of_another_task_is_told_in_one_line(
    verb: str, runs: dict[str, Path], dragoman: Dragoman, tmp_path: Path
) -> None:
    """What the text looks like does not matter then: a name of a file, of a recording."""
    (tmp_path / "there.txt").write_text("The dog sleeps.\n", encoding="utf-8")
    other = runs["classify" if verb == "write" else "write"]
    for text in (tmp_path / "there.txt", "nowhere.wav", tmp_path):
        said = dragoman(verb, other, text)
        (line,) = said.err.splitlines()
        assert said.code == 1 and line.startswith(f"error: {other} is a "), said.err
        assert not said.out
