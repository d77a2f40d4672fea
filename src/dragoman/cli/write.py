"""``dragoman write``: a language model goes on with a text."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.given import tell_of_file


def write(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    begin: Annotated[str, typer.Argument(help="How the text begins.", metavar="BEGIN")] = "",
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="So many texts.")] = 1,
    temperature: Annotated[
        float, typer.Option(min=1e-5, help="Below 1 more likely words, above 1 more surprising.")
    ] = 1.0,
    top_k: Annotated[int, typer.Option(min=0, help="Among so many tokens only; 0: all.")] = 0,
    top_p: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Among those that hold so much probability.")
    ] = 1.0,
    seed: Annotated[
        int,
        typer.Option(min=0, help="The same seed writes the same text; each further text has the "
                     "next one."),
    ] = 0,
    stop: Annotated[
        list[str] | None,
        typer.Option(help=r"The text ends before this; \n is the end of a line. May be repeated."),
    ] = None,
    longest: Annotated[
        int,
        typer.Option(
            min=1, help="At most so many tokens more, also beyond what the model reads at once."
        ),
    ] = 256,
    likeliest: Annotated[
        bool, typer.Option("--likeliest", help="Search for the most probable, draw nothing.")
    ] = False,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the score and a tab before each text.")
    ] = False,
) -> None:  # fmt: skip
    """Write texts with a language model, from nothing or from how they begin.

    Tokens are drawn by their probabilities, and shown as they are drawn. A text ends where the
    model ends it, at --stop or at --longest. When it is longer than what the model reads at once,
    it goes on from the last half of that.

    Examples:

      dragoman write runs/letters "Der Hund" -n 5 --temperature 0.8

      dragoman write runs/diary "Once" --top-p 0.9 --longest 500 --stop "\\n\\n"

      dragoman write runs/letters "Der Hund" --likeliest
    """
    from dragoman.decimals import decimals
    from dragoman.errors import DragomanError
    from dragoman.runs.run import Run

    if stop and scores:
        raise DragomanError("--scores are of whole texts: leave --stop out")
    if stop and likeliest and number > 1:
        raise DragomanError("several of the most probable are whole texts: leave --stop out")
    if likeliest and (temperature, top_k, top_p, seed) != (1.0, 0, 1.0, 0):
        raise DragomanError(
            "--likeliest draws nothing: leave --temperature, --top-k, --top-p and --seed out"
        )
    opened = Run.open(run)
    from dragoman.engine.search_settings import parse_search
    from dragoman.tasks.language_model.writer import Writer

    tell_of_file(begin, f'To continue its content: "$(cat {shlex.quote(begin)})"')
    plain, how = opened.recipe.search, [f"n_best={number}"]
    if likeliest:
        plain = plain.model_copy(update={"sampling": None})
        how.append(f"beam={max(number, plain.beam)}")
    else:
        drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        how += [f"sampling.{name}={value}" for name, value in drawn.items()]
    writer = Writer(opened, search_settings=parse_search(plain, how))
    given = writer.tokens(begin)
    if given >= writer.context:
        typer.echo(
            f"The beginning has {given:,} tokens, and the model reads {writer.context:,} at once: "
            "it goes on from the last of them.",
            err=True,
        )
    if scores or (likeliest and number > 1):
        if given >= writer.context:
            raise DragomanError("a beginning so long is gone on with one text at a time")
        length = min(writer.context, given + longest)
        whole = writer.engine.search_settings.model_copy(update={"max_length": length})
        for text in writer([begin], whole)[0]:
            typer.echo((f"{decimals(text.score, 4)}\t" if scores else "") + text.text)
        return
    endings = [_unescaped(one) for one in stop or ()]
    for one in range(number):
        settings = writer.engine.search_settings
        if settings.sampling is not None:
            further = settings.sampling.model_copy(update={"seed": seed + one})
            settings = settings.model_copy(update={"sampling": further})
        typer.echo(begin, nl=False)
        for piece in writer.stream(begin, settings, stop=endings, longest=longest):
            typer.echo(piece, nl=False)
            sys.stdout.flush()
        typer.echo()


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")
