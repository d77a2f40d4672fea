"""A sane size and schedule for a corpus, when a user gives nothing but two files.

``TABLE`` is the whole wisdom: the number of pairs chooses a row. Minutes become a number of
updates once, by a short measurement on this machine, and that number is written into the recipe;
from then on the run is as reproducible as any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.data.corpora import CorpusSettings, read_pairs
from dragoman.data.plan import PlanSettings
from dragoman.errors import DataError, RecipeError
from dragoman.forms.languages import CODES
from dragoman.models.settings import (
    DecoderSettings,
    EncoderSettings,
    ModelSettings,
    TransformerSettings,
)
from dragoman.plural import plural
from dragoman.recipe import LanguageSettings, Recipe
from dragoman.runs.prepare import Say
from dragoman.sizing.families import DEFAULT, shape_of, training_of
from dragoman.sizing.size import Size, data_of, like, row_of
from dragoman.task import TASKS, ModelPart, Task
from dragoman.training.minutes import SHARE, VALIDATIONS, updates_in
from dragoman.training.schedule import make_schedule

if TYPE_CHECKING:
    from dragoman.training.throughput import Throughput


TABLE = (
    Size(5_000, 2_000, 128, 4, 2, 0.3, 2_048, 400, 3e-3, 100),
    Size(100_000, 8_000, 256, 8, 3, 0.3, 4_096, 1_000, 2e-3, 40),
    Size(1_000_000, 16_000, 256, 8, 4, 0.2, 8_192, 2_000, 1.5e-3, 15),
    Size(10_000_000, 32_000, 512, 8, 6, 0.1, 16_384, 4_000, 7e-4, 6),
    Size(float("inf"), 37_000, 512, 8, 6, 0.1, 25_000, 4_000, 7e-4, 3),
)
"""Chosen by experience with corpora of these sizes; docs/recipes.md shows it for users."""

FINE_TUNING = 10
"""By which fine-tuning divides the learning rate and the epochs."""

_LITTLE, _EPOCHS = 2_000, 12
"""Little text is learned sooner: after so many epochs, but not before so many tokens for each unit
of width."""
_BYTES_A_TOKEN = 3.3
"""Of UTF-8, in a vocabulary of some thousand tokens: about as many in any script."""
_LOOKED_AT = 100_000


_STACKS = (EncoderSettings, DecoderSettings)
_OF_A_STACK = (
    "model_dim", "ffn_dim", "attention", "activation_dropout", "norm", "residual", "positions"
)  # fmt: skip
"""What a Transformer's encoder or decoder has in common with one by itself, as settings."""


def row_for(pairs: int) -> Size:
    """The row of ``TABLE`` for so many pairs: what suits them if time does not matter."""
    return row_of(TABLE, pairs)


def recipe_for(
    train: Sequence[CorpusSettings],
    dev: CorpusSettings | None,
    test: CorpusSettings | None,
    languages: tuple[str, str],
    base: str | None = None,
    size_for: Callable[[int, float], Size] | None = None,
    family: str = DEFAULT,
) -> tuple[Recipe, int]:
    """A recipe for these files, by their number of pairs (``TABLE``) or by the recipe ``base``, and
    how many pairs there are. It is named by its languages, or by the first file where they are not
    known. ``size_for``: a size for so many pairs, whose targets have so many tokens about.
    ``family``: of the model (``families.py``).

    Of ``base`` everything is taken but its text (train, dev, test and what is held out of them),
    and its languages where ``languages`` do not say them.
    Errors: ``DataError`` for files that cannot be used.
    """
    pairs, sources, length = _look(train)
    model = None if base is None else Recipe.load(base)
    if model is not None:
        languages = _known(languages, model.languages)
    name = "-".join(languages)
    if "und" in languages:
        name = Path(train[0].source).name.split(".")[0]
    source, target = languages
    about = {
        "name": name,
        "languages": {"source": source, "target": target},
        "data": data_of(train, sources, dev, test),
    }
    if model is not None:
        return like(model, about), pairs
    size = row_for(pairs) if size_for is None else size_for(pairs, length)
    values = {
        **about,
        "text": {"vocabulary": size.vocabulary, "character_coverage": 0.9999},
        "model": shape_of(family, TASKS["translation"])(size),
        "plan": size.plan,
        "training": {**training_of(family, size, "inverse_square_root"), "average_last": 5},
    }
    return Recipe.parse(values), pairs


