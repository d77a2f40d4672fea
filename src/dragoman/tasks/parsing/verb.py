"""``dragoman parse``: sentences in, constituency trees out; and the demo of ``dragoman demo --task
parse``."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import DragomanError, FileError
from dragoman.console.demo_files import Demo
from dragoman.console.lines import Into, LinesArguments, LineVerb, LineWork, do_lines
from dragoman.console.options import argument, arguments, option, search_settings, setting

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.forms.tree import Tree
    from dragoman.runs.run import Run
    from dragoman.tasks.parsing.parser import Parse


@arguments
class ParseArguments(LinesArguments):
    """The arguments and options of ``dragoman parse``."""

    sentence: str | None = argument("SENTENCE | FILE", None)
    """A sentence with its words separated by spaces, or a file with one sentence per line. Default:
    standard input."""
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
        raise DragomanError("--scores does not work with --draw. Leave --draw out")
    svg = args.svg
    if svg is not None and args.n_best > 1:
        raise DragomanError("--svg draws only the best tree. Leave --n-best out")
    if svg is not None and not svg.parent.is_dir():
        raise FileError(f"cannot write {svg}: there is no folder {svg.parent}")
    from dragoman.tasks.catalogue import open_run

    run = open_run(args.run, "parsing", "which does not parse")
    verb = LineVerb("parse", parsing, unfit=("text", "svg"), inputs=("sentence",))
    do_lines(verb, args, run, run.recipe.languages.source)


def parsing(args: ParseArguments, run: Run, precision: str) -> LineWork:
    """Make the work of ``dragoman parse`` on lines."""
    from dragoman.engine.settings import search_of, with_beams
    from dragoman.tasks.parsing.parser import Parser

    into_folder = args.svg is not None and _draws_into_folder(args, args.svg)
    search = with_beams(search_of(run.recipe, args.set_), args.beam, args.n_best)
    settings = Parser.usual.model_copy(update={"precision": precision or "auto"})
    parser = Parser(run, settings, search)

    def outputs(lines: Iterable[str]) -> Generator[str]:
        for number, parses in enumerate(parser.stream(lines), 1):
            yield _format(args, parses, parser.no_tag)
            if args.svg is not None and parses:
                _draw(args.svg, number if into_folder else None, parses[0].tree, parser.no_tag)

    return LineWork(parser, outputs)


def _draws_into_folder(args: ParseArguments, svg: Path) -> bool:
    """Return whether each tree gets a file of its own in a folder. Errors: ``FileError``."""
    is_file = args.sentence is not None and not args.text and Path(args.sentence).exists()
    into_folder = args.sentence is None or is_file or svg.is_dir()
    if into_folder and not svg.is_dir() and (svg.suffix or svg.exists()):
        raise FileError(
            f"--svg {svg}: trees from a file or from standard input are drawn into a folder, one "
            "file each. Set a folder, or give the sentence as an argument"
        )
    return into_folder


def _format(args: ParseArguments, parses: Sequence[Parse], no_tag: str) -> str:
    """The trees of one line, as text."""
    from dragoman.base.wording import decimals
    from dragoman.pictures.tree import tree_text

    if args.draw:
        return "\n".join(tree_text(result.tree, no_tag) + "\n" for result in parses)
    return "\n".join(
        (f"{decimals(result.score, 4)}\t" if args.scores else "") + result.text for result in parses
    )


def _draw(path: Path, number: int | None, tree: Tree, no_tag: str) -> None:
    """Write one drawing. ``number``: its number in the folder, if ``path`` is one."""
    from dragoman.base.atomic import write_text
    from dragoman.pictures.tree import tree_svg

    if number is not None:
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot write into {path}: {error.strerror}") from error
        path = path / f"{number}.svg"
    write_text(path, tree_svg(tree, no_tag))


PICTURES = ("tree-1.svg", "tree-2.svg")


def show_trees(run: Run, report: Any, console: Console) -> str:
    """Show English sentences and their constituency trees."""
    from dragoman.base.atomic import write_text
    from dragoman.demo.trees import SHOWN, demo_trees
    from dragoman.pictures.labels import plain_table
    from dragoman.pictures.tree import tree_svg, tree_text
    from dragoman.tasks.parsing.metrics import Parseval, RightBranching, score_parse
    from dragoman.tasks.parsing.parser import Parser
    from dragoman.tasks.report import write_report

    references = demo_trees().test
    branching = RightBranching(demo_trees().train)
    shapes = [branching.parse(tree.words) for tree in references]
    shape = Parseval.of(
        score_parse(tree, guess) for tree, guess in zip(references, shapes, strict=True)
    )
    console.print(f"\nTest: {len(references):,} sentences whose combinations were held out\n")
    rows = [
        (name, *(f"{scores[key]:.1f}" for key in ("f1", "precision", "recall", "exact")))
        for name, scores in (("this parser", report.scores), ("right-branching", shape.scores))
    ]
    console.print(plain_table(("percent", "F1", "precision", "recall", "exact"), rows))
    right, phrases, nouns = count_attachments(references, [parse.tree for parse in report.parses])
    console.print(
        f"\n“with ...” belongs where the rule puts it in {right:,} of {phrases:,} phrases; "
        f"{nouns:,} would be right\nif it always belonged to the noun before it.\n"
    )
    console.print(
        "One word decides: what “with” belongs to, the verb or the noun, and who it is that "
        "sleeps:\n"
    )
    parser = Parser(run)
    texts = [" ".join(tree.words) for tree in SHOWN]
    trees = [parser(text).tree for text in texts]
    for text, tree, reference in zip(texts, trees, SHOWN, strict=True):
        is_right = score_parse(reference, tree).is_exact
        console.print(f"  [bold]{text}[/bold]  ({'right' if is_right else 'wrong'})")
        drawn = tree_text(tree, parser.no_tag).splitlines()
        console.print("\n".join(f"  {line}" for line in drawn) + "\n", markup=False)
    for name, tree in zip(PICTURES, trees, strict=False):
        write_text(run.folder / name, tree_svg(tree, parser.no_tag))
    pictures = " and ".join(str(run.folder / name) for name in PICTURES)
    return f"The pictures: {pictures}; the whole report: {write_report(run)}"


def count_attachments(references: Sequence[Tree], parses: Sequence[Tree]) -> tuple[int, int, int]:
    """Count the phrases of the references that begin with "with": those that the parse attaches as
    the reference does, all of them, and those that belong to a noun phrase."""
    from dragoman.demo.trees import with_phrases

    right = phrases = nouns = 0
    for reference, parse in zip(references, parses, strict=True):
        written = set(with_phrases(parse))
        for phrase in with_phrases(reference):
            phrases += 1
            right += phrase in written
            nouns += phrase[2] == "NP"
    return right, phrases, nouns


DEMO = Demo(
    "demo-trees", "a Transformer, English sentences to their trees", show_trees, (
        "parse {to} 'The old queen likes the cat that sleeps .' --draw",
        "evaluate {to}  # by length and by label",
        "train my.mrg --task parsing  # your own trees",
    ),
)  # fmt: skip
