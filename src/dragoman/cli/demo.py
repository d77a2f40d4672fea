"""``dragoman demo``: a model of each task in some minutes, from nothing."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from dragoman.cli.console import command, log_to_stderr, prepare_process, program
from dragoman.cli.demo_files import is_read_by
from dragoman.cli.demo_pictures import (
    draw_captioned,
    draw_pictures,
    draw_scenes,
    show_boxes,
    show_confusions,
    show_painted,
    show_shapes,
)
from dragoman.cli.options import arguments, option
from dragoman.errors import RecipeError, RunError
from dragoman.tasks.parsing.demo import show_trees
from dragoman.tasks.transcription.demo import show_heard, speak_recordings

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.recipe import Recipe
    from dragoman.runs.run import Run

_BLANKS = (
    "The ___ didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too ___.",
    "The ___ eats the ___.",
)
_BEGINNINGS = ("Das Tier", "Der kleine Mann", "Wir sehen")
_PAIR = (
    "Das Tier überquerte die Straße nicht, weil es zu müde war.",
    "Das Tier überquerte die Straße nicht, weil sie zu müde war.",
)
"""“es” is the animal and “sie” the street, which nothing tires."""


@arguments
class DemoArguments:
    """What ``dragoman demo`` takes."""

    to: Path | None = None
    """The run folder. Default: runs/demo, or runs/demo-TASK. An older demo there is replaced."""
    task: str = option("translate", metavar="TASK")
    """The model to train: translate, a translator; write, a language model; fill, a model that
    fills in blanks; classify, a classifier; parse, a parser; transcribe, a model that writes what
    is said (extra sound); classify-picture, a classifier of pictures (extra images); detect, a
    detector (extra images); paint, a painter (extra images)."""
    set_: list[str] = option()
    """Change any setting of the recipe. May be repeated."""


def demo(args: DemoArguments) -> None:
    """Train a small translator on the built-in corpus, evaluate it, and look inside it.

    With --task, another kind of model is trained on the same corpus. classify trains a small
    classifier that reads an English sentence and predicts the German pronoun for its "it"; the demo
    draws its confusion matrix. write trains a character-level language model of German and shows
    the surprisal of each word of a text. fill trains a model that fills in blanks in English
    sentences and draws its attention. parse trains a parser that writes the constituency trees of
    English sentences and draws some of them. transcribe lets a formant synthesiser speak English
    sentences, trains a model that writes what was said, and draws its attention over the sound; the
    recordings are kept beside the run folder, in FOLDER-recordings. classify-picture draws shapes
    with patterns, trains a model that names the shape, and draws where it looks; the pictures are
    kept in FOLDER-pictures. detect draws scenes of shapes, trains a detector, and draws
    the boxes that it finds; the scenes are kept in FOLDER-scenes. paint draws shapes with captions,
    learns codes of the pictures, trains a painter and paints captions that it has never seen; the
    pictures and the codes are kept in FOLDER-captions.

    Nothing is downloaded, and there are no questions to answer. On two processor cores, the demo
    takes about two minutes with AVX-512 and over three minutes with AVX2. It first measures the
    speed of this machine and prints the expected time.
    """
    prepare_process()
    import shutil

    from rich.console import Console

    from dragoman import catalogue
    from dragoman.demo.corpus import NOTICE
    from dragoman.runs.lock import locked

    log_to_stderr(quiet=True)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=100)
    if args.task not in DEMOS:
        raise RecipeError(f"--task {args.task}: the demo is one of {', '.join(DEMOS)}")
    chosen = DEMOS[args.task]
    recipe: Recipe = catalogue.Recipe.load(chosen.recipe, args.set_)
    to = args.to or Path("runs") / ("demo" if args.task == "translate" else f"demo-{args.task}")
    if to.exists() and not _is_demo(to):
        raise RunError(f"{to} exists and is not a demo; choose another folder: --to FOLDER")
    if chosen.prepare is not None:
        recipe = chosen.prepare(recipe, to, console)
    else:
        console.print(NOTICE, style="bold")
    if to.exists():
        with locked(to):
            shutil.rmtree(to)
    # Here, so that what is wrong with the arguments is said at once: it imports torch.
    from dragoman.tasks.training import train

    console.print(f"Training into {to}: {chosen.about}.\n")
    outcome = train(recipe, to, say=console.print, resume_command=command("resume", to))
    if outcome.reason == "interrupted":
        raise typer.Exit(130)
    console.print(f"{chosen.show(catalogue.Run.open(to), console)}\n\nNext:")
    for line in next_steps(chosen, to):
        console.print(f"  {line}", markup=False, soft_wrap=True)


def next_steps(chosen: Demo, to: Path) -> list[str]:
    """The commands to go on with after a demo in the folder ``to``."""
    lines = [f"{program()} {step.format(to=shlex.quote(str(to)))}" for step in chosen.steps]
    if to == Path("runs", "demo") and Path(__file__).parents[3] == Path.cwd():
        # In its source tree make serves this run, and installs what that needs.
        for place, step in enumerate(chosen.steps):
            if step.startswith("serve "):
                lines[place] = f"make serve  #{step.partition('#')[2]}"
    return lines


def _is_demo(folder: Path) -> bool:
    """Whether a demo has made that run."""
    from dragoman import catalogue
    from dragoman.runs.run import RECIPE

    if not (folder / RECIPE).is_file():
        return False
    recipe = catalogue.Recipe.load(folder / RECIPE)
    return recipe.data.embedded is not None or is_read_by(recipe, folder)


def show_translations(run: Run, console: Console) -> str:
    """Sentences that one word or the order decides, and how attention tells."""
    from dragoman.demo.corpus import pronoun_probes
    from dragoman.insight.pronoun import look_at, pronoun_hops, pronoun_sentences
    from dragoman.pictures.terminal import hops_text
    from dragoman.tasks.report import write_report
    from dragoman.tasks.translation.evaluation import evaluate_run
    from dragoman.tasks.translation.translator import Translator

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
        "Where it looks: from the German pronoun to “it”, and from “it” onwards, by the heads "
        "that look most (percent of attention)\n"
    )
    for hop in hops:
        console.print(hops_text(hop, min(console.width, 100)))
    attention = [look_at(translator, probe) for probe in pronoun_probes()[0]]
    page = write_report(run, hops=hops, attention=attention)
    return f"The whole report, with every layer and head: {page}"


def show_labels(run: Run, console: Console) -> str:
    """Which German pronoun an English "it" becomes, and what is taken for what."""
    from dragoman.tasks.classification.labeller import Labeller
    from dragoman.tasks.report import write_report

    show_confusions(run, console, "sentences whose combinations", "Pronoun")
    console.print("The same words but the last, which decides what “it” is:\n")
    for one in Labeller(run)(
        f"The animal didn't cross the street because it was too {last}."
        for last in ("tired", "wide")
    ):
        told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in one.ranked)
        console.print(f"  {one.text}\n  [bold]{one.label}[/bold]  ({told})\n")
    return f"The whole report: {write_report(run)}"


def show_blanks(run: Run, console: Console) -> str:
    """What may stand in the blanks of English sentences, and where each word looks."""
    from dragoman.pictures.labels import plain_table
    from dragoman.pictures.records import merged_to_words
    from dragoman.pictures.terminal import heatmap_text
    from dragoman.tasks.masked.evaluation import evaluate_run
    from dragoman.tasks.masked.filler import Filler
    from dragoman.tasks.report import write_report

    console.print(f"\n{evaluate_run(run).table()}\n", markup=False)
    filler = Filler(run)
    console.print("What may stand in a blank, by the text on both sides of it:\n")
    for text in _BLANKS:
        found = filler(text)
        console.print(f"  {text}\n  [bold]{found}[/bold]\n")
        for candidates in found.blanks:
            rows = [(one.text, f"{one.probability:.3f}") for one in candidates]
            table = plain_table(("candidate", "probability"), rows)
            console.print("\n".join(f"    {line}" for line in table.splitlines()) + "\n")
    record = merged_to_words(filler.look(_BLANKS[0], ()))
    console.print("Where each word looks, the blank as <mask> (percent of attention)\n")
    last = len(record.encoder) - 1
    console.print(heatmap_text(record.heatmap("encoder", last), min(console.width, 100)))
    return f"The whole report: {write_report(run)}"


def show_texts(run: Run, console: Console) -> str:
    """What a language model over letters writes, and what surprises it."""
    from rich.text import Text

    from dragoman.cli.score import LEGEND, coloured
    from dragoman.search.settings import SamplingSettings, SearchSettings
    from dragoman.tasks.language_model.evaluation import evaluate_run, windows_of
    from dragoman.tasks.language_model.surprisal import Scorer
    from dragoman.tasks.language_model.writer import Writer
    from dragoman.tasks.report import write_report

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
    return f"The whole report: {write_report(run)}"


class Demo(NamedTuple):
    """What a demo trains, and what it shows of it."""

    recipe: str
    about: str
    """What is trained."""
    show: Callable[[Run, Console], str]
    """Measures and prints. -> Where its pictures and its report are."""
    steps: tuple[str, ...]
    """What to do next, behind the name of the program."""
    prepare: Callable[[Recipe, Path, Console], Recipe] | None = None
    """Makes what is read where that is no text, beside the run folder. -> The recipe that reads
    it."""


DEMOS = {
    "translate": Demo(
        "demo", "a Transformer, English to German", show_translations, (
            'translate {to} "The small cat eats the old bear."',
            "serve {to}            # translate and look inside it in the browser",
            "train my.en my.de          # your own two files of sentences",
            "evaluate {to}         # all scores, with signatures",
        ),
    ),
    "write": Demo(
        "demo-letters", "a decoder-only Transformer over the letters of German", show_texts, (
            'write {to} "Die Katze" --temperature 0.7',
            "serve {to}            # write on in the browser",
            "train my.txt --task language-model   # your own text",
        ),
    ),
    "fill": Demo(
        "demo-masked", "an encoder, which fills in blanks of English sentences", show_blanks, (
            f"fill {{to}} {shlex.quote(_BLANKS[2])} --best 10",
            f"look {{to}} {shlex.quote(_BLANKS[0])} --to look.html",
            "train my.txt --task masked  # your own text",
        ),
    ),
    "classify": Demo(
        "demo-labels", "an encoder, which gives each English sentence a label, the\nGerman pronoun "
        "(er, sie or es) that its “it” becomes", show_labels, (
            "classify {to} 'The dog ate the soup although it was very hot.' --all",
            "train my.tsv --task classification  # your own texts",
        ),
    ),
    "parse": Demo(
        "demo-trees", "a Transformer, English sentences to their trees", show_trees, (
            "parse {to} 'The old queen likes the cat that sleeps .' --draw",
            "evaluate {to}  # by length and by label",
            "train my.mrg --task parsing  # your own trees",
        ),
    ),
    "transcribe": Demo(
        "demo-speech", "a Transformer with CTC, recordings to what is said in them",
        show_heard, (
            "transcribe {to} {to}-recordings/test/*.wav --format json --words",
            "evaluate {to}         # WER and CER, the worst recordings aligned",
            "train my-recordings/  # your own recordings, a .txt beside each",
        ), speak_recordings,
    ),
    "classify-picture": Demo(
        "demo-pictures", "a Vision Transformer, pictures to the shapes that they show",
        show_shapes, (
            "classify {to} {to}-pictures/test/000*.png",
            "figure picture-rollout --run {to} --sentence {to}-pictures/test/0000*.png",
            "serve {to}            # drop a picture on the page",
            "train my-pictures/ --task classification  # a folder for each label",
        ), draw_pictures,
    ),
    "detect": Demo(
        "demo-boxes", "a Transformer over convolutions, scenes of shapes to their boxes",
        show_boxes, (
            "detect {to} {to}-scenes/test/0001.png --show",
            "evaluate {to}         # AP50 and AP, for each shape",
            "train my-boxes.json --task detection  # your own pictures, boxes in COCO's JSON",
        ), draw_scenes,
    ),
    "paint": Demo(
        "demo-paint", "a Transformer, captions to the codes of pictures",
        show_painted, (
            'paint {to} "a small red circle above a large blue square"',
            'paint {to} "a large green cross" --sample --count 4 --to crosses.png',
            "train captions.tsv --task painting --codes {to}-captions/codes  # your own captions",
        ), draw_captioned,
    ),
}  # fmt: skip
"""What ``--task`` names."""
