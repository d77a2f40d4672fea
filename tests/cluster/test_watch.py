"""A watched folder: every file once, when it is whole; what cannot be done is set aside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from faulty_s3 import BUCKET, s3
from untrained_run import untrained_run

from dragoman.base.errors import DataError, DragomanError
from dragoman.cluster import watch
from dragoman.cluster.watch import Watch
from dragoman.stores import open_store
from dragoman.tasks.translation import documents_verb as documents


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(watch, "SETTLED", 0.0)
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


class Loud:
    """Writes in capitals what it is given, and keeps account."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.told: list[str] = []

    def __call__(self, source: Path, output: Path) -> None:
        self.given.append(source.name)
        text = source.read_text()
        if "bad" in text:
            raise DataError(f"{source}, line 1: it is bad")
        output.write_text(text.upper())

    def watch(self, inbox: Path | str, outbox: Path | str) -> Watch:
        return Watch(str(inbox), str(outbox), self, self.told.append)


def test_files_are_done_once_as_they_come(inbox: Path, tmp_path: Path) -> None:
    loud, out = Loud(), tmp_path / "out"
    watched = loud.watch(inbox, out)
    assert not watched.look()
    (inbox / "a.txt").write_text("one")
    (inbox / "deep").mkdir()
    (inbox / "deep" / "b.txt").write_text("two")
    (inbox / ".writing-c.txt").write_text("hidden")
    assert not watched.look()  # seen for the first time: they may be growing
    assert watched.look()
    assert (out / "a.txt").read_text() == "ONE" and (out / "deep" / "b.txt").read_text() == "TWO"
    assert not watched.look()
    again = loud.watch(f"{inbox}/", f"{out}/")  # a restart
    (inbox / "d.txt").write_text("four")
    again.look()
    again.look()
    assert loud.given == ["a.txt", "b.txt", "d.txt"]
    assert sorted(path.name for path in out.iterdir()) == ["_dragoman", "a.txt", "d.txt", "deep"]
    assert watched.count == 2 and again.count == 1


def test_what_is_no_file_keeps_nobody_waiting(inbox: Path, tmp_path: Path) -> None:
    """Nobody writes into the pipe: who opened it would wait for ever."""
    loud = Loud()
    os.mkfifo(inbox / "a.txt")
    (inbox / "b.txt").symlink_to("/nowhere")
    (inbox / "c.txt").write_text("one")
    watched = loud.watch(inbox, tmp_path / "out")
    watched.look()
    assert watched.look() and loud.given == ["c.txt"]


def test_no_link_is_followed_out_of_either_folder(inbox: Path, tmp_path: Path) -> None:
    """Whoever may put files there could else have others read, and written over."""
    loud, out, other = Loud(), tmp_path / "out", tmp_path / "other"
    other.mkdir()
    (other / "secret.txt").write_text("secret")
    (inbox / "a.txt").symlink_to(other / "secret.txt")
    (inbox / "b.txt").write_text("one")
    (inbox / "c.txt").symlink_to("b.txt")  # within the folder
    (inbox / "deep").mkdir()
    (inbox / "deep" / "d.txt").write_text("two")
    out.mkdir()
    (out / "deep").symlink_to(other)
    watched = loud.watch(inbox, out)
    watched.look()
    assert watched.look() and not watched.look()
    assert loud.given == ["b.txt", "c.txt"] and watched.failed == 2
    assert [path.name for path in other.iterdir()] == ["secret.txt"]
    told = [line for line in loud.told if "symbolic links out of" in line]
    assert [line.split(": ")[1] for line in told] == [f"{inbox}/a.txt", f"{inbox}/deep/d.txt"]


