"""A sane size and schedule of a language model, when a user gives nothing but a text."""

from __future__ import annotations

from typing import ClassVar

from dragoman.recipe.spec import Spec
from dragoman.sizing.text_alone import TextsBuilder
from dragoman.tasks.language_model.spec import LANGUAGE_MODEL


class LanguageModelBuilder(TextsBuilder):
    """Texts that stand alone, in a file or a folder of files."""

    task: ClassVar[Spec] = LANGUAGE_MODEL
