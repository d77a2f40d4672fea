"""``dragoman score``: how likely a model finds given translations, or texts."""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path

import typer

from dragoman.cli.options import RunFolder, argument, arguments
from dragoman.decimals import decimals
from dragoman.plural import plural


@arguments
class ScoreArguments:
    """What ``dragoman score`` takes."""

    run: RunFolder = argument("RUN")
    source: Path = argument()
    """A file of source sentences, one per line; for a language model, a file of texts."""
    target: Path | None = argument(None, None)
    """A file of their translations, line by line. Not for language models."""
    tokens: bool = False
    """Also print the log-probability of every token."""
    words: bool = False
    """For language models: print the texts with each word coloured by its surprisal."""


def score(args: ScoreArguments) -> None:
    """Compute the probability of given translations, or of texts under a language model.

    For each pair or text, one line is written: the log-probability in nats, the number of tokens
    (including the end symbol) and the perplexity per token. The perplexity of the whole file is
    written to standard error. With --words, a language model's texts are printed with each word
    coloured by its surprisal in bits.
    """
    from dragoman.cli.score_texts import score_texts
    from dragoman.data.corpora import read_pairs
    from dragoman.data.corpus_settings import CorpusSettings
    from dragoman.errors import DragomanError
    from dragoman.runs.run import Run

    # What is wrong with the arguments is said before torch is imported.
    opened = Run.open(args.run)
    if opened.task.has_head:
        raise DragomanError(
            f"{args.run} scores no text: how probable each of its answers is, dragoman "
            f"{opened.task.verbs[0][0]} {args.run} --all says"
        )
    if len(opened.task.sides) == 1:
        if args.target is not None:
            raise DragomanError(
                f"{args.run} is a {opened.task.called}: it scores one file of texts"
            )
        score_texts(opened, args.source, args.tokens, args.words)
        return
    if args.target is None or args.words:
        raise DragomanError(
            f"{args.run} translates: give the sources and their translations, without --words"
        )
    pairs = read_pairs(
        CorpusSettings(source=str(args.source), target=str(args.target), format="lines")
    )
    first = next(pairs)
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.tasks.translation.given_pairs import score_pairs
    from dragoman.tasks.translation.translator import Translator

    translator = Translator(opened, TranslatorSettings(precision="fp32"))
    given = ((pair.source, pair.target) for pair in chain([first], pairs))
    total, count = 0.0, 0
    for result in score_pairs(translator.engine, given):
        log_probability = sum(result.token_log_probabilities)
        length = len(result.token_log_probabilities)
        total, count = total + log_probability, count + length
        perplexity = math.exp(-log_probability / length)
        line = f"{decimals(log_probability, 4)}\t{length}\t{perplexity:.3f}"
        if args.tokens:
            every = zip((*result.tokens, "</s>"), result.token_log_probabilities, strict=True)
            line += "\t" + " ".join(f"{token}:{decimals(value, 3)}" for token, value in every)
        typer.echo(line)
    if count:
        typer.echo(
            f"perplexity {math.exp(-total / count):.3f} over {plural(count, 'token')}", err=True
        )
