"""Trains a translator on pairs and on monolingual text, in steps of which each can be resumed.

RUN/steps/plan.json       the steps: models, the text that each translates, minutes or epochs
RUN/steps/final.toml      the recipe of the last model without synthetic pairs
RUN/steps/1-backward      the first model, a run like any other; its recipe is 1-backward.toml
RUN/steps/1-backward.tsv  its translations of the monolingual text, before the text itself;
                          1-backward.tsv.part until it is complete
RUN/steps/1-backward.json  how many lines it has translated, in which time
RUN                       the last model, which learns from the pairs and the last translations
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from dragoman.base.errors import DataError, RunError
from dragoman.base.task import Side
from dragoman.base.wording import plural
from dragoman.data.cleaning import Cleaner
from dragoman.data.files.corpora import corpus_fingerprint, read_pairs
from dragoman.data.split import hash_of
from dragoman.runs.corpora import plain_pairs
from dragoman.runs.files import Count, read_stored
from dragoman.runs.lock import lock_folder
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import MonolingualText
from dragoman.runs.run import STEPS, refuse_occupied
from dragoman.sizing.minutes import duration
from dragoman.sizing.monolingual import (
    exchange_sides,
    for_each_pair,
    look_at_text,
    monolingual_corpus,
    with_synthetic_pairs,
)
from dragoman.sizing.options import TrainOptions
from dragoman.studies.records import Stored, minutes_of
from dragoman.studies.steps import FINAL, MONOLINGUAL, Translated, save_plan, write_pairs
from dragoman.tasks import catalogue
from dragoman.tasks.from_files import Chosen, recipe_of
from dragoman.tasks.verdict import verdict
from dragoman.training.minutes import SHARE

if TYPE_CHECKING:
    from dragoman.training.trainer import Outcome

OF_LAST, OF_MODELS, OF_TEXT = 1 / 2, 1 / 3, 1 / 6
"""The shares of ``--minutes`` for the last model, for all models before it, and for translating.
What the earlier steps do not use is the last model's."""

_Number = Annotated[float, Field(gt=0, le=1e15)]


class Step(Stored):
    """A model, and the monolingual text that it translates."""

    name: str = Field(pattern=r"^\d-(backward|forward)$")
    minutes: _Number | None = None
    """The time for training, if a time was given."""
    epochs: _Number | None = None
    text_minutes: _Number | None = None
    """The time for translating, if a time was given."""
    text_hash: str
    """The fingerprint of the text, by which a change is noticed."""
    lines: Count
    """The number of lines that the text has."""
    most: Count
    """The most lines to translate: more would never be learned."""

    @property
    def reads(self) -> Side:
        """The side of the last model's pairs that has the language of the text."""
        return "target" if self.name.endswith("backward") else "source"


class StepsPlan(Stored):
    """The plan of all steps (``steps/plan.json``)."""

    format: Literal[1] = 1
    steps: list[Step] = Field(min_length=1, max_length=9)
    pairs: Count
    """The number of pairs in the training files."""
    ratio: _Number
    """The number of synthetic pairs in an epoch for each of these pairs."""
    minutes: _Number | None = None
    """The time of all steps, if a time was given."""
    epochs: _Number | None = None
    """The epochs of the last model, if no time was given."""


def last_chosen(options: TrainOptions, say: Say) -> Chosen:
    """Make the recipe of the last model, whose time is a share of ``--minutes``. Errors: those of
    ``recipe_of``."""
    return recipe_of(_in_share(options, OF_LAST), say)


def _in_share(options: TrainOptions, share: float) -> TrainOptions:
    minutes = None if options.minutes is None else max(0.05, share * options.minutes)
    return replace(options, minutes=minutes)


