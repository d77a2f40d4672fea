"""The recipe of a run that starts from another one, or from a part of it: the settings that it
takes over, and its gentler training."""

from __future__ import annotations

from pathlib import Path

from dragoman.base.errors import RecipeError
from dragoman.base.task import ModelPart
from dragoman.models.settings import (
    DecoderSettings,
    EncoderSettings,
    ModelSettings,
    TransformerSettings,
)
from dragoman.runs.prepare import Say
from dragoman.runs.recipe.recipe import Recipe
from dragoman.runs.recipe.sections import LanguageSettings
from dragoman.sizing.options import fill_unknown
from dragoman.training.schedule import make_schedule

FINE_TUNING = 10
"""The divisor of learning rate and epochs in fine-tuning."""

_STACKS = (EncoderSettings, DecoderSettings)
_OF_A_STACK = (
    "model_dim", "ffn_dim", "attention", "activation", "activation_dropout", "norm",
    "norm_epsilon", "residual", "positions", "scale_embeddings",
)  # fmt: skip
"""The settings that the encoder or decoder of a Transformer shares with a model of one stack."""


def for_fine_tuning(recipe: Recipe, learned: Recipe, *, own_context: bool = False) -> Recipe:
    """The recipe for fine-tuning the weights of a run with the recipe ``learned``.

    It takes over the settings that the weights depend on: model, text, Moses tokens, the context
    (unless the recipe has its ``own_context``), and languages that the recipe does not name.
    """
    named = recipe.languages
    said = {"source": named.source, "target": named.target}
    languages = LanguageSettings.model_validate(fill_unknown(said, learned.languages))
    if named.tag or languages.target == learned.languages.target:
        tag = named.tag or learned.languages.tag
        languages = languages.model_copy(update={"tag": tag})
    taken = {"model": learned.model, "text": learned.text, "trees": learned.trees}
    return recipe.model_copy(update={**taken, "languages": languages}).override(
        plan={} if own_context else {"context": learned.plan.context},
        data={"moses": learned.data.moses},
        training={"ctc_weight": learned.training.ctc_weight},  # the CTC layer depends on it
    )


def for_part(recipe: Recipe, learned: Recipe, take: ModelPart) -> Recipe:
    """The recipe for starting from a part of a run with the recipe ``learned``. A task with one
    stack takes model and text from the part. The context (``plan.context``) does not change: that
    run may have learned from short windows. A translation does not change (``around_part``).

    Errors: ``RecipeError`` if that run has no such part.
    """
    task, model = recipe.spec, learned.model
    if task.reads and task.writes:
        return recipe
    if model.reads and model.writes:
        if take == "decoder" or not isinstance(model, TransformerSettings):
            raise RecipeError(
                f"--init-part {take}: a {task.name} cannot use that part of a model of kind "
                f"{model.kind}. Use the encoder of a transformer, or a model with only one stack"
            )
        model = encoder_of(model)
    elif take != part_of(model):
        raise RecipeError(
            f"--init-part {take}: {learned.name} has a model of kind {model.kind}, whose only part "
            f"is its {part_of(model)}"
        )
    known = recipe.languages.source
    if known == "und":
        reads = "source" in learned.spec.sides
        known = learned.languages.source if reads else learned.languages.target
    return recipe.model_copy(update={"model": model, "text": learned.text}).override(
        languages={"source": known},
        text={"sampling": 0.0} if recipe.spec.fixed_tokens else {},
        data={"moses": learned.data.moses},
    )


