"""The verb ``dragoman translate``, which translates lines and documents."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dragoman.base.errors import DragomanError
from dragoman.base.wording import plural
from dragoman.console.given import files_among, files_given, input_files, lines_given, running_text
from dragoman.console.lines import (
    Into,
    LinesArguments,
    LineVerb,
    LineWork,
    in_parts,
    wants_parts,
    write_lines,
)
from dragoman.console.options import (
    Quiet,
    Tag,
    Verbose,
    argument,
    arguments,
    option,
    sampling_settings,
    search_settings,
    setting,
    translator_settings,
    values_of,
)
from dragoman.console.output import output_to
from dragoman.tasks.translation import documents_verb

if TYPE_CHECKING:
    from dragoman.runs.run import Run
    from dragoman.tasks.translation.proofreading.plain import PlainCheck, ProofWarning
    from dragoman.tasks.translation.result import Translation
    from dragoman.tasks.translation.translator import Translator


@arguments
class TranslateArguments(LinesArguments):
    """The arguments and options of ``dragoman translate``."""

    given: list[str] = argument("TEXT", None)
    """Files, or the text to translate. Default: standard input."""
    document: bool = False
    """Treat a plain text file as a document: sentences may run over several lines, and paragraphs
    are kept. Word, HTML, Markdown, PO, subtitle and similar files are treated as documents
    automatically."""
    final: bool = False
    """For documents: mark the translations as finished, if the format supports it (PO, XLIFF)."""
    columns: str | None = None
    """For a table (CSV, TSV) with --to: translate only these columns, such as text,note (names in
    the first row, which stays as it is) or 2,3 (numbers). Default: all."""
    paragraphs: bool = False
    """Translate running text: split it into sentences, and keep its line breaks and spacing."""
    beam: int | None = setting(search_settings, default=None)
    n_best: int | None = setting(search_settings, default=None)
    """Write this many translations of each line, each with its rank and score."""
    scores: bool = False
    """Write the score and a tab before each line. With --mbr, the score is the
    average chrF against all candidates."""
    temperature: float | None = setting(sampling_settings, default=None)
    """Sample instead of searching. Values below 1 favour likely tokens; values above 1 give
    unlikely tokens a better chance."""
    mbr: int = setting(translator_settings, metavar="N", le=None)
    prefix: str = ""
    """The text that every translation must begin with."""
    precision: str = setting(translator_settings)
    shortlist: bool = setting(translator_settings)
    ensemble: list[Path] = option()
    """Another run to combine with RUN. It may have any architecture, but must have the same target
    vocabulary. The probabilities of the models are averaged. May be repeated."""
    rerank: Path | None = None
    """A language model of the target language, which reranks the n best translations (10, or
    --n-best)."""
    rerank_weight: float | None = option(ge=0.0)
    """λ in log P(RUN) + λ log P(language model): 0 ignores the language model, 1 gives it the same
    weight as RUN. Default: chosen by BLEU on RUN's dev pairs."""
    tag: Tag = None
    long_lines: str = setting(translator_settings)
    whole: bool = setting(translator_settings)
    warn: bool = False
    """Report doubtful translations on standard error: words that were left out, never seen in
    training, or repeated. For files, the number of doubtful lines is printed first. Translation
    takes several times as long."""
    set_: list[str] = option()
    """Change any search setting, such as length_penalty=1.0. May be repeated."""
    watch: bool = False
    """Translate the files in a folder or bucket, and all files that are put there later, into the
    folder or bucket that --to names, until you press Ctrl-C. Each file is translated once."""
    into: Into = "translation"
    quiet: Quiet = option(False, "-q")
    verbose: Verbose = option(False, "-v")


