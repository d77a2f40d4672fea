"""``dragoman score``: how likely a model finds given translations; how much texts surprise it, word
by word."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from dragoman.base.errors import DragomanError
from dragoman.base.wording import decimals, plural
from dragoman.cli.console import output_to
from dragoman.cli.in_parts import Into, Outputs, PartsArguments, To, in_parts, wants_parts
from dragoman.cli.options import RunFolder, argument, arguments
from dragoman.metrics.perplexity import perplexity

if TYPE_CHECKING:
    from rich.text import Text

    from dragoman.runs.run import Run
    from dragoman.tasks.shared.surprisal import SurprisalWord


@arguments
class ScoreArguments(PartsArguments):
    """What ``dragoman score`` takes."""

    run: RunFolder = argument("RUN")
    source: str = argument()
    """A file of source sentences, one per line; for a language model, a file of texts."""
    target: str | None = argument(None, None)
    """A file of their translations, line by line. Not for language models."""
    to: To = None
    tokens: bool = False
    """Also print the log-probability of every token."""
    words: bool = False
    """For language models: print the texts with each word coloured by its surprisal."""
    into: Into = "score"


def score(args: ScoreArguments) -> None:
    """Compute the probability of given translations, or of texts under a language model.

    For each pair or text, one line is written: the log-probability in nats, the number of tokens
    (including the end symbol) and the perplexity per token. The perplexity of the whole file is
    written to standard error. With --words, a language model's texts are printed with each word
    coloured by its surprisal in bits.
    """
    from dragoman import catalogue
    from dragoman.data.files.corpora import read_pairs
    from dragoman.data.files.corpus_settings import CorpusSettings

    # What is wrong with the arguments is said before torch is imported.
    opened = catalogue.Run.open(args.run)
    if opened.task.has_head:
        raise DragomanError(
            f"{args.run} scores no text: how probable each of its answers is, dragoman "
            f"{opened.task.verbs[0][0]} {args.run} --all says"
        )
    is_alone = len(opened.task.sides) == 1
    if wants_parts(args):
        if is_alone and args.target is not None:
            raise DragomanError(f"{args.run} is a {opened.task.called}: it scores texts alone")
        sides = [[side] for side in (args.source, args.target) if side is not None]
        languages = opened.recipe.languages
        language = languages.target if is_alone else languages.source
        in_parts(
            "score", args, sides, outputs_of, language, unfit=("words",),
            reads=1 if is_alone else 2, inputs_named=("source", "target"),
        )  # fmt: skip
        return
    if args.to is not None and args.words:
        raise DragomanError("--words draws on a terminal: leave --to out")
    if is_alone:
        if args.target is not None:
            raise DragomanError(
                f"{args.run} is a {opened.task.called}: it scores one file of texts"
            )
        with output_to(args.to, [args.source]) as out:
            score_texts(opened, Path(args.source), args.tokens, args.words, out)
        return
    if args.target is None:
        raise DragomanError(
            f"{args.run} translates: give two files, the sources and their translations"
        )
    if args.words:
        raise DragomanError(f"--words is of runs that read no source, and {args.run} translates")
    pairs = read_pairs(CorpusSettings(source=args.source, target=args.target, format="lines"))
    first = next(pairs)
    translator = _translator(opened)
    given = ((pair.source, pair.target) for pair in chain([first], pairs))
    total, count = 0.0, 0
    with output_to(args.to, [args.source, args.target]) as out:
        for result in translator.scored(given):
            total += sum(result.token_log_probabilities)
            count += len(result.token_log_probabilities)
            out.write(f"{_line_of(result, args.tokens)}\n")
            out.flush()
    if count:
        _tell_perplexity(total, count)


def _translator(run: Run) -> Any:
    """Scores pairs. Errors: ``RunError`` for a run that does not translate."""
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.studies.systems import open_translator

    return open_translator(run, TranslatorSettings(precision="fp32"))


def _line_of(result: Any, tokens: bool) -> str:
    """The line of one pair."""
    return _line((*result.tokens, "</s>"), result.token_log_probabilities, tokens)


def _line(names: Sequence[str], costs: Sequence[float], tokens: bool) -> str:
    """``costs``: log P of each token, in nats; ``tokens``: whether each is written too."""
    total, length = math.fsum(costs), len(costs)
    line = f"{decimals(total, 4)}\t{length}\t{perplexity(-total / length):.3f}"
    if tokens:
        every = zip(names, costs, strict=True)
        line += "\t" + " ".join(f"{token}:{decimals(value, 3)}" for token, value in every)
    return line


def _tell_perplexity(total: float, count: int) -> None:
    """On standard error, of all tokens together, whose log P is ``total``."""
    told = f"perplexity {math.exp(-total / count):.3f} over {plural(count, 'token')}"
    typer.echo(told, err=True)


def outputs_of(args: ScoreArguments, run: Run, precision: str) -> Outputs:
    """What a worker does to lines."""
    if len(run.task.sides) == 1:
        return _scored_lines(run, args.tokens)
    translator = _translator(run)
    return translator, lambda pairs: (
        _line_of(result, args.tokens) for result in translator.scored(pairs)
    )


_STEPS = ((3.0, ""), (6.0, "yellow"), (10.0, "dark_orange"), (float("inf"), "bold red"))
"""Bits below which a word has this colour."""
LEGEND = "bits a word: below 3 plain, below 6 yellow, below 10 orange, from 10 on red"
_BATCH_SIZE = 64


def score_texts(run: Run, path: Path, tokens: bool, words: bool, out: TextIO) -> None:
    """Each text of a file: log P in nats, tokens, perplexity; the sums go to standard error."""
    from rich.console import Console

    from dragoman.tasks.shared.evaluation_report import read_like
    from dragoman.tasks.shared.surprisal import Scorer, windows_of

    windows = windows_of(run)
    texts = (text for text in read_like(run, path) if text.strip())
    some = list(islice(texts, _BATCH_SIZE))
    if not some:
        raise DragomanError(f"{path} holds nothing but spaces")
    scorer, console = Scorer(run, *windows), Console(highlight=False)
    total, count = 0.0, 0
    while some:
        for found in scorer(some):
            length = len(found.tokens)
            total, count = total + found.log_probability, count + length
            if words:
                plain = console.color_system is None
                console.print(coloured(found.words, plain=plain), soft_wrap=True)
                continue
            out.write(f"{_line(found.tokens, found.log_probabilities, tokens)}\n")
        out.flush()
        some = list(islice(texts, _BATCH_SIZE))
    if words:
        typer.echo(LEGEND, err=True)
    _tell_perplexity(total, count)


def _scored_lines(run: Run, tokens: bool) -> Outputs:
    """The line of each text; of one without words an empty one."""
    from dragoman.tasks.shared.surprisal import Scorer, windows_of

    scorer = Scorer(run, *windows_of(run))

    def lines(texts: Sequence[str]) -> Iterator[str]:
        for start in range(0, len(texts), _BATCH_SIZE):
            some = texts[start : start + _BATCH_SIZE]
            found = iter(scorer([text for text in some if text.strip()]))
            scored = (_line(one.tokens, one.log_probabilities, tokens) for one in found)
            for text in some:
                yield next(scored) if text.strip() else ""

    return scorer, lines


def coloured(words: Sequence[SurprisalWord], *, plain: bool) -> Text:
    """A text as it stands, each word by its surprise; where there are no colours, its bits behind
    it: cat[7.3]."""
    from rich.text import Text

    out = Text()
    for word in words:
        out.append(word.before)
        style = next(style for most, style in _STEPS if word.bits < most)
        out.append(f"{word.text}[{decimals(word.bits, 1)}]" if plain else word.text, style=style)
    return out