def with_updates(
    recipe: Recipe, updates: int, *, validations: int = VALIDATIONS, minutes: float = 0.0
) -> Recipe:
    """The recipe for ``updates`` updates: its warm-up, validations and snapshots fit in.

    ``minutes``: the time that they were counted for, if it was given.
    """
    training = recipe.training
    updates = max(1, updates)
    often = -(-updates // VALIDATIONS)
    every = 0
    if training.validate_every:
        every = -(-updates // validations)
    snapshots = training.snapshot_every
    if snapshots:  # as many for each validation as before, so that an average spans as much
        before = training.validate_every * VALIDATIONS or training.updates
        snapshots = max(1, round(updates * snapshots / before))
    elif training.average_last and every > often:  # fewer validations, but as many snapshots
        snapshots = often
    schedule = training.schedule.model_copy(
        update={"warmup": min(training.schedule.warmup, max(1, updates // 4))}
    )
    planned = {
        "updates": updates,
        "minutes": minutes,
        "first_plan": None,
        "validate_every": every,
        "snapshot_every": snapshots,
        "schedule": schedule,
    }
    return recipe.model_copy(update={"training": training.model_copy(update=planned)})


def for_fine_tuning(recipe: Recipe, learned: Recipe, *, own_context: bool = False) -> Recipe:
    """The recipe for going on from the weights of a run with the recipe ``learned``.

    What the weights were made for is taken over: model, text, Moses tokens, the context, unless it
    is this recipe's ``own_context``, and the languages where this recipe names none.
    """
    named = recipe.languages
    source, target = _known((named.source, named.target), learned.languages)
    languages = LanguageSettings(source=source, target=target)
    return recipe.model_copy(
        update={
            "model": learned.model,
            "text": learned.text,
            "trees": learned.trees,
            "plan": recipe.plan if own_context else with_context(recipe, learned.plan.context),
            "languages": languages,
            "data": recipe.data.model_copy(update={"moses": learned.data.moses}),
        }
    )


def for_part(recipe: Recipe, learned: Recipe, take: ModelPart) -> Recipe:
    """The recipe for beginning with a part of a run with the recipe ``learned``: for a task whose
    model is one stack, that is the part's, and so is its text. How much is read at once
    (``plan.context``) stays as it is: that run may have learned from short windows. A translation
    stays as it is (``around_part``).

    Errors: ``RecipeError`` where that run has no such part.
    """
    task, model = TASKS[recipe.task], learned.model
    if task.reads and task.writes:
        return recipe
    if model.reads and model.writes:
        if take == "decoder" or not isinstance(model, TransformerSettings):
            raise RecipeError(
                f"--init-part {take}: of a model of kind {model.kind} a {task.name} cannot take "
                "that; it takes the encoder of a transformer, or a model that is one stack"
            )
        model = encoder_of(model)
    elif take != part_of(model):
        raise RecipeError(
            f"--init-part {take}: {learned.name} has a model of kind {model.kind}, whose only part "
            f"is its {part_of(model)}"
        )
    languages = recipe.languages
    if languages.source == "und":
        reads = "source" in TASKS[learned.task].sides
        known = learned.languages.source if reads else learned.languages.target
        languages = languages.model_copy(update={"source": known})
    return recipe.model_copy(
        update={
            "languages": languages,
            "model": model,
            "text": learned.text,
            "data": recipe.data.model_copy(update={"moses": learned.data.moses}),
        }
    )


def around_part(recipe: Recipe, learned: Recipe, take: ModelPart, say: Say) -> Recipe:
    """The recipe of a translation, chosen by a table, made to fit a part of a run with the recipe
    ``learned``: its widths and layers are the part's, and each side has a vocabulary of its own, as
    the part brings its own. The two stay one where that run translates between the same languages
    with one. ``say`` is told so."""
    model, part = recipe.model, learned.model
    if isinstance(model, TransformerSettings) and isinstance(part, (TransformerSettings, *_STACKS)):
        layers = part.layers if isinstance(part, _STACKS) else getattr(part, f"{take}_layers")
        own = {name: getattr(part, name) for name in _OF_A_STACK} | {f"{take}_layers": layers}
        recipe = recipe.model_copy(update={"model": model.model_copy(update=own)})
    if shares_with(recipe, learned):
        return recipe
    say(
        f"the {take} brings a vocabulary of its own, so source and target get one each "
        "(text.shared = false, model.tie = target)"
    )
    return recipe.model_copy(
        update={
            "text": recipe.text.model_copy(update={"shared": False}),
            "model": recipe.model.model_copy(update={"tie": "target"}),
        }
    )


def check_apart(recipe: Recipe, learned: Recipe, take: ModelPart, run: Path) -> None:
    """Whether the vocabulary that a part of ``run`` brings along is for one side alone.

    Errors: ``RecipeError`` where the recipe has one vocabulary for both, and that run had none.
    """
    if (
        recipe.text.shared
        and len(TASKS[recipe.task].texts) > 1
        and not shares_with(recipe, learned)
    ):
        raise RecipeError(
            f"--init-part {take}: the {take} of {run} brings a vocabulary of its own, and recipe "
            f"{recipe.name} has one for both sides: --set text.shared=false --set model.tie=target"
        )


def shares_with(recipe: Recipe, learned: Recipe) -> bool:
    """Whether one vocabulary of a run with the recipe ``learned`` is for both languages of
    ``recipe``."""
    if len(TASKS[learned.task].texts) < 2 or not learned.text.shared:
        return False
    here, there = recipe.languages, learned.languages
    languages = {here.source, here.target}
    return "und" not in languages and languages == {there.source, there.target}


def serve_context(recipe: Recipe, learned: Recipe, run: Path, own: bool, say: Say) -> Recipe:
    """The recipe for a part of ``run``, taken by ``for_part``, that has positions for all that is
    read at once, and ``say`` is told where the part has not read so much before.

    ``own``: whether a person has said how much that is. Errors: ``RecipeError`` where the part
    has no positions for what they said.
    """
    context, longest = recipe.plan.context, recipe.model.longest
    if longest is not None and context > longest:
        if own:
            raise RecipeError(
                f"plan.context is {context:,}, but the weights from {run} have positions for "
                f"{longest:,} tokens: set plan.context={longest} or less"
            )
        say(
            f"{longest:,} tokens are read at once: the weights from {run} have no positions "
            "for more"
        )
        return recipe.model_copy(update={"plan": with_context(recipe, longest)})
    if len(TASKS[learned.task].texts) == 1 and learned.plan.context < context:
        say(
            f"{context:,} tokens are read at once (plan.context); the weights from {run} were "
            f"trained on windows of {learned.plan.context:,}. You need not do anything: training "
            "goes on with the longer ones. To keep to the shorter ones: "
            f"--set plan.context={learned.plan.context}"
        )
    return recipe


def with_context(recipe: Recipe, context: int) -> PlanSettings:
    """The section ``plan``, with so many tokens read at once."""
    return recipe.plan.model_copy(update={"context": context})


def part_to_take(task: str, learned: Recipe) -> ModelPart | None:
    """The part of a run with the recipe ``learned`` that a new run of ``task`` begins with, where
    nobody names one. A run that labels texts begins with the encoder (or decoder) of a run of
    another task; any other run begins with the whole (None)."""
    if task == learned.task or task not in TASKS or TASKS[task].target != "label":
        return None
    return part_of(learned.model)


def part_of(model: ModelSettings) -> ModelPart:
    """The part of a model that another one begins with, unless one is named."""
    return "encoder" if model.reads else "decoder"


def encoder_of(model: TransformerSettings) -> EncoderSettings:
    """Settings of an encoder by itself, with the sizes and choices of a Transformer's encoder."""
    kept = model.model_dump(include={*_OF_A_STACK, "dropout", "attend_unknown"})
    return EncoderSettings.model_validate({**kept, "layers": model.encoder_layers})


def gently(recipe: Recipe, learned: Recipe) -> Recipe:
    """The recipe with a schedule for fine-tuning: its peak is a tenth of the highest learning rate
    of the run."""
    training = learned.training
    rate = make_schedule(
        training.schedule, model_dim=learned.model.model_dim, updates=training.updates
    )
    peak = rate(max(1, training.schedule.warmup)) / FINE_TUNING
    return recipe.change(
        ["training.schedule.kind=inverse_square_root", f"training.schedule.peak={peak:.3g}"]
    )


def for_minutes(
    recipe: Recipe, minutes: float, measured: Throughput, validation: float
) -> tuple[Recipe, float]:
    """The recipe for so many minutes, and the seconds of one of its validations.

    ``validation``: the seconds of one as the recipe is. Where the last two validations alone would
    take more than their share of the time, fewer sentences are translated in each.
    """
    seconds = 60 * minutes
    if 2 * validation > SHARE * seconds:
        evaluation = recipe.evaluation
        part = max(SHARE * seconds / (2 * validation), 20 / max(1, evaluation.dev_sentences))
        if part < 1:
            validation *= part
            sentences = round(part * evaluation.dev_sentences)
            evaluation = evaluation.model_copy(update={"dev_sentences": sentences})
            recipe = recipe.model_copy(update={"evaluation": evaluation})
    if not recipe.training.validate_every:
        validation = 0.0
    updates, validations = updates_in(seconds, measured.seconds_per_update, validation)
    if recipe.training.average_last:  # whose weights are validated too
        validations = max(1, validations - 1)
    planned = with_updates(recipe, updates, validations=validations, minutes=minutes)
    return planned, validation


def in_words(recipe: Recipe, measured: Throughput, per_epoch: int) -> str:
    """What a run will cost, said before it starts."""
    updates = recipe.training.updates
    # A run that was given a time takes it; of any other, validations take about a tenth.
    minutes = recipe.training.minutes or updates * measured.seconds_per_update / 0.9 / 60
    counted = TASKS[recipe.task].counted
    return (
        f"{plural(updates, 'update')}, {updates / max(1, per_epoch):.1f} epochs: about "
        f"{_duration(minutes)} at {measured.tokens_per_second:,.0f} {counted}/s; "
        f"memory about {measured.peak_bytes / 2**30:.1f} GiB"
    )


def too_short(recipe: Recipe, measured: Throughput, per_epoch: int, length: float) -> str | None:
    """A warning where a run has too little time to learn anything. ``length``: of a target, in
    tokens."""
    tokens_per_update = measured.tokens_per_second * measured.seconds_per_update
    needed = least_tokens(
        TASKS[recipe.task], recipe.model.model_dim, length, per_epoch * tokens_per_update
    )
    wanted = math.ceil(needed / tokens_per_update)
    updates = recipe.training.updates
    if updates >= wanted:
        return None
    minutes = recipe.training.minutes * wanted / updates
    verb, counted = TASKS[recipe.task].verbs[0][0], TASKS[recipe.task].counted
    return (
        f"warning: {_duration(recipe.training.minutes)} are too short to learn to {verb}. This "
        f"machine shows the model {updates * tokens_per_update:,.0f} {counted} in them, "
        f"{updates / max(1, per_epoch):.1f} epochs; such a model begins to {verb} after about "
        f"{wanted * tokens_per_update:,.0f}: --minutes {math.ceil(minutes)}, and more "
        "to learn it well"
    )


def least_tokens(task: Task, model_dim: int, length: float = 0.0, epoch: float = math.inf) -> float:
    """About how much of what is counted a model must see before it does anything of its task: more,
    the wider it is and the longer targets are, less of a text that it sees many times
    (docs/experiments.md, "Minutes that do not teach").

    ``length``: tokens of a target; ``epoch``: of all targets of the text.
    """
    a, b = task.begins
    much = model_dim * max(a, b * length)
    return min(much, max(_LITTLE * model_dim, _EPOCHS * epoch))


def _duration(minutes: float) -> str:
    if minutes < 2:
        return plural(max(1, round(60 * minutes)), "second")
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"


def languages_of(paths: Sequence[str]) -> tuple[str, str]:
    """Guess languages from names: my.en and my.de.gz are "en" and "de"; "und" if unsure."""
    codes = []
    for path in paths:
        suffix = Path(path.removesuffix(".gz")).suffix.removeprefix(".").lower()
        codes.append(suffix if suffix in CODES else "und")
    return (codes[0], codes[1]) if len(codes) == 2 else ("und", "und")


def _known(languages: tuple[str, str], otherwise: LanguageSettings) -> tuple[str, str]:
    """The languages that are said; of each that is not, the one of ``otherwise``."""
    source, target = languages
    return (
        otherwise.source if source == "und" else source,
        otherwise.target if target == "und" else target,
    )


def _look(corpora: Sequence[CorpusSettings]) -> tuple[int, int, float]:
    """Pairs, different sources, and about how many tokens a target has. Behind the first pairs
    every source counts as different."""
    total = sources = looked_at = written = 0
    for corpus in corpora:
        pairs = read_pairs(corpus)
        different: set[int] = set()
        for pair in islice(pairs, _LOOKED_AT):
            total += 1
            different.add(hash(pair.source or pair.target))
            looked_at += 1
            written += len(pair.target.encode("utf-8", "surrogateescape"))
        more = sum(1 for _ in pairs)
        total += more
        sources += len(different) + more
    if not total:
        raise DataError("the corpora hold no pair")
    return total, sources, written / looked_at / _BYTES_A_TOKEN