def translate(args: TranslateArguments) -> None:
    """Translate files, a text or standard input, line by line; or translate documents.

    Each input line gives one output line. Lines are written as soon as they are translated, so the
    command works in a pipe and interactively, and memory use does not grow with the input. If the
    run was trained on single sentences, a line of several sentences is translated sentence by
    sentence. Input must be plain UTF-8 text.

    A document (Word, PowerPoint, Excel, HTML, Markdown, PO, XLIFF, subtitles and more) is
    translated into the file or folder that --to names; layout, formatting and inline codes are
    kept. In a folder, every document is translated.

    Examples:

      dragoman translate runs/demo < letter.en > letter.de

      dragoman translate runs/demo letter.en --to letter.de

      dragoman translate runs/demo "The dog sleeps."

      dragoman translate runs/demo contract.docx --to vertrag.docx

      dragoman translate runs/demo manual/ --to handbuch/

      dragoman translate runs/demo letter.en --to letter.de --warn

      dragoman translate runs/1 --ensemble runs/2 --ensemble runs/3 < letter.en > letter.de

      dragoman translate runs/demo --mbr 32 --temperature 0.9 < letter.en > letter.de

      dragoman translate runs/en-de --rerank runs/german --rerank-weight 0.2 < letter.en

      dragoman translate runs/demo corpus.en.gz --to corpus.de --on local:2

      dragoman translate runs/demo inbox/ --to outbox/ --watch
    """
    _check_options(args)
    from dragoman.tasks.catalogue import open_run

    run = open_run(args.run, "translation", "which does not translate")
    if args.watch:
        _translate_watched(args, run)
        return
    if wants_parts(args):
        _translate_in_parts(args, run)
        return
    to = None if args.to is None else Path(args.to)
    documents: list[Path] = []
    if run.task.reads_files:
        _check_fits(args, "files", run.folder, run.task.noun)
    elif not args.text and not args.plain:
        documents = documents_verb.documents_among(args.given, to, asked=args.document)
    if documents:
        _translate_documents(args, run, documents, to)
        return
    _check_fits(args, "lines")
    if args.paragraphs:
        _translate_paragraphs(args, run)
    else:
        _translate_lines(args, run)


_UNFIT = {
    "paragraphs": ("scores", "n_best", "warn"),
    "watch": ("on", "part", "text", "paragraphs", "warn"),
    "files": ("paragraphs", "warn"),
    "documents": ("scores", "n_best", "warn", "prefix", "mbr", "rerank"),
    "lines": ("document", "final", "columns"),
}
"""The options that do not fit each kind of input."""
_TOLD = {
    "paragraphs": "--paragraphs writes running text. Leave out --scores, --n-best and --warn",
    "watch": "{option} does not work with --watch. Leave one of them out",
    "files": "{option} works only with text, but {} reads {}",
    "documents": "{option} works only with lines, but {} is a document. Leave it out, or use "
    "--plain to read the file line by line",
    "lines": "{option} works only with documents. Give a file or a folder of them, and --to",
}
"""The messages about options that do not fit the input."""


def _check_fits(args: TranslateArguments, translated: str, *named: object) -> None:
    """Raise ``DragomanError`` for an option that does not fit the kind of input ``translated``.
    ``named`` fills the message."""
    for name in _UNFIT[translated]:
        if getattr(args, name) not in (None, False, "", 0):
            option = f"--{name.replace('_', '-')}"
            raise DragomanError(_TOLD[translated].format(*named, option=option))


def _check_options(args: TranslateArguments) -> None:
    """Raise ``DragomanError`` for options that exclude each other."""
    if args.paragraphs:
        _check_fits(args, "paragraphs")
    if args.rerank is None and args.rerank_weight is not None:
        raise DragomanError("--rerank-weight needs a language model. Set --rerank RUN")
    if args.rerank_weight is not None and not math.isfinite(args.rerank_weight):
        raise DragomanError(f"--rerank-weight {args.rerank_weight}: use a number, such as 0.2")
    if args.rerank is not None and args.paragraphs:
        raise DragomanError("--rerank works only with lines. Leave --paragraphs out")
    if args.rerank is not None and args.mbr:
        raise DragomanError("--mbr and --rerank do not work together. Leave one out")


def _translate_lines(args: TranslateArguments, run: Run) -> None:
    """Translate lines of text, recordings, or pictures of lines."""
    files: list[Path] = []
    kind, language = run.recipe.source.kind, run.recipe.languages.source
    if run.task.reads_files:
        lines = files_given(input_files(args.given, kind), kind)
    else:
        files = _files(args)
        lines = lines_given(files, args.given, language, plain=args.plain)
    _check_is_new(args)
    translator, in_order = _open(args, run)
    reporter = WarningsTold(held=bool(files)) if args.warn else None
    outputs = _lines_of(args, translator, in_order, reporter)
    write_lines(LineWork(translator, outputs), lines, args.to, files)


