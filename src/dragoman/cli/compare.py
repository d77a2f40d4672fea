"""``dragoman compare``: is one system better than another, or was it luck?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.cli.options import AsJson, argument, arguments, option

if TYPE_CHECKING:
    from dragoman.studies.catalogue import ComparisonResult


@arguments
class CompareArguments:
    """What ``dragoman compare`` takes."""

    systems: list[Path] = argument()
    """Run folders, folders of several seeds (train --seeds), or files of translations. The first
    is the baseline."""
    source: Path | None = None
    """The test set: source sentences, labelled texts, tagged words or trees."""
    reference: list[Path] = option()
    """The references of --source. May be repeated."""
    test: str = "bootstrap"
    """The test: bootstrap (paired, Koehn 2004) or randomisation (Riezler 2005)."""
    samples: int | None = option(ge=1)
    """The number of resamplings. Default: 1,000 for bootstrap, 10,000 for randomisation."""
    seed: int = 12345
    """The seed of the resampling."""
    json: AsJson = False
    to: Path | None = None
    """Write a report on the runs as one page, FILE.html, and its numbers beside it, FILE.json: cost
    of training, speed, and the paper's figures."""


def compare(args: CompareArguments) -> None:
    """Compare systems on the same sentences, with significance.

    Without --source and --reference, the test set of the first run's recipe is used. The score of a
    folder of runs is their mean, with the standard deviation (sd): what the seed alone changes. The
    p-value is about the sentences: how sure the difference is on others like these.

    If a run has learned from test texts, it is named, and the systems are also compared over the
    other texts. If no system scores better than guessing (the same sentence for all, the most
    frequent label, right-branching trees), none is called better. Runs of different languages are
    refused. Below the figures are some texts with the output of each system.

    With --to, the report compares runs of different kinds in every respect: parameters, operations
    and minutes of training, dev BLEU over both, sentences a second and memory (each in its own
    process, in turns: leave the machine alone meanwhile), cost and path of their layers, BLEU by
    the length of the source (FILE-by-length.svg and .csv), the sweep of each (runs/x-sweep beside
    runs/x), and the paper's tables 1 and 2. It begins with who wins.

    Runs that label texts are compared by accuracy and macro F1, and parsers by F1 of labelled
    brackets and exact parses, with precision, recall, tags and F1 by length; --source is then a
    file of labelled texts or of trees.

    Example: dragoman compare runs/small runs/large --test bootstrap

    Example: dragoman compare runs/transformer runs/lstm --to report.html
    """
    from dragoman.cli.console import log_to_stderr, prepare_process, say
    from dragoman.errors import DragomanError
    from dragoman.studies.catalogue import compare_by, task_of
    from dragoman.studies.comparison import compare as compare_systems

    prepare_process()
    log_to_stderr()
    if args.to is not None and args.to.suffix != ".html":
        raise DragomanError(f"--to {args.to}: the report is a page, and its name ends in .html")
    if args.to is not None and not args.to.parent.is_dir():
        raise DragomanError(f"--to {args.to}: there is no folder {args.to.parent}")
    for path in args.systems if args.to is not None else ():
        if path.is_file():
            raise DragomanError(
                f"{path} is a file of translations, and a report (--to) is about runs, their "
                "training and their speed: leave one of the two out"
            )
    texts, how = (args.systems, args.source, args.reference), (args.test, args.samples, args.seed)
    compared: ComparisonResult
    if (compare_task := compare_by(task_of(args.systems))) is not None:
        if args.to is not None:
            raise DragomanError("--to is a report of runs that translate: leave it out")
        compared = compare_task(*texts, *how)
    else:
        translated = compare_systems(*texts, *how)
        compared = translated.compared
    typer.echo(json.dumps(compared.to_dict(), indent=2) if args.json else compared.table())
    if args.to is not None:
        from dragoman.atomic import write_text
        from dragoman.pictures.pages.comparison import comparison_html
        from dragoman.studies.report import report
        from dragoman.studies.report_page import report_page
        from dragoman.studies.several import write_figure

        found = report(translated, lambda text: typer.echo(text, err=True))
        numbers = json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
        write_text(args.to, comparison_html(report_page(found)))
        write_text(args.to.with_suffix(".json"), numbers + "\n")
        files = [args.to.with_suffix(".json")]
        if found.lengths.bins:
            figure = found.lengths.figure(f"{args.to.stem}-by-length", found.compared.test)
            files += write_figure(args.to.parent, figure)
        if not args.json:
            say("\n" + "\n".join(found.verdict))
            say(f"\nreport: {args.to}, numbers: {', '.join(map(str, files))}")
