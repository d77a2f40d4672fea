"""A watched folder or bucket: its files are processed as they arrive, each once.

A file is done if its output exists; no other state is kept, so a restart continues where it
stopped, and two watchers write no file twice. If a file cannot be processed, a note with the reason
is written next to the outputs, and the file is tried again when it has changed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman.base.errors import DataError, DragomanError
from dragoman.cluster.files import File, files_of
from dragoman.cluster.work import NOTES, check_conditional
from dragoman.stores import BLOCK, InputChanged, Stat, Store, is_remote, open_store, whole_address

BAD = f"{NOTES}/bad"
"""The folder of notes on the inputs that could not be processed, one file each."""
SETTLED = 2.0
"""A file counts as complete after its size and time have not changed for so many seconds."""
PAUSE = 0.5
"""The pause between two checks, in seconds."""

Do = Callable[[Path, Path], None]
"""Writes the output of a file to the second path. Errors: ``DragomanError``."""


class Watch:
    """A watched folder. Call ``run``, or ``look`` repeatedly."""

    def __init__(self, inbox: str, outbox: str, do: Do, say: Callable[[str], None]) -> None:
        """``say``: writes a line for people. Errors: ``DragomanError`` for places that cannot be
        read or written, and for an outbox inside the inbox."""
        self._inbox, self._say, self._do = inbox.rstrip("/") or "/", say, do
        if not is_remote(inbox) and not Path(inbox).is_dir():
            raise DataError(f"{inbox} is not a folder. Create it and put the files there")
        self._from = whole_address(self._inbox)
        self._to = to = whole_address(outbox)
        if f"{to}/".startswith(f"{self._from}/"):
            raise DataError(
                f"{outbox} is {inbox} or inside it, so outputs would be read again. Set another "
                "--to"
            )
        self._store: Store = open_store(to)
        check_conditional(self._store)
        self._done = {name for name, _ in self._store.names("") if not name.startswith(NOTES)}
        self._seen: dict[str, tuple[Stat, float]] = {}
        """Files that are not done: their last state, and since when it has not changed."""
        self._bad = dict(self._bad_before())
        self.count = self.failed = 0
        """The numbers of files that were done, and that could not be."""

    def run(self, stop: Callable[[], bool] = lambda: False, pause: float = PAUSE) -> None:
        """Check the folder until ``stop`` returns True, or until interrupted."""
        while not stop():
            if not self.look():
                time.sleep(pause)

    def look(self) -> bool:
        """Process every complete file; returns True if there was one."""
        now, names, was_done = time.monotonic(), set[str](), False
        for file in self._files():
            name = self._name(file)
            names.add(name)
            if name in self._done or self._bad.get(name) == file.stat.tag:
                continue
            stat, since = self._seen.get(name, (None, 0.0))
            if stat != file.stat:
                self._seen[name] = file.stat, now
                # An object appears complete; a file grows.
                if not is_remote(file.store):
                    continue
            elif now - since < SETTLED and not is_remote(file.store):
                continue
            if (link := self._leads_out(name)) is not None:
                self._set_aside(name, file, link)
            was_done = link is not None or self._take(file, name) or was_done
        for name in self._seen.keys() - names:  # removed before it was done
            del self._seen[name]
        return was_done

    def _files(self) -> Iterator[File]:
        try:
            yield from files_of([self._inbox])
        except DataError:  # there is no file
            return

    def _name(self, file: File) -> str:
        return file.place.removeprefix(f"{self._from}/")

    def _take(self, file: File, name: str) -> bool:
        """Process a file; returns False if it changed meanwhile."""
        begun = time.monotonic()
        try:
            with TemporaryDirectory() as folder:
                output = Path(folder) / "out" / Path(name).name
                output.parent.mkdir()
                source = self._source(file, Path(folder))
                try:
                    self._do(source, output)
                except DragomanError as error:
                    self._check_same(file)
                    self._set_aside(name, file, str(error).replace(str(source), file.place))
                    return True
                self._check_same(file)
                with output.open("rb") as made:
                    own = self._store.create(name, iter(lambda: made.read(BLOCK), b""))
        except InputChanged:
            self._seen.pop(name, None)
            return False
        self._seen.pop(name, None)
        self._done.add(name)
        if self._bad.pop(name, None) is not None:
            self._store.remove(_note(name))
        if own:
            self.count += 1
            self._say(f"{_show(self._store.place(name))}: {time.monotonic() - begun:.1f} s")
        return True

    def _leads_out(self, name: str) -> str | None:
        """The reason if a symbolic link leads the file, or its output, out of its folder."""
        for top, path in ((self._from, name), (self._to, os.path.dirname(name))):
            if is_remote(top):
                continue
            whole = os.path.realpath(top)
            if not Path(os.path.realpath(f"{top}/{path}")).is_relative_to(whole):
                return f"symbolic links out of {top} are not followed"
        return None

    def _source(self, file: File, folder: Path) -> Path:
        """A local path of the file, copied if it is remote."""
        if not is_remote(file.store):
            return Path(file.place)
        path = folder / "in" / Path(file.name).name
        path.parent.mkdir()
        with path.open("wb") as copy:
            copy.writelines(file.blocks())
        return path

    def _check_same(self, file: File) -> None:
        if file.open().stat(file.name) != file.stat or self._leads_out(self._name(file)):
            raise InputChanged(f"{file.place} changed while it was read")

    def _set_aside(self, name: str, file: File, reason: str) -> None:
        self._seen.pop(name, None)
        self._bad[name] = file.stat.tag
        self.failed += 1
        note = {"file": name, "reason": reason, "tag": file.stat.tag}
        self._store.remove(_note(name))  # the note of an earlier state
        written = json.dumps(note, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._store.create(_note(name), written)
        shown = _show(file.place)
        self._say(f"set aside: {shown}: {reason.replace(file.place, shown)}")

    def _bad_before(self) -> Iterator[tuple[str, str]]:
        for name, stat in self._store.names(f"{BAD}/"):
            try:
                note = json.loads(self._store.read(name, 0, stat.size))
                yield note["file"], note["tag"]
            except (ValueError, KeyError, TypeError):
                continue  # it is tried again


def _show(place: str) -> str:
    """A name as a line shows it: it may contain a line break, or control characters of
    terminals."""
    return place if place.isprintable() else repr(place)


def _note(name: str) -> str:
    return f"{BAD}/{name}.json"