def _translate_paragraphs(args: TranslateArguments, run: Run) -> None:
    """Translate the whole input as one running text."""
    files = _files(args)
    _check_is_new(args)
    translator, _ = _open(args, run)
    with output_to(args.to, files) as out:
        language = run.recipe.languages.source
        read = running_text(files, args.given, language, plain=args.plain)
        written = translator.paragraphs(read, prefix=args.prefix)
        out.write(written)
        with _report_doubts(translator.plain_check()) as check:
            check.take(read, written)


def _translate_documents(
    args: TranslateArguments, run: Run, documents: Sequence[Path], to: Path | None
) -> None:
    _check_fits(args, "documents", documents[0])
    pairs = documents_verb.check_targets(documents, to)
    translator, _ = _open(args, run)
    documents_verb.translate_documents(args, translator, pairs)


def _translate_in_parts(args: TranslateArguments, run: Run) -> None:
    from dragoman.tasks.translation.proofreading.plain import PlainCheck

    if run.task.reads_files:
        raise DragomanError(
            f"{run.folder} reads {run.task.noun}. Only lines of text can be divided into parts"
        )
    _check_fits(args, "lines")
    language = run.recipe.languages.source
    verb = LineVerb("translate", translating, unfit=("text", "paragraphs", "warn"))
    with _report_doubts(PlainCheck(language, run.lexicon)) as check:
        in_parts(verb, args, run, language, seen=check.add)


def _translate_watched(args: TranslateArguments, run: Run) -> None:
    _check_fits(args, "watch")
    documents_verb.check_watching(args, run)
    translator, in_order = _open(args, run)
    lines = _lines_of(args, translator, in_order)
    documents_verb.watch(args, translator, lines, run.recipe.languages.source, _say(args))


def _files(args: TranslateArguments) -> list[Path]:
    """Return the given files of lines; an empty list for a text and for standard input."""
    helps = ("--to", "--text", "--ensemble")
    return [] if args.text else files_among(args.given, "translate", *helps, quiet=args.quiet)


def _check_is_new(args: TranslateArguments) -> None:
    if args.to is not None:
        from dragoman.formats.catalogue import check_is_new

        check_is_new(Path(args.to), or_lines=True)


def _say(args: TranslateArguments) -> Callable[[str], None]:
    """Return the function that writes a line to standard error; it writes nothing with ``--quiet``
    and in parts."""
    is_silent = args.quiet or wants_parts(args)

    def say(text: str) -> None:
        if not is_silent:
            sys.stderr.write(f"{text}\n")

    return say


InOrder = Callable[[Iterable["Translation"]], Iterator["Translation"]]
"""A function that returns translations unchanged, or with their candidates reranked."""


def _lines_of(
    args: TranslateArguments,
    translator: Translator,
    in_order: InOrder,
    reporter: WarningsTold | None = None,
) -> Callable[[Iterable[str]], Generator[str]]:
    """Return the function that translates lines or files, and reports doubts at the end. If
    ``reporter`` is given, it reports all warnings instead."""
    from dragoman.engine.predictor import windows

    of_files = translator.run.task.reads_files

    def outputs(lines: Iterable[str]) -> Generator[str]:
        check = translator.plain_check()
        with reporter or _report_doubts(check):
            for window in windows(lines):
                doubtful = []
                for translation in in_order(translator.each(window, prefix=args.prefix)):
                    if reporter is not None:
                        doubtful.append(translation)
                    elif not of_files:
                        check.take(translation.source, translation.text)
                    yield _format(args, translation)
                if reporter is not None:
                    for warnings in translator.proofread(doubtful):
                        reporter.take(warnings)

    return outputs


@contextmanager
def _report_doubts(check: PlainCheck) -> Iterator[PlainCheck]:
    """Report the doubts once at the end, also if an error ends the work."""
    try:
        yield check
    finally:
        for doubt in check.doubts:
            sys.stderr.write(f"{doubt}\n")