def begin_steps(
    options: TrainOptions, chosen: Chosen, folder: Path, epochs: float | None, say: Say
) -> None:
    """Plan the steps, say what they are, and write them into ``folder``. ``chosen``: the recipe of
    the last model. Errors: ``RunError`` for a folder that is not empty, ``DataError`` for text that
    cannot be used."""
    refuse_occupied(folder)
    recipe, rounds = chosen.recipe, options.rounds or (2 if options.mono_source else 1)
    sides = {text.side: text for text in recipe.data.monolingual}
    summaries = {
        side: look_at_text(text, getattr(recipe.languages, side), say)
        for side, text in sides.items()
    }
    for text in sides.values():  # before hours of training
        if next(_Texts(recipe, text, 1).after(0), None) is None:
            raise DataError(f"every line of {text.source} is in the dev or test set too")
    hashes = {side: corpus_fingerprint(monolingual_corpus(text)) for side, text in sides.items()}
    pairs = sum(1 for corpus in recipe.data.train for _ in read_pairs(corpus))
    ratio = for_each_pair(options, summaries["target"].lines, pairs)
    passes = epochs
    if epochs is None and options.minutes is None:
        tokens = recipe.training.updates * recipe.plan.tokens_per_update
        passes = tokens / ((1 + ratio) * pairs * summaries["target"].tokens)
    silent = _in_share(replace(options, mono_ratio=0.0), OF_MODELS / rounds)
    alone = recipe_of(silent, lambda _: None)
    steps, recipes = [], {}
    for number in range(1, rounds + 1):
        is_backward = (rounds - number) % 2 == 0
        side: Side = "target" if is_backward else "source"
        name = f"{number}-{'backward' if is_backward else 'forward'}"
        first = number == 1
        of_model = (alone if first else chosen).recipe
        recipes[name] = exchange_sides(of_model) if is_backward else of_model
        own = epochs if options.epochs or not first else alone.epochs
        lines = summaries[side].lines  # more than ``most`` of them would never be learned
        most = lines if passes is None else min(lines, math.ceil(ratio * pairs * passes))
        steps.append(
            Step(
                name=name,
                minutes=options.minutes and OF_MODELS / rounds * options.minutes,
                epochs=own if epochs is not None else None,
                text_minutes=options.minutes and OF_TEXT / rounds * options.minutes,
                text_hash=hashes[side],
                lines=lines,
                most=most,
            )
        )
    plan = StepsPlan(steps=steps, pairs=pairs, ratio=ratio, minutes=options.minutes, epochs=epochs)
    for line in _describe(plan, [*recipes.values(), recipe], summaries["target"].tokens):
        say(line)
    save_plan(folder, MONOLINGUAL, plan, {**recipes, FINAL: recipe})


def _describe(plan: StepsPlan, recipes: Sequence[Recipe], length: float) -> Iterator[str]:
    """Yield the steps in words, with their times. ``recipes``: those of all models, in order;
    ``length``: the tokens of a line."""
    from dragoman.sizing.budget import speed_of  # imports torch

    yield f"{2 * len(plan.steps) + 1} steps:"
    speeds: dict[str, float] = {}
    total, number, synthetic = 0.0, 0, 0.0
    for recipe, step in zip_longest(recipes, plan.steps):
        of = recipe.languages
        model = recipe.model.model_dump_json()
        speed = speeds.get(model) or speeds.setdefault(model, speed_of(recipe))
        minutes, epochs = (step.minutes, step.epochs) if step else (None, plan.epochs)
        if step is None and plan.minutes is not None:
            minutes = OF_LAST * plan.minutes
        if minutes is None:
            tokens = recipe.training.updates * recipe.plan.tokens_per_update
            if epochs is not None:
                tokens = round(epochs * (plan.pairs + synthetic) * length)
            minutes = tokens / speed / 60 / (1 - SHARE)
        also = f" and {synthetic:,.0f} synthetic pairs an epoch" if synthetic else ""
        line = f"train {of.source} to {of.target} on {plural(plan.pairs, 'pair')}{also}"
        yield f"  {(number := number + 1)}. {line}: about {duration(minutes)}"
        total += minutes
        if step is not None:
            # Translating a text takes about as long as learning from it once.
            minutes = step.text_minutes or step.most * length / speed / 60
            line = f"translate {step.most:,} lines of {of.source} with that model"
            limit = "at most" if step.text_minutes else "about"
            yield f"  {(number := number + 1)}. {line}: {limit} {duration(minutes)}"
            total, synthetic = total + minutes, min(plan.ratio * plan.pairs, step.most)
    yield f"together about {duration(total)}"


def go_on_steps(folder: Path, say: Say, again: str) -> Outcome | None:
    """Do the missing steps, the last of which trains the run in ``folder``. Return its outcome;
    None if the user stopped before it. ``again``: the command that continues.

    Errors: those of ``train``, and ``RunError`` if the monolingual text has changed.
    """
    steps = folder / STEPS
    plan = read_stored(steps / MONOLINGUAL, StepsPlan)
    recipe = catalogue.Recipe.load(steps / f"{FINAL}.toml")
    with lock_folder(steps):
        before: tuple[Path, int] | None = None
        for number, step in enumerate(plan.steps):
            path = steps / f"{step.name}.tsv"
            if not path.is_file():
                of_step = catalogue.Recipe.load(steps / f"{step.name}.toml")
                say(f"\nstep {2 * number + 1}: {steps / step.name}")
                if not _train_step(steps, step, _with_synthetic(of_step, before, plan), say, again):
                    return None
                say(f"\nstep {2 * number + 2}: {path}")
                text = next(t for t in recipe.data.monolingual if t.side == step.reads)
                if not _translate_step(steps, step, recipe, text, say):
                    say(f"stopped. To continue: {again}")
                    return None
            _refuse_nothing(path, steps / step.name)
            before = path, read_stored(steps / f"{step.name}.json", Translated).lines
        minutes = plan.minutes and _minutes_left(steps, plan)
    from dragoman.tasks.training import train  # imports torch

    say(f"\nstep {2 * len(plan.steps) + 1}: {folder}")
    return train(
        _with_synthetic(recipe, before, plan), folder, minutes=minutes, epochs=plan.epochs, say=say,
        resume_command=again,
    )  # fmt: skip


