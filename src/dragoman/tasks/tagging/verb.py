"""``dragoman tag``: sentences in, a tag for each of their words out."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Literal

import typer

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural
from dragoman.console.lines import Into, LinesArguments, LineVerb, LineWork, do_lines
from dragoman.console.options import argument, arguments

if TYPE_CHECKING:
    from dragoman.runs.run import Run
    from dragoman.tasks.tagging.tagger import Tagged, Tagger


@arguments
class TagArguments(LinesArguments):
    """The arguments and options of ``dragoman tag``."""

    given: list[str] = argument("TEXT", None)
    """Sentences, or files with one sentence per line. Default: standard input."""
    format: Literal["underscore", "tsv", "json"] | None = None
    """The output format. underscore: one sentence per line, as word_TAG word_TAG. tsv: one word per
    line, followed by a tab and its tag, with a blank line after each sentence. json: one line per
    sentence, with words, tags and probabilities. Default: underscore; with --all, or if a tag
    contains an underscore, tsv."""
    json: bool = False
    """Short for --format json."""
    all_: bool = False
    """Write all tags of each word with their probabilities, the most probable tag first."""
    into: Into = "tags"


def tag(args: TagArguments) -> None:
    """Tag each word of each line: The_DT cat_NN sleeps_VBZ ._.

    Words must be separated by spaces in the same way as in the training text; for example, the Penn
    Treebank writes "It does n't sleep ." Each input line, even an empty one, gives one output line.
    The model chooses among the tags that it was trained on.

    Examples:

      dragoman tag runs/wsj "The cat sleeps ."

      dragoman tag runs/wsj < sentences.txt > tagged.txt

      dragoman tag runs/wsj sentences.txt --format tsv --to tagged.tsv

      dragoman tag runs/wsj "The cat sleeps ." --json
    """
    if args.all_ and not args.json and args.format == "underscore":
        raise DragomanError("--all does not work with word_TAG. Add --format tsv or --json")
    from dragoman.tasks.catalogue import open_run

    run = open_run(args.run, "tagging", "which does not tag words")
    do_lines(LineVerb("tag", tagging), args, run, run.recipe.languages.source)


def tagging(args: TagArguments, run: Run, precision: str) -> LineWork:
    """Return the work of ``dragoman tag``: the tagger, a function that tags lines of text, and a
    function that reports how many lines were too long for the model."""
    from dragoman.engine.predictor import windows
    from dragoman.tasks.tagging.tagger import Tagger

    tagger = Tagger(run)
    form = _form(args, tagger)
    cut = 0

    def outputs(lines: Iterable[str]) -> Generator[str]:
        nonlocal cut
        for window in windows(lines):
            for tagged in tagger(window):
                cut += tagged.parts > 1
                yield _format(tagged, form, args.all_)

    def end() -> None:
        if cut:
            typer.echo(
                f"{plural(cut, 'line is', 'lines are')} longer than the {tagger.longest:,} tokens "
                "that the model reads at once, and was read in parts.",
                err=True,
            )

    return LineWork(tagger, outputs, end=end)


def _form(args: TagArguments, tagger: Tagger) -> str:
    """The output format. Errors: ``DragomanError`` if the tags cannot be written in it."""
    from dragoman.tasks.tagging.tagger import read_back

    form = "json" if args.json else args.format
    names = tagger.tags.labels.names
    is_plain = read_back(names)
    if form == "underscore" and not is_plain:
        such = next(name for name in names if "_" in name)
        raise DragomanError(
            f"--format underscore: {args.run} has tags with an underscore, such as "
            f"{such[:60]!r}, so word_TAG would be ambiguous. Use --format tsv, or --json"
        )
    return form or ("underscore" if is_plain and not args.all_ else "tsv")


def _round(probability: float) -> float:
    """A probability without the digits that depend on the other sentences of the batch."""
    return round(probability, 5)


def _format(tagged: Tagged, form: str, every: bool) -> str:
    """One tagged sentence; a table ends without its last line end, which the caller adds."""
    if form == "underscore":
        return str(tagged)
    ranked = [tagged.ranking(word) for word in range(len(tagged.words))] if every else []
    if form == "json":
        plain: dict[str, object] = {
            "words": tagged.words, "tags": tagged.tags,
            "probabilities": [_round(value) for value in tagged.probabilities],
        }  # fmt: skip
        if every:
            plain["all"] = [{tag: _round(value) for tag, value in word} for word in ranked]
        return json.dumps(plain, ensure_ascii=False)
    if not every:
        return tagged.columns()
    columns = ["\t".join(f"{tag}\t{p:.4f}" for tag, p in word) for word in ranked]
    return "".join(f"{word}\t{tags}\n" for word, tags in zip(tagged.words, columns, strict=True))
