"""``metrics.jsonl``: the records of a run, one JSON object a line, each update once.

Lines are appended as they happen. A process that was killed may have written more than its last
checkpoint knows of; going on from there, the file is first cut back to that moment.
"""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.errors import TrainingError
from dragoman.training.records import Record, as_json


class MetricsLog:
    """The open file. ``position`` is what a checkpoint remembers."""

    def __init__(self, path: Path, position: int) -> None:
        """Open for appending, at ``position`` bytes; what stands behind is cut off.

        A file that is shorter (somebody edited it or copied half of it) is continued behind its
        last whole line.
        """
        self.path = path
        self._file = path.open("ab", buffering=0)
        if self._file.tell() < position:
            position = path.read_bytes().rfind(b"\n") + 1
        if self._file.tell() > position:
            self._file.truncate(position)
            self._file.seek(position)

    @property
    def position(self) -> int:
        """Length of the file in bytes."""
        return self._file.tell()

    def write(self, record: Record) -> None:
        """Append a line. Raises TrainingError when the disk is full."""
        line = as_json(record).encode() + b"\n"
        try:
            written = self._file.write(line)
            if written != len(line):  # a disk that filled up in the middle of the line
                self._file.write(line[written:])
        except OSError as error:
            raise TrainingError(
                f"cannot write {self.path}: {error.strerror}. The last checkpoint is untouched; "
                "make room or mend the cause, then resume."
            ) from error

    def force_to_disk(self) -> None:
        """Survive a power cut: called before a checkpoint relies on ``position``."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
