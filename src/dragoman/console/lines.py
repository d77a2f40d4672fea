"""A verb that makes a line from each line, in one process, or in parts by many workers with
``--on`` and ``--part``."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar

from dragoman.base.errors import DragomanError
from dragoman.console.given import AsText, Plain, files_among, lines_given
from dragoman.console.options import RunFolder, argument, arguments
from dragoman.console.output import output_to, progress_console

if TYPE_CHECKING:
    from dragoman.cluster.lines import LineMapper
    from dragoman.runs.run import Run

To = Annotated[
    str | None,
    "Write to this file. The file appears only when it is complete. With --on or --part: the "
    "folder or bucket for the parts.",
]
Into = Annotated[str, "With --on or --part: the field or column to write."]


@arguments
class PartsArguments:
    """The options of a verb that can process its lines in parts."""

    listed_last: ClassVar = True

    on: str | None = None
    """Divide the input into parts and work on them in several processes: local on this machine
    (local:4 starts four), ray on a Ray cluster (ray:40 starts forty). Inputs are files, folders or
    patterns such as 's3://bucket/in/*.zst', with lines of text, JSON Lines or Parquet. The parts
    are written to the folder or bucket that --to names. Repeat the command to continue after an
    interruption."""
    part: str | None = None
    """Work only on some of the parts, so that several commands divide the work. 17/500: this is
    command 17 of 500, such as the tasks of a Slurm array or an indexed Kubernetes job. 0/500 only
    writes the plan, which lists the parts."""
    lines: int = 20_000
    """With --on or --part: the most lines in a part."""
    field: str = "text"
    """With --on or --part: the field of JSON Lines or the column of Parquet to read. If each
    example is a pair of texts, give two names, separated by a comma."""
    into: Into = ""
    mixed: bool = False
    """With --on or --part: allow workers with different processors or versions. In rare cases,
    where two outputs have almost the same score, they may choose differently."""


@arguments
class LinesArguments(PartsArguments):
    """The arguments and options of verbs that process the lines of a text."""

    run: RunFolder = argument("RUN")
    to: To = None
    text: AsText = False
    plain: Plain = False


PLACES = ("on", "part", "lines", "field", "into", "mixed", "to", "quiet", "verbose", "precision")
"""Options that do not determine the output of a line. The workers agree on the precision; a
given precision is theirs from the beginning."""
_RUNS = ("run", "rerank", "ensemble")
"""The options whose values are run folders."""

Arguments = TypeVar("Arguments")


class LineWork(NamedTuple):
    """An opened model, and its processing of lines."""

    predictor: Any
    outputs: Callable[[Any], Generator[str]]
    """A function that takes lines, or pairs of lines, and yields the output of each, without its
    last line end."""
    seen: Callable[..., Any] | None = None
    """The function ``LineMapper.seen``, for work in parts."""
    end: Callable[[], None] = lambda: None
    """A function that prints further results on standard error, for work in one process."""


class LineVerb(NamedTuple):
    """A verb that makes a line from each line."""

    name: str
    make: Callable[[Any, Run, str], LineWork]
    """A function that opens a model for arguments, their run and a precision (that of other
    workers; "": the fastest). It must be a function of a module, because it is sent to other
    processes."""
    unfit: Sequence[str] = ("text",)
    """The options that cannot be used in parts."""
    inputs: Sequence[str] = ("given",)
    """The arguments that name files; lines of two files form pairs."""


def do_lines(verb: LineVerb, args: Any, run: Run, language: str) -> None:
    """Process the lines of files, texts, or the lines of standard input, in parts if the options
    say so. ``language``: that of the text. Errors: ``DragomanError``."""
    if wants_parts(args):
        in_parts(verb, args, run, language)
        return
    (given,) = _inputs(verb, args) or [[]]
    takes_text = "text" in verb.unfit
    files = []
    if not (takes_text and args.text):
        files = files_among(given, verb.name, "--to", *(["--text"] if takes_text else []))
    lines = lines_given(files, given, language, plain=args.plain)
    write_lines(verb.make(args, run, ""), lines, args.to, files)


def write_lines(
    work: LineWork, lines: Iterable[Any], to: str | None, read: Sequence[str | Path]
) -> None:
    """Write the output of each line to a file or to standard output, as it comes. ``read``: the
    input files. Errors: ``DragomanError``."""
    with output_to(to, read) as out, closing(work.outputs(lines)) as outputs:
        for output in outputs:
            out.write(f"{output}\n")
            if to is None:  # a file appears only when it is complete
                out.flush()
    work.end()


def wants_parts(args: Any) -> bool:
    """Return True if the arguments ask for work in parts."""
    return args.on is not None or args.part is not None


def in_parts(
    verb: LineVerb,
    args: Any,
    run: Run,
    language: str,
    *,
    reads: int = 1,
    further: Mapping[str, Any] | None = None,
    seen: Callable[[Any], None] = lambda seen: None,
) -> None:
    """Do the work of a verb in parts.

    ``run``: the run of the arguments, whose class opens it again in each worker. ``language``:
    that of the text. ``reads``: the number of texts in a row. ``further``: what the output depends
    on besides the options. ``seen``: gets what the work has seen in each part. Errors:
    ``DragomanError``.
    """
    from dragoman.cluster import lines
    from dragoman.cluster.driver import Command

    option = "--on" if args.on is not None else "--part"
    for name in verb.unfit:
        if getattr(args, name):
            raise DragomanError(f"--{name.strip('_')} does not work with {option}. Leave one out")
    if args.to is None:
        raise DragomanError(
            f"{option} writes several files. Set their folder or bucket: --to FOLDER, or --to "
            "s3://bucket/out"
        )
    if not 1 <= args.lines <= 10_000_000:
        raise DragomanError(f"--lines {args.lines}: use a number from 1 to 10,000,000")
    inputs = _inputs(verb, args)
    if not inputs or not all(inputs):
        raise DragomanError(f"{option} cannot read standard input. Give files, folders or patterns")
    given = _absolute(args)
    runs = type(run)
    asked = _job_request(verb, given, runs, inputs, reads, language, further or {})
    make = partial(_mapper, verb.make, given, runs, reads)
    console = progress_console(getattr(args, "quiet", False))
    work = Command(args.to, args.on, args.part, console)
    lines.run(work, asked, make, mixed=args.mixed, seen=seen)


def _inputs(verb: LineVerb, args: Any) -> list[list[str]]:
    """Return the files or texts of the arguments that name them."""
    values = [getattr(args, name) for name in verb.inputs]
    return [value if isinstance(value, list) else [value] for value in values if value is not None]


def _mapper(
    make: Callable[[Any, Run, str], LineWork], args: Any, runs: type[Run], reads: int,
    precision: str,
) -> LineMapper:  # fmt: skip
    """Return a worker's function for rows."""
    from dragoman.cluster.lines import LineMapper

    predictor, outputs, seen, _ = make(args, runs.open(args.run), precision)
    way = predictor.precision, predictor.level, predictor.description
    given = outputs if reads == 2 else lambda rows: outputs([text for (text,) in rows])
    return LineMapper(given, *way, *([] if seen is None else [seen]))


