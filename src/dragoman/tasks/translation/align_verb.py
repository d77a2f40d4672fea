"""The verbs ``dragoman align``, which links the words of translations to those of their sources,
and ``dragoman shortlist``, which learns a vocabulary shortlist."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.base.errors import DataError, DragomanError
from dragoman.base.reading import readable
from dragoman.base.wording import plural, shorten
from dragoman.console.options import (
    Quiet,
    RunFolder,
    Tag,
    argument,
    arguments,
    option,
    setting,
    values_of,
)
from dragoman.console.output import output_to

if TYPE_CHECKING:
    from dragoman.metrics.alignment import Gold
    from dragoman.models.shortlist import ShortlistSettings
    from dragoman.tasks.translation.aligner import Aligner, TextAligner, TextPair


@arguments
class AlignArguments:
    """The arguments and options of ``dragoman align``."""

    run: RunFolder = argument("RUN")
    files: list[Path] = argument("[SOURCE TARGET | FILE]", None)
    """A file of source sentences and a file of their translations, line by line; or one file with
    both (.tsv, .jsonl). Default: standard input, with a tab or ||| between source and
    translation."""
    head: str | None = None
    """Align by this layer and head of the cross-attention, numbered from 1, such as 2.1. 2.* is the
    mean of all heads of layer 2."""
    step: str | None = None
    """The decoding step whose attention is used for a word: reading, the step that reads the word
    (the default), or choosing, the step that predicts it."""
    statistical: bool = False
    """Align by an HMM trained on the run's training text instead of by the model."""
    gold: Path | None = None
    """A file of human-made links, in Pharaoh format (0-0 1-2 2?1, one line per pair) or NAACL
    format. The alignment error rate is then printed."""
    gold_base: int | None = option(ge=0, le=1)
    """The number that --gold gives to the first word: 0 (the default) or 1."""
    gold_dev: int | None = option(ge=1)
    """The number of pairs, counted from the first, that are used to choose layer, head and step.
    Default: half."""
    oracle: bool = False
    """Choose layer, head and step on all links of --gold and measure on the same links. The result
    is too optimistic."""
    tag: Tag = None
    to: Path | None = None
    """Write the links to this file. The file appears only when it is complete."""
    quiet: Quiet = option(False, "-q")


def align(args: AlignArguments) -> None:
    """Align translations with their sources, word by word, in Pharaoh format.

    Each pair gives one line of links. The line 0-0 1-2 links the first source word to the first
    target word, and the second source word to the third target word. Words are separated by spaces.
    The links come from the run's attention (each target word is linked to the source word with the
    highest weight) or from an HMM over the training text. The method that does better on the dev
    pairs is used, and its name is printed. If the run was trained with training.guided.weight, its
    aligned head is used. --head and --statistical override this choice.

    With --gold, the alignment error rate is printed on standard error. Unless --head is given,
    layer, head and step are chosen on the first pairs, and the rate is measured on the remaining
    pairs.

    Examples:

      dragoman align runs/demo my.en my.de > my.links

      dragoman align runs/demo my.en my.de --gold gold.links

      printf 'The dog sleeps.\\tDer Hund schläft.\\n' | dragoman align runs/demo
    """
    from functools import partial

    from dragoman.metrics.alignment import check_gold, pharaoh, read_gold
    from dragoman.tasks import catalogue

    # Mistakes in the arguments are reported before torch is imported.
    opened = catalogue.Run.open(args.run).with_tag(args.tag)
    if len(opened.recipe.spec.texts) < 2:
        raise DragomanError(f"{args.run} is a {opened.task.called}, which cannot align words")
    if (args.gold_dev is not None or args.oracle) and (
        args.head is not None or args.statistical or args.gold is None
    ):
        raise DragomanError(
            "--gold-dev and --oracle choose a head by the links of --gold. Set --gold, and "
            "leave out --head and --statistical"
        )
    if args.head is not None and args.statistical:
        raise DragomanError("--head and --statistical do not work together. Leave one out")
    if args.head is None and args.step is not None:
        raise DragomanError("--step needs a head. Set --head")
    pairs = _pairs(args.files)
    gold: list[Gold] = []
    if args.gold is not None:
        gold, listed = read_gold(args.gold, first=args.gold_base), list(pairs)
        check_gold(gold, [(len(s.split()), len(t.split())) for s, t in listed], str(args.gold))
        if args.gold_dev is not None and args.gold_dev >= len(gold):
            raise DragomanError(
                f"--gold-dev {args.gold_dev}: {args.gold} has {plural(len(gold), 'line')}. "
                "Leave some to measure on"
            )
    from dragoman.engine.alignment_head import AligningHead
    from dragoman.engine.predictor import windows
    from dragoman.tasks.translation.aligner import Aligner, TextAligner, better_aligner

    def tell(text: str) -> None:
        if not args.quiet:
            typer.echo(text, err=True)

    aligner: Aligner | TextAligner
    if args.statistical:
        aligner = by_text = TextAligner(opened, tell)
        measure = by_text.measure
    elif args.head is None and args.gold is None:
        aligner = better_aligner(opened, tell)
    else:
        named = None if args.head is None else AligningHead.parse(args.head, args.step or "reading")
        aligner = by_head = Aligner.open(opened, named)
        if args.gold_dev is not None or args.oracle:
            by_head.head = None  # a run's own, if it was taught one, is not chosen
        development = 0 if args.oracle else args.gold_dev or len(gold) // 2
        measure = partial(by_head.measure, development=development)
    with output_to(args.to, args.files) as out:
        if args.gold is not None:
            measured = measure(listed, gold)
            out.writelines(f"{pharaoh(links)}\n" for links in measured.links)
            typer.echo(str(measured), err=True)
            return
        tell(aligner.description)
        for window in windows(pairs, WINDOW):
            out.writelines(f"{pharaoh(links)}\n" for links in aligner(window))
            out.flush()


