"""The options of a look at one output. The module imports no torch, because ``dragoman look`` reads
its options before it imports torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class LookOptions:
    """The options of ``dragoman look`` that say what is shown."""

    listed_last: ClassVar = True

    sentence: str = field(metadata={"is_argument": True, "default": ...})
    """The sentence to look at: for a masked model, with blanks (___); for a language model, the
    text as if the model had written it."""
    target: str | None = None
    """Look at this translation instead of the one that the run produces."""
    kind: str | None = None
    """The attention to show in the terminal: cross, encoder or decoder."""
    layer: int | None = field(default=None, metadata={"ge": 1})
    """The layer to show. Default: the last."""
    head: int | None = field(default=None, metadata={"ge": 1})
    """The head to show. Default: the mean of all."""
    hide: list[str] = field(default_factory=list, metadata={"default": None})
    """Hide this source word, given as text or as its number, and show what changes. May be
    repeated."""
    head_off: list[str] = field(default_factory=list, metadata={"default": None})
    """Switch off a head, such as cross.2.1, encoder.1.* or decoder.*.3, and show what changes. May
    be repeated."""
    prefix: str = ""
    """Force the translation to begin with this text, and show what changes."""
    importance: bool = False
    """Also show the loss when each head is switched off."""
    gold: Path | None = None
    """A file of human-made links for this pair, in Pharaoh format: 0-0 1-2 2?1. The alignment error
    rate is then printed."""
    gold_base: int | None = field(default=None, metadata={"ge": 0, "le": 1})
    """The number that --gold gives to the first word: 0 (the default) or 1."""
    pieces: bool = False
    """Show subword pieces instead of words."""