def _open(args: TranslateArguments, run: Run) -> tuple[Translator, InOrder]:
    """Open the translator of the arguments, and the function that reranks its candidates."""
    from dragoman.engine.settings import TranslatorSettings, search_of, with_beams
    from dragoman.tasks import catalogue
    from dragoman.tasks.translation.translator import Translator

    language_model = None if args.rerank is None else catalogue.Run.open(args.rerank)
    run = run.with_tag(args.tag)
    ensemble = [catalogue.Run.open(folder).with_tag(args.tag) for folder in args.ensemble]
    changes = list(args.set_)
    if args.temperature is not None:
        changes.append(f"sampling.temperature={args.temperature}")
    beam, candidates = args.beam, args.n_best
    if language_model is not None:
        from dragoman.tasks.translation.reranking import CANDIDATES

        beam = candidates = max(candidates or 0, beam or 0, CANDIDATES)
    search = with_beams(search_of(run.recipe, changes), beam, candidates)
    settings = TranslatorSettings.check(**values_of(args, translator_settings))
    translator = Translator(run, settings, search, ensemble)
    if language_model is None:
        return translator, iter
    from dragoman.tasks.translation.reranking import rerank_by

    return translator, rerank_by(translator, language_model, args.rerank_weight, say=_say(args))


def translating(args: TranslateArguments, run: Run, precision: str) -> LineWork:
    translator, in_order = _open(replace(args, precision=precision or args.precision), run)

    def outputs(lines: Sequence[str]) -> Generator[str]:
        for translation in in_order(translator.each(lines, prefix=args.prefix)):
            yield _format(args, translation)

    def count_doubts(rows: Sequence[tuple[str, ...]], written: Sequence[str]) -> Any:
        check = translator.plain_check()
        for (text,), output in zip(rows, written, strict=True):
            check.take(text, _best_text(args, output))
        return check.counted

    return LineWork(translator, outputs, count_doubts)


def _format(args: TranslateArguments, translation: Translation) -> str:
    if args.n_best is None:
        return (f"{_score(translation)}\t" if args.scores else "") + translation.text
    every = (translation, *translation.alternatives)[: args.n_best]
    return "\n".join(f"{k}\t{t.text}\t{_score(t)}" for k, t in enumerate(every, 1))


def _best_text(args: TranslateArguments, output: str) -> str:
    """Return the best translation in a text that ``_format`` made."""
    best = output.partition("\n")[0]
    if args.n_best is not None:
        return best.partition("\t")[2].rpartition("\t")[0]
    return best.partition("\t")[2] if args.scores else best


def _score(translation: Translation) -> str:
    """Format the value by which a translation was chosen, its expected chrF or its score."""
    from dragoman.base.wording import decimals

    expected = translation.expected_chrf
    return decimals(translation.score, 4) if expected is None else f"{expected:.2f}"


class WarningsTold:
    """Reports on standard error the number of lines with warnings, and the warnings by line.

    With ``held``, for files, warnings wait until the last line, so that the count comes first. For
    typed or piped input, each warning follows its line, and the count comes last. An error does not
    suppress the report.
    """

    def __init__(self, *, held: bool) -> None:
        self._held: list[str] | None = [] if held else None
        self._lines = self._doubted = 0
        self._codes: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stderr.write(f"{self.summary}\n")
        sys.stderr.writelines(self._held or ())

    def take(self, warnings: Sequence[ProofWarning]) -> None:
        """Report the warnings of the next line."""
        self._lines += 1
        self._doubted += bool(warnings)
        for warning in warnings:
            where = f", sentence {warning.sentence}" if warning.sentence else ""
            line = f"line {self._lines}{where}: {warning}\n"
            if self._held is None:
                sys.stderr.write(line)
            else:
                self._held.append(line)
            self._codes[warning.code] += 1

    @property
    def summary(self) -> str:
        """The number of lines with warnings, and of each kind of warning: "3 of 40 lines have
        warnings: omitted 2, cut off 1"."""
        lines = plural(self._lines, "line")
        if not self._doubted:
            return f"no warnings about {lines}"
        total = plural(self._doubted, f"of {lines} has warnings", f"of {lines} have warnings")
        kinds = ", ".join(f"{c.replace('_', ' ')} {n:,}" for c, n in self._codes.most_common())
        return f"{total}: {kinds}"
