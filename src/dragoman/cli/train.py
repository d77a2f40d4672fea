"""``dragoman train`` and ``dragoman resume``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.task import LEARNED

if TYPE_CHECKING:
    from dragoman.studies.seeds import Seeds


def train(
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Two files of parallel text, one file with both sides (.tsv, .jsonl), or a recipe "
            "(a .toml file, or the name of one that ships); for a language model or a masked one "
            "one file of text, for a parser one of bracketed trees (.mrg), or a folder of them.",
            metavar="SOURCE TARGET | RECIPE",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            help="What to learn from files of text: "
            + "; ".join(f"{name}, {learned}" for name, learned in LEARNED.items())
            + "."
        ),
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(
            help="What a text is in the file of a language or masked model: text (a line), "
            "documents (between blank lines) or file (all of it); detected if not given."
        ),
    ] = None,
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
        tuple[str, str] | None,
        typer.Option(
            help="What to validate on: two files, or one, as those to train on are. Of one name it "
            "behind these.",
            metavar="SOURCE TARGET | FILE",
        ),
    ] = None,
    test: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="What to measure on at the end, likewise.", metavar="SOURCE TARGET | FILE"
        ),
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option(help="Such as en-de; guessed from file names if not given. Of a text: en."),
    ] = None,
    keys: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Of a .jsonl file, where the sides are: translation.en translation.de"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of source and target, or of text and label, in a tab-separated file: "
            "2,3; for labelled texts also label,text or text,label; detected if not given."
        ),
    ] = None,
    label_ends: Annotated[
        str | None,
        typer.Option(
            help="How fine the labels of trees are: the characters at which a label ends. With -= "
            "(the default) NP-SBJ-1 is learned as NP; with -=. grup.nom.ms is learned as grup; "
            'with "" labels stay whole. Fewer labels need fewer trees.',
            metavar="CHARACTERS",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The family of model to train on files of text, in the size that the text and the "
            "minutes allow: transformer (the default), lstm, or conv (translation only).",
            metavar="transformer|lstm|conv",
        ),
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Fine-tune this run: its weights, the best so far, and its vocabulary."
        ),
    ] = None,
    take: Annotated[
        str | None,
        typer.Option(
            help="Of the run that --from names only its encoder or its decoder, for a task of "
            "another kind; what does not fit begins anew.",
            metavar="encoder|decoder",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Every random draw follows from it.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Several runs that differ by their seed alone, as 1,2,3: one after another, in "
            "folders of their own within the run folder, with as many updates as the first."
        ),
    ] = None,
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

      dragoman train diary.txt --task language-model --minutes 10

      dragoman train diary.txt --task masked --minutes 10

      dragoman train reviews.tsv --task classification --from runs/diary --test new-reviews.tsv

      dragoman train trees.mrg --task parsing --minutes 20

      dragoman train trees.mrg --label-ends -=.

      dragoman train multi30k-en-de --seeds 1,2,3 --to runs/base
    """
    from dragoman.cli.console import (
        command,
        finish_run,
        log_to_stderr,
        prepare_process,
        refuse_processes,
        say,
    )

    prepare_process()
    from dragoman.runs.run import Run, refuse_run
    from dragoman.sizing.from_files import languages_read, name_of, recipe_of, taken
    from dragoman.sizing.pairs import part_to_take
    from dragoman.studies.seeds import Seeds, begin_seeds, parse_seeds, seed_folder

    log_to_stderr()
    part = taken(take, start_from is not None)
    group = None
    if seeds is not None:
        if seed is not None:
            raise typer.BadParameter("give --seed or --seeds, not both")
        begun = str(start_from) if start_from else None
        group = Seeds(seeds=parse_seeds(seeds), start_from=begun, take=part)
        refuse_processes("several seeds are")
        seed = group.seeds[0]
    if minutes is not None and epochs is not None:
        raise typer.BadParameter("give --minutes or --epochs, not both")
    # Before text is read and this machine is measured, which takes some seconds.
    if to is not None:
        refuse_run(to)
    elif not (start_from or recipe or any(change.startswith("name=") for change in set_ or ())):
        name = name_of(inputs, task, languages)
        if name is not None:
            refuse_run(Path("runs") / name)
    changes = [*(set_ or []), *([f"seed={seed}"] if seed is not None else [])]
    base = Run.open(start_from) if start_from else None
    chosen, default_epochs = recipe_of(
        inputs, task=task, texts=texts, base=recipe, dev=dev, test=test,
        languages=languages, keys=keys, columns=columns, label_ends=label_ends, start_from=base,
        take=part, changes=changes, minutes=minutes, model=model, say=say,
    )  # fmt: skip
    if base is not None:
        part = part or part_to_take(chosen.task, base.recipe)
    if minutes is None and epochs is None and not any("training.updates" in c for c in changes):
        epochs = default_epochs
    sides = chosen.spec.texts
    if len(sides) == 1:
        if getattr(chosen.languages, sides[0]) == "und":
            say(f"The language of the text is not known: --set languages.{sides[0]}=CODE names it")
    elif "und" in (getattr(chosen.languages, side) for side in sides):
        read = languages_read(chosen)
        say(
            "The languages are not known (scores and the ends of sentences depend on them). "
            + (
                f"They read as --languages {read}"
                if read
                else "--languages SOURCE-TARGET names them"
            )
        )
    folder = to or Path("runs") / chosen.name
    refuse_run(folder)
    if group is not None:
        begin_seeds(folder, group)
    first = folder if group is None else seed_folder(folder, group.seeds[0])
    # Here, so that what is wrong with the arguments is said at once: it imports torch.
    from dragoman.tasks.training import train as train_run

    outcome = train_run(
        chosen, first, start_from=base, take=part, minutes=minutes, epochs=epochs,
        say=say, resume_command=command("resume", folder),
    )  # fmt: skip
    finish_run(first, outcome)
    if group is not None:
        _go_on(folder, group, group.seeds[1:])


