"""Distils one translator, or several that translate together, into a new one.

The student learns the teachers' translations of their training text (sequence-level distillation;
Kim and Rush, 2016), and their predictions of each token (``training/losses/objectives.py``).

RUN/steps/teachers.plan.json  how the text is translated, and how long the student trains
RUN/steps/final.toml          the recipe of the student without these translations
RUN/steps/teachers.tsv        the training sources and, of the n best translations of each, the one
                              that is most similar to the reference
RUN                           the student, a run like any other
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain, islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from dragoman.base.errors import RunError
from dragoman.base.wording import plural
from dragoman.data.correspondence import BlockSampler
from dragoman.data.files.corpora import corpus_fingerprint
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.engine.settings import with_beams
from dragoman.forms.form import Pair
from dragoman.metrics.chrf import pairwise_chrf
from dragoman.runs.corpora import plain_corpora
from dragoman.runs.files import Count, read_stored
from dragoman.runs.lock import lock_folder
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import Teacher
from dragoman.runs.run import STEPS, Run, refuse_occupied
from dragoman.search.settings import SearchSettings
from dragoman.sizing.minutes import duration
from dragoman.sizing.monolingual import BYTES_A_TOKEN
from dragoman.sizing.options import DistilOptions
from dragoman.studies.records import Stored
from dragoman.studies.steps import FINAL, TEACHERS, Translated, save_plan, write_pairs
from dragoman.tasks import catalogue
from dragoman.tasks.teachers import check_teachers, teacher_runs
from dragoman.training.minutes import SHARE

if TYPE_CHECKING:
    from dragoman.training.trainer import Outcome

PAIRS = "teachers.tsv"
OF_TEXT = 1 / 3
"""The share of ``--minutes`` that translating takes at most."""
_TIMED = 32
"""The number of sources that are translated to estimate the time for all."""


class DistillationPlan(Stored):
    """The plan of a distillation (``steps/teachers.plan.json``)."""

    format: Literal[1] = 1
    n_best: Annotated[int, Field(ge=1, le=4096)]
    weight: Annotated[float, Field(gt=0, le=10_000)]
    """The number of times that each translation is used per epoch."""
    pairs: Count
    """The number of pairs whose sources are translated."""
    hashes: list[str]
    """The fingerprints of the training text and of the teachers' weights, by which a change is
    noticed."""
    minutes: Annotated[float, Field(gt=0)] | None = None
    epochs: Annotated[float, Field(gt=0)] | None = None


def student_recipe(runs: Sequence[Run], options: DistilOptions) -> Recipe:
    """Make the recipe of a student: that of the first of its teachers, with the changes of the
    options.

    Errors: ``RunError`` for runs that cannot teach or are given twice, or a first one that has
    learned from other things than files; ``RecipeError``.
    """
    check_teachers(runs)
    if len({run.folder.resolve() for run in runs}) < len(runs):
        raise RunError("a teacher is given twice. Give each run once")
    first = runs[0]
    data = first.recipe.data
    if data.embedded is not None or data.prepared is not None:
        text = data.prepared or "text that dragoman generates"
        raise RunError(
            f"{first.folder} has learned from {text}, and a student needs files of parallel text. "
            "Give a teacher first that was trained on files"
        )
    first.require_text("train", "dev", "test")
    weighted = tuple(
        corpus.model_copy(update={"weight": options.real_weight * corpus.weight})
        for corpus in data.train
    )
    teachers = tuple(Teacher(run=str(run.folder.absolute())) for run in runs)
    # Settings that teachers exclude, and those of the first teacher's machine and time.
    reset = {"consistency": 0.0, "blend": False, "way": None, "first_plan": None, "minutes": 0.0}
    recipe = first.recipe.override(
        data={"train": weighted, "old": None, "teachers": teachers},
        training={**reset, "teaching": options.teaching},
    )
    recipe = recipe.model_copy(update={"name": f"{recipe.name}-distilled"})
    seed = [] if options.seed is None else [f"seed={options.seed}"]
    return recipe.change(["training.guided.weight=0", *options.set_, *seed])


def begin_distilling(recipe: Recipe, folder: Path, options: DistilOptions, say: Say) -> None:
    """Plan the steps of a student with ``recipe``, say what they are and how long they take, and
    write them into ``folder``.

    Errors: ``RunError`` for a folder that is not empty or a teacher without weights, ``DataError``
    for text that cannot be used.
    """
    refuse_occupied(folder)
    runs = teacher_runs(recipe)
    for run in runs:
        for sentence in run.verdict():
            say(f"warning: {run.folder}: {sentence}")
    sampler, pairs, size = BlockSampler(), 0, 0
    for pair in sampler.watch(_real_pairs(recipe)):
        pairs += 1
        size += len(pair.target.encode("utf-8", "surrogateescape"))
    plan = DistillationPlan(
        n_best=options.n_best,
        weight=options.weight,
        pairs=pairs,
        hashes=_hashes(recipe, runs),
        minutes=options.minutes,
        epochs=options.epochs,
    )
    sources = [pair.source for pair in chain.from_iterable(sampler.blocks)]
    for line in _describe(plan, recipe, runs, sources, size / BYTES_A_TOKEN):
        say(line)
    save_plan(folder, TEACHERS, plan, {FINAL: recipe})


def _describe(
    plan: DistillationPlan,
    recipe: Recipe,
    runs: Sequence[Run],
    sources: Sequence[str],
    tokens: float,
) -> Iterator[str]:
    """Yield the steps in words, with their times. ``runs``: the teachers; ``sources``: some of the
    text; ``tokens``: the target tokens of all of it."""
    from dragoman.sizing.budget import speed_of  # imports torch
    from dragoman.tasks.teachers import MOST_KEPT

    translator = runs[0].open_predictor(ensemble=runs[1:])
    some = sources[:: max(1, len(sources) // _TIMED)]
    search = _search(runs[0], plan)
    translator.batch(some[:1], settings=search)  # the first takes longer
    began = time.monotonic()
    translator.batch(some, settings=search)
    text = (time.monotonic() - began) / len(some) * plan.pairs / 60
    learned = recipe.training.updates * recipe.plan.tokens_per_update
    if plan.epochs is not None:
        learned = round(plan.epochs * tokens * (plan.weight + recipe.data.train[0].weight))
    predicted = min(learned, 2 * tokens) if 2 * tokens <= MOST_KEPT else learned
    # A pass without gradients takes about a third of an update.
    taught = len(runs) / 3 / speed_of(runs[0].recipe) if recipe.training.teaching else 0.0
    rest = (learned / speed_of(recipe) + predicted * taught) / 60 / (1 - SHARE)
    if plan.minutes is not None:
        text = min(text, OF_TEXT * plan.minutes)
        rest = plan.minutes - text
    lines, teachers = plural(plan.pairs, "line"), plural(len(runs), "teacher")
    yield f"step 1: translate {lines} with {teachers}: about {duration(text)}"
    both = f"{plan.pairs:,} pairs and their translations"
    yield f"step 2: train the student on {both}: about {duration(rest)}"
    yield f"together about {duration(text + rest)}"


def go_on_distilling(folder: Path, say: Say, again: str) -> Outcome | None:
    """Do the missing steps, the last of which trains the student in ``folder``. Return its outcome;
    None if the user stopped before it. ``again``: the command that continues.

    Errors: those of ``train``, and ``RunError`` if the text or a teacher has changed.
    """
    steps = folder / STEPS
    plan = read_stored(steps / TEACHERS, DistillationPlan)
    recipe: Recipe = catalogue.Recipe.load(steps / f"{FINAL}.toml")
    path = steps / PAIRS
    with lock_folder(steps):
        if not path.is_file():
            say(f"\nstep 1: {path}")
            if not _translate(path, plan, recipe, say):
                say(f"stopped. To continue: {again}")
                return None
        minutes = plan.minutes
        if minutes is not None:
            used = read_stored(path.with_suffix(".json"), Translated).seconds / 60
            minutes = max((1 - OF_TEXT) * minutes, minutes - used)
    written = CorpusSettings(
        source=str(path.absolute()), format="tsv", synthetic=True, weight=plan.weight
    )
    recipe = recipe.override(data={"train": (*recipe.data.train, written)})
    from dragoman.tasks.training import train  # imports torch

    say(f"\nstep 2: {folder}")
    return train(
        recipe, folder, minutes=minutes, epochs=plan.epochs, say=say, resume_command=again,
    )  # fmt: skip


def _translate(path: Path, plan: DistillationPlan, recipe: Recipe, say: Say) -> bool:
    """Translate the training text, after the lines that are translated already. Return False if the
    user stopped it."""
    runs = teacher_runs(recipe)
    runs[0].require_text("train", "dev", "test")
    if _hashes(recipe, runs) != plan.hashes:
        raise RunError(
            f"the training text or a teacher has changed since {path.parent.parent} was begun. "
            "Restore the old files, or begin again in another folder"
        )

    def pairs_after(done: int) -> Iterator[tuple[str, str]]:
        pairs, ahead = tee(islice(_real_pairs(recipe), done, None))
        translator = runs[0].open_predictor(ensemble=runs[1:])
        sources = (pair.source for pair in ahead)
        results = translator.each(sources, settings=_search(runs[0], plan))
        for pair, result in zip(pairs, results, strict=True):
            choices = (result, *result.alternatives)
            finished = [choice.text for choice in choices if choice.finished]
            # Cleaning drops an empty target.
            best = closest(finished or [""], pair.target)
            yield " ".join(pair.source.split()), " ".join(best.split())

    minutes = None if plan.minutes is None else OF_TEXT * plan.minutes
    return write_pairs(path, pairs_after, plan.pairs, say, minutes=minutes)


def closest(texts: Sequence[str], reference: str) -> str:
    """Return the first of the texts that have the highest chrF against the reference."""
    return texts[int(pairwise_chrf([*texts, reference])[:-1, -1].argmax())]


def _search(first: Run, plan: DistillationPlan) -> SearchSettings:
    searched = first.recipe.search.model_copy(update={"sampling": None})
    return with_beams(searched, None, plan.n_best)


def _real_pairs(recipe: Recipe) -> Iterator[Pair]:
    """Yield the training pairs as plain text, without synthetic ones."""
    real = tuple(corpus for corpus in recipe.data.train if not corpus.is_synthetic)
    corpora = plain_corpora(recipe.override(data={"train": real}), "train")
    return chain.from_iterable(corpus.pairs for corpus in corpora)


def _hashes(recipe: Recipe, runs: Sequence[Run]) -> list[str]:
    texts = (corpus_fingerprint(corpus) for corpus in recipe.data.train)
    return [*texts, *(run.weights_hash for run in runs)]
