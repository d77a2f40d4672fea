"""The command line: verbs over run folders, and the program of all verbs. A verb of one task
is ``tasks/NAME/verb.py``. Heavy imports live inside the verbs."""

from __future__ import annotations

from dragoman.cli.app import main

__all__ = ["main"]
