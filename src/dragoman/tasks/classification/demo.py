"""The demos of classification, of texts and of pictures: their files, and the results they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.console.demo_files import PICTURES, Demo, DemoFiles

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.forms.form import Pair
    from dragoman.pictures.figure import Figure, Panel
    from dragoman.runs.run import Run
    from dragoman.tasks.classification.evaluation import ClassificationReport


LOOKED_AT_PICTURE = "looked-at.svg"


def show_labels(run: Run, measured: ClassificationReport, console: Console) -> str:
    """Show which German pronoun an English "it" becomes, and which pronouns are confused."""
    from dragoman.tasks.classification.labeller import Labeller
    from dragoman.tasks.report import write_report

    show_confusions(measured, console, "sentences whose combinations", "Pronoun")
    console.print("The same words but the last, which decides what “it” is:\n")
    for answer in Labeller(run)(
        f"The animal didn't cross the street because it was too {last}."
        for last in ("tired", "wide")
    ):
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in answer.ranked)
        console.print(f"  {answer.text}\n  [bold]{answer.label}[/bold]  ({shares})\n")
    return f"The whole report: {write_report(run)}"


def shape_pictures() -> DemoFiles:
    """Make the pictures that the demo learns from. Errors: ``DataError`` if the extra ``images`` is
    missing."""
    from dragoman.demo.shapes import DRAWN_NOTICE, draw_demo, write_drawn
    from dragoman.pictures.bitmaps import png_of
    from dragoman.sources.picture.picture_file import library

    library()
    telling = "Drawing {count} pictures into {folder}: open one of the PNG files."
    write = partial(write_drawn, encoded=png_of)
    return DemoFiles(PICTURES, DRAWN_NOTICE, telling, draw_demo, write)


def show_shapes(run: Run, measured: ClassificationReport, console: Console) -> str:
    """Show how well shapes are recognised in combinations of pattern and colour that training did
    not have, and where the model looks."""
    from dragoman.base.atomic import write_text
    from dragoman.pictures.figure import figure_svg
    from dragoman.tasks.classification.evaluation import ClassificationEvaluation
    from dragoman.tasks.report import write_report
    from dragoman.tasks.shared.evaluation import EvaluationRequest

    of = "pictures whose combinations of shape, pattern and colour"
    show_confusions(measured, console, of, "Shape")
    pairs = ClassificationEvaluation().read_fitting(EvaluationRequest(run)).pairs
    chosen = [next(pair for pair in pairs if pair.target == name) for name in measured.labels]
    figure, captions = rollout_sheet(run, chosen)
    for pair, caption in zip(chosen, captions, strict=True):
        console.print(f"  {Path(pair.source).name}: [bold]{caption}[/bold]")
    path = run.folder / LOOKED_AT_PICTURE
    write_text(path, figure_svg(figure))
    return (
        f"\nWhere it looked in these pictures, by attention rollout: {path}; the whole report: "
        f"{write_report(run)}"
    )


def show_confusions(report: ClassificationReport, console: Console, what: str, label: str) -> None:
    """Show the scores of a run on its test set, and its confusions."""
    from dragoman.pictures.terminal import heatmap_text
    from dragoman.tasks.shared.label_report import draw_confusion

    scores = report.scores
    console.print(
        f"\nTest: {report.confusion.texts:,} {what} were held out\n"
        f"accuracy {scores['accuracy']:.1f} %, macro F1 {scores['macro_f1']:.1f} %\n"
    )
    title = f"{label} by row, chosen by column (percent of the row)"
    picture = draw_confusion(title, report.labels, report.confusion)
    assert picture is not None
    console.print(heatmap_text(picture, min(console.width, 100)))


def rollout_sheet(run: Run, pictures: Sequence[Pair]) -> tuple[Figure, list[str]]:
    """Draw the attention rollout of some pictures, one row for each. Returns the figure, and for
    each picture a text with the label that the run chose."""
    from dragoman.insight.figures.catalogue import make_figure
    from dragoman.insight.subject import Subject
    from dragoman.pictures.matrix import MatrixPicture
    from dragoman.tasks.classification.labeller import Labeller

    subject = Subject.open(run, pictures[0].source)
    labeller = subject.predictor
    assert isinstance(labeller, Labeller)
    panels: list[Panel] = []
    captions = []
    chosen = labeller([pair.source for pair in pictures])
    for pair, label in zip(pictures, chosen, strict=True):
        figure = make_figure("picture-rollout", replace(subject, sentence=pair.source))
        wrong = "" if label.label == pair.target else f", not {pair.target}"
        captions.append(f"{label.label} {100 * label.probability:.0f} %{wrong}")
        first, *rest = figure.panels
        assert isinstance(first, MatrixPicture)
        panels += [replace(first, title=captions[-1]), *rest]
    return replace(figure, panels=panels), captions


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
    ), shape_pictures,
)  # fmt: skip