def _job_request(
    verb: LineVerb, args: Any, runs: type[Run], inputs: Sequence[Sequence[str]], reads: int,
    language: str, further: Mapping[str, Any],
) -> Any:  # fmt: skip
    from dragoman.cluster.files import files_of
    from dragoman.cluster.kinds import Fields
    from dragoman.cluster.lines import version
    from dragoman.cluster.plan import Asked

    names = tuple(args.field.split(","))
    if reads == 2 and names == ("text",):
        names = ("source", "target")
    if len(names) != reads or not all(names) or not args.into:
        wants = "one name" if reads == 1 else "two names with a comma between them"
        raise DragomanError(f"--field {args.field}: give {wants}")
    columns = [files_of(addresses) for addresses in inputs]
    if len({len(column) for column in columns}) > 1:
        counts = " and ".join(str(len(column)) for column in columns)
        raise DragomanError(
            f"there are {counts} files on the two sides. Give the same number of files on each side"
        )
    hashes, options = {}, {"dragoman": version("dragoman"), **further}
    for field in fields(args):
        value = getattr(args, field.name)
        if field.name in _RUNS:
            several = value if isinstance(value, list) else [value] if value is not None else []
            hashes.update({str(path): run_fingerprint(runs.open(path)) for path in several})
        elif field.name not in PLACES and field.name not in verb.inputs:
            options[field.name] = value
    return Asked(
        verb.name, hashes, options, args.lines, Fields(names, args.into),
        tuple(zip(*columns, strict=True)), None if getattr(args, "plain", False) else language,
    )  # fmt: skip


_OF_RUN = (
    "recipe.toml", "data.json", "source.model", "target.model", "shared.model", "labels.json",
    "target.json", "shortlist.safetensors",
)  # fmt: skip


def run_fingerprint(run: Run) -> str:
    """Return a hash of everything that a run computes with. Errors: ``RunError``."""
    from dragoman.base.reading import hash_of_file
    from dragoman.cluster.plan import fingerprint

    hashes = [("weights", run.weights_hash)]
    for name in _OF_RUN:
        if (run.folder / name).exists():
            hashes.append((name, hash_of_file(run.folder / name)))
    return fingerprint(hashes)


def _absolute(args: Arguments) -> Arguments:
    """Make paths absolute, because workers of other machines may run in another folder."""
    changes: dict[str, Any] = {}
    for name in _RUNS:
        value = getattr(args, name, None)
        if isinstance(value, list):
            changes[name] = [Path(os.path.abspath(path)) for path in value]
        elif value is not None:
            changes[name] = Path(os.path.abspath(value))
    return replace(args, **changes)  # type: ignore[type-var]
