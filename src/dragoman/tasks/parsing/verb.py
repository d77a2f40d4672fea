"""``dragoman parse``: sentences in, constituency trees out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.base.errors import DragomanError, FileError
from dragoman.cli.console import log_to_stderr, opened_run, output_to
from dragoman.cli.given import AsText, Plain, files_among, lines_given
from dragoman.cli.in_parts import Into, Outputs, PartsArguments, To, in_parts, wants_parts
from dragoman.cli.options import RunFolder, argument, arguments, option, search_settings, setting

if TYPE_CHECKING:
    from dragoman.forms.tree import Tree
    from dragoman.runs.run import Run
    from dragoman.tasks.parsing.parser import Parse, Parser


@arguments
class ParseArguments(PartsArguments):
    """What ``dragoman parse`` takes."""

    run: RunFolder = argument("RUN")
    sentence: str | None = argument("SENTENCE | FILE", None)
    """A sentence with its words separated by spaces, or a file with one sentence per line. Default:
    standard input."""
    to: To = None
    text: AsText = False
    plain: Plain = False
    beam: int | None = setting(search_settings, default=None)
    n_best: int = setting(search_settings, "-n")
    """The number of trees to write for each sentence, best first."""
    draw: bool = False
    """Draw each tree with lines instead of brackets."""
    svg: Path | None = None
    """Also draw the tree as this SVG file. For standard input, or if this is a folder, the files
    1.svg, 2.svg, ... are written into it."""
    scores: bool = False
    """Write the score and a tab before each tree."""
    set_: list[str] = option()
    """Change any search setting, such as length_penalty=0.5. May be repeated."""
    into: Into = "tree"


def parse(args: ParseArguments) -> None:
    """Parse sentences: each input line gives one bracketed tree.

    Words must be separated in the same way as in the treebank that the run was trained on; for
    example, the Penn Treebank writes "It does n't sleep ." and -LRB- for an opening parenthesis.
    Each tree covers exactly the words that you give. An empty line gives an empty line.

    Examples:

      dragoman parse runs/wsj "The cat sleeps ." --draw

      dragoman parse runs/wsj < sentences.txt > trees.mrg

      dragoman parse runs/wsj "The cat sleeps ." --svg tree.svg
    """
    if args.draw and args.scores:
        raise DragomanError("--scores stand before brackets: leave --draw out")
    svg = args.svg
    if svg is not None and args.n_best > 1:
        raise DragomanError("--svg draws the best tree: leave --n-best out")
    if svg is not None and not svg.parent.is_dir():
        raise FileError(f"cannot write {svg}: there is no folder {svg.parent}")
    opened = opened_run(args.run, "parsing", "which does not parse")
    given = [] if args.sentence is None else [args.sentence]
    if wants_parts(args):
        in_parts(
            "parse", args, [given], outputs_of, opened.recipe.languages.source,
            unfit=("text", "svg"), inputs_named=("sentence",),
        )  # fmt: skip
        return
    files = [] if args.text else files_among(given, "parse", "--text")
    into_folder = svg is not None and (args.sentence is None or bool(files) or svg.is_dir())
    if svg is not None and into_folder and not svg.is_dir() and (svg.suffix or svg.exists()):
        raise FileError(
            f"--svg {svg}: trees from a file or from standard input are drawn into a folder, one "
            "file each; name a folder, or give the sentence as an argument"
        )
    log_to_stderr()
    parser = _parser(args, opened, "")
    lines = lines_given(files, given, opened.recipe.languages.source, plain=args.plain)
    with output_to(args.to, files) as out:
        for number, parses in enumerate(parser.stream(lines), 1):
            out.write(f"{_written(args, parses, parser.no_tag)}\n")
            out.flush()
            if svg is not None and parses:
                _draw(svg, number if into_folder else None, parses[0].tree, parser.no_tag)


def outputs_of(args: ParseArguments, run: Run, precision: str) -> Outputs:
    """What a worker does to lines."""
    parser = _parser(args, run, precision)
    return parser, lambda lines: (
        _written(args, one, parser.no_tag) for one in parser.stream(lines)
    )


def _parser(args: ParseArguments, run: Run, precision: str) -> Parser:
    """``precision``: that of other workers; "": the fastest."""
    from dragoman.engine.search_settings import search_of, with_beams
    from dragoman.tasks.parsing.parser import Parser

    search = with_beams(search_of(run.recipe, args.set_), args.beam, args.n_best)
    settings = Parser.usual.model_copy(update={"precision": precision or "auto"})
    return Parser(run, settings, search)


def _written(args: ParseArguments, parses: Sequence[Parse], no_tag: str) -> str:
    """The trees of one line."""
    from dragoman.base.wording import decimals
    from dragoman.pictures.tree import tree_text

    if args.draw:
        return "\n".join(tree_text(one.tree, no_tag) + "\n" for one in parses)
    return "\n".join(
        (f"{decimals(one.score, 4)}\t" if args.scores else "") + one.text for one in parses
    )


def _draw(path: Path, number: int | None, tree: Tree, no_tag: str) -> None:
    """One picture; ``number``: of those in a folder."""
    from dragoman.base.atomic import write_text
    from dragoman.pictures.tree import tree_svg

    if number is not None:
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot write into {path}: {error.strerror}") from error
        path = path / f"{number}.svg"
    write_text(path, tree_svg(tree, no_tag))