def _refuse_nothing(path: Path, model: Path) -> None:
    """Errors: ``DataError`` if every synthetic source in ``path`` is empty."""
    with path.open(encoding="utf-8") as lines:
        if not any(line.partition("\t")[0] for line in lines):
            raise DataError(
                f"{model} translates every line into nothing or without end, so there is nothing "
                "to learn from: it has not learned enough. Begin again in another folder, with "
                "more --minutes, --epochs or pairs"
            )


def _with_synthetic(recipe: Recipe, synthetic: tuple[Path, int] | None, plan: StepsPlan) -> Recipe:
    """The recipe with the file of synthetic pairs, if there is one."""
    if synthetic is None:
        return recipe
    path, lines = synthetic
    weight = float(f"{plan.ratio * plan.pairs / max(1, lines):.6g}")
    return with_synthetic_pairs(recipe, path.absolute(), lines, weight)


def _minutes_left(steps: Path, plan: StepsPlan) -> float:
    """The minutes that are left for the last model."""
    assert plan.minutes is not None
    used = 0.0
    for step in plan.steps:
        used += minutes_of(catalogue.Run.open(steps / step.name))
        used += read_stored(steps / f"{step.name}.json", Translated).seconds / 60
    return max(OF_LAST * plan.minutes, plan.minutes - used)


def _train_step(steps: Path, step: Step, recipe: Recipe, say: Say, again: str) -> bool:
    """Train the model of a step, unless it has begun to translate. Return False if the user stopped
    it."""
    from dragoman.tasks.training import begin_or_resume

    folder = steps / step.name
    if (steps / f"{step.name}.json").is_file():
        return True
    outcome = begin_or_resume(
        recipe, folder, say=say, resume_command=again, minutes=step.minutes, epochs=step.epochs
    )
    if outcome.reason == "interrupted":
        return False
    for sentence in verdict(catalogue.Run.open(folder)):
        say(f"warning: {folder}: {sentence}")
    return True


def _translate_step(
    steps: Path, step: Step, recipe: Recipe, text: MonolingualText, say: Say
) -> bool:
    """Translate a monolingual text, after the lines that are translated already. Return False if
    the user stopped it.

    Sources are searched for. Those that are sampled from the model teach less where it was trained
    on few pairs (docs/experiments/text-without-translations.md).
    """
    corpus = monolingual_corpus(text)
    if corpus_fingerprint(corpus) != step.text_hash:
        raise RunError(
            f"{text.source} has changed since {steps.parent} was begun. Restore the old file, or "
            "begin again in another folder"
        )
    run = catalogue.Run.open(steps / step.name)
    texts = _Texts(recipe, text, step.most)

    def pairs_after(done: int) -> Iterator[tuple[str, str]]:
        for result in run.open_predictor().each(texts.after(done)):
            # Cleaning drops an empty source.
            source = " ".join(result.text.split()) if result.finished else ""
            yield source, result.source.replace("\t", " ")

    return write_pairs(
        steps / f"{step.name}.tsv", pairs_after, step.most, say,
        minutes=step.text_minutes, held=lambda: texts.held,
    )  # fmt: skip


class _Texts:
    """The lines of a monolingual text that are worth translating: cleaned, and not in dev or
    test."""

    def __init__(self, recipe: Recipe, text: MonolingualText, most: int) -> None:
        self.held = 0
        """The number of lines that are in dev or test, among those read so far."""
        self._corpus, self._most = monolingual_corpus(text), most
        self._cleaner = Cleaner(recipe.data.cleaning, ("target",))
        self._held = {
            hash_of(getattr(pair, text.side))
            for side in ("dev", "test")
            for pair in plain_pairs(recipe, side)
        }

    def after(self, done: int) -> Iterator[str]:
        """Yield the lines after the first ``done``."""
        number = 0
        for pair in self._cleaner.pairs(read_pairs(self._corpus), self._corpus.name):
            if hash_of(pair.target) in self._held:
                self.held += 1
                continue
            number += 1
            if number > self._most:
                return
            if number > done:
                yield pair.target
