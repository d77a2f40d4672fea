"""``dragoman demo``: a translator in some minutes, from nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.demo_fill import fill
from dragoman.cli.demo_parse import parse
from dragoman.cli.options import arguments, option

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.recipe import Recipe

RECIPES = {
    "translate": "demo",
    "write": "demo-letters",
    "fill": "demo-masked",
    "classify": "demo-labels",
    "parse": "demo-trees",
}
"""What each demo learns by."""


@arguments
class DemoArguments:
    """What ``dragoman demo`` takes."""

    to: Path | None = None
    """The run folder; runs/demo if not given, or runs/demo-TASK. An older demo there is
    replaced."""
    task: str = option("translate", metavar="TASK")
    """translate; write: a language model; fill: blanks in sentences; classify: labels for
    sentences; parse: the trees of sentences."""
    set_: list[str] = option()
    """Any setting of the recipe."""


def demo(args: DemoArguments) -> None:
    """Train a small translator on the embedded corpus, measure it, and look inside it.

    With --task classify a smaller model learns from the English side alone which German pronoun an
    "it" becomes, and what it takes for what is drawn. With --task write a language model over
    letters writes German, and shows how much each word of a text surprises it. With --task fill one
    learns to fill in blanks of English sentences, and where each word looks is drawn. With --task
    parse one learns to write the constituency trees of English sentences, and draws some.

    It downloads nothing and asks nothing. On two processor cores it takes about two minutes with
    AVX-512 and over three with AVX2 alone; how long here, it measures and says before it trains.
    """
    from dragoman.cli.console import log_to_stderr, prepare_process, program, train_demo

    prepare_process()
    import shutil

    from rich.console import Console

    from dragoman.cli.demo_write import write
    from dragoman.demo.corpus import pronoun_probes
    from dragoman.errors import RecipeError, RunError
    from dragoman.recipe import Recipe
    from dragoman.runs.run import RECIPE
    from dragoman.training.lock import locked

    log_to_stderr(quiet=True)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=100)
    if args.task not in RECIPES:
        raise RecipeError(f"--task {args.task}: the demo is one of {', '.join(RECIPES)}")
    recipe = Recipe.load(RECIPES[args.task], args.set_)
    to = args.to or Path("runs") / ("demo" if args.task == "translate" else f"demo-{args.task}")
    if to.exists():
        if not (to / RECIPE).is_file() or Recipe.load(to / RECIPE).data.embedded is None:
            raise RunError(f"{to} exists and is not a demo; choose another folder: --to FOLDER")
        with locked(to):
            shutil.rmtree(to)
    others = {"classify": classify, "fill": fill, "parse": parse, "write": write}
    if args.task in others:
        others[args.task](recipe, to, console)
        return
    # Here, so that what is wrong with the arguments is said at once: they import torch.
    from dragoman.insight.pronoun import look_at, pronoun_hops, pronoun_sentences
    from dragoman.pictures.terminal import hops_text
    from dragoman.tasks.report import write_report
    from dragoman.tasks.translation.evaluation import evaluate_run
    from dragoman.tasks.translation.translator import Translator

    run = train_demo(recipe, to, console, "a Transformer, English to German")
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


def classify(recipe: Recipe, to: Path, console: Console) -> None:
    """Which German pronoun an English "it" becomes: trained, measured, drawn."""
    from dragoman.cli.console import command, train_demo
    from dragoman.pictures.terminal import heatmap_text
    from dragoman.tasks.classification.confusions import drawn
    from dragoman.tasks.classification.evaluation import evaluate_run
    from dragoman.tasks.classification.labeller import Labeller
    from dragoman.tasks.report import write_report

    what = "an encoder, which gives each English sentence a label, the\nGerman pronoun"
    run = train_demo(recipe, to, console, f"{what} (er, sie or es) that its “it” becomes")
    found = evaluate_run(run)
    scores = found.scores
    console.print(
        f"\nTest: {found.confusion.texts:,} sentences whose combinations were held out\n"
        f"accuracy {scores['accuracy']:.1f} %, macro F1 {scores['macro_f1']:.1f} %\n"
    )
    title = "Pronoun by row, chosen by column (percent of the row)"
    picture = drawn(title, found.labels, found.confusion)
    assert picture is not None
    console.print(heatmap_text(picture, min(console.width, 100)))
    console.print("The same words but the last, which decides what “it” is:\n")
    for one in Labeller(run)(
        f"The animal didn't cross the street because it was too {last}."
        for last in ("tired", "wide")
    ):
        told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in one.ranked)
        console.print(f"  {one.text}\n  [bold]{one.label}[/bold]  ({told})\n")
    console.print(f"The whole report: {write_report(run)}\n")
    console.print("Next:")
    sentence = "The dog ate the soup although it was very hot."
    console.print(f"  {command('classify', to, sentence, '--all')}", soft_wrap=True)
    console.print(f"  {command('train', 'my.tsv', '--task', 'classification')}  # your own texts")
