"""``dragoman classify``: lines in, labels out; and its demos, of texts and of pictures."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.base.errors import DragomanError
from dragoman.base.reading import readable
from dragoman.base.wording import plural
from dragoman.cli.console import Failures, log_to_stderr, opened_run
from dragoman.cli.demo_files import PICTURES, Demo, DemoFiles
from dragoman.cli.given import files_given, named_files
from dragoman.cli.lines import (
    Into,
    LinesArguments,
    LineVerb,
    LineWork,
    do_lines,
    wants_parts,
    write_lines,
)
from dragoman.cli.options import argument, arguments

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.forms.form import Pair
    from dragoman.pictures.figure import Figure, Panel
    from dragoman.runs.run import Run
    from dragoman.tasks.classification.evaluation import ClassificationReport
    from dragoman.tasks.classification.labeller import ClassifiedText


@arguments
class ClassifyArguments(LinesArguments):
    """What ``dragoman classify`` takes."""

    given: list[str] = argument("TEXT", None)
    """Texts, or files with one text per line. Default: standard input. For a run that was trained
    on recordings or pictures: recordings or pictures, or folders of them."""
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
    run = opened_run(args.run, "classification", "which does not label")
    verb = LineVerb("classify", labelling, unfit=("text", "explain"))
    if not run.task.reads_files:
        do_lines(verb, args, run, run.recipe.languages.source)
        return
    if wants_parts(args):
        raise DragomanError(f"{run.folder} reads {run.task.noun}: parts are of lines")
    names = named_files(args.given, run.recipe.source.kind)
    if args.explain:
        raise DragomanError(
            f"--explain tells what words have to do with a label, and {run.folder} reads "
            f"{run.task.noun}. Where it looks: dragoman look {run.folder} FILE"
        )
    files = files_given(names, run.recipe.source.kind)
    write_lines(labelling(args, run, "", is_alone=len(names) == 1), files, args.to, ())


def labelling(
    args: ClassifyArguments, run: Run, precision: str, *, is_alone: bool = False
) -> LineWork:
    """What is done to lines, or to files, behind whose names their labels are written.

    ``is_alone``: whether there is one file, which must be read.
    """
    from dragoman.engine.streaming import windows
    from dragoman.tasks.classification.labeller import Labeller
    from dragoman.tasks.classification.reasons import WARNING, reasons, table

    labeller = Labeller(run)
    failures = Failures(1 if is_alone else None)
    cut = 0

    def labelled(window: Sequence[str]) -> list[ClassifiedText]:
        try:
            return labeller(window)
        except DragomanError:
            if not run.task.reads_files:
                raise
        found = []
        for name in window:
            with failures:
                found.append(labeller(name))
        return found

    def outputs(given: Iterable[str]) -> Generator[str]:
        nonlocal cut
        for window in windows(given):
            for one in labelled(window):
                cut += one.cut
                name = f"{readable(one.text)}\t" if run.task.reads_files else ""
                yield name + _written(args, one)
                if args.explain and one.text.strip():
                    yield f"{table(reasons(labeller, one.text))}\n"

    def end() -> None:
        if args.explain:
            typer.echo(WARNING, err=True)
        if cut:
            noun, units = run.task.noun.removesuffix("s"), run.recipe.source.units
            typer.echo(
                f"{plural(cut, f'{noun} is', f'{noun}s are')} longer than the {labeller.longest:,} "
                f"{units} that the model reads: what is behind was not looked at.",
                err=True,
            )
        failures.end("file", "labelled")

    return LineWork(labeller, outputs, end=end)


def _written(args: ClassifyArguments, found: ClassifiedText) -> str:
    named = found.ranked if args.all_ else found.ranked[:1]
    return "\t".join(f"{name}\t{probability:.4f}" for name, probability in named)


LOOKED_AT_PICTURE = "looked-at.svg"


def show_labels(run: Run, found: ClassificationReport, console: Console) -> str:
    """Which German pronoun an English "it" becomes, and what is taken for what."""
    from dragoman.tasks.classification.labeller import Labeller
    from dragoman.tasks.report import write_report

    show_confusions(found, console, "sentences whose combinations", "Pronoun")
    console.print("The same words but the last, which decides what “it” is:\n")
    for one in Labeller(run)(
        f"The animal didn't cross the street because it was too {last}."
        for last in ("tired", "wide")
    ):
        told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in one.ranked)
        console.print(f"  {one.text}\n  [bold]{one.label}[/bold]  ({told})\n")
    return f"The whole report: {write_report(run)}"


def drawn_pictures() -> DemoFiles:
    """The pictures that the demo learns from. Errors: ``DataError`` where the extra ``images`` is
    missing."""
    from dragoman.demo.shapes import DRAWN_NOTICE, drawn_demo, write_drawn
    from dragoman.pictures.bitmaps import png_of
    from dragoman.sources.picture.picture_file import library

    library()
    telling = "Drawing {count} pictures into {folder}: open one of the PNG files."
    write = partial(write_drawn, encoded=png_of)
    return DemoFiles(PICTURES, DRAWN_NOTICE, telling, drawn_demo, write)


def show_shapes(run: Run, found: ClassificationReport, console: Console) -> str:
    """How well shapes are told apart in combinations of pattern and colour that training did not
    show them in, and where the model looks."""
    from dragoman.base.atomic import write_text
    from dragoman.pictures.figure import figure_svg
    from dragoman.tasks.classification.evaluation import ClassificationEvaluation
    from dragoman.tasks.report import write_report
    from dragoman.tasks.shared.evaluation import EvaluationRequest

    of = "pictures whose combinations of shape, pattern and colour"
    show_confusions(found, console, of, "Shape")
    pairs = ClassificationEvaluation().known(EvaluationRequest(run)).pairs
    chosen = [next(pair for pair in pairs if pair.target == name) for name in found.labels]
    figure, said = rollout_sheet(run, chosen)
    for pair, one in zip(chosen, said, strict=True):
        console.print(f"  {Path(pair.source).name}: [bold]{one}[/bold]")
    path = run.folder / LOOKED_AT_PICTURE
    write_text(path, figure_svg(figure))
    return (
        f"\nWhere it looked in these pictures, by attention rollout: {path}; the whole report: "
        f"{write_report(run)}"
    )


def show_confusions(found: ClassificationReport, console: Console, tested: str, label: str) -> None:
    """How well a run labels its test set, and what it takes for what."""
    from dragoman.pictures.terminal import heatmap_text
    from dragoman.tasks.shared.label_report import drawn

    scores = found.scores
    console.print(
        f"\nTest: {found.confusion.texts:,} {tested} were held out\n"
        f"accuracy {scores['accuracy']:.1f} %, macro F1 {scores['macro_f1']:.1f} %\n"
    )
    title = f"{label} by row, chosen by column (percent of the row)"
    picture = drawn(title, found.labels, found.confusion)
    assert picture is not None
    console.print(heatmap_text(picture, min(console.width, 100)))


def rollout_sheet(run: Run, pictures: Sequence[Pair]) -> tuple[Figure, list[str]]:
    """Attention rollout over pictures, a row for each, and what is said of each."""
    from dragoman.insight.figures.catalogue import make_figure
    from dragoman.insight.subject import Subject
    from dragoman.pictures.matrix import MatrixPicture
    from dragoman.tasks.classification.labeller import Labeller

    subject = Subject.open(run.folder, pictures[0].source)
    labeller = subject.predictor
    assert isinstance(labeller, Labeller)
    panels: list[Panel] = []
    said = []
    chosen = labeller([pair.source for pair in pictures])
    for pair, label in zip(pictures, chosen, strict=True):
        one = replace(subject, sentence=pair.source)
        figure = make_figure("picture-rollout", one)
        wrong = "" if label.label == pair.target else f", not {pair.target}"
        said.append(f"{label.label} {100 * label.probability:.0f} %{wrong}")
        first, *others = figure.panels
        assert isinstance(first, MatrixPicture)
        panels += [replace(first, title=said[-1]), *others]
    return replace(figure, panels=panels), said


TEXTS_DEMO = Demo(
    "demo-labels", "an encoder, which gives each English sentence a label, the\nGerman pronoun "
    "(er, sie or es) that its “it” becomes", show_labels, (
        "classify {to} 'The dog ate the soup although it was very hot.' --all",
        "train my.tsv --task classification  # your own texts",
    ),
)  # fmt: skip
PICTURES_DEMO = Demo(
    "demo-pictures", "a Vision Transformer, pictures to the shapes that they show",
    show_shapes, (
        "classify {to} {to}-pictures/test/000*.png",
        "figure picture-rollout --run {to} --sentence {to}-pictures/test/0000*.png",
        "serve {to}            # drop a picture on the page",
        "train my-pictures/ --task classification  # a folder for each label",
    ), drawn_pictures,
)  # fmt: skip
