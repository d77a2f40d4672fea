"""``dragoman score``: how likely a model finds given translations."""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer


def score(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    source: Annotated[Path, typer.Argument(help="Source sentences, one a line.")],
    target: Annotated[Path, typer.Argument(help="Their translations, line by line.")],
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Also the log-probability of every token.")
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            help="Links made by people, a line a pair, in Pharaoh format: 0-0 1-2 2?1. Gives AER."
        ),
    ] = None,
    gold_base: Annotated[
        int | None,
        typer.Option(min=0, max=1, help="What its first word is counted as: 0 (if not said), 1."),
    ] = None,
    gold_dev: Annotated[
        int | None,
        typer.Option(min=1, help="Pairs, the first ones, that choose layer and head; else half."),
    ] = None,
) -> None:
    """Write log P(target | source) for each pair, and the perplexity of all to standard error.

    Columns: log-probability in nats, tokens (the end symbol counted), perplexity per token.

    With --gold also the alignment error rate of cross-attention, to standard error: the first pairs
    choose layer, head and step, and it is measured on the others.
    """
    from dragoman.data.corpora import CorpusSettings, read_pairs
    from dragoman.errors import DragomanError
    from dragoman.insight.alignment import read_gold, score_alignments
    from dragoman.tasks.run import Run

    # What is wrong with the arguments is said before torch is imported.
    opened = Run.open(run)
    pairs = read_pairs(CorpusSettings(source=str(source), target=str(target), format="lines"))
    first = next(pairs)
    links = None if gold is None else read_gold(gold, first=gold_base)
    if links is not None and gold_dev is not None and gold_dev >= len(links):
        raise DragomanError(
            f"--gold-dev {gold_dev}: {gold} has {len(links)} lines; some must be left to measure on"
        )
    from dragoman.tasks.settings import TranslatorSettings
    from dragoman.tasks.translator import Translation, Translator

    translator = Translator(opened, TranslatorSettings(precision="fp32"))
    pairs = chain([first], pairs)
    total, count = 0.0, 0
    linked: list[Translation] = []
    while window := [(pair.source, pair.target) for _, pair in zip(range(256), pairs)]:  # noqa: B905
        for result in translator.score(window):
            log_probability = sum(result.token_log_probabilities)
            length = len(result.token_log_probabilities)
            total, count = total + log_probability, count + length
            line = f"{log_probability:.4f}\t{length}\t{math.exp(-log_probability / length):.3f}"
            if tokens:
                every = zip((*result.tokens, "</s>"), result.token_log_probabilities, strict=True)
                line += "\t" + " ".join(f"{token}:{value:.3f}" for token, value in every)
            typer.echo(line)
            if links is not None:
                linked.append(result)
    if count:
        typer.echo(f"perplexity {math.exp(-total / count):.3f} over {count} tokens", err=True)
    if links is not None:
        scores = score_alignments((translator.look(t.source, t.ids) for t in linked), links)
        typer.echo(scores.in_words(gold_dev or scores.sentences // 2), err=True)
