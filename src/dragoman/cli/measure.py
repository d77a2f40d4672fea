"""``dragoman evaluate`` measures the quality of a run in figures that can be compared. ``dragoman
compare`` tests whether one system is better than another, or only by chance.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dragoman.base.errors import DragomanError, FileError, RunError
from dragoman.console.options import (
    AsJson,
    RunFolder,
    Tag,
    Verbose,
    argument,
    arguments,
    option,
    search_settings,
    setting,
    translator_settings,
    values_of,
)
from dragoman.console.output import prepare_process, say
from dragoman.tasks.program import NOT_COMPARED

if TYPE_CHECKING:
    from dragoman.runs.run import Run


@arguments
class EvaluateArguments:
    """The arguments and options of ``dragoman evaluate``."""

    run: RunFolder = argument("RUN")
    files: list[Path] = argument("[FILE]...", None)
    """The test set: for translation, a file of source sentences and one or more files of
    references; otherwise a file of texts, labelled texts, tagged words or bracketed trees. Default:
    the run's test set."""
    beam: int | None = setting(search_settings, default=None)
    set_: list[str] = option()
    """Change any search setting, such as length_penalty=1.0. For a language model: window=512 or
    stride=64. May be repeated."""
    mbr: int = setting(translator_settings, metavar="N", le=None)
    precision: str = setting(translator_settings)
    shortlist: bool = setting(translator_settings)
    ensemble: list[Path] = option()
    """Another run to combine with RUN. May be repeated."""
    tag: Tag = None
    robust: bool = False
    """For translators of text: also translate the sources with noise (typing errors, lower case, no
    punctuation, no accents, missing words), and print how much each kind lowers the scores."""
    judge: Path | None = None
    """For painters: a run that reads pictures and writes their captions, or has them as labels. It
    says in how many pictures it reads their caption."""
    best_of: int = option(1, ge=1, metavar="N")
    """With --judge: paint N pictures of each caption, of which the judge chooses one."""
    columns: str | None = None
    """The columns of source and reference, of text and label, or of word and tag, such as 2,3. For
    labelled texts, label,text and text,label are accepted too. Default: the same columns as in
    training."""
    keys: tuple[str, str] | None = None
    """For a .jsonl file: the keys of source and reference, such as translation.en
    translation.de."""
    output: Path | None = None
    """Also write the translations, parses or tags to this file."""
    json: AsJson = False
    verbose: Verbose = option(False, "-v")


def evaluate(args: EvaluateArguments) -> None:
    """Evaluate a run on a test set.

    The metrics depend on the task. Translators: BLEU, chrF, chrF++ and TER with sacreBLEU's
    signatures; for recordings also WER and CER with substitutions, deletions, insertions, and the
    recordings with the most errors. Language models: perplexity and bits per byte. Masked models:
    loss and accuracy on masked tokens, and pseudo-perplexity. Classifiers: accuracy, F1, the
    confusion matrix and the mistakes of which the model was most certain. Taggers: accuracy on
    known and unknown words, and F1 of spans. Parsers: labelled precision, recall and F1, counted as
    EVALB counts them.

    Without files, the run is evaluated on the test set of its recipe, and the result is saved in
    the run's scores.json, which reports and folders of seeds use. With --beam, --set, --mbr,
    --precision, --shortlist or --ensemble, the result is printed but not saved. For translation,
    give the source file first, then the references; a single file with both sides (.tsv, .jsonl,
    .tmx and others) is read as for training. Each metric handles several references by its own
    definition, and the signature states their number. If the run was trained on lower-cased,
    Moses-tokenised text, as in older papers, BLEU on such text is printed too, with an explanation
    of the difference.
    """
    from dragoman.base.atomic import check_is_file, write_text
    from dragoman.tasks import catalogue

    if args.output is not None:  # checked before minutes of translating
        check_is_file(args.output)
        if not args.output.parent.is_dir():
            raise FileError(f"cannot write {args.output}: there is no folder {args.output.parent}")
    opened = catalogue.Run.open(args.run).with_tag(args.tag)
    given: dict[str, Any] = {
        "beam": args.beam, **values_of(args, translator_settings),
        "ensemble": args.ensemble, "output": args.output, "columns": args.columns,
        "keys": args.keys, "robust": args.robust, "judge": args.judge,
        "best_of": args.best_of if args.best_of > 1 else 0,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value and value != "auto"}
    for name in options:
        if name not in opened.task.evaluation_options:
            flag = name.replace("_", "-")
            raise DragomanError(f"--{flag}: {args.run} is a {opened.task.called}. Leave it out")
    changes = [*args.set_, *([f"beam={options.pop('beam')}"] if args.beam is not None else [])]
    options.pop("output", None)
    if args.ensemble:
        options["ensemble"] = [
            catalogue.Run.open(path).with_tag(args.tag) for path in args.ensemble
        ]
    if args.judge:
        options["judge"] = catalogue.Run.open(args.judge)
    result = catalogue.runtime_of(opened.task).evaluate(opened, args.files, changes, **options)
    if args.output is not None:
        write_text(args.output, "".join(f"{h}\n" for h in result.outputs()))
    if args.json:
        typer.echo(json.dumps(result.to_dict(), indent=2, ensure_ascii=False))
    else:
        typer.echo(result.table())
        if not args.files:
            say_tuning(opened)


def say_tuning(run: Run) -> None:
    """Print how a tuned run scores on the new and the old text, if it keeps old text."""
    from dragoman.pictures.labels import plain_table
    from dragoman.tasks.report import tuning_table

    if (table := tuning_table(run)) is not None:
        typer.echo(f"\n{table.title}\n{plain_table(table.header, table.rows)}\n{table.note}")


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
