"""A folder or bucket whose files are done as they come, each once.

A file whose output stands is done: nothing else is kept of it, so a second start goes on where the
first one ended, and two at once write no file twice. A file that cannot be done is written down
beside the outputs, with the reason, and is tried again when it has changed.
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
from dragoman.stores.opened import is_remote, opened, whole_address
from dragoman.stores.store import BLOCK, InputChanged, Stat, Store

BAD = f"{NOTES}/bad"
"""The folder beside the outputs with a file for each input that could not be done."""
SETTLED = 2.0
"""Seconds for which size and time of a file stay as they are before it is taken to be whole."""
PAUSE = 0.5
"""Seconds between two looks."""

Do = Callable[[Path, Path], None]
"""Makes an output, the second path, of a file. Errors: ``DragomanError``."""


class Watch:
    """One watched folder. Use ``run``, or ``look`` again and again."""

    def __init__(self, inbox: str, outbox: str, do: Do, say: Callable[[str], None]) -> None:
        """``say``: writes a line for people. Errors: ``DragomanError`` for places that cannot be
        read or written, and for an outbox inside the inbox."""
        self._inbox, self._say, self._do = inbox.rstrip("/") or "/", say, do
        if not is_remote(inbox) and not Path(inbox).is_dir():
            raise DataError(f"{inbox} is no folder: make it, and put the files there")
        self._from = whole_address(self._inbox)
        self._to = to = whole_address(outbox)
        if f"{to}/".startswith(f"{self._from}/"):
            raise DataError(
                f"{outbox} is {inbox} or lies in it, and what is written there would be taken for "
                "new files: name another --to"
            )
        self._store: Store = opened(to)
        check_conditional(self._store)
        self._done = {name for name, _ in self._store.names("") if not name.startswith(NOTES)}
        self._seen: dict[str, tuple[Stat, float]] = {}
        """Files that are not done: as they were, and since when."""
        self._bad = dict(self._bad_before())
        self.count = self.failed = 0
        """Files that were done, and that could not be."""

    def run(self, stop: Callable[[], bool] = lambda: False, pause: float = PAUSE) -> None:
        """Look until ``stop`` says so, or until interrupted."""
        while not stop():
            if not self.look():
                time.sleep(pause)

    def look(self) -> bool:
        """Do every file that is there and whole -> whether there was one."""
        now, found, was_done = time.monotonic(), set[str](), False
        for file in self._files():
            name = self._name(file)
            found.add(name)
            if name in self._done or self._bad.get(name) == file.stat.tag:
                continue
            stat, since = self._seen.get(name, (None, 0.0))
            if stat != file.stat:
                self._seen[name] = file.stat, now
                # An object appears whole; a file grows.
                if not is_remote(file.store):
                    continue
            elif now - since < SETTLED and not is_remote(file.store):
                continue
            if (link := self._leads_out(name)) is not None:
                self._set_aside(name, file, link)
            was_done = link is not None or self._take(file, name) or was_done
        for name in self._seen.keys() - found:  # taken away before it was done
            del self._seen[name]
        return was_done

    def _files(self) -> Iterator[File]:
        try:
            yield from files_of([self._inbox])
        except DataError:  # there is none
            return

    def _name(self, file: File) -> str:
        return file.place.removeprefix(f"{self._from}/")

    def _take(self, file: File, name: str) -> bool:
        """Whether it is done with; one that changes meanwhile is not."""
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
            self._say(f"{_shown(self._store.place(name))}: {time.monotonic() - begun:.1f} s")
        return True

    def _leads_out(self, name: str) -> str | None:
        """What is wrong with a file that lies elsewhere by a link, or whose output would."""
        for top, path in ((self._from, name), (self._to, os.path.dirname(name))):
            if is_remote(top):
                continue
            whole = os.path.realpath(top)
            if not Path(os.path.realpath(f"{top}/{path}")).is_relative_to(whole):
                return f"a symbolic link leads out of {top}, and none is followed"
        return None

    def _source(self, file: File, folder: Path) -> Path:
        """A path on this machine."""
        if not is_remote(file.store):
            return Path(file.place)
        path = folder / "in" / Path(file.name).name
        path.parent.mkdir()
        with path.open("wb") as copy:
            copy.writelines(file.blocks())
        return path

    def _check_same(self, file: File) -> None:
        if file.open().stat(file.name) != file.stat or self._leads_out(self._name(file)):
            raise InputChanged(f"{file.place} has changed while it was read")

    def _set_aside(self, name: str, file: File, reason: str) -> None:
        self._seen.pop(name, None)
        self._bad[name] = file.stat.tag
        self.failed += 1
        note = {"file": name, "reason": reason, "tag": file.stat.tag}
        self._store.remove(_note(name))  # of what stood there before it changed
        written = json.dumps(note, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._store.create(_note(name), written)
        shown = _shown(file.place)
        self._say(f"set aside: {shown}: {reason.replace(file.place, shown)}")

    def _bad_before(self) -> Iterator[tuple[str, str]]:
        for name, stat in self._store.names(f"{BAD}/"):
            try:
                note = json.loads(self._store.read(name, 0, stat.size))
                yield note["file"], note["tag"]
            except (ValueError, KeyError, TypeError):
                continue  # it is tried again


def _shown(place: str) -> str:
    """As it stands in a line: whoever puts a file there may have named it with an end of line, or
    with what turns a terminal red."""
    return place if place.isprintable() else repr(place)


def _note(name: str) -> str:
    return f"{BAD}/{name}.json"
