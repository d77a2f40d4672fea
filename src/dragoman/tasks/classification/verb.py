"""``dragoman classify``: lines in, labels out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.base.errors import DragomanError
from dragoman.base.reading import readable
from dragoman.base.wording import plural
from dragoman.cli.console import log_to_stderr, opened_run, output_to
from dragoman.cli.given import AsText, Plain, files_among, files_given, lines_given, named_files
from dragoman.cli.in_parts import Into, Outputs, PartsArguments, To, in_parts, wants_parts
from dragoman.cli.options import RunFolder, argument, arguments

if TYPE_CHECKING:
    from dragoman.runs.run import Run
    from dragoman.tasks.classification.labeller import ClassifiedText


@arguments
class ClassifyArguments(PartsArguments):
    """What ``dragoman classify`` takes."""

    run: RunFolder = argument("RUN")
    given: list[str] = argument("TEXT", None)
    """Texts, or files with one text per line. Default: standard input. For a run that was trained
    on recordings or pictures: recordings or pictures, or folders of them."""
    to: To = None
    text: AsText = False
    plain: Plain = False
    all_: bool = False
    """Write all labels for each line, the most probable first."""
    explain: bool = False
    """Also show how much each word contributes to the label, by two measures."""
    into: Into = "label"


def classify(args: ClassifyArguments) -> None:
    """Classify each line: print its label, a tab and the probability of the label.

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
    log_to_stderr()
    opened = opened_run(args.run, "classification", "which does not label")
    if wants_parts(args):
        if opened.task.reads_files:
            raise DragomanError(f"{opened.folder} reads {opened.task.noun}: parts are of lines")
        language = opened.recipe.languages.source
        in_parts("classify", args, [args.given], outputs_of, language, unfit=("text", "explain"))
        return
    texts = args.given
    of_files = opened.task.reads_files
    if of_files:
        texts = named_files(texts, opened.recipe.source.kind)
        if args.explain:
            raise DragomanError(
                f"--explain tells what words have to do with a label, and {opened.folder} reads "
                f"{opened.task.noun}. Where it looks: dragoman look {opened.folder} FILE"
            )
    as_given = args.text or of_files
    files = [] if as_given else files_among(texts, "classify", "--to", "--text")
    from dragoman.engine.streaming import windows
    from dragoman.tasks.classification.labeller import Labeller
    from dragoman.tasks.classification.reasons import WARNING, reasons, table

    labeller = Labeller(opened)
    cut = refused = 0

    def one_by_one(names: Sequence[str]) -> Iterator[ClassifiedText]:
        """Of files of which some cannot be read: those are named, and the others labelled."""
        nonlocal refused
        for name in names:
            try:
                yield labeller(name)
            except DragomanError as error:
                if len(texts) == 1 and not Path(texts[0]).is_dir():
                    raise
                sys.stderr.write(f"error: {error}\n")
                refused += 1

    if of_files:
        lines = files_given(texts, opened.recipe.source.kind)
    else:
        lines = lines_given(files, texts, opened.recipe.languages.source, plain=args.plain)
    with output_to(args.to, files) as out:
        for window in windows(lines):
            try:
                found = labeller(window)
            except DragomanError:
                if not of_files:
                    raise
                found = list(one_by_one(window))
            cut += sum(one.cut for one in found)
            for one in found:
                name = f"{readable(one.text)}\t" if of_files else ""
                out.write(f"{name}{_written(args, one)}\n")
                if args.explain and one.text.strip():
                    out.write(f"{table(reasons(labeller, one.text))}\n\n")
            out.flush()
    if args.explain:
        typer.echo(WARNING, err=True)
    if cut:
        noun = opened.task.noun.removesuffix("s")
        units = opened.recipe.source.units
        typer.echo(
            f"{plural(cut, f'{noun} is', f'{noun}s are')} longer than the {labeller.longest:,} "
            f"{units} that the model reads: what is behind was not looked at.",
            err=True,
        )
    if refused:
        raise DragomanError(f"{plural(refused, 'file')} could not be labelled, as told above")


def outputs_of(args: ClassifyArguments, run: Run, precision: str) -> Outputs:
    """What a worker does to lines."""
    from dragoman.tasks.classification.labeller import Labeller

    labeller = Labeller(run)
    return labeller, lambda lines: (_written(args, found) for found in labeller(list(lines)))


def _written(args: ClassifyArguments, found: ClassifiedText) -> str:
    named = found.ranked if args.all_ else found.ranked[:1]
    return "\t".join(f"{name}\t{probability:.4f}" for name, probability in named)
