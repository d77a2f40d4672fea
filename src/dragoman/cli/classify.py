"""``dragoman classify``: lines in, labels out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.given import AsText, Plain, files_among, lines_given
from dragoman.plural import plural


def classify(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    given: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts, or files with one text per line; standard input if not given.",
            metavar="TEXT",
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write to this file, whole or not at all.")
    ] = None,
    as_text: AsText = False,
    plain: Plain = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="All labels of each line, the most probable first, behind one another."
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why", help="Also what each word has to do with the label, by two measures."
        ),
    ] = False,
) -> None:
    """Give each line a label: the label, a tab and its probability.

    One line comes out for each that goes in, an empty one too. The model chooses among the labels
    that it was trained on, also where none of them fits: a low probability says so, a high one
    promises nothing about text unlike that of the training.

    Examples:

      dragoman classify runs/topics < letters.txt

      dragoman classify runs/topics letters.txt --to labels.tsv

      dragoman classify runs/topics "Shares fell again." --all

      dragoman classify runs/topics "Shares fell again." --why
    """
    from dragoman.cli.console import log_to_stderr, output_to
    from dragoman.runs.run import Run

    log_to_stderr()
    opened = Run.open(run)
    texts = given or []
    files = [] if as_text else files_among(texts, "classify", "--to", "--text")
    from dragoman.engine.streaming import windows
    from dragoman.tasks.classification.labeller import Labelled, Labeller
    from dragoman.tasks.classification.reasons import WARNING, reasons, table

    def written(found: Labelled) -> str:
        named = found.ranked if every else found.ranked[:1]
        return "\t".join(f"{name}\t{probability:.4f}" for name, probability in named)

    labeller = Labeller(opened)
    cut = 0
    lines = lines_given(files, texts, opened.recipe.languages.source, plain=plain)
    with output_to(to) as out:
        for window in windows(lines):
            found = labeller(window)
            cut += sum(one.cut for one in found)
            for one in found:
                out.write(f"{written(one)}\n")
                if why and one.text.strip():
                    out.write(f"{table(reasons(labeller, one.text))}\n\n")
            out.flush()
    if why:
        typer.echo(WARNING, err=True)
    if cut:
        typer.echo(
            f"{plural(cut, 'line is', 'lines are')} longer than the "
            f"{labeller.longest:,} tokens that the model reads: what is behind was not looked at.",
            err=True,
        )