def test_a_file_that_becomes_a_link_while_it_is_read_is_not_written(
    inbox: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("secret")

    class Swapped(Loud):
        def __call__(self, source: Path, output: Path) -> None:
            about = source.stat()
            source.unlink()
            source.symlink_to(tmp_path / "secret.txt")
            os.utime(source, ns=(about.st_atime_ns, about.st_mtime_ns))
            super().__call__(source, output)

    (inbox / "a.txt").write_text("plain.")  # as many bytes
    watched = Swapped().watch(inbox, tmp_path / "out")
    watched.look()
    watched.look()
    assert watched.count == 0 and not (tmp_path / "out" / "a.txt").exists()


@pytest.mark.parametrize("name", ["a\nb.txt", "a\x1b[31mb.txt", os.fsdecode(b"a\xff.txt")])
@pytest.mark.parametrize("text", ["one", "bad"])
def test_any_name_is_told_in_one_line(name: str, text: str, inbox: Path, tmp_path: Path) -> None:
    loud = Loud()
    (inbox / name).write_text(text)
    watched = loud.watch(inbox, tmp_path / "out")
    watched.look()
    assert watched.look() and len(loud.told) == 1
    assert loud.told[0].isprintable() and repr(name)[1:-1] in loud.told[0]
    assert (tmp_path / "out" / name).exists() == (text == "one")
    again = loud.watch(inbox, tmp_path / "out")  # what was set aside is not tried again
    again.look()
    assert not again.look() and len(loud.given) == 1


def test_a_file_that_grows_waits(inbox: Path, tmp_path: Path) -> None:
    loud = Loud()
    watched = loud.watch(inbox, tmp_path / "out")
    for text in ("o", "on", "one"):
        (inbox / "a.txt").write_text(text)
        assert not watched.look()
    os.utime(inbox / "a.txt", ns=(1, 1))  # the same size, written anew
    assert not watched.look()
    assert watched.look() and loud.given == ["a.txt"]


def test_a_file_is_whole_when_it_has_been_still_for_a_while(
    inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SETTLED", 2.0)
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    watched = Loud().watch(inbox, tmp_path / "out")
    (inbox / "a.txt").write_text("one")
    found = []
    for now[0] in (100.0, 101.0, 101.9, 102.1):
        found.append(watched.look())
    assert found == [False, False, False, True]


def test_a_file_that_changes_while_it_is_read_is_done_again(inbox: Path, tmp_path: Path) -> None:
    loud = Loud()

    def do(source: Path, output: Path) -> None:
        loud(source, output)
        if len(loud.given) == 1:
            source.write_text("one and more")

    watched = Watch(str(inbox), str(tmp_path / "out"), do, loud.told.append)
    (inbox / "a.txt").write_text("one")
    for _ in range(4):
        watched.look()
    assert (tmp_path / "out" / "a.txt").read_text() == "ONE AND MORE"
    assert len(loud.given) == 2


def test_a_bad_file_is_set_aside_and_tried_again_when_it_has_changed(
    inbox: Path, tmp_path: Path
) -> None:
    loud, out = Loud(), tmp_path / "out"
    (inbox / "a.txt").write_text("bad")
    (inbox / "b.txt").write_text("good")
    watched = loud.watch(inbox, out)
    for _ in range(4):
        watched.look()
    assert loud.given == ["a.txt", "b.txt"] and not (out / "a.txt").exists()
    note = json.loads((out / watch.BAD / "a.txt.json").read_text())
    assert note["file"] == "a.txt" and note["reason"] == f"{inbox}/a.txt, line 1: it is bad"
    assert any("set aside" in line and "it is bad" in line for line in loud.told)
    again = loud.watch(inbox, out)
    for _ in range(3):
        again.look()
    assert loud.given == ["a.txt", "b.txt"]  # it is as bad as it was
    (inbox / "a.txt").write_text("mended")
    for _ in range(3):
        again.look()
    assert (out / "a.txt").read_text() == "MENDED"
    assert not (out / watch.BAD / "a.txt.json").exists()


def test_what_another_has_written_stays(inbox: Path, tmp_path: Path) -> None:
    loud, out = Loud(), tmp_path / "out"
    watched = loud.watch(inbox, out)
    (inbox / "a.txt").write_text("one")
    watched.look()
    (out / "a.txt").write_text("another's")
    watched.look()
    assert (out / "a.txt").read_text() == "another's" and watched.count == 0


def test_places_that_do_not_go_together_are_refused(inbox: Path, tmp_path: Path) -> None:
    for outbox in (inbox, inbox / "out", f"{inbox}/"):
        with pytest.raises(DragomanError, match="inside it"):
            Loud().watch(inbox, outbox)
    Loud().watch(inbox, f"{inbox}-out")
    with pytest.raises(DragomanError, match="is not a folder"):
        Loud().watch(tmp_path / "none", tmp_path / "out")


def test_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where objects appear whole, so that none waits."""
    loud = Loud()
    with s3(monkeypatch):
        store = open_store(f"s3://{BUCKET}")
        store.create("in/deep/x.txt", b"one")
        store.create("in/bad.txt", b"bad")
        watched = loud.watch(f"s3://{BUCKET}/in/", f"s3://{BUCKET}/out")
        assert watched.look() and not watched.look()
        assert store.read("out/deep/x.txt", 0, 3) == b"ONE"
        ((name, stat),) = store.names(f"out/{watch.BAD}/")
        note = json.loads(store.read(name, 0, stat.size))
        assert note["reason"] == f"s3://{BUCKET}/in/bad.txt, line 1: it is bad"
        assert not loud.watch(f"s3://{BUCKET}/in", f"s3://{BUCKET}/out").look()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_breaks_off_a_translation_and_nothing_else(
    inbox: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """What is tidied up after a file ends first: Python may close a file twice amid it."""
    given, told, rest = list[str](), list[str](), list[str]()

    def lines(read: Iterator[str]) -> Iterator[str]:
        for line in read:
            given.append(line)
            if line == "long":
                signal.raise_signal(number)
                rest.append("an interrupt did not break it off")
            yield line

    def say(line: str) -> None:
        told.append(line)
        if line.startswith("set aside"):
            signal.raise_signal(number)
            rest.append("said")

    def done() -> list[str]:
        args = SimpleNamespace(
            given=[str(inbox)], to=str(tmp_path / "out"), plain=False, document=False,
            columns=None, final=False,
        )  # fmt: skip
        translator = SimpleNamespace()
        told.clear()
        documents.watch(args, translator, lines, "en", say)
        return told

    before = signal.getsignal(number)
    (inbox / "a.docx").write_bytes(b"PK\x03\x04 that is no document")
    (inbox / "b.txt").write_text("short\n")
    assert done()[-1].startswith("stopped: 0 files were translated, and 1 set aside.")
    assert rest == ["said"] and not given
    (inbox / "c.txt").write_text("long\n")
    assert done()[-1].startswith("stopped: 1 file was translated. Run the same command")
    assert rest == ["said"] and given == ["short", "long"]
    assert [path.name for path in (tmp_path / "out").glob("*.txt")] == ["b.txt"]
    assert signal.getsignal(number) is before


@pytest.mark.slow  # it waits for files to be dropped
def test_the_command(tmp_path: Path) -> None:
    """Really started, stopped by Ctrl-C, and started again."""
    (tmp_path / "run").mkdir()
    run = untrained_run(tmp_path / "run", "text.vocabulary=400", "model.model_dim=32")
    inbox, out = tmp_path / "inbox", tmp_path / "out"
    inbox.mkdir()
    (inbox / "a.en").write_text("The dog sleeps.\nThe cat eats.\n")
    (inbox / "broken.docx").write_bytes(b"PK\x03\x04 that is no document")
    command = [sys.executable, "-m", "dragoman", "translate", str(run), str(inbox)]
    command += ["--to", str(out), "--watch", "--precision", "fp32"]

    def begin() -> subprocess.Popen[str]:
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    first = begin()
    told = read_until(first, "a.en: ", "broken.docx")
    first.send_signal(signal.SIGINT)
    told += first.communicate(timeout=60)[1]
    assert first.returncode == 0 and "1 file was translated, and 1 set aside" in told, told
    assert "Traceback" not in told
    assert len((out / "a.en").read_text().splitlines()) == 2
    before = (out / "a.en").stat()
    second = begin()
    (inbox / "page.html").write_text("<p>The <b>dog</b> sleeps.</p>")
    told = read_until(second, "page.html: ")
    second.terminate()
    told += second.communicate(timeout=60)[1]
    assert second.returncode == 0 and "1 file was translated. Run the same command" in told, told
    assert (out / "page.html").read_text().startswith("<p>")
    assert (out / "a.en").stat() == before


def read_until(process: subprocess.Popen[str], *wanted: str) -> str:
    """What it says, up to the line by which all of it was said."""
    assert process.stderr is not None
    told = ""
    while not all(one in told for one in wanted):
        line = process.stderr.readline()
        assert line, f"it ended: {told}"
        told += line
    return told
