"""Recipes of recordings and their texts: a run that transcribes is of the task translation."""

from __future__ import annotations

from dragoman.tasks.shared.runtime import Builders


def builders() -> Builders:
    """What makes recipes of recordings."""
    from dragoman.tasks.transcription.sizes import SpokenBuilder

    return (SpokenBuilder(),)
