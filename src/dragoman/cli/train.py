"""``dragoman train`` and ``dragoman resume`` train a model, and ``dragoman distil`` one translator
that translates as well as several. ``dragoman average`` makes one model from several snapshots of a
training run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.page_process import page_of, refuse_page
from dragoman.console.options import RunFolder, argument, arguments, option
from dragoman.console.output import command, prepare_process, refuse_processes, say
from dragoman.sizing.options import DistilOptions, TrainOptions
from dragoman.tasks.program import TRAINED_AS

if TYPE_CHECKING:
    from dragoman.studies.seeds import Seeds
    from dragoman.training.trainer import Outcome


TaskName = Annotated[
    str | None,
    "With training files, the task to learn: "
    + "; ".join(f"{name}, {learned}" for name, learned in TRAINED_AS.items())
    + ".",
]


Page = Annotated[
    bool,
    "Show the training in a browser, on this machine only: its curves, and a sentence of yours "
    "translated at each validation. Afterwards the page stays until you press Ctrl-C.",
]


@arguments
class TrainArguments(TrainOptions):
    """The arguments and options of ``dragoman train``."""

    task: TaskName = None
    page: Page = False


def train(args: TrainArguments) -> None:
    """Train a model on your own data: a translator, or with --task another kind of model.

    If you give no dev or test files, some of the pairs are held out instead. The model size depends
    on the number of pairs, and also on --minutes if that time is short. The length of training
    depends on --minutes or --epochs. Everything that was chosen is written to recipe.toml in the
    run folder. docs/training.md explains the sizes; docs/settings.md describes every setting.

    Ctrl-C saves the training and stops it; dragoman resume continues it.

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

      dragoman train my.en my.de --mono-target more.de --minutes 60
    """
    prepare_process()
    from dragoman.runs.run import refuse_occupied, refuse_run
    from dragoman.sizing.start_from import part_named
    from dragoman.studies.back_translation import begin_steps, last_chosen
    from dragoman.studies.seeds import Seeds, begin_seeds, parse_seeds, seed_folder
    from dragoman.studies.steps import refuse_begun
    from dragoman.tasks.from_files import languages_read, name_of, recipe_of

    part = part_named(args.init_part, args.from_ is not None)
    group, seed = None, args.seed
    if args.seeds is not None:
        if args.seed is not None:
            raise typer.BadParameter("give --seed or --seeds, not both")
        begun = str(args.from_) if args.from_ else None
        group = Seeds(seeds=parse_seeds(args.seeds), start_from=begun, take=part)
        refuse_processes("several seeds are")
        seed = group.seeds[0]
    in_steps = args.mono_target is not None
    if in_steps:
        refuse_processes("the models of --mono-target are")
    if in_steps and group is not None:
        raise typer.BadParameter(
            "--seeds does not work with --mono-target. Train once for each --seed"
        )
    if args.page:
        refuse_page(in_steps or group is not None)
    if args.minutes is not None and args.epochs is not None:
        raise typer.BadParameter("give --minutes or --epochs, not both")
    check_folder = refuse_occupied if group is None else refuse_run

    def refuse(folder: Path) -> None:
        refuse_begun(folder)
        check_folder(folder)

    # This comes before reading text and measuring this machine, which take some seconds.
    if args.to is not None:
        refuse(args.to)
    elif not (args.from_ or args.recipe or any(change.startswith("name=") for change in args.set_)):
        name = name_of(args)
        if name is not None:
            refuse(Path("runs") / name)
    changes = [*args.set_, *([f"seed={seed}"] if seed is not None else [])]
    options = replace(args, set_=changes)
    chosen = (last_chosen if in_steps else recipe_of)(options, say)
    recipe, epochs = chosen.recipe, args.epochs
    if args.minutes is None and not any("training.updates" in change for change in changes):
        epochs = epochs or chosen.epochs
    sides = recipe.spec.texts
    unknown = [side for side in sides if getattr(recipe.languages, side) == "und"]
    if unknown and len(sides) == 1:
        say(f"The language of the text is not known. Set it with --set languages.{sides[0]}=CODE")
    elif unknown:
        read = languages_read(recipe)
        say(
            "The languages are not known (scores and the ends of sentences depend on them). "
            + (
                f"They appear to be --languages {read}"
                if read
                else "Set them with --languages SOURCE-TARGET"
            )
        )
    folder = args.to or Path("runs") / recipe.name
    refuse(folder)
    if in_steps:
        begin_steps(options, chosen, folder, epochs, say)
        go_on_steps(folder)
        return
    if group is not None:
        begin_seeds(folder, group)
    first = folder if group is None else seed_folder(folder, group.seeds[0])
    # The import is here because it loads torch, and wrong arguments must be reported before.
    from dragoman.tasks.training import train as train_run

    with page_of(first if args.page else None) as watch:
        outcome = watch(
            lambda: train_run(
                recipe, first, start_from=chosen.start_from, take=chosen.take,
                minutes=args.minutes, epochs=epochs, say=say,
                resume_command=command("resume", folder),
            )
        )  # fmt: skip
        finish_run(first, outcome)
    if group is not None:
        _go_on(folder, group, group.seeds[1:])


@arguments
class ResumeArguments:
    """The arguments and options of ``dragoman resume``."""

    run: Path = argument("RUN")
    """A run folder, or a folder created by train --seeds, sweep or ablate."""
    text: list[Path] = option(metavar="FILE|FOLDER")
    """The new location of the training data, if you moved it: a file, or a folder that contains the
    files. May be repeated."""
    page: Page = False


def resume(args: ResumeArguments) -> None:
    """Continue a training run that was stopped or killed, as if it had never stopped.

    To train a finished run longer, first raise training.updates in its recipe.toml. For a folder of
    several seeds, a sweep or an ablation, all missing runs are trained.
    """
    prepare_process()
    from dragoman.runs.run import RECIPE
    from dragoman.studies.seeds import seeds_in
    from dragoman.studies.steps import is_begun
    from dragoman.tasks import catalogue

    if args.text and args.run.is_dir() and not (args.run / RECIPE).is_file():
        raise typer.BadParameter("--text works with only one run. Resume each run by itself")
    if args.page:
        refuse_page(args.run.is_dir() and not (args.run / RECIPE).is_file())
    if _is_several(args.run):
        return
    if is_begun(args.run):
        if args.text:
            raise typer.BadParameter("--text works only when all steps before the run are done")
        go_on_steps(args.run)
        return
    group = seeds_in(args.run)
    if group is not None:
        refuse_processes("several seeds are")
        _go_on(args.run, group, group.seeds)
        return
    catalogue.Run.open(args.run)  # a wrong folder is reported before torch is imported
    from dragoman.tasks.training import resume as resume_run

    again = command("resume", args.run)
    with page_of(args.run if args.page else None) as watch:
        outcome = watch(lambda: resume_run(args.run, text=args.text, say=say, resume_command=again))
        finish_run(args.run, outcome)


def _is_several(folder: Path) -> bool:
    """Continue the sweep or the ablation in ``folder``; return False if there is none."""
    from dragoman.cli.studies import go_on_ablation, go_on_sweep
    from dragoman.studies.ablation import PLAN as ABLATION
    from dragoman.studies.ablation import Ablation
    from dragoman.studies.sweep import PLAN as SWEEP
    from dragoman.studies.sweep import Sweep

    plans = [name for name in (SWEEP, ABLATION) if (folder / name).is_file()]
    if plans:
        refuse_processes("several training runs are")
    if SWEEP in plans:
        go_on_sweep(Sweep.open(folder))
    elif ABLATION in plans:
        go_on_ablation(Ablation.open(folder))
    return bool(plans)


def go_on_steps(folder: Path) -> None:
    """Do the missing steps of a run that is made in several, and measure it."""
    from dragoman.studies import back_translation, distillation
    from dragoman.studies.steps import TEACHERS, is_begun

    distils = is_begun(folder, TEACHERS)
    go_on = distillation.go_on_distilling if distils else back_translation.go_on_steps
    outcome = go_on(folder, say, command("resume", folder))
    if outcome is None:
        raise typer.Exit(130)
    finish_run(folder, outcome)


def _go_on(folder: Path, group: Seeds, seeds: Sequence[int]) -> None:
    """Train the missing ``seeds`` of a group, then print the scores of all."""
    from dragoman.sizing.start_from import part_to_take
    from dragoman.studies.seeds import last_update, recipe_of_next, seed_folder, summary
    from dragoman.tasks import catalogue
    from dragoman.tasks.training import begin_or_resume

    base = catalogue.Run.open(group.start_from) if group.start_from else None
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
        if outcome.update > before or not catalogue.Run.open(path).scores():
            finish_run(path, outcome)
    typer.echo(f"\n{summary(folder)}\n\nNext:\n  {command('compare', folder, 'OTHER')}")


def distil(args: DistilOptions) -> None:
    """Train one translator on the translations and predictions of others (distillation).

    Several teachers translate together, as an ensemble, which translates better than each of them.
    The student keeps much of that gain, and is as small and as fast as one of them, or smaller.
    Without --set, it has the recipe of the first teacher. First, the teachers translate their
    training text; then the student learns from the pairs, from these translations, and from the
    predictions of the teachers for each token.

    Ctrl-C stops each step; dragoman resume continues it.

    Examples:

      dragoman distil runs/base/seed-1 runs/base/seed-2 runs/base/seed-3 --to runs/one

      dragoman distil runs/base --to runs/small --set model.model_dim=128 --set model.ffn_dim=512

      dragoman distil runs/large --minutes 30
    """
    prepare_process()
    from dragoman.studies.distillation import begin_distilling, student_recipe
    from dragoman.studies.seeds import runs_of
    from dragoman.studies.steps import refuse_begun

    refuse_processes("the models of a distillation are")
    if args.minutes is not None and args.epochs is not None:
        raise typer.BadParameter("give --minutes or --epochs, not both")
    runs = [run for folder in args.runs for run in runs_of(folder)]
    recipe = student_recipe(runs, args)
    folder = args.to or Path("runs") / recipe.name
    refuse_begun(folder)
    begin_distilling(recipe, folder, args, say)
    go_on_steps(folder)


@arguments
class AverageArguments:
    """The arguments and options of ``dragoman average``."""

    run: RunFolder = argument("RUN")
    last: int = option(10, ge=1)
    """The number of snapshots to average, counted back from the last."""
    to: Path | None = None
    """Write the averaged weights to this file. Default: replace the run's weights."""


