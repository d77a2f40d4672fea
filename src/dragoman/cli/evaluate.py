"""``dragoman evaluate``: how good a run is, in figures that can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="What is measured on: sentences to translate and their references, in several "
            "files where each has several; or texts, labelled texts, bracketed trees.",
            metavar="[FILE]...",
        ),
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam width.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any search setting: length_penalty=1.0; of a language model "
            "window=512 or stride=64.",
        ),
    ] = None,
    mbr: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Choose among N candidates; see dragoman translate."),
    ] = 0,
    precision: Annotated[str, typer.Option(help="auto, int8, bf16 or fp32.")] = "auto",
    shortlist: Annotated[
        bool,
        typer.Option("--shortlist", help="Score likely words alone; see dragoman shortlist."),
    ] = False,
    ensemble: Annotated[
        list[Path] | None,
        typer.Option(help="A run that translates together with RUN; may be given again."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of source and reference, or of text and label, in a tab-separated file: "
            "2,3; for labelled texts also label,text or text,label. As in training if not given."
        ),
    ] = None,
    keys: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Of a .jsonl file, where the sides are: translation.en translation.de"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Also write the translations or parses to this file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of a table.")] = False,
) -> None:
    """Translate a test set and score it: BLEU, chrF, chrF++ and TER with sacreBLEU's signatures; of
    a language model, the perplexity and the bits per byte of a file (or folder) of texts; of a
    masked model, loss and accuracy of masked tokens, and the pseudo-perplexity; of a run that
    labels, accuracy and F1 on a file of labelled texts, what it takes for what, and its surest
    mistakes; of a parser, labelled precision, recall and F1 on a file (or folder) of bracketed
    trees, as EVALB counts.

    Without files, the test set of the recipe is used, and what is found is kept in the run's
    scores.json, which reports and folders of seeds read; with --beam, --set, --mbr, --precision,
    --shortlist or --ensemble it is printed alone. Of translations the sources come first; one
    file with both sides (.tsv, .jsonl) is read as train reads it.
    Several references are each compared with as the metric defines it; the signature says how many
    there were. Where the run follows the older protocol (lower-cased, Moses-tokenised text), its
    own BLEU is given beside, with the reason they differ.
    """
    from dragoman.atomic import check_is_file, write_text
    from dragoman.cli.console import log_to_stderr
    from dragoman.errors import DragomanError, FileError
    from dragoman.runs.run import Run
    from dragoman.tasks.catalogue import runtime_of

    if output is not None:  # before minutes of translating
        check_is_file(output)
        if not output.parent.is_dir():
            raise FileError(f"cannot write {output}: there is no folder {output.parent}")
    log_to_stderr()
    opened = Run.open(run)
    given: dict[str, Any] = {
        "beam": beam, "mbr": mbr, "precision": None if precision == "auto" else precision,
        "shortlist": shortlist, "ensemble": ensemble, "output": output, "columns": columns,
        "keys": keys,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value}
    for name in options:
        if name not in opened.task.evaluation_options:
            raise DragomanError(
                f"--{name}: {run} is a {opened.task.called}, which has no use for it"
            )
    changes = [*(set_ or []), *([f"beam={options.pop('beam')}"] if beam is not None else [])]
    options.pop("output", None)
    if ensemble:
        options["ensemble"] = [Run.open(one) for one in ensemble]
    result = runtime_of(opened.task).evaluate(opened, files or (), changes, **options)
    if output is not None:
        write_text(output, "".join(f"{h}\n" for h in result.outputs()))
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2, ensure_ascii=False))
    else:
        typer.echo(result.table())
