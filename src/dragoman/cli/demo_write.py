"""``dragoman demo --task write``: a language model in some minutes, from nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.recipe import Recipe

_BEGINNINGS = ("Das Tier", "Der kleine Mann", "Wir sehen")
_PAIR = (
    "Das Tier überquerte die Straße nicht, weil es zu müde war.",
    "Das Tier überquerte die Straße nicht, weil sie zu müde war.",
)
"""“es” is the animal and “sie” the street, which nothing tires."""
PICTURE = "surprise.svg"


def write(recipe: Recipe, to: Path, console: Console) -> None:
    """Train a language model over letters on the German of the embedded corpus, let it write, and
    show what surprises it."""
    from rich.text import Text

    from dragoman.atomic import write_text
    from dragoman.cli.console import program, train_demo
    from dragoman.cli.score_texts import LEGEND, coloured
    from dragoman.pictures.surprise import surprise_svg
    from dragoman.search.settings import SamplingSettings, SearchSettings
    from dragoman.tasks.language_model.evaluation import evaluate_run, windows_of
    from dragoman.tasks.language_model.surprisal import Scorer
    from dragoman.tasks.language_model.writer import Writer
    from dragoman.tasks.report import write_report

    run = train_demo(recipe, to, console, "a decoder-only Transformer over the letters of German")
    measured = evaluate_run(run)
    console.print(f"\nTest: {measured.texts:,} sentences whose combinations were held out")
    scores = measured.scores
    console.print(
        f"perplexity {scores['perplexity']:.2f} per letter, "
        f"{scores['bits_per_byte']:.2f} bits per byte\n"
    )
    console.print("It goes on, letter by letter (what was given is bold):\n")
    writer = Writer(run)
    for seed, begin in enumerate(_BEGINNINGS):
        sampling = SamplingSettings(temperature=0.7, seed=seed)
        written = "".join(writer.stream(begin, SearchSettings(sampling=sampling), longest=120))
        console.print(Text.assemble("  ", (begin, "bold"), written), soft_wrap=True)
    console.print("\nWhat surprises it. Only one of these makes sense to a reader:\n")
    found = list(Scorer(run, *windows_of(run))(_PAIR))
    plain = console.color_system is None
    for surprise in found:
        console.print("  ", coloured(surprise.words[:-1], plain=plain), soft_wrap=True, sep="")
    first, second = (sum(word.bits for word in one.words) for one in found)
    console.print(f"\n  {first:.1f} and {second:.1f} bits in all; {LEGEND}\n", style="dim")
    texts = [("", [(word.text, word.bits) for word in one.words[:-1]]) for one in found]
    write_text(to / PICTURE, surprise_svg(texts))
    page = write_report(run)
    console.print(f"The picture: {to / PICTURE}; the whole report: {page}\n")
    console.print("Next:")
    console.print(f'  {program()} write {to} "Die Katze" --temperature 0.7')
    console.print(f"  {program()} serve {to}            # write on in the browser")
    console.print(f"  {program()} train my.txt --task language-model   # your own text")