def average(args: AverageArguments) -> None:
    """Average the weights of the last snapshots (Attention Is All You Need, section 6.1).

    The mean replaces the run's weights atomically. The snapshots are kept.
    """
    from dragoman.tasks import catalogue

    catalogue.Run.open(args.run)  # a wrong folder is reported before torch is imported
    from dragoman.tasks.training import average_run

    path, used = average_run(args.run, args.last, args.to)
    typer.echo(f"{path} now holds the mean of updates {', '.join(f'{u:,}' for u in used)}")
    if args.to is None:
        typer.echo(f"To measure it: {command('evaluate', args.run)}")


def finish_run(folder: Path, outcome: Outcome) -> None:
    """Evaluate on the test set after training, write the report, and print the next commands."""
    if outcome.reason == "interrupted":
        raise typer.Exit(130)
    if os.environ.get("RANK", "0") != "0":
        return  # torchrun's other processes leave the rest to the first
    from dragoman.cli.measure import say_tuning
    from dragoman.runs.corpora import has_test_set
    from dragoman.tasks import catalogue
    from dragoman.tasks.report import write_report
    from dragoman.tasks.tuning import measure_tuning
    from dragoman.tasks.verdict import cautions, verdict

    run = catalogue.Run.open(folder)
    runtime = catalogue.runtime_of(run.task)
    if run.notes().get("pairs", {}).get("test", has_test_set(run.recipe)):
        report = runtime.evaluate(run, (), ())
        typer.echo(report.table())
        if run.recipe.data.old is not None:
            measure_tuning(run, report)
            say_tuning(run)
    else:
        files = runtime.test_files(run.recipe)
        typer.echo(
            f"The run has no {run.task.noun} to be measured on. Give some: "
            + command("evaluate", folder, *files)
        )
    findings = verdict(run)
    page = write_report(run, sentences=findings)
    for sentence in (*findings, *cautions(run, outcome.epochs)):
        say(f"\n{sentence}")
    longer = ("resume", "  # longer, after raising training.updates in recipe.toml")
    steps = [f"  {command(verb, folder)} {rest}" for verb, rest in (*run.task.verbs, longer)]
    typer.echo("\n".join([f"\nreport: {page}\n\nNext:", *steps]))
