"""``dragoman train`` and ``dragoman resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Two files of parallel text, one file with both sides (.tsv, .jsonl), or a recipe "
            "(a .toml file, or the name of one that ships); with the --recipe of a language model, "
            "one file with a text a line.",
            metavar="SOURCE TARGET | RECIPE",
        ),
    ],
    to: Annotated[
        Path | None, typer.Option(help="The run folder to make; runs/NAME if not given.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.05,
            help="Train about so long: size, updates and validations follow from it and from how "
            "fast this machine is, and are counted again once, after the first minute.",
        ),
    ] = None,
    epochs: Annotated[float | None, typer.Option(min=0.01, help="Train so many epochs.")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="For files of text: take everything from this recipe (sizes, schedule, cleaning, "
            "Moses tokens, languages that the files' names do not tell) but its own text."
        ),
    ] = None,
    dev: Annotated[
        tuple[str, str] | None, typer.Option(help="Source and target to validate on.")
    ] = None,
    test: Annotated[
        tuple[str, str] | None, typer.Option(help="Source and target to measure on at the end.")
    ] = None,
    languages: Annotated[
        str | None, typer.Option(help="Such as en-de; guessed from file names if not given.")
    ] = None,
    keys: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Of a .jsonl file, where the sides are: translation.en translation.de"),
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Fine-tune this run: its weights, the best so far, and its vocabulary."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Every random draw follows from it.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting: model.dropout=0.2")
    ] = None,
) -> None:
    """Train a translator on your own pairs of sentences.

    Without dev and test files, some pairs are held out. The size of the model follows from the
    number of pairs (and from --minutes, if they are few), the length of the training from --minutes
    or --epochs; all of it is written into the run's recipe.toml. docs/recipes.md explains the
    sizes, docs/settings.md every setting.

    Ctrl-C stops it and saves; dragoman resume goes on.

    Examples:

      dragoman train my.en my.de

      dragoman train new.en new.de --from runs/en-de

      dragoman train multi30k-en-de --minutes 30 --set model.dropout=0.2

      dragoman train diary.txt --recipe demo-letters
    """
    from dragoman.cli.console import command, finish_run, log_to_stderr, prepare_process, say

    prepare_process()
    from dragoman.task import TASKS
    from dragoman.tasks.inputs import languages_read, recipe_of
    from dragoman.tasks.run import Run, refuse_run

    log_to_stderr()
    if minutes is not None and epochs is not None:
        raise typer.BadParameter("give --minutes or --epochs, not both")
    if to is not None:
        refuse_run(to)  # before this machine is measured, which takes some seconds
    changes = [*(set_ or []), *([f"seed={seed}"] if seed is not None else [])]
    base = Run.open(start_from) if start_from else None
    chosen, default_epochs = recipe_of(
        inputs, base=recipe, dev=dev, test=test, languages=languages, keys=keys,
        start_from=base, changes=changes, minutes=minutes, say=say,
    )  # fmt: skip
    if minutes is None and epochs is None and not any("training.updates" in c for c in changes):
        epochs = default_epochs
    sides = TASKS[chosen.task].sides
    if len(sides) == 1 and chosen.languages.target == "und":
        say("The language of the text is not known: --set languages.target=en names it")
    elif "und" in (getattr(chosen.languages, side) for side in sides):
        read = languages_read(chosen)
        say(
            "The languages are not known (scores and the ends of sentences depend on them). "
            + (f"They read as --languages {read}" if read else "--languages en-de names them")
        )
    folder = to or Path("runs") / chosen.name
    refuse_run(folder)
    # Here, so that what is wrong with the arguments is said at once: it imports torch.
    from dragoman.tasks.training import train as train_run

    outcome = train_run(
        chosen, folder, start_from=base, minutes=minutes, epochs=epochs,
        say=say, resume_command=command("resume", folder),
    )  # fmt: skip
    finish_run(folder, outcome)


def resume(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
) -> None:
    """Go on with a training that was stopped or killed; it ends as if it had not been.

    A finished one goes on after training.updates in its recipe.toml was raised.
    """
    from dragoman.cli.console import command, finish_run, log_to_stderr, prepare_process, say

    prepare_process()
    from dragoman.tasks.run import Run

    Run.open(run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.training import resume as resume_run

    log_to_stderr()
    finish_run(run, resume_run(run, say=say, resume_command=command("resume", run)))
