"""``dragoman compare`` tests whether one system is better than another, or only by chance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from dragoman.base.errors import DragomanError, RunError
from dragoman.console.options import AsJson, Verbose, argument, arguments, option
from dragoman.console.output import prepare_process, say
from dragoman.tasks.program import NOT_COMPARED


@arguments
class CompareArguments:
    """The arguments and options of ``dragoman compare``."""

    systems: list[Path] = argument()
    """Run folders, folders of several seeds (train --seeds), or files of translations. The first
    is the baseline."""
    source: Path | None = None
    """The test set: a file of source sentences, labelled texts, tagged words or trees."""
    reference: list[Path] = option()
    """A file of references for --source. May be repeated."""
    test: str = "bootstrap"
    """The significance test: bootstrap (paired, Koehn 2004) or randomisation (Riezler 2005)."""
    samples: int | None = option(ge=1)
    """The number of resamples. Default: 1,000 for bootstrap, 10,000 for randomisation."""
    seed: int = 12345
    """The seed for the resampling."""
    json: AsJson = False
    verbose: Verbose = option(False, "-v")
    to: Path | None = None
    """Write a report on the runs to this file, FILE.html, and its numbers to FILE.json: training
    cost, speed, and the paper's tables."""


def compare(args: CompareArguments) -> None:
    """Compare systems on the same test set, with a significance test.

    Without --source and --reference, the test set of the first run's recipe is used. For a folder
    of several seeds, the score is the mean of its runs, with the standard deviation (sd) over the
    seeds. The p-value concerns the choice of test sentences: the smaller it is, the more certain it
    is that the difference also exists on other sentences like these.

    If a run was trained on some of the test texts, a warning names it, and the systems are also
    compared on the other texts. If no system scores better than guessing (the same sentence for
    every source, the most frequent label, right-branching trees), no system is called better, nor
    is one of two runs that have hardly learned their task. Runs with different languages cannot be
    compared. Below the scores, you see the updates and tokens that each run was trained on, and the
    output of each system for some of the texts.

    With --to, a report states the winner and compares the runs in more detail. It has parameters,
    training operations and minutes, with dev BLEU plotted against both. It has sentences per second
    and memory: each run is measured in its own process, one after another. It has the cost and path
    length of the layers, BLEU by source length (FILE-by-length.svg and .csv), and tables 1 and 2 of
    the paper. If runs/x has been swept, the sweep is read from runs/x-sweep. Do not use the machine
    for other work while speed is being measured.

    Classifiers are compared by accuracy and macro F1; --source is then a file of labelled texts.
    Taggers are compared by accuracy and, if their tags mark spans, by the F1 of spans; --source is
    then a file of tagged words.
    Parsers are compared by labelled bracket F1 and exact parses, with precision, recall, tag
    accuracy and F1 by length; --source is then a file of trees. Runs that transcribe are compared
    by word and character error rate (WER, CER), and whole speakers are resampled where they are
    known.

    Example: dragoman compare runs/small runs/large --test bootstrap

    Example: dragoman compare runs/transformer runs/lstm --to report.html
    """
    from dragoman.studies.comparison import compare as compare_translations
    from dragoman.studies.comparison import compare_runs
    from dragoman.studies.systems import ComparisonRequest, significance_test

    prepare_process()
    if args.to is not None and args.to.suffix != ".html":
        raise DragomanError(f"--to {args.to}: use a name that ends in .html")
    if args.to is not None and not args.to.parent.is_dir():
        raise DragomanError(f"--to {args.to}: there is no folder {args.to.parent}")
    for path in args.systems if args.to is not None else ():
        if path.is_file():
            raise DragomanError(
                f"{path} is a file of translations, but a report (--to) compares only runs. "
                "Leave out --to, or give run folders"
            )
    test = significance_test(args.test)
    request = ComparisonRequest(
        args.systems, args.source, args.reference, test, args.samples, args.seed
    )
    if not _are_compared_by_texts(args.systems):
        if args.to is not None:
            raise DragomanError("--to works only with runs that translate. Leave it out")
        compared = compare_runs(request)
    else:
        if args.to is not None:
            _check_reads_text(args.systems)
        translated = compare_translations(request)
        compared = translated.compared
    typer.echo(json.dumps(compared.to_dict(), indent=2) if args.json else compared.table())
    if args.to is not None:
        from dragoman.base.atomic import write_text
        from dragoman.pictures.figure import write_figure
        from dragoman.pictures.report import comparison_html
        from dragoman.studies.report import report
        from dragoman.studies.report_page import report_page

        result = report(translated, lambda text: typer.echo(text, err=True))
        numbers = json.dumps(result.to_dict(), indent=2, ensure_ascii=False)
        write_text(args.to, comparison_html(report_page(result)))
        write_text(args.to.with_suffix(".json"), numbers + "\n")
        files = [args.to.with_suffix(".json")]
        if result.lengths.bins:
            figure = result.lengths.figure(f"{args.to.stem}-by-length", result.compared.test)
            files += write_figure(args.to.parent, figure)
        if not args.json:
            say("\n" + "\n".join(result.verdict))
            say(f"\nreport: {args.to}, numbers: {', '.join(map(str, files))}")


def _are_compared_by_texts(paths: Sequence[Path]) -> bool:
    """Return True if systems are compared by their output, as runs of the first run's task and
    files of texts are.

    Errors: ``RunError`` for a folder without a run, ``DragomanError`` for runs of a task without
    a significance test.
    """
    from dragoman.studies.seeds import runs_of
    from dragoman.tasks.catalogue import runtime_of

    folder = next((path for path in paths if path.is_dir()), None)
    if folder is None or (task := runs_of(folder)[0].task).writes_text:
        return True
    if task.name in NOT_COMPARED:
        who, test = NOT_COMPARED[task.name]
        raise DragomanError(
            f"{who} have no significance test. Measure each run on the same pictures (dragoman "
            f"evaluate RUN {test})"
        )
    return runtime_of(task).parts().compared is None


def _check_reads_text(paths: Sequence[Path]) -> None:
    """Raise ``RunError`` for runs that read files, because a report needs the words of sources."""
    from dragoman.studies.seeds import runs_of

    for run in (runs_of(path)[0] for path in paths if path.is_dir()):
        if run.task.reads_files:
            raise RunError(
                f"--to writes a report about runs that read text, but {run.folder} reads "
                f"{run.task.noun}. Leave it out"
            )
