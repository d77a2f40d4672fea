"""``dragoman write``: a language model goes on with a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
    seed: Annotated[int, typer.Option(min=0, help="The same seed writes the same texts.")] = 0,
    longest: Annotated[
        int | None, typer.Option("--longest", min=1, help="At most so many tokens.")
    ] = None,
    likeliest: Annotated[
        bool, typer.Option("--likeliest", help="Search for the most probable, draw nothing.")
    ] = False,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the score and a tab before each text.")
    ] = False,
) -> None:
    """Write texts with a language model, from nothing or from how they begin.

    Tokens are drawn by their probabilities, so each text is another one; a line each.

    Examples:

      dragoman write runs/letters "Der Hund" -n 5 --temperature 0.8

      dragoman write runs/letters "Der Hund" --likeliest
    """
    from dragoman.tasks.run import Run

    opened = Run.open(run)
    from dragoman.tasks.search_settings import parse_search
    from dragoman.tasks.writer import Writer

    plain, how = opened.recipe.search, [f"n_best={number}"]
    if likeliest:
        plain = plain.model_copy(update={"sampling": None})
        how.append(f"beam={max(number, plain.beam)}")
    else:
        drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        how += [f"sampling.{name}={value}" for name, value in drawn.items()]
    if longest is not None:
        how.append(f"max_length={longest}")
    writer = Writer(opened, search_settings=parse_search(plain, how))
    for text in writer([begin])[0]:
        typer.echo((f"{text.score:.4f}\t" if scores else "") + text.text)
