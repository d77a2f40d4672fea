"""``dragoman train`` and ``dragoman resume``.
``dragoman average``: one model from several snapshots of a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.console import (
    command,
    finish_run,
    log_to_stderr,
    prepare_process,
    program,
    refuse_processes,
    say,
)
from dragoman.cli.options import RunFolder, argument, arguments, option
from dragoman.program import TRAINED_AS

if TYPE_CHECKING:
    from dragoman.studies.seeds import Seeds


TaskName = Annotated[
    str | None,
    "With training files, the task to learn: "
    + "; ".join(f"{name}, {learned}" for name, learned in TRAINED_AS.items())
    + ".",
]


@arguments
class FilesArguments:
    """How files of text are read."""

    task: TaskName = None
    texts: str | None = None
    """For language models and masked models, where one text ends and the next begins: text (each
    line is a text), documents (blank lines separate texts) or file (each file is one text).
    Default: detected."""
    languages: str | None = None
    """Source and target language, such as en-de; for tasks with one language, that language, such
    as en. Default: taken from the file names, or from what a TMX, XLIFF or PO says."""
    keys: tuple[str, str] | None = None
    """For a .jsonl file: the keys of source and target, such as translation.en translation.de."""
    columns: str | None = None
    """For a tab-separated file: the columns of source and target, or of text and label, such as
    2,3. For labelled texts, label,text and text,label are accepted too. Default: detected."""
    groups: str | None = option(metavar="PATTERN")
    """For recordings: a regular expression with one group, which matches the speaker in the file
    name, such as _([a-z]+)_ for 7_jackson_32.wav. If it contains a /, it is matched against the
    path inside the folder instead: ^([^/]+)/ takes the name of the first folder. All recordings of
    a speaker are put on the same side of the split."""
    label_ends: str | None = option(metavar="CHARACTERS")
    """For trees: the characters at which a label is cut off. With -= (the default), NP-SBJ-1 is
    learned as NP; with -=., grup.nom.ms is learned as grup; with "", labels are kept whole. The
    fewer labels there are, the fewer trees you need."""
    codes: str | None = option(metavar="RUN")
    """For a painter: the run that has learned the codes of pictures (--task codes)."""

    @property
    def of_files(self) -> dict[str, Any]:
        """All of these options by their names."""
        return {one.name: getattr(self, one.name) for one in fields(FilesArguments)}


@arguments
class TrainArguments(FilesArguments):
    """What ``dragoman train`` takes."""

    inputs: list[str] = argument("SOURCE TARGET | RECIPE")
    """Training data, or a recipe: a .toml file, or the name of a recipe that comes with dragoman.
    For translation, give two files of parallel text or one file with both sides (.tsv, .csv,
    .jsonl, .tmx, .xlf, .po). For transcription, give a folder of recordings with a .txt file beside
    each; a .tsv, .csv or .jsonl file that lists the file name, text and speaker of each recording;
    or a Kaldi data folder. A language model or a masked model takes one file or a folder of text; a
    parser takes one file or a folder of bracketed trees (.mrg); a classifier takes a .tsv or .jsonl
    file of texts and labels, a folder of recordings or pictures with a subfolder for each label, a
    .zip file with such folders of pictures, a list (.csv, .tsv, .jsonl) of such files and their
    labels, or two IDX files with pictures and labels; a tagger takes one file of tagged words; a
    detector takes boxes in COCO's JSON, or the folder that the file is in; codes and a painter take
    a list (.tsv, .csv, .jsonl) of pictures and their captions, a folder with a subfolder of
    pictures for each caption, or two IDX files."""
    to: Path | None = None
    """The run folder to create. Default: runs/NAME, with NAME taken from the files or the recipe.
    If the folder already contains a run, training does not start."""
    minutes: float | None = option(ge=0.05)
    """Train for about this many minutes. The model size and the number of updates are chosen for
    this time and the speed of this machine; the number of updates is corrected once, after the
    first minute."""
    epochs: float | None = option(ge=0.01)
    """Train for this many epochs."""
    recipe: str | None = None
    """With training files: use the settings of this recipe (sizes, schedule, cleaning, Moses
    tokenisation), but not its data. The languages are taken from the recipe too if the file names
    do not contain them."""
    dev: tuple[str, str] | None = option(metavar="SOURCE TARGET | FILE", may_be_one=True)
    """Validation data: two files or one file, in the same layout as the training files. If you give
    one file, put the option after the training files. If you give only one of --dev and --test, the
    other set is held out of the training data."""
    test: tuple[str, str] | None = option(metavar="SOURCE TARGET | FILE", may_be_one=True)
    """Test data for the final evaluation: two files or one file, as for --dev."""
    model: str | None = option(metavar="transformer|lstm|conv")
    """The architecture: transformer (the default), lstm, or conv (translation only). The size of
    the model depends on the amount of text and on --minutes."""
    from_: Path | None = None
    """Fine-tune this run: start with its best weights and its vocabulary."""
    init_part: str | None = option(metavar="encoder|decoder")
    """Use only the encoder or the decoder of the --from run, for another kind of task. Weights
    whose shape does not fit are initialised anew."""
    seed: int | None = None
    """The seed for all random numbers."""
    seeds: str | None = None
    """Train several runs that differ only in their seeds, such as 1,2,3. They are trained one after
    another, each in a subfolder of the run folder, with the same number of updates as the first."""
    set_: list[str] = option()
    """Change any setting, such as model.dropout=0.2. May be repeated."""


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
    """
    prepare_process()
    from dragoman import catalogue
    from dragoman.runs.run import refuse_occupied, refuse_run
    from dragoman.sizing.from_files import languages_read, name_of, recipe_of
    from dragoman.sizing.inputs import Inputs
    from dragoman.sizing.start_from import part_named, part_to_take
    from dragoman.studies.seeds import Seeds, begin_seeds, parse_seeds, seed_folder

    log_to_stderr()
    part = part_named(args.init_part, args.from_ is not None)
    group, seed = None, args.seed
    if args.seeds is not None:
        if args.seed is not None:
            raise typer.BadParameter("give --seed or --seeds, not both")
        begun = str(args.from_) if args.from_ else None
        group = Seeds(seeds=parse_seeds(args.seeds), start_from=begun, take=part)
        refuse_processes("several seeds are")
        seed = group.seeds[0]
    if args.minutes is not None and args.epochs is not None:
        raise typer.BadParameter("give --minutes or --epochs, not both")
    refuse = refuse_occupied if group is None else refuse_run
    # Before text is read and this machine is measured, which takes some seconds.
    if args.to is not None:
        refuse(args.to)
    elif not (args.from_ or args.recipe or any(change.startswith("name=") for change in args.set_)):
        name = name_of(Inputs(args.inputs, catalogue.Recipe, **args.of_files))
        if name is not None:
            refuse(Path("runs") / name)
    changes = [*args.set_, *([f"seed={seed}"] if seed is not None else [])]
    base = catalogue.Run.open(args.from_) if args.from_ else None
    inputs = Inputs(
        args.inputs, catalogue.Recipe, **args.of_files, recipe=args.recipe, dev=args.dev,
        test=args.test, model=args.model, start_from=base, take=part, minutes=args.minutes, say=say,
    )  # fmt: skip
    chosen, default_epochs = recipe_of(inputs, changes=changes)
    if base is not None:
        part = part or part_to_take(chosen.task, base.recipe)
    epochs = args.epochs
    if args.minutes is None and not any("training.updates" in change for change in changes):
        epochs = epochs or default_epochs
    sides = chosen.spec.texts
    unknown = [side for side in sides if getattr(chosen.languages, side) == "und"]
    if unknown and len(sides) == 1:
        say(f"The language of the text is not known: --set languages.{sides[0]}=CODE names it")
    elif unknown:
        read = languages_read(chosen)
        say(
            "The languages are not known (scores and the ends of sentences depend on them). "
            + (
                f"They read as --languages {read}"
                if read
                else "--languages SOURCE-TARGET names them"
            )
        )
    folder = args.to or Path("runs") / chosen.name
    refuse(folder)
    if group is not None:
        begin_seeds(folder, group)
    first = folder if group is None else seed_folder(folder, group.seeds[0])
    # Here, so that what is wrong with the arguments is said at once: it imports torch.
    from dragoman.tasks.training import train as train_run

    outcome = train_run(
        chosen, first, start_from=base, take=part, minutes=args.minutes, epochs=epochs,
        say=say, resume_command=command("resume", folder),
    )  # fmt: skip
    finish_run(first, outcome)
    if group is not None:
        _go_on(folder, group, group.seeds[1:])