def around_part(recipe: Recipe, learned: Recipe, take: ModelPart, say: Say) -> Recipe:
    """Make the recipe of a translation, chosen by a table, fit a part of a run with the recipe
    ``learned``: it takes widths and layers from the part, and each side gets its own vocabulary,
    because the part brings one. If that run translates between the same languages with one
    vocabulary, both sides share it. ``say`` gets a message about separate vocabularies."""
    model, part = recipe.model, learned.model
    if isinstance(model, TransformerSettings) and isinstance(part, (TransformerSettings, *_STACKS)):
        layers = part.layers if isinstance(part, _STACKS) else getattr(part, f"{take}_layers")
        own = {name: getattr(part, name) for name in _OF_A_STACK} | {f"{take}_layers": layers}
        recipe = recipe.override(model=own)
    if shares_with(recipe, learned):
        return recipe
    say(
        f"the {take} has its own vocabulary, so source and target get separate ones (text.shared "
        "= false, model.tie = target)"
    )
    return recipe.override(text={"shared": False}, model={"tie": "target"})


def check_apart(recipe: Recipe, learned: Recipe, take: ModelPart, run: Path) -> None:
    """Check that a vocabulary from a part of ``run`` serves only one side.

    Errors: ``RecipeError`` if the recipe shares one vocabulary, and that run did not.
    """
    if recipe.text.shared and recipe.spec.translates and not shares_with(recipe, learned):
        raise RecipeError(
            f"--init-part {take}: the {take} of {run} has its own vocabulary, but recipe "
            f"{recipe.name} has one for both sides. Use --set text.shared=false --set "
            "model.tie=target"
        )


def shares_with(recipe: Recipe, learned: Recipe) -> bool:
    """Return whether the shared vocabulary of a run with the recipe ``learned`` serves both
    languages of ``recipe``."""
    if not learned.spec.translates or not learned.text.shared:
        return False
    here, there = recipe.languages, learned.languages
    languages = {here.source, here.target}
    return "und" not in languages and languages == {there.source, there.target}


def serve_context(recipe: Recipe, learned: Recipe, run: Path, own: bool, say: Say) -> Recipe:
    """Fit the context of a recipe for a part of ``run`` (``for_part``) to the positions of the
    part. ``say`` gets a message if the context is reduced, or longer than the part has read before.

    ``own``: True if the user has set the context. Errors: ``RecipeError`` if the part has too few
    positions for it.
    """
    context, longest = recipe.plan.context, recipe.model.longest
    if longest is not None and context > longest:
        if own:
            raise RecipeError(
                f"plan.context is {context:,}, but the weights from {run} have positions for "
                f"{longest:,} tokens. Set plan.context={longest} or less"
            )
        say(
            f"{longest:,} tokens are read at once: the weights from {run} have no positions "
            "for more"
        )
        return recipe.override(plan={"context": longest})
    if not learned.spec.translates and learned.plan.context < context:
        say(
            f"{context:,} tokens are read at once (plan.context); the weights from {run} were "
            f"trained on windows of {learned.plan.context:,}. Training uses the longer ones. To "
            f"use the shorter ones: --set plan.context={learned.plan.context}"
        )
    return recipe


def part_to_take(task: str, learned: Recipe) -> ModelPart | None:
    """The part of a run with the recipe ``learned`` from which a new run of ``task`` starts, if the
    user names none. A run that labels texts starts from the encoder (or decoder) of a run of
    another task; any other run starts from the whole run (None)."""
    if task == learned.task or task not in learned.tasks or not learned.tasks[task].has_head:
        return None
    return part_of(learned.model)


def part_of(model: ModelSettings) -> ModelPart:
    """The part of a model from which another model starts, unless one is named."""
    return "encoder" if model.reads else "decoder"


def encoder_of(model: TransformerSettings) -> EncoderSettings:
    """The settings of a separate encoder with the sizes and choices of a Transformer's encoder."""
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
    """Check the value of ``--init-part``. ``begins``: True if there is a run to take it from.

    Errors: ``RecipeError``.
    """
    if part is None:
        return None
    if not begins:
        raise RecipeError(f"--init-part {part} works only with --from RUN")
    if part not in ("encoder", "decoder"):
        raise RecipeError(f"--init-part {part}: use encoder or decoder")
    return "encoder" if part == "encoder" else "decoder"
