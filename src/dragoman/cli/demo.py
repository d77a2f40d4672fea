"""``dragoman demo``: a translator in some minutes, from nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    to: Annotated[
        Path, typer.Option(help="The run folder; an older demo there is replaced.")
    ] = Path("runs/demo"),
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting of the recipe.")
    ] = None,
) -> None:
    """Train a small translator on the embedded corpus, measure it, and look inside it.

    It downloads nothing and asks nothing. On two processor cores it takes about two minutes with
    AVX-512 and over three with AVX2 alone; how long here, it measures and says before it trains.
    """
    from dragoman.cli.console import command, log_to_stderr, prepare_process, program

    prepare_process()
    import shutil

    from rich.console import Console

    from dragoman.data.demo_corpus import NOTICE, pronoun_probes
    from dragoman.errors import RunError
    from dragoman.recipe import Recipe
    from dragoman.tasks.run import RECIPE, Run
    from dragoman.training.lock import locked

    log_to_stderr(quiet=True)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=100)
    recipe = Recipe.load("demo", set_ or [])
    if to.exists():
        if not (to / RECIPE).is_file() or Recipe.load(to / RECIPE).data.embedded != "demo":
            raise RunError(f"{to} exists and is not a demo; choose another folder: --to FOLDER")
        with locked(to):
            shutil.rmtree(to)
    # Here, so that what is wrong with the arguments is said at once: they import torch.
    from dragoman.insight.pronoun import look_at, pronoun_hops, pronoun_sentences
    from dragoman.pictures.terminal import hops_text
    from dragoman.tasks.evaluation import evaluate_run
    from dragoman.tasks.report import write_report
    from dragoman.tasks.training import train
    from dragoman.tasks.translator import Translator

    console.print(NOTICE, style="bold")
    console.print(f"Training into {to}: a Transformer, English to German.\n")
    outcome = train(recipe, to, say=console.print, resume_command=command("resume", to))
    if outcome.reason == "interrupted":
        raise typer.Exit(130)

    run = Run.open(to)
    result = evaluate_run(run)
    console.print(f"\nTest: {len(result.pairs):,} sentences whose combinations were held out")
    console.print(f"BLEU {result.scores['BLEU']:.1f}, chrF {result.scores['chrF']:.1f}")
    console.print(f"{result.scores.scores[0].signature}\n", style="dim")

    translator = Translator(run)
    console.print("Only the last word tells what “it” is; only the order tells who eats:\n")
    for sentence in pronoun_sentences():
        console.print(f"  {sentence}\n  [bold]{translator(sentence)}[/bold]\n")

    hops, _ = pronoun_hops(translator)
    console.print(
        "How it knows: from the German pronoun to “it”, and from “it” to what decides "
        "(percent of attention)\n"
    )
    for hop in hops:
        console.print(hops_text(hop, min(console.width, 100)))
    attention = [look_at(translator, probe) for probe in pronoun_probes()[0]]
    page = write_report(run, hops=hops, attention=attention)
    console.print(f"The whole report, with every layer and head: {page}\n")
    console.print("Next:")
    console.print(f'  {program()} translate {to} "The small cat eats the old bear."')
    console.print(f"  {program()} train my.en my.de          # your own two files of sentences")
    console.print(f"  {program()} evaluate {to}         # all scores, with signatures")
