"""``dragoman translate``: lines in, lines out."""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.given import AsText, Plain, files_among, lines_given, running_text
from dragoman.cli.warnings_told import WarningsTold


def translate(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    given: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files to translate, or text itself; standard input if not given.", metavar="TEXT"
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Write the translation to this file, whole or not at all."),
    ] = None,
    as_text: AsText = False,
    plain: Plain = False,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Running text: cut into sentences, keep spacing.")
    ] = False,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam width; 1 is greedy.")] = None,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Give so many translations, as number, text, score.")
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Write the score (with --mbr the expected chrF) and a tab before each line.",
        ),
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, help="Draw by chance instead of searching.")
    ] = None,
    mbr: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Of N candidates (the best of a beam, or samples with --temperature) give the one "
            "that agrees best with all of them, by expected chrF (minimum Bayes risk).",
        ),
    ] = 0,
    prefix: Annotated[str, typer.Option(help="How every translation must begin.")] = "",
    precision: Annotated[
        str, typer.Option(help="auto (the fastest here), int8, bf16 or fp32 (the reference).")
    ] = "auto",
    shortlist: Annotated[
        bool,
        typer.Option("--shortlist", help="Score likely words alone; see dragoman shortlist."),
    ] = False,
    ensemble: Annotated[
        list[Path] | None,
        typer.Option(
            help="A run that translates together with RUN, of any kind of model with the same "
            "target vocabulary; may be given again. The mean of their probabilities decides."
        ),
    ] = None,
    rerank: Annotated[
        Path | None,
        typer.Option(
            help="A language model of the target language, which puts the n best (10, or --n-best) "
            "in order again."
        ),
    ] = None,
    rerank_weight: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="λ in log P of RUN + λ log P of the language model: at 0 it says nothing, at 1 as "
            "much as RUN. Left out: chosen by BLEU on RUN's dev pairs.",
        ),
    ] = None,
    long_lines: Annotated[
        str, typer.Option(help="Lines that are too long: split into sentences, or cut.")
    ] = "split",
    whole: Annotated[
        bool,
        typer.Option(
            "--whole", help="Each line as one, also where the run knows single sentences alone."
        ),
    ] = False,
    warn: Annotated[
        bool,
        typer.Option(
            "--warn",
            help="Say on standard error what is doubtful, line by line: words that were left out, "
            "never read or repeated; and how many lines are, before the others where files are "
            "given. Takes several times as long.",
        ),
    ] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any search setting: length_penalty=1.0")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Translate standard input, files or a text, line by line.

    One line out for one line in, whatever the line is. Lines come out a moment after they came, so
    it works in a pipe and by hand; memory does not grow with the input. A line of several sentences
    is translated sentence by sentence where the run has learned from single ones. Text is UTF-8 and
    plain; HTML is translated by dragoman serve.

    Examples:

      dragoman translate runs/demo < letter.en > letter.de

      dragoman translate runs/demo letter.en --to letter.de

      dragoman translate runs/demo "The dog sleeps."

      dragoman translate runs/demo letter.en --to letter.de --warn

      dragoman translate runs/1 --ensemble runs/2 --ensemble runs/3 < letter.en > letter.de

      dragoman translate runs/demo --mbr 32 --temperature 0.9 < letter.en > letter.de

      dragoman translate runs/en-de --rerank runs/german --rerank-weight 0.2 < letter.en
    """
    from dragoman.cli.console import log_to_stderr, output_to
    from dragoman.decimals import decimals
    from dragoman.errors import DragomanError
    from dragoman.runs.run import Run

    log_to_stderr(quiet)

    def log_line(text: str) -> None:
        if not quiet:
            sys.stderr.write(f"{text}\n")

    if paragraphs and (scores or n_best is not None or warn):
        raise DragomanError(
            "--paragraphs writes running text, in which --scores, --n-best and --warn have no place"
        )
    if rerank is None and rerank_weight is not None:
        raise DragomanError("--rerank-weight is of a language model: --rerank RUN")
    if rerank_weight is not None and not math.isfinite(rerank_weight):
        raise DragomanError(f"--rerank-weight {rerank_weight}: it is a number, such as 0.2")
    if rerank is not None and paragraphs:
        raise DragomanError("--rerank is for lines: leave --paragraphs out")
    if rerank is not None and mbr:
        raise DragomanError("--mbr and --rerank each choose among the candidates: give one")
    opened = Run.open(run)
    language_model = None if rerank is None else Run.open(rerank)
    others = [Run.open(one) for one in ensemble or ()]
    texts, language = given or [], opened.recipe.languages.source
    files = (
        []
        if as_text
        else files_among(texts, "translate", "--to", "--text", "--ensemble", quiet=quiet)
    )

    from dragoman.engine.search_settings import parse_search, with_beams
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.engine.streaming import windows
    from dragoman.tasks.translation.result import Translation
    from dragoman.tasks.translation.translator import Translator

    changes = list(set_ or [])
    if temperature is not None:
        changes.append(f"sampling.temperature={temperature}")
    candidates = n_best
    if language_model is not None:
        from dragoman.tasks.translation.reranking import CANDIDATES

        candidates = max(n_best or 0, beam or 0, CANDIDATES)
        beam = candidates
    search = with_beams(parse_search(opened.recipe.search, changes), beam, candidates)
    settings = TranslatorSettings.check(
        precision=precision, long_lines=long_lines, shortlist=shortlist, whole=whole, mbr=mbr
    )
    translator = Translator(opened, settings, search, others)
    in_order = None
    if language_model is not None:
        from dragoman.tasks.translation.reranking import rerank_by

        in_order = rerank_by(translator, language_model, rerank_weight, say=log_line)

    def written(translation: Translation) -> str:
        if n_best is None:
            return (f"{score(translation)}\t" if scores else "") + translation.text
        every = (translation, *translation.alternatives)[:n_best]
        return "\n".join(f"{k}\t{t.text}\t{score(t)}" for k, t in enumerate(every, 1))

    def score(translation: Translation) -> str:
        """What it was chosen by."""
        expected = translation.expected_chrf
        return decimals(translation.score, 4) if expected is None else f"{expected:.2f}"

    with output_to(to) as out:
        if paragraphs:
            read = running_text(files, texts, language, plain=plain)
            log_line(translator.description)
            out.write(translator.paragraphs(read, prefix=prefix))
            return
        lines = lines_given(files, texts, language, plain=plain)
        told = WarningsTold(held=bool(files)) if warn else None
        with told or nullcontext():
            described = False
            for window in windows(lines):
                if not described:
                    log_line(translator.description)  # not before an error in what is read
                    described = True
                found = translator.each(window, prefix=prefix)
                if in_order is not None:
                    found = in_order(found)
                if told is None:
                    for translation in found:
                        out.write(written(translation) + "\n")
                    out.flush()
                    continue
                translations = list(found)
                out.writelines(written(translation) + "\n" for translation in translations)
                out.flush()
                for warnings in translator.proofread(translations):
                    told.take(warnings)
