"""The recipe of a run that begins with another one, or with a part of it: what it takes over, and
how gently it then trains.
"""

from __future__ import annotations

from pathlib import Path

from dragoman.base.errors import RecipeError
from dragoman.base.task import ModelPart
from dragoman.data.plan import PlanSettings
from dragoman.models.settings import (
    DecoderSettings,
    EncoderSettings,
    ModelSettings,
    TransformerSettings,
)
from dragoman.recipe.recipe import Recipe
from dragoman.recipe.sections import LanguageSettings
from dragoman.runs.prepare import Say
from dragoman.sizing.languages import known_of
from dragoman.training.schedule import make_schedule

FINE_TUNING = 10
"""By which fine-tuning divides the learning rate and the epochs."""

_STACKS = (EncoderSettings, DecoderSettings)
_OF_A_STACK = (
    "model_dim", "ffn_dim", "attention", "activation_dropout", "norm", "residual", "positions"
)  # fmt: skip
"""What a Transformer's encoder or decoder has in common with one by itself, as settings."""


def for_fine_tuning(recipe: Recipe, learned: Recipe, *, own_context: bool = False) -> Recipe:
    """The recipe for going on from the weights of a run with the recipe ``learned``.

    What the weights were made for is taken over: model, text, Moses tokens, the context, unless it
    is this recipe's ``own_context``, and the languages where this recipe names none.
    """
    named = recipe.languages
    said = {"source": named.source, "target": named.target}
    languages = LanguageSettings.model_validate(known_of(said, learned.languages))
    return recipe.model_copy(
        update={
            "model": learned.model,
            "text": learned.text,
            "trees": learned.trees,
            "plan": recipe.plan if own_context else with_context(recipe, learned.plan.context),
            "languages": languages,
            "data": recipe.data.model_copy(update={"moses": learned.data.moses}),
            "training": recipe.training.model_copy(
                update={"ctc_weight": learned.training.ctc_weight}  # a part of the model goes by it
            ),
        }
    )


def for_part(recipe: Recipe, learned: Recipe, take: ModelPart) -> Recipe:
    """The recipe for beginning with a part of a run with the recipe ``learned``: for a task whose
    model is one stack, that is the part's, and so is its text. How much is read at once
    (``plan.context``) stays as it is: that run may have learned from short windows. A translation
    stays as it is (``around_part``).

    Errors: ``RecipeError`` where that run has no such part.
    """
    task, model = recipe.spec, learned.model
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
        reads = "source" in learned.spec.sides
        known = learned.languages.source if reads else learned.languages.target
        languages = languages.model_copy(update={"source": known})
    text = learned.text
    if recipe.spec.fixed_tokens:
        text = text.model_copy(update={"sampling": 0.0})
    return recipe.model_copy(
        update={
            "languages": languages,
            "model": model,
            "text": text,
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
    if recipe.text.shared and recipe.spec.translates and not shares_with(recipe, learned):
        raise RecipeError(
            f"--init-part {take}: the {take} of {run} brings a vocabulary of its own, and recipe "
            f"{recipe.name} has one for both sides: --set text.shared=false --set model.tie=target"
        )


def shares_with(recipe: Recipe, learned: Recipe) -> bool:
    """Whether one vocabulary of a run with the recipe ``learned`` is for both languages of
    ``recipe``."""
    if not learned.spec.translates or not learned.text.shared:
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
    if not learned.spec.translates and learned.plan.context < context:
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
    if task == learned.task or task not in learned.tasks or not learned.tasks[task].has_head:
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


def part_named(part: str | None, begins: bool) -> ModelPart | None:
    """``--init-part`` as it was given. ``begins``: whether there is a run to take it of.

    Errors: ``RecipeError``.
    """
    if part is None:
        return None
    if not begins:
        raise RecipeError(f"--init-part {part} goes with --from RUN")
    if part not in ("encoder", "decoder"):
        raise RecipeError(f"--init-part {part}: it is encoder or decoder")
    return "encoder" if part == "encoder" else "decoder"