@arguments
class ResumeArguments:
    """What ``dragoman resume`` takes."""

    run: Path = argument("RUN")
    """A run folder, or a folder created by train --seeds, sweep or ablate."""
    text: list[Path] = option(metavar="FILE|FOLDER")
    """The new location of the training data, if you moved it: a file, or a folder that contains the
    files. May be repeated."""


def resume(args: ResumeArguments) -> None:
    """Continue a training run that was stopped or killed, as if it had never stopped.

    To train a finished run longer, first raise training.updates in its recipe.toml. For a folder of
    several seeds, a sweep or an ablation, all missing runs are trained.
    """
    prepare_process()
    from dragoman import catalogue
    from dragoman.runs.run import RECIPE
    from dragoman.studies.seeds import seeds_in

    log_to_stderr()
    if args.text and args.run.is_dir() and not (args.run / RECIPE).is_file():
        raise typer.BadParameter("--text is for one run: resume each with it")
    if _is_several(args.run):
        return
    group = seeds_in(args.run)
    if group is not None:
        refuse_processes("several seeds are")
        _go_on(args.run, group, group.seeds)
        return
    catalogue.Run.open(args.run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.training import resume as resume_run

    finish_run(
        args.run,
        resume_run(args.run, text=args.text, say=say, resume_command=command("resume", args.run)),
    )


def _is_several(folder: Path) -> bool:
    """Go on with the sweep or the ablation in ``folder``. -> False if there is none."""
    from dragoman.cli.studies import go_on_ablation, go_on_sweep
    from dragoman.studies.ablation import PLAN as ABLATION
    from dragoman.studies.ablation import Ablation
    from dragoman.studies.sweep import PLAN as SWEEP
    from dragoman.studies.sweep import Sweep

    found = [name for name in (SWEEP, ABLATION) if (folder / name).is_file()]
    if found:
        refuse_processes("several trainings are")
    if SWEEP in found:
        go_on_sweep(Sweep.open(folder))
    elif ABLATION in found:
        go_on_ablation(Ablation.open(folder))
    return bool(found)


def _go_on(folder: Path, group: Seeds, seeds: Sequence[int]) -> None:
    """Train those of a group's ``seeds`` that are not done, then say what all of it scored."""
    from dragoman import catalogue
    from dragoman.sizing.start_from import part_to_take
    from dragoman.studies.seeds import last_update, recipe_of_next, seed_folder, summary
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


@arguments
class AverageArguments:
    """What ``dragoman average`` takes."""

    run: RunFolder = argument("RUN")
    last: int = option(10, ge=1)
    """The number of snapshots to average, counted back from the last."""
    to: Path | None = None
    """Write the averaged weights to this file. Default: replace the run's weights."""


def average(args: AverageArguments) -> None:
    """Average the weights of the last snapshots (paper, section 6.1).

    The mean replaces the run's weights atomically. The snapshots are kept.
    """
    from dragoman import catalogue

    catalogue.Run.open(args.run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.averaging import average_run

    path, used = average_run(args.run, args.last, args.to)
    typer.echo(f"{path} now holds the mean of updates {', '.join(f'{u:,}' for u in used)}")
    if args.to is None:
        typer.echo(f"How good it is: {program()} evaluate {args.run}")
