"""``dragoman score`` computes the probability of given translations, and the surprisal of texts,
word by word."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.base.errors import DragomanError
from dragoman.base.measure import perplexity
from dragoman.base.wording import decimals, plural
from dragoman.console.lines import (
    Into,
    LineVerb,
    LineWork,
    PartsArguments,
    To,
    in_parts,
    wants_parts,
    write_lines,
)
from dragoman.console.options import RunFolder, Tag, argument, arguments

if TYPE_CHECKING:
    from dragoman.runs.run import Run
    from dragoman.tasks.shared.surprisal import Scorer


@arguments
class ScoreArguments(PartsArguments):
    """The arguments and options of ``dragoman score``."""

    run: RunFolder = argument("RUN")
    source: str = argument()
    """A file of source sentences, one per line; for a language model, a file of texts."""
    target: str | None = argument(None, None)
    """A file of their translations, line by line. Not for language models."""
    to: To = None
    tokens: bool = False
    """Also print the log-probability of every token."""
    words: bool = False
    """For language models: print the texts with each word coloured by its surprisal."""
    tag: Tag = None
    into: Into = "score"


def score(args: ScoreArguments) -> None:
    """Compute the probability of given translations, or of texts under a language model.

    For each pair or text, one line is written: the log-probability in nats, the number of tokens
    (including the end symbol) and the perplexity per token. The perplexity of the whole file is
    written to standard error. With --words, a language model's texts are printed with each word
    coloured by its surprisal in bits.
    """
    from dragoman.tasks import catalogue

    # Wrong arguments are reported before torch is imported.
    run = catalogue.Run.open(args.run)
    if run.task.has_head:
        raise DragomanError(
            f"{args.run} does not score texts. To see the probability of each of its answers: "
            f"dragoman {run.task.verbs[0][0]} {args.run} --all"
        )
    is_alone = len(run.task.sides) == 1
    if is_alone and args.target is not None:
        texts = "texts alone" if wants_parts(args) else "one file of texts"
        raise DragomanError(f"{args.run} is a {run.task.called}: it scores {texts}")
    if wants_parts(args):
        verb = LineVerb("score", scoring, unfit=("words",), inputs=("source", "target"))
        languages = run.recipe.languages
        language = languages.target if is_alone else languages.source
        in_parts(verb, args, run, language, reads=1 if is_alone else 2)
        return
    if args.to is not None and args.words:
        raise DragomanError("--words prints to the terminal. Leave out --to")
    if is_alone:
        _score_texts(args, run)
    else:
        _score_pairs(args, run)


def _score_pairs(args: ScoreArguments, run: Run) -> None:
    from dragoman.data.files.corpora import read_pairs
    from dragoman.data.files.corpus_settings import CorpusSettings

    if args.target is None:
        raise DragomanError(f"{args.run} is a translator. Give two files, sources and translations")
    if args.words:
        raise DragomanError(f"--words works only with language models. {args.run} is a translator")
    pairs = read_pairs(CorpusSettings(source=args.source, target=args.target, format="lines"))
    first = next(pairs)
    given = ((pair.source, pair.target) for pair in chain([first], pairs))
    write_lines(scoring(args, run, ""), given, args.to, [args.source, args.target])


def _score_texts(args: ScoreArguments, run: Run) -> None:
    from dragoman.tasks.shared.evaluation import read_like

    texts = (text for text in read_like(run, Path(args.source)) if text.strip())
    first = next(texts, None)
    if first is None:
        raise DragomanError(f"{args.source} contains no text, only spaces")
    given = chain([first], texts)
    if args.words:
        _show_words(run, given)
    else:
        write_lines(scoring(args, run, ""), given, args.to, [args.source])


class _Sum:
    """The sum of log P over tokens, in nats, and the number of tokens."""

    def __init__(self) -> None:
        self._total, self._count = 0.0, 0

    def add(self, log_probabilities: Sequence[float]) -> None:
        self._total += sum(log_probabilities)
        self._count += len(log_probabilities)

    def tell(self) -> None:
        """Print the perplexity of all tokens on standard error."""
        if self._count:
            text = f"perplexity {math.exp(-self._total / self._count):.3f}"
            typer.echo(f"{text} over {plural(self._count, 'token')}", err=True)


def scoring(args: ScoreArguments, run: Run, precision: str) -> LineWork:
    """Return the work on texts or pairs: each gives a line, a text without words an empty one."""
    whole = _Sum()

    def line(names: Sequence[str], log_probabilities: Sequence[float]) -> str:
        whole.add(log_probabilities)
        total, length = math.fsum(log_probabilities), len(log_probabilities)
        text = f"{decimals(total, 4)}\t{length}\t{perplexity(-total / length):.3f}"
        if args.tokens:
            every = zip(names, log_probabilities, strict=True)
            text += "\t" + " ".join(f"{token}:{decimals(value, 3)}" for token, value in every)
        return text

    if len(run.task.sides) == 1:
        from dragoman.engine.predictor import parts

        scorer = _scorer(run)

        def of_texts(texts: Iterable[str]) -> Generator[str]:
            for some in parts(texts, _BATCH_SIZE):
                scores = iter(scorer([text for text in some if text.strip()]))
                for text in some:
                    scored = next(scores) if text.strip() else None
                    yield "" if scored is None else line(scored.tokens, scored.log_probabilities)

        return LineWork(scorer, of_texts, end=whole.tell)
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.studies.systems import open_translator

    translator = open_translator(run.with_tag(args.tag), TranslatorSettings(precision="fp32"))

    def of_pairs(pairs: Iterable[tuple[str, str]]) -> Generator[str]:
        for scored in translator.score_each(pairs):
            yield line((*scored.tokens, "</s>"), scored.token_log_probabilities)

    return LineWork(translator, of_pairs, end=whole.tell)


def _scorer(run: Run) -> Scorer:
    from dragoman.tasks.shared.surprisal import Scorer, windows_of

    return Scorer(run, *windows_of(run))


_BATCH_SIZE = 64


def _show_words(run: Run, texts: Iterable[str]) -> None:
    """Print each word of the texts in the colour of its surprisal."""
    from rich.console import Console

    from dragoman.engine.predictor import parts
    from dragoman.tasks.shared.surprisal import LEGEND, colour_words

    scorer, console, whole = _scorer(run), Console(highlight=False), _Sum()
    plain = console.color_system is None
    for some in parts(texts, _BATCH_SIZE):
        for scored in scorer(some):
            whole.add(scored.log_probabilities)
            console.print(colour_words(scored.words, plain=plain), soft_wrap=True)
    typer.echo(LEGEND, err=True)
    whole.tell()
