"""The verb ``dragoman write``, which continues a text with a language model, and the demo of
``dragoman demo --task write``."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import typer

from dragoman.base.errors import DragomanError
from dragoman.console.demo_files import Demo
from dragoman.console.given import tell_of_file
from dragoman.console.options import (
    RunFolder,
    argument,
    arguments,
    option,
    sampling_settings,
    setting,
    values_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.run import Run


@arguments
class WriteArguments:
    """The arguments and options of ``dragoman write``."""

    run: RunFolder = argument("RUN")
    begin: str = argument("BEGIN", "")
    """The beginning of the text; the model continues it."""
    number: int = option(1, "-n", ge=1)
    """The number of texts to generate."""
    temperature: float = setting(sampling_settings)
    top_k: int = setting(sampling_settings)
    top_p: float = setting(sampling_settings)
    seed: int = setting(sampling_settings)
    """The random seed. The same seed generates the same text; each further text uses the next
    seed."""
    stop: list[str] = option()
    """End the text before this string; \\n stands for a newline. May be repeated."""
    longest: int = option(256, ge=1)
    """The maximum number of tokens to generate; may exceed the model's context."""
    likeliest: bool = False
    """Search for the most probable text instead of sampling."""
    scores: bool = False
    """Write the score and a tab before each text."""


def write(args: WriteArguments) -> None:
    """Generate texts with a language model, from scratch or from a given beginning.

    Tokens are sampled by their probabilities and printed as they are sampled. A text ends when the
    model ends it, at a --stop string, or after --longest tokens. When a text outgrows the model's
    context, the model continues from the last half of it.

    Examples:

      dragoman write runs/letters "Der Hund" -n 5 --temperature 0.8

      dragoman write runs/diary "Once" --top-p 0.9 --longest 500 --stop "\\n\\n"

      dragoman write runs/letters "Der Hund" --likeliest
    """
    from dragoman.base.wording import decimals

    if args.stop and args.scores:
        raise DragomanError("--scores works only with whole texts. Leave out --stop")
    if args.stop and args.likeliest and args.number > 1:
        raise DragomanError("--stop, --likeliest and -n cannot all be given. Leave one out")
    drawn = values_of(args, sampling_settings)
    if args.likeliest and drawn != sampling_settings()().model_dump():
        raise DragomanError(
            "--likeliest does not sample. Leave out --temperature, --top-k, --top-p and --seed"
        )
    from dragoman.tasks.catalogue import open_run

    opened = open_run(args.run, "language-model", "not a language model")
    from dragoman.engine.settings import parse_search
    from dragoman.tasks.language_model.writer import Writer

    tell_of_file(args.begin, f'To continue its content: "$(cat {shlex.quote(args.begin)})"')
    plain, how = opened.recipe.search, [f"n_best={args.number}"]
    if args.likeliest:
        plain = plain.model_copy(update={"sampling": None})
        how.append(f"beam={max(args.number, plain.beam)}")
    else:
        how += [f"sampling.{name}={value}" for name, value in drawn.items()]
    writer = Writer(opened, search_settings=parse_search(plain, how))
    count = writer.tokens(args.begin)
    if count >= writer.context:
        typer.echo(
            f"The beginning has {count:,} tokens, but the model reads {writer.context:,} at "
            "once. It continues from the last of them.",
            err=True,
        )
    if args.scores or (args.likeliest and args.number > 1):
        if count >= writer.context:
            raise DragomanError(
                "a beginning this long allows only one text at a time. Leave out --n-best or "
                "--count"
            )
        length = min(writer.context, count + args.longest)
        whole = writer.engine.search_settings.model_copy(update={"max_length": length})
        for text in writer(args.begin, whole):
            typer.echo((f"{decimals(text.score, 4)}\t" if args.scores else "") + text.text)
        return
    endings = [stop.replace("\\n", "\n").replace("\\t", "\t") for stop in args.stop]
    for number in range(args.number):
        settings = writer.engine.search_settings
        if settings.sampling is not None:
            further = settings.sampling.model_copy(update={"seed": args.seed + number})
            settings = settings.model_copy(update={"sampling": further})
        typer.echo(args.begin, nl=False)
        for piece in writer.stream(args.begin, settings, stop=endings, longest=args.longest):
            typer.echo(piece, nl=False)
            sys.stdout.flush()
        typer.echo()


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
