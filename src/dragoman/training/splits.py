"""The micro-batches that did not fit into memory, remembered in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from dragoman.errors import RunError
from dragoman.reading import parse_json, read_bytes

_MAX_BYTES = 8 << 20
"""Bytes of the file: some 200,000 of them."""


class Splits:
    """The micro-batches that this process halved, remembered in a file.

    Halving changes rounding, so a resumed run halves the same ones, also when memory would suffice
    by now. Each process has a file of its own: they may not see each other's.
    """

    def __init__(self, folder: Path, rank: int = 0) -> None:
        """A file that is not there yet is one without entries."""
        path = folder / (f"splits-{rank}.jsonl" if rank else "splits.jsonl")
        self.path = path
        self._known: set[tuple[int, int]] = set()
        content = read_bytes(path, _MAX_BYTES) if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            # The process died while writing the last line, before it did what the line says.
            os.truncate(path, len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            record = parse_json(line, f"{path}, line {number}")
            place = record if isinstance(record, dict) else {}
            update, micro_batch = place.get("update"), place.get("micro_batch")
            if type(update) is not int or type(micro_batch) is not int:
                raise RunError(f"{path}, line {number} is damaged: {line[:80]!r}")
            self._known.add((update, micro_batch))

    def __contains__(self, place: tuple[int, int]) -> bool:
        return place in self._known

    def add(self, update: int, micro_batch: int) -> None:
        """Remember it, on disk first."""
        line = json.dumps({"update": update, "micro_batch": micro_batch})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._known.add((update, micro_batch))
