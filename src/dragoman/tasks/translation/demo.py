"""The demonstration of a translator by ``dragoman demo``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.console.demo_files import Demo

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.run import Run


def show_translations(run: Run, result: Any, console: Console) -> str:
    """Show translations that depend on a single word or on the word order, and the attention behind
    them. Return a line that names the report."""
    from dragoman.demo.corpus import pronoun_probes
    from dragoman.insight.figures.run import look_at, pronoun_hops, pronoun_sentences
    from dragoman.pictures.terminal import hops_text
    from dragoman.tasks.report import write_report
    from dragoman.tasks.translation.translator import Translator

    console.print(f"\nTest: {len(result.pairs):,} sentences whose combinations were held out")
    console.print(f"BLEU {result.scores['BLEU']:.1f}, chrF {result.scores['chrF']:.1f}")
    console.print(f"{result.scores.scores[0].signature}\n", style="dim")

    translator = Translator(run)
    console.print("Only the last word tells what “it” is; only the order tells who eats:\n")
    for sentence in pronoun_sentences():
        console.print(f"  {sentence}\n  [bold]{translator(sentence)}[/bold]\n")

    hops, _ = pronoun_hops(translator)
    console.print(
        "Where it looks: from the German pronoun to “it”, and from “it” onwards, by the heads "
        "that look most (percent of attention)\n"
    )
    for hop in hops:
        console.print(hops_text(hop, min(console.width, 100)))
    attention = [look_at(translator, probe) for probe in pronoun_probes()[0]]
    page = write_report(run, hops=hops, attention=attention)
    return f"The whole report, with every layer and head: {page}"


DEMO = Demo(
    "demo", "a Transformer, English to German", show_translations, (
        'translate {to} "The small cat eats the old bear."',
        "serve {to}            # translate and look inside it in the browser",
        "train my.en my.de          # your own two files of sentences",
        "evaluate {to}         # all scores, with signatures",
    ),
)  # fmt: skip
