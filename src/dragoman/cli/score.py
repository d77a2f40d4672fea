"""``dragoman score``: how likely a model finds given translations, or texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.cli.in_parts import Into, PartsArguments, To, in_parts, wants_parts
from dragoman.cli.options import RunFolder, argument, arguments
from dragoman.decimals import decimals
from dragoman.plural import plural

if TYPE_CHECKING:
    from dragoman.cluster.parts.mapper import LineMapper, Texts
    from dragoman.tasks.translation.result import Translation


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
    from dragoman.cli.console import output_to
    from dragoman.cli.score_texts import score_texts
    from dragoman.data.files.corpora import read_pairs
    from dragoman.data.files.corpus_settings import CorpusSettings
    from dragoman.errors import DragomanError
    from dragoman.runs.run import Run

    # What is wrong with the arguments is said before torch is imported.
    opened = Run.open(args.run)
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
            "score", args, sides, line_mapper, language, unfit=("words",),
            reads=1 if is_alone else 2, inputs_named=("source", "target"),
        )  # fmt: skip
        return
    if args.to is not None and args.words:
        raise DragomanError("--words draws on a terminal: leave --to out")
    to = None if args.to is None else Path(args.to)
    if is_alone:
        if args.target is not None:
            raise DragomanError(
                f"{args.run} is a {opened.task.called}: it scores one file of texts"
            )
        with output_to(to, [args.source]) as out:
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
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.tasks.translation.given_pairs import score_pairs
    from dragoman.tasks.translation.translator import Translator

    translator = Translator(opened, TranslatorSettings(precision="fp32"))
    given = ((pair.source, pair.target) for pair in chain([first], pairs))
    total, count = 0.0, 0
    with output_to(to, [args.source, args.target]) as out:
        for result in score_pairs(translator.engine, given):
            total += sum(result.token_log_probabilities)
            count += len(result.token_log_probabilities)
            out.write(f"{_written(args, result)}\n")
            out.flush()
    if count:
        typer.echo(
            f"perplexity {math.exp(-total / count):.3f} over {plural(count, 'token')}", err=True
        )


def _written(args: ScoreArguments, result: Translation) -> str:
    """The line of one pair."""
    log_probability = sum(result.token_log_probabilities)
    length = len(result.token_log_probabilities)
    perplexity = math.exp(-log_probability / length)
    line = f"{decimals(log_probability, 4)}\t{length}\t{perplexity:.3f}"
    if args.tokens:
        every = zip((*result.tokens, "</s>"), result.token_log_probabilities, strict=True)
        line += "\t" + " ".join(f"{token}:{decimals(value, 3)}" for token, value in every)
    return line


def line_mapper(args: ScoreArguments, precision: str) -> LineMapper:
    """What a worker does to lines."""
    from dragoman.cluster.parts.mapper import LineMapper, each
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.runs.run import Run
    from dragoman.tasks.translation.given_pairs import score_pairs
    from dragoman.tasks.translation.translator import Translator

    run = Run.open(args.run)
    if len(run.task.sides) == 1:
        from dragoman.cli.score_texts import scored_lines

        outputs_of = scored_lines(run, args.tokens)
        return LineMapper(each(outputs_of), "fp32", "", "fp32 on plain torch")
    translator = Translator(run, TranslatorSettings(precision="fp32"))

    def outputs(pairs: Sequence[Texts]) -> Iterator[str]:
        found = score_pairs(translator.engine, ((source, target) for source, target in pairs))
        return (_written(args, result) for result in found)

    return LineMapper(outputs, translator.precision, translator.level, translator.description)
