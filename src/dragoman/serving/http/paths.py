"""Paths that say more than where something is."""

from __future__ import annotations

DOWNLOADS = "/download_file/"
"""What stands behind it is the key to somebody's document."""


def shown_path(path: str) -> str:
    """A path as the log has it."""
    return f"{DOWNLOADS}-" if path.startswith(DOWNLOADS) else path