WINDOW = 500
"""The most pairs that are aligned together."""


def _pairs(files: Sequence[Path]) -> Iterator[TextPair]:
    """Yield pairs of source and target from two files, from one file that holds both sides, or from
    standard input. The first pair is read at once, so that mistakes are reported early."""
    from itertools import chain, islice

    from dragoman.data.files.corpora import read_lines, read_pairs
    from dragoman.data.files.corpus_settings import CorpusSettings, format_by_name
    from dragoman.data.files.lines import decode_lines

    if len(files) > 2:
        raise DragomanError(
            f"{len(files)} files: give two, source and target, or one that holds both sides"
        )
    if not files:
        return _split_lines(decode_lines(sys.stdin.buffer), "standard input")
    pairs: Iterator[TextPair]
    if len(files) == 2 or format_by_name(str(files[0])) not in (None, "tsv"):
        target = str(files[1]) if len(files) == 2 else None
        corpus = CorpusSettings(source=str(files[0]), target=target)
        pairs = ((pair.source, pair.target) for pair in read_pairs(corpus))
    else:
        pairs = _split_lines(read_lines(files[0]), str(files[0]))
    return chain(list(islice(pairs, 1)), pairs)


def _split_lines(lines: Iterable[str], where: str) -> Iterator[TextPair]:
    """Split each line into source and target at the first tab or three bars. ``where``: the name of
    the input, for messages. Errors: ``DataError`` with the number of a line that has neither."""
    for number, line in enumerate(lines, 1):
        source, cut, target = line.partition("\t" if "\t" in line else " ||| ")
        if not cut:
            raise DataError(
                f"{where}, line {number}: there is neither a tab nor ' ||| ' between a sentence "
                f"and its translation: {shorten(readable(line), 60)!r}. To align two files, "
                "give SOURCE TARGET"
            )
        yield source, target.partition("\t")[0]


def shortlist_settings() -> type[ShortlistSettings]:
    """Return the class of the settings of a shortlist."""
    from dragoman.models.shortlist import ShortlistSettings

    return ShortlistSettings


@arguments
class ShortlistArguments:
    """The arguments and options of ``dragoman shortlist``."""

    run: RunFolder = argument("RUN")
    always: int = setting(shortlist_settings)
    per_token: int = setting(shortlist_settings)
    least: float = setting(shortlist_settings)


def shortlist(args: ShortlistArguments) -> None:
    """Learn a vocabulary shortlist from the text that a run was trained on; takes some seconds.

    With a shortlist, translate --shortlist scores a few hundred words instead of the whole
    vocabulary. The shortlist is saved in the run folder and is valid only for the run's current
    weights.

    Example: dragoman shortlist runs/demo
    """
    from dragoman.tasks import catalogue

    settings = shortlist_settings()(**values_of(args, shortlist_settings))
    opened = catalogue.Run.open(args.run)  # a wrong folder is reported before torch is imported
    from dragoman.tasks.translation.shortlist import learn_shortlist

    typer.echo(str(learn_shortlist(opened, settings)))
