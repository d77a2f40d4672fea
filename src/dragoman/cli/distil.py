"""``dragoman distil`` trains one translator to translate as well as several."""

from __future__ import annotations

from pathlib import Path

import typer

from dragoman.cli.train import go_on_steps
from dragoman.console.options import argument, arguments, option
from dragoman.console.output import log_to_stderr, prepare_process, refuse_processes, say


@arguments
class DistilArguments:
    """The arguments and options of ``dragoman distil``."""

    runs: list[Path] = argument("RUN...")
    """The teachers: runs that translate between the same languages, with the same target
    vocabulary, such as those of train --seeds; the folder of --seeds stands for all of its runs."""
    to: Path | None = None
    """The run folder to create. Default: runs/NAME-distilled, with NAME taken from the first
    teacher."""
    n_best: int = option(4, ge=1, le=100)
    """The number of translations of each training source. Of these, the student learns the one that
    is most similar to the reference, by chrF."""
    teaching: float = option(0.5, ge=0, le=1)
    """The share of each target token that is the prediction of the teachers (training.teaching). 0:
    the student learns only their translations."""
    weight: float = option(1.0, ge=0, le=10_000)
    """The number of times that each translation of the teachers is used per epoch. 0: the student
    learns only their predictions, and nothing is translated."""
    real_weight: float = option(1.0, ge=0.01, le=10_000)
    """The number of times that each pair is used per epoch, times the weight of its corpus."""
    minutes: float | None = option(ge=0.1)
    """The time for everything. Translating takes at most a third of it; if that is too short, only
    the first part of the text is translated. Default: the student trains for as many updates as
    the first teacher."""
    epochs: float | None = option(ge=0.01)
    """Train the student for this many epochs."""
    seed: int | None = option(ge=0)
    """The seed for all random numbers of the student. Default: that of the first teacher."""
    set_: list[str] = option()
    """Change any setting of the student, such as model.model_dim=128. The section text cannot be
    changed, because a student uses the vocabularies of its teacher. May be repeated."""


def distil(args: DistilArguments) -> None:
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
    from dragoman.runs.run import refuse_occupied
    from dragoman.studies.distillation import begin_distilling, student_recipe
    from dragoman.studies.seeds import runs_of
    from dragoman.studies.steps import refuse_begun

    log_to_stderr()
    refuse_processes("the models of a distillation are")
    if args.minutes is not None and args.epochs is not None:
        raise typer.BadParameter("give --minutes or --epochs, not both")
    runs = [run for folder in args.runs for run in runs_of(folder)]
    changes = [*args.set_, *([f"seed={args.seed}"] if args.seed is not None else [])]
    recipe = student_recipe(runs, changes, args.teaching, args.real_weight)
    folder = args.to or Path("runs") / recipe.name
    refuse_begun(folder)
    refuse_occupied(folder)
    begin_distilling(
        recipe, folder, n_best=args.n_best, weight=args.weight, minutes=args.minutes,
        epochs=args.epochs, say=say,
    )  # fmt: skip
    go_on_steps(folder)
