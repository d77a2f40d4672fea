"""``dragoman classify``: lines in, labels out."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from dragoman.base.errors import DragomanError
from dragoman.base.reading import readable
from dragoman.base.wording import plural
from dragoman.console.given import files_given, input_files
from dragoman.console.lines import (
    Into,
    LinesArguments,
    LineVerb,
    LineWork,
    do_lines,
    wants_parts,
    write_lines,
)
from dragoman.console.options import argument, arguments
from dragoman.console.output import Failures

if TYPE_CHECKING:
    from dragoman.runs.run import Run
    from dragoman.tasks.classification.labeller import ClassifiedText


@arguments
class ClassifyArguments(LinesArguments):
    """The arguments and options of ``dragoman classify``."""

    given: list[str] = argument("TEXT", None)
    """Texts, or files with one text per line. Default: standard input. For a run that was trained
    on recordings or pictures: recordings or pictures, or folders of them."""
    all_: bool = False
    """Write all labels for each line, the most probable first."""
    explain: bool = False
    """Also show how much each word contributes to the label, by two measures."""
    into: Into = "label"


def classify(args: ClassifyArguments) -> None:
    """Classify each line: print its label, a tab and the probability of the label. For recordings
    and pictures, the file name comes first.

    Each input line, even an empty one, gives one output line. The model always chooses one of the
    labels that it was trained on, even if none of them fits. A low probability is a sign that none
    fits; a high probability means little for text that is unlike the training text.

    Examples:

      dragoman classify runs/topics < letters.txt

      dragoman classify runs/topics letters.txt --to labels.tsv

      dragoman classify runs/topics "Shares fell again." --all

      dragoman classify runs/topics "Shares fell again." --explain

      dragoman classify runs/digits one.wav two.wav recordings/

      dragoman classify runs/flowers garden.jpg photos/
    """
    from dragoman.tasks.catalogue import open_run

    run = open_run(args.run, "classification", "which does not label")
    verb = LineVerb("classify", labelling, unfit=("text", "explain"))
    if not run.task.reads_files:
        do_lines(verb, args, run, run.recipe.languages.source)
        return
    if wants_parts(args):
        raise DragomanError(
            f"{run.folder} reads {run.task.noun}. Only lines of text can be divided into parts"
        )
    names = input_files(args.given, run.recipe.source.kind)
    if args.explain:
        raise DragomanError(
            f"--explain works only with text, but {run.folder} reads {run.task.noun}. To see "
            f"where it looks: dragoman look {run.folder} FILE"
        )
    files = files_given(names, run.recipe.source.kind)
    write_lines(labelling(args, run, "", is_alone=len(names) == 1), files, args.to, ())


def labelling(
    args: ClassifyArguments, run: Run, precision: str, *, is_alone: bool = False
) -> LineWork:
    """Return the work of ``dragoman classify`` on lines or on files. For files, the name precedes
    the label.

    ``is_alone``: True for a single file, which must be readable.
    """
    from dragoman.engine.predictor import windows
    from dragoman.tasks.classification.labeller import Labeller
    from dragoman.tasks.classification.reasons import WARNING, reasons, table

    labeller = Labeller(run)
    failures = Failures(1 if is_alone else None)
    cut = 0

    def label(window: Sequence[str]) -> list[ClassifiedText]:
        try:
            return labeller(window)
        except DragomanError:
            if not run.task.reads_files:
                raise
        answers = []
        for name in window:
            with failures:
                answers.append(labeller(name))
        return answers

    def outputs(given: Iterable[str]) -> Generator[str]:
        nonlocal cut
        for window in windows(given):
            for answer in label(window):
                cut += answer.cut
                name = f"{readable(answer.text)}\t" if run.task.reads_files else ""
                yield name + _format(args, answer)
                if args.explain and answer.text.strip():
                    yield f"{table(reasons(labeller, answer.text))}\n"

    def end() -> None:
        if args.explain:
            typer.echo(WARNING, err=True)
        if cut:
            noun, units = run.task.noun.removesuffix("s"), run.recipe.source.units
            typer.echo(
                f"{plural(cut, f'{noun} is', f'{noun}s are')} longer than the "
                f"{labeller.longest:,} {units} that the model reads: the rest was not read.",
                err=True,
            )
        failures.end("file", "labelled")

    return LineWork(labeller, outputs, end=end)


def _format(args: ClassifyArguments, answer: ClassifiedText) -> str:
    named = answer.ranked if args.all_ else answer.ranked[:1]
    return "\t".join(f"{name}\t{probability:.4f}" for name, probability in named)
