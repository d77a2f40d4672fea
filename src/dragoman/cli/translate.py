"""``dragoman translate``: lines in, lines out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def translate(
    run: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Text to translate; standard input if not given.")
    ] = None,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Running text: cut into sentences, keep spacing.")
    ] = False,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam width; 1 is greedy.")] = None,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Give so many translations, as number, text, score.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the score and a tab before each line.")
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, help="Draw by chance instead of searching.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="How every translation must begin.")] = "",
    precision: Annotated[
        str, typer.Option(help="auto (the fastest here), int8, bf16 or fp32 (the reference).")
    ] = "auto",
    shortlist: Annotated[
        bool,
        typer.Option("--shortlist", help="Score likely words alone; see dragoman shortlist."),
    ] = False,
    long_lines: Annotated[
        str, typer.Option(help="Lines that are too long: split into sentences, or cut.")
    ] = "split",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any search setting: length_penalty=1.0")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Translate standard input, line by line, to standard output.

    One line out for one line in, whatever the line is. Lines come out as soon as nothing more
    arrives for a moment, so it works in a pipe and by hand; memory does not grow with the input.

    Example: dragoman translate runs/demo < letter.en > letter.de
    """
    from dragoman.cli.console import log_to_stderr
    from dragoman.data.corpora import decode_lines
    from dragoman.tasks.run import Run

    log_to_stderr(quiet)
    opened = Run.open(run)  # a wrong folder is said before torch is imported
    from dragoman.tasks.streaming import windows
    from dragoman.tasks.translator import Translation, Translator, TranslatorSettings, parse_search

    changes = list(set_ or [])
    if beam is not None:
        changes.append(f"beam={beam}")
    if n_best is not None:
        changes.append(f"n_best={n_best}")
        if beam is None and temperature is None and n_best > opened.recipe.search.beam:
            changes.append(f"beam={n_best}")
    if temperature is not None:
        changes.append(f"sampling.temperature={temperature}")
    search = parse_search(opened.recipe.search, changes)
    settings = TranslatorSettings.check(
        precision=precision, long_lines=long_lines, shortlist=shortlist
    )
    translator = Translator(opened, settings, search)
    if not quiet:
        sys.stderr.write(f"{translator.description}\n")

    def written(translation: Translation) -> str:
        if n_best is None:
            return (f"{translation.score:.4f}\t" if scores else "") + translation.text
        every = (translation, *translation.alternatives)
        return "\n".join(f"{k}\t{t.text}\t{t.score:.4f}" for k, t in enumerate(every, 1))

    out = sys.stdout
    if paragraphs:
        whole = " ".join(text) if text else sys.stdin.buffer.read().decode("utf-8", "replace")
        out.write(translator.paragraphs(whole))
        if text:
            out.write("\n")
        return
    lines = iter(text) if text else decode_lines(sys.stdin.buffer)
    for window in windows(lines):
        prefixes = [prefix] * len(window) if prefix else None
        for translation in translator.batch(window, prefixes=prefixes):
            out.write(written(translation) + "\n")
        out.flush()
