"""``dragoman score`` of a language model: how much texts surprise it, word by word."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from dragoman.decimals import decimals
from dragoman.errors import DragomanError
from dragoman.plural import plural

if TYPE_CHECKING:
    from rich.text import Text

    from dragoman.runs.run import Run
    from dragoman.tasks.language_model.surprisal import Surprisal, SurprisalWord

_STEPS = ((3.0, ""), (6.0, "yellow"), (10.0, "dark_orange"), (float("inf"), "bold red"))
"""Bits below which a word has this colour."""
LEGEND = "bits a word: below 3 plain, below 6 yellow, below 10 orange, from 10 on red"
_BATCH_SIZE = 64


def score_texts(run: Run, path: Path, tokens: bool, words: bool, out: TextIO) -> None:
    """Each text of a file: log P in nats, tokens, perplexity; the sums go to standard error."""
    from rich.console import Console

    from dragoman.tasks.language_model.evaluation import read_like, windows_of
    from dragoman.tasks.language_model.surprisal import Scorer

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
            out.write(f"{_written(found, tokens)}\n")
        out.flush()
        some = list(islice(texts, _BATCH_SIZE))
    if words:
        typer.echo(LEGEND, err=True)
    typer.echo(f"perplexity {math.exp(-total / count):.3f} over {plural(count, 'token')}", err=True)


def scored_lines(run: Run, tokens: bool) -> Callable[[Sequence[str]], Iterator[str]]:
    """The line of each text; of one without words an empty one."""
    from dragoman.tasks.language_model.evaluation import windows_of
    from dragoman.tasks.language_model.surprisal import Scorer

    scorer = Scorer(run, *windows_of(run))

    def lines(texts: Sequence[str]) -> Iterator[str]:
        for start in range(0, len(texts), _BATCH_SIZE):
            some = texts[start : start + _BATCH_SIZE]
            found = iter(scorer([text for text in some if text.strip()]))
            for text in some:
                yield _written(next(found), tokens) if text.strip() else ""

    return lines


def _written(found: Surprisal, tokens: bool) -> str:
    line = f"{decimals(found.log_probability, 4)}\t{len(found.tokens)}\t{found.perplexity:.3f}"
    if tokens:
        every = zip(found.tokens, found.log_probabilities, strict=True)
        line += "\t" + " ".join(f"{token}:{decimals(value, 3)}" for token, value in every)
    return line


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
