"""The demo of ``dragoman demo --task parse``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.console.demo_files import Demo

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.forms.tree import Tree
    from dragoman.runs.run import Run


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
