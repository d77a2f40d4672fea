"""``dragoman evaluate`` measures the quality of a run in figures that can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dragoman.base.errors import DragomanError, FileError
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