def resume(
    run: Annotated[
        Path,
        typer.Argument(
            help="A run folder, or a folder of train --seeds, sweep or ablate.", metavar="RUN"
        ),
    ],
    text: Annotated[
        list[Path] | None,
        typer.Option(
            help="Where the text of a run that was moved is now: a file, or a folder that has its "
            "files; may be given again.",
            metavar="FILE|FOLDER",
        ),
    ] = None,
) -> None:
    """Go on with a training that was stopped or killed; it ends as if it had not been.

    A finished one goes on after training.updates in its recipe.toml was raised. Of several seeds
    those that were not begun are trained too, and of a sweep or an ablation what is missing.
    """
    from dragoman.cli.console import (
        command,
        finish_run,
        log_to_stderr,
        prepare_process,
        refuse_processes,
        say,
    )

    prepare_process()
    from dragoman.runs.run import RECIPE, Run
    from dragoman.studies.seeds import seeds_in

    log_to_stderr()
    if text and run.is_dir() and not (run / RECIPE).is_file():
        raise typer.BadParameter("--text is for one run: resume each with it")
    if _is_several(run):
        return
    group = seeds_in(run)
    if group is not None:
        refuse_processes("several seeds are")
        _go_on(run, group, group.seeds)
        return
    Run.open(run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.training import resume as resume_run

    finish_run(
        run, resume_run(run, text=text or (), say=say, resume_command=command("resume", run))
    )


def _is_several(folder: Path) -> bool:
    """Go on with the sweep or the ablation in ``folder``. -> False if there is none."""
    from dragoman.cli import ablate, sweep
    from dragoman.cli.console import refuse_processes
    from dragoman.studies.ablation import PLAN as ABLATION
    from dragoman.studies.ablation import Ablation
    from dragoman.studies.sweep import PLAN as SWEEP
    from dragoman.studies.sweep import Sweep

    found = [name for name in (SWEEP, ABLATION) if (folder / name).is_file()]
    if found:
        refuse_processes("several trainings are")
    if SWEEP in found:
        sweep.go_on(Sweep.open(folder))
    elif ABLATION in found:
        ablate.go_on(Ablation.open(folder))
    return bool(found)


def _go_on(folder: Path, group: Seeds, seeds: Sequence[int]) -> None:
    """Train those of a group's ``seeds`` that are not done, then say what all of it scored."""
    from dragoman.cli.console import command, finish_run, say
    from dragoman.runs.run import Run
    from dragoman.sizing.pairs import part_to_take
    from dragoman.studies.seeds import last_update, recipe_of_next, seed_folder, summary
    from dragoman.tasks.training import begin_or_resume

    base = Run.open(group.start_from) if group.start_from else None
    again = command("resume", folder)
    for seed in seeds:
        path, recipe = seed_folder(folder, seed), recipe_of_next(folder, group, seed)
        take = group.take or (part_to_take(recipe.task, base.recipe) if base else None)
        before = last_update(path)
        if not before:
            say(f"\nseed {seed}: {path}")
        outcome = begin_or_resume(
            recipe, path,
            start_from=base, take=take, say=say, resume_command=again,
        )  # fmt: skip
        if outcome.update > before or not Run.open(path).scores():
            finish_run(path, outcome)
    typer.echo(f"\n{summary(folder)}\n\nNext:\n  {command('compare', folder, 'OTHER')}")
