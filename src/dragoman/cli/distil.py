"""``dragoman distil`` trains one translator to translate as well as several."""

from __future__ import annotations

from pathlib import Path

import typer

from dragoman.cli.train import go_on_steps
from dragoman.console.output import prepare_process, refuse_processes, say
from dragoman.sizing.options import DistilOptions


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
