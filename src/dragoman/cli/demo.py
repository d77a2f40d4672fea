"""``dragoman demo`` trains a model of each task in some minutes, without other data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.base.errors import RecipeError, RunError
from dragoman.console.demo_files import Demo, is_read_by, reading, write_files
from dragoman.console.options import arguments, option
from dragoman.console.output import command, log_to_stderr, prepare_process, program
from dragoman.tasks.program import demos

if TYPE_CHECKING:
    from dragoman.runs.recipe.recipe import Recipe


@arguments
class DemoArguments:
    """The arguments and options of ``dragoman demo``."""

    to: Path | None = None
    """The run folder. Default: runs/demo, or runs/demo-TASK. An older demo there is replaced."""
    task: str = option("translate", metavar="TASK")
    """The model to train: translate, a translator; write, a language model; fill, a model that
    fills in blanks; classify, a classifier; parse, a parser; transcribe, a model that writes what
    is said (extra sound); classify-picture, a classifier of pictures (extra images); detect, a
    detector (extra images); paint, a painter (extra images)."""
    set_: list[str] = option()
    """Change any setting of the recipe. May be repeated."""


def demo(args: DemoArguments) -> None:
    """Train a small translator on the built-in corpus, evaluate it, and look inside it.

    With --task, the demo trains another kind of model:

    classify: a small classifier that reads an English sentence and predicts the German pronoun for
    its "it". The demo draws its confusion matrix.

    write: a character-level language model of German. The demo shows the surprisal of each word of
    a text.

    fill: a model that fills in blanks in English sentences. The demo draws its attention.

    parse: a parser that writes the constituency trees of English sentences. The demo draws some of
    them.

    transcribe: a model that writes down English sentences that a formant synthesiser speaks. The
    demo draws its attention over the sound, and keeps the recordings next to the run folder, in
    FOLDER-recordings.

    classify-picture: a model that names shapes in pictures, which the demo draws with patterns. The
    demo draws where the model looks, and keeps the pictures in FOLDER-pictures.

    detect: a detector of shapes in scenes that the demo draws. The demo draws the boxes that the
    detector finds, and keeps the scenes in FOLDER-scenes.

    paint: codes of pictures of shapes, and a painter. The demo paints captions that the painter has
    never seen, and keeps the pictures and the codes in FOLDER-captions.

    Nothing is downloaded, and there are no questions to answer. On two processor cores, the demo
    takes about two minutes with AVX-512 and over three minutes with AVX2. It first measures the
    speed of this machine and prints the expected time.
    """
    prepare_process()
    import shutil

    from rich.console import Console

    from dragoman.demo.corpus import NOTICE
    from dragoman.runs.lock import lock_folder
    from dragoman.tasks import catalogue

    log_to_stderr(quiet=True)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=100)
    known = demos()
    if args.task not in known:
        raise RecipeError(f"--task {args.task}: choose one of {', '.join(known)}")
    chosen = known[args.task]
    recipe: Recipe = catalogue.Recipe.load(chosen.recipe, args.set_)
    to = args.to or Path("runs") / ("demo" if args.task == "translate" else f"demo-{args.task}")
    if to.exists() and not _is_demo(to):
        raise RunError(f"{to} exists and is not a demo. Choose another folder: --to FOLDER")
    if chosen.files is None:
        console.print(NOTICE, style="bold")
    else:
        files = write_files(chosen.files(), to, console)
        recipe = reading(recipe, files)
        if chosen.learn_first is not None:
            recipe = chosen.learn_first(recipe, files, console)
    if to.exists():
        with lock_folder(to):
            shutil.rmtree(to)
    # The import is here because it loads torch, and wrong arguments must be reported before.
    from dragoman.tasks.training import train

    console.print(f"Training into {to}: {chosen.about}.\n")
    outcome = train(recipe, to, say=console.print, resume_command=command("resume", to))
    if outcome.reason == "interrupted":
        raise typer.Exit(130)
    run = catalogue.Run.open(to)
    evaluation = catalogue.runtime_of(run.task).evaluate(run)
    console.print(f"{chosen.show(run, evaluation, console)}\n\nNext:")
    for line in next_steps(chosen, to):
        console.print(f"  {line}", markup=False, soft_wrap=True)


def next_steps(chosen: Demo, to: Path) -> list[str]:
    """Return the commands to continue with after a demo in the folder ``to``."""
    lines = [f"{program()} {step.format(to=shlex.quote(str(to)))}" for step in chosen.steps]
    if to == Path("runs", "demo") and Path(__file__).parents[3] == Path.cwd():
        # In the source tree, make serves this run and installs what that needs.
        for place, step in enumerate(chosen.steps):
            if step.startswith("serve "):
                lines[place] = f"make serve  #{step.partition('#')[2]}"
    return lines


def _is_demo(folder: Path) -> bool:
    from dragoman.runs.run import RECIPE
    from dragoman.tasks import catalogue

    if not (folder / RECIPE).is_file():
        return False
    recipe = catalogue.Recipe.load(folder / RECIPE)
    return recipe.data.embedded is not None or is_read_by(recipe, folder)
