"""The forms of both sides of a model: its input, and its output or its labels."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.base.errors import RunError
from dragoman.forms.boxes import BoxForm
from dragoman.forms.form import Form
from dragoman.forms.labels import Labels
from dragoman.forms.languages import same_language, shortest_code
from dragoman.forms.text_form import TextForm, as_text
from dragoman.forms.tree_form import TreeForm

_SHOWN = 12
"""The most tags in a message: a model may have more than a hundred."""


class Forms(NamedTuple):
    """The forms of both sides of a model."""

    source: Form
    target: Form

    @property
    def tags(self) -> list[str]:
        """The tags of the target languages of a model that was imported; empty for others."""
        text = self.source.vocabulary
        return [] if text is None else sorted(text.tags)

    def tag_meant(self, given: str) -> str:
        """Return a tag that is given as it is, or by the code of its language. Errors: ``RunError``
        if there is none."""
        tags = same_language(given, self.tags)
        if not tags:
            raise RunError(f"{given} is not a tag of this run. Its tags: {self.tags_shown}")
        return tags[0]

    @property
    def tags_shown(self) -> str:
        """The tags for messages; of many, the first."""
        more = len(self.tags) - _SHOWN
        others = f" and {more:,} more" if more > 0 else ""
        return f"{', '.join(self.tags[:_SHOWN]) or 'it has none'}{others}"

    def with_tag(self, tag: str) -> Forms:
        """Return the same forms for sources that begin with one of ``tags``."""
        source, target = as_text(self.source), self.written
        read = TextForm(source.vocabulary, source.language, source.moses)
        read.before = (source.vocabulary.tags[tag],)
        return Forms(read, TextForm(target.vocabulary, shortest_code(tag), target.moses))

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
