"""A file whose bytes are in memory: what a client of a server sends, and no file system has."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class InMemory:
    """``str`` is what messages call it."""

    called: str
    data: bytes = field(repr=False)

    def __str__(self) -> str:
        return self.called

    def open(self, mode: Literal["rb"] = "rb") -> BytesIO:
        """Its bytes, to be read, as a path opens them."""
        return BytesIO(self.data)


File = Path | InMemory
"""What a form reads."""
