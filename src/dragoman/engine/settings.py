"""Settings of inference: how a model computes and searches, and how much of this machine it uses.
This module does not import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, ValidationError

from dragoman.base.errors import DragomanError, RecipeError
from dragoman.base.settings import Settings
from dragoman.nn.settings import InferencePrecision
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.recipe_text import explain, merge
from dragoman.search.settings import SearchSettings

_WHERE = "how to search"


class EngineSettings(Settings):
    """Settings of an engine, which translators and servers share."""

    precision: InferencePrecision = "auto"
    """Precision of the computation. auto: the fastest precision on this machine that keeps the
    quality. fp32 is the reference."""
    rows: int = Field(64, ge=1, le=65_536)
    """The number of hypotheses that each worker processes at once: sentences × beam. If it is not
    set, more are used for texts and files where that is faster (256 for LSTMs and convolutional
    models)."""
    longest: int = Field(250, ge=2, le=100_000)
    """The maximum number of source tokens in one input; longer sentences are split between
    words."""
    threads: int = Field(0, ge=0, le=1024)
    """The number of processor cores to use. 0: all that are available to the process."""


class TranslatorSettings(EngineSettings):
    """Settings of a translator: how it reads its input, and its use of the machine."""

    long_lines: Literal["split", "cut"] = "split"
    """What to do with lines that are too long: split them into sentences and pieces, or cut off the
    end."""
    whole: bool = False
    """Translate a line of several sentences in one piece, even if the run was trained on single
    sentences. Without this setting, such a run translates the sentences one by one: given several
    at once, it tends to stop after the first."""
    mbr: int = Field(0, ge=0, le=1024)
    """Minimum Bayes risk decoding: generate this many candidates (the best of a beam, or samples)
    and return the one that is on average most similar (by chrF) to all of them. 0: return the most
    probable one."""
    ctc_weight: float = Field(0.5, ge=0, le=1)
    """For runs that were trained with CTC: the weight of CTC when the hypotheses of a beam are
    ranked (λ). 0: the decoder alone."""
    shortlist: bool = False
    """Score only the target words that are likely for the source, as learned by the command
    ``dragoman shortlist``; with int8, this makes translation faster. Probabilities are then
    relative to these words."""

    @classmethod
    def of(cls, settings: EngineSettings | None) -> Self:
        """Return the settings of an engine, with a translator's defaults for everything that is not
        set."""
        given = settings or cls()
        return cls.model_validate(
            given.model_dump(include=set(cls.model_fields), exclude_unset=True)
        )

    @classmethod
    def check(cls, **values: object) -> Self:
        """Return the settings made of ``values``. Errors: ``DragomanError``, which says in one line
        what is allowed."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problem = error.errors()[0]
            name = "-".join(str(part) for part in problem["loc"]).replace("_", "-")
            given = problem["input"]
            raise DragomanError(f"--{name}: {problem['msg']} (given: {given!r})") from None


class _Section(Settings):
    """The section ``search`` of a recipe, so that errors are reported like those of recipes."""

    search: SearchSettings


def search_of(recipe: Recipe, changes: Sequence[str]) -> SearchSettings:
    """Merge ``key=value`` changes into the search settings of a run, and check the result for its
    task.

    Errors: ``RecipeError``.
    """
    settings = parse_search(recipe.search, changes)
    try:
        recipe.spec.check_search(settings)
    except ValueError as error:
        raise RecipeError(f"{_WHERE}: {error}") from None
    return settings


def for_test_set(recipe: Recipe, changes: Sequence[str] = ()) -> SearchSettings:
    """Return the search settings for a test set: only the best output, with ``key=value`` changes
    merged in.

    Errors: ``RecipeError``.
    """
    return search_of(recipe, [*changes, "n_best=1"])


def with_beams(settings: SearchSettings, beam: int | None, n_best: int | None) -> SearchSettings:
    """Return settings with another beam or n-best. If ``beam`` is None, it is widened to hold the n
    best.

    Errors: ``RecipeError`` if the two contradict each other.
    """
    changes = [] if beam is None else [f"beam={beam}"]
    if n_best is not None:
        changes.append(f"n_best={n_best}")
        if beam is None and settings.sampling is None and n_best > settings.beam:
            changes.append(f"beam={n_best}")
    return parse_search(settings, changes) if changes else settings


def parse_search(settings: SearchSettings, changes: Sequence[str]) -> SearchSettings:
    """Merge ``key=value`` changes into search settings. Errors: ``RecipeError``."""
    merged: dict[str, Any] = {"search": settings.model_dump(exclude_none=True)}
    for change in changes:
        if "=" not in change:
            raise RecipeError(f"--set {change!r} is not of the form key=value, such as beam=8")
        merged = merge(merged, f"search.{change}")
    try:
        return _Section.model_validate(merged).search
    except ValidationError as error:
        raise RecipeError(explain(error, _Section, _WHERE)) from None
