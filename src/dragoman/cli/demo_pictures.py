"""What ``dragoman demo --task classify-picture`` makes before it trains, and shows of the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.demo_files import PICTURES, new_folder, reading

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.pictures.looked_at import LookedAt
    from dragoman.recipe import Recipe
    from dragoman.runs.run import Run

PICTURE = "looked-at.svg"


def draw_pictures(recipe: Recipe, to: Path, console: Console) -> Recipe:
    """Write the pictures that the demo learns from. -> The recipe, which then names them.

    Errors: ``RunError`` for a folder there that the demo did not make, ``DataError`` where the
    extra ``images`` is missing.
    """
    from dragoman.demo.shapes import DRAWN_NOTICE, drawn_demo, write_drawn
    from dragoman.forms.rows.picture_file import library
    from dragoman.pictures.bitmaps import png_of

    library()  # what reads pictures: without it nothing is written
    folder = new_folder(to, PICTURES, DRAWN_NOTICE, console)
    parts = drawn_demo()
    count = sum(map(len, parts.values()))
    console.print(f"Drawing {count:,} pictures into {folder}: open one of the PNG files.")
    write_drawn(folder, parts, png_of)
    return reading(recipe, folder)


def show_shapes(run: Run, console: Console) -> str:
    """How well shapes are told apart in combinations of pattern and colour that training did not
    show them in, and where the model looks."""
    from dragoman.atomic import write_text
    from dragoman.pictures.looked_at import looked_at_svg
    from dragoman.pictures.terminal import heatmap_text
    from dragoman.tasks.classification.evaluation import evaluate_run, labelled_set
    from dragoman.tasks.report import write_report
    from dragoman.tasks.shared.confusions import drawn

    found = evaluate_run(run)
    scores = found.scores
    console.print(
        f"\nTest: {found.confusion.texts:,} pictures whose combinations of shape, pattern and "
        "colour were held out\n"
        f"accuracy {scores['accuracy']:.1f} %, macro F1 {scores['macro_f1']:.1f} %\n"
    )
    picture = drawn("Shape by row, chosen by column (percent of the row)", found.labels,
                    found.confusion)  # fmt: skip
    assert picture is not None
    console.print(heatmap_text(picture, min(console.width, 100)))
    pairs = labelled_set(run).pairs
    chosen = [next(pair for pair in pairs if pair.target == name) for name in found.labels]
    looked = look_at_pictures(run, [(pair.source, pair.target) for pair in chosen])
    for pair, one in zip(chosen, looked, strict=True):
        console.print(f"  {Path(pair.source).name}: [bold]{one.said}[/bold]")
    path = run.folder / PICTURE
    write_text(path, looked_at_svg("Above: what was read. Below: what counted.", looked))
    return (
        f"\nWhere it looked in these pictures, by attention rollout: {path}; the whole report: "
        f"{write_report(run)}"
    )


def look_at_pictures(run: Run, pictures: list[tuple[str, str]]) -> list[LookedAt]:
    """Attention rollout over pictures, each given with its right label."""
    import numpy as np

    from dragoman.forms.rows.pictures_form import PicturesForm
    from dragoman.insight.figures.patches import rollout
    from dragoman.pictures.looked_at import LookedAt
    from dragoman.tasks.classification.labeller import Labeller

    labeller, form, looked = Labeller(run), run.source, list[LookedAt]()
    assert isinstance(form, PicturesForm)
    chosen = labeller([source for source, _ in pictures])
    for (source, true), one in zip(pictures, chosen, strict=True):
        values = np.asarray(labeller.source_values(source))
        record = labeller.look(source, ())
        shares = rollout(record.encoder, len(values)).reshape(form.settings.grid)
        looked.append(LookedAt(form.picture(values), shares, one.label, one.probability, true))
    return looked
