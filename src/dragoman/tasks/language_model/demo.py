"""The demonstration of a language model by ``dragoman demo --task write``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.console.demo_files import Demo

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.run import Run


_BEGINNINGS = ("Das Tier", "Der kleine Mann", "Wir sehen")
_PAIR = (
    "Das Tier überquerte die Straße nicht, weil es zu müde war.",
    "Das Tier überquerte die Straße nicht, weil sie zu müde war.",
)
"""“es” refers to the animal, “sie” to the street, which cannot be tired."""


def show_texts(run: Run, measured: Any, console: Console) -> str:
    """Show texts of a character-level language model, and the surprisal of two sentences."""
    from rich.text import Text

    from dragoman.search.settings import SamplingSettings, SearchSettings
    from dragoman.tasks.language_model.writer import Writer
    from dragoman.tasks.report import write_report
    from dragoman.tasks.shared.surprisal import LEGEND, Scorer, colour_words, windows_of

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
    surprises = list(Scorer(run, *windows_of(run))(_PAIR))
    plain = console.color_system is None
    for surprise in surprises:
        console.print("  ", colour_words(surprise.words[:-1], plain=plain), soft_wrap=True, sep="")
    first, second = (sum(word.bits for word in surprise.words) for surprise in surprises)
    console.print(f"\n  {first:.1f} and {second:.1f} bits in all; {LEGEND}\n", style="dim")
    return f"The whole report: {write_report(run)}"


DEMO = Demo(
    "demo-letters", "a decoder-only Transformer over the letters of German", show_texts, (
        'write {to} "Die Katze" --temperature 0.7',
        "serve {to}            # write on in the browser",
        "train my.txt --task language-model   # your own text",
    ),
)  # fmt: skip
