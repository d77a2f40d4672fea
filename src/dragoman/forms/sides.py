"""The forms of both sides of a model: its input, and its output or its labels."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.forms.box_form import BoxForm
from dragoman.forms.form import Form
from dragoman.forms.labels import Labels
from dragoman.forms.text_form import TextForm, as_text
from dragoman.forms.tree_form import TreeForm


class Forms(NamedTuple):
    """The forms of both sides of a model."""

    source: Form
    target: Form

    @property
    def written(self) -> TextForm:
        """The target of a task that writes text."""
        return as_text(self.target)

    @property
    def labels(self) -> Labels:
        """The target of a task that labels."""
        return Labels.of(self.target)

    @property
    def trees(self) -> TreeForm:
        """The target of a task that parses."""
        return TreeForm.of(self.target)

    @property
    def boxes(self) -> BoxForm:
        """The target of a task that detects."""
        return BoxForm.of(self.target)
