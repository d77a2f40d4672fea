"""The command line: verbs over run folders. One file per verb; heavy imports live inside them."""

from __future__ import annotations

from dragoman.cli.app import main

__all__ = ["main"]
