"""``dragoman translate``: lines in, lines out."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.base.errors import DragomanError
from dragoman.cli.console import log_to_stderr, opened_run, output_to
from dragoman.cli.given import (
    AsText,
    Plain,
    files_among,
    files_given,
    lines_given,
    named_files,
    running_text,
)
from dragoman.cli.in_parts import Into, Outputs, PartsArguments, To, in_parts, wants_parts
from dragoman.cli.options import (
    Quiet,
    RunFolder,
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
from dragoman.tasks.translation import documents_verb
from dragoman.tasks.translation.warnings_told import WarningsTold

if TYPE_CHECKING:
    from dragoman.runs.run import Run
    from dragoman.tasks.translation.proofreading.plain import PlainCheck
    from dragoman.tasks.translation.result import Translation
    from dragoman.tasks.translation.translator import Translator


@arguments
class TranslateArguments(PartsArguments):
    """What ``dragoman translate`` takes."""

    run: RunFolder = argument("RUN")
    given: list[str] = argument("TEXT", None)
    """Files, or the text to translate. Default: standard input."""
    to: To = None
    text: AsText = False
    plain: Plain = False
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
    """Write the score and a tab before each line. With --mbr, the score is the expected chrF."""
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
    from dragoman.documents.files import check_is_new
    from dragoman.tasks.translation.proofreading.plain import PlainCheck

    log_to_stderr(args.quiet, args.verbose)

    def log_line(text: str) -> None:
        if not args.quiet:
            sys.stderr.write(f"{text}\n")

    if args.paragraphs and (args.scores or args.n_best is not None or args.warn):
        raise DragomanError(
            "--paragraphs writes running text, in which --scores, --n-best and --warn have no place"
        )
    if args.rerank is None and args.rerank_weight is not None:
        raise DragomanError("--rerank-weight is of a language model: --rerank RUN")
    if args.rerank_weight is not None and not math.isfinite(args.rerank_weight):
        raise DragomanError(f"--rerank-weight {args.rerank_weight}: it is a number, such as 0.2")
    if args.rerank is not None and args.paragraphs:
        raise DragomanError("--rerank is for lines: leave --paragraphs out")
    if args.rerank is not None and args.mbr:
        raise DragomanError("--mbr and --rerank each choose among the candidates: give one")
    opened = opened_run(args.run, "translation", "which does not translate")
    language = opened.recipe.languages.source
    if args.watch:
        _watch(args, opened, log_line)
        return
    if wants_parts(args):
        if opened.task.reads_files:
            raise DragomanError(f"{opened.folder} reads {opened.task.noun}: parts are of lines")
        _check_document_options(args, [])
        unfit = ("text", "document", "final", "paragraphs", "warn")
        with _told_after(PlainCheck(language, opened.lexicon)) as check:
            in_parts(
                "translate", args, [args.given], outputs_of, language, unfit=unfit, seen=check.add
            )  # fmt: skip
        return
    to = None if args.to is None else Path(args.to)
    of_files, given, documents = opened.task.reads_files, args.given, []
    if of_files:
        given = named_files(given, opened.recipe.source.kind)
        option = "--paragraphs is for running" if args.paragraphs else "--warn is about"
        if args.paragraphs or args.warn:
            raise DragomanError(f"{option} text, and {opened.folder} reads {opened.task.noun}")
    elif not args.text and not args.plain:
        documents = documents_verb.documents_among(given, to, asked=args.document)
    _check_document_options(args, documents)
    pairs = documents_verb.check_targets(documents, to) if documents else []
    helps = ("--to", "--text", "--ensemble")
    files = []
    if not args.text and not documents and not of_files:
        files = files_among(given, "translate", *helps, quiet=args.quiet)
    if to is not None and not documents:
        check_is_new(to, or_lines=True)

    from dragoman.engine.streaming import windows

    translator, in_order = _opened(args, opened, log_line)
    if documents:
        documents_verb.translate_documents(
            pairs, translator, final=args.final, columns=args.columns, quiet=args.quiet
        )
        return
    with output_to(to, files) as out:
        if args.paragraphs:
            read = running_text(files, given, language, plain=args.plain)
            written = translator.paragraphs(read, prefix=args.prefix)
            out.write(written)
            with _told_after(translator.plain_check()) as check:
                check.take(read, written)
            return
        if of_files:
            lines = files_given(given, opened.recipe.source.kind)
        else:
            lines = lines_given(files, given, language, plain=args.plain)
        told = WarningsTold(held=bool(files)) if args.warn else None
        check = translator.plain_check()
        with told or _told_after(check):
            for window in windows(lines):
                found = in_order(translator.each(window, prefix=args.prefix))
                if told is None:
                    for translation in found:
                        if not of_files:
                            check.take(translation.source, translation.text)
                        out.write(_written(args, translation) + "\n")
                    out.flush()
                    continue
                translations = list(found)
                out.writelines(_written(args, translation) + "\n" for translation in translations)
                out.flush()
                for warnings in translator.proofread(translations):
                    told.take(warnings)


@contextmanager
def _told_after(check: PlainCheck) -> Iterator[PlainCheck]:
    """What it has found is told once, at the end, also where an error ends the work."""
    try:
        yield check
    finally:
        for doubt in check.found:
            sys.stderr.write(f"{doubt}\n")


def _watch(args: TranslateArguments, run: Run, say: Callable[[str], None]) -> None:
    from dragoman.engine.streaming import windows
    from dragoman.tasks.translation.documents_verb import check_watching, watch

    check_watching(args, run)
    translator, in_order = _opened(args, run, say)

    def lines(read: Iterator[str]) -> Iterator[str]:
        with _told_after(translator.plain_check()) as check:
            for window in windows(read):
                for translation in in_order(translator.each(window, prefix=args.prefix)):
                    check.take(translation.source, translation.text)
                    yield _written(args, translation)

    watch(args, translator, lines, run.recipe.languages.source, say)


InOrder = Callable[[Iterable["Translation"]], Iterator["Translation"]]
"""Translations as they came, or the candidates of each in another order."""


def _opened(
    args: TranslateArguments, run: Run, say: Callable[[str], None]
) -> tuple[Translator, InOrder]:
    """The translator of the arguments, and what reorders its candidates."""
    from dragoman import catalogue
    from dragoman.engine.search_settings import search_of, with_beams
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.tasks.translation.translator import Translator

    language_model = None if args.rerank is None else catalogue.Run.open(args.rerank)
    others = [catalogue.Run.open(one) for one in args.ensemble]
    changes = list(args.set_)
    if args.temperature is not None:
        changes.append(f"sampling.temperature={args.temperature}")
    beam, candidates = args.beam, args.n_best
    if language_model is not None:
        from dragoman.tasks.translation.reranking import CANDIDATES

        beam = candidates = max(candidates or 0, beam or 0, CANDIDATES)
    search = with_beams(search_of(run.recipe, changes), beam, candidates)
    settings = TranslatorSettings.check(**values_of(args, translator_settings))
    translator = Translator(run, settings, search, others)
    if language_model is None:
        return translator, iter
    from dragoman.tasks.translation.reranking import rerank_by

    return translator, rerank_by(translator, language_model, args.rerank_weight, say=say)


def outputs_of(args: TranslateArguments, run: Run, precision: str) -> Outputs:
    """What a worker does to lines."""
    args = replace(args, precision=precision or args.precision)
    translator, in_order = _opened(args, run, lambda _: None)

    def outputs(lines: Sequence[str]) -> Iterator[str]:
        found = in_order(translator.each(lines, prefix=args.prefix))
        return (_written(args, translation) for translation in found)

    def seen(rows: Sequence[tuple[str, ...]], written: Sequence[str]) -> Any:
        check = translator.plain_check()
        for (text,), output in zip(rows, written, strict=True):
            check.take(text, output.partition("\n")[0])
        return check.counted

    return translator, outputs, seen


def _written(args: TranslateArguments, translation: Translation) -> str:
    """The output for one line."""
    if args.n_best is None:
        return (f"{_score(translation)}\t" if args.scores else "") + translation.text
    every = (translation, *translation.alternatives)[: args.n_best]
    return "\n".join(f"{k}\t{t.text}\t{_score(t)}" for k, t in enumerate(every, 1))


def _score(translation: Translation) -> str:
    """What it was chosen by."""
    from dragoman.base.wording import decimals

    expected = translation.expected_chrf
    return decimals(translation.score, 4) if expected is None else f"{expected:.2f}"


def _check_document_options(args: TranslateArguments, documents: Sequence[Path]) -> None:
    """Errors: ``DragomanError`` for options of lines with documents, and the other way round."""
    of_lines = ("scores", "n_best", "warn", "prefix", "mbr", "rerank")
    for name in of_lines if documents else ("document", "final", "columns"):
        if getattr(args, name) in (None, False, "", 0):
            continue
        option = f"--{name.replace('_', '-')}"
        raise DragomanError(
            f"{option} is for lines, and {documents[0]} is a document: leave it out, or give "
            "--plain to read the file line by line"
            if documents
            else f"{option} is for a document: give a file, or a folder of them, and --to"
        )
