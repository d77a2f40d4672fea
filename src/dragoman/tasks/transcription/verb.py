"""The verb ``dragoman transcribe``, which writes recordings as text or captions."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman.base.errors import DragomanError
from dragoman.console.given import input_files
from dragoman.console.lines import Into, LineVerb, LineWork, PartsArguments, in_parts, wants_parts
from dragoman.console.options import (
    Quiet,
    RunFolder,
    Verbose,
    argument,
    arguments,
    option,
    search_settings,
    setting,
    translator_settings,
    values_of,
)
from dragoman.console.output import Failures, progress_line

if TYPE_CHECKING:
    from dragoman.runs.run import Run
    from dragoman.tasks.transcription.captions import CaptionFormat
    from dragoman.tasks.transcription.transcriber import Transcriber

_REMEMBERED = 10_000
"""The largest number of transcripts that a worker process remembers."""


_OTHERS = frozenset({".doc", ".docx", ".odt", ".pdf", ".rtf", ".html"})
"""The endings of files that contain more than text."""


@arguments
class TranscribeArguments(PartsArguments):
    """The arguments and options of ``dragoman transcribe``."""

    run: RunFolder = argument("RUN")
    given: list[str] = argument("RECORDING")
    """Recordings (WAV, FLAC, OGG, Opus or MP3, of any rate), or folders of them. -: standard
    input. With --on or --part: lists of recordings, one name per line."""
    format: Literal["text", "srt", "vtt", "tsv", "json"] | None = None
    """The output format. text: one line per segment. srt, vtt: captions. tsv: begin and end in
    milliseconds, and the text. json: text and segments with their times in seconds. Default: by the
    ending of --to, or text."""
    to: str | None = None
    """Write to this file. For several recordings, a folder, in which each recording has a file of
    its name. A file appears only when it is complete. With --on or --part: the folder or bucket for
    the parts."""
    words: bool = False
    """Also write when each word is said, and how sure the model is of it (--format json). The run
    must have been trained with CTC (training.ctc_weight)."""
    beam: int | None = setting(search_settings, default=None)
    precision: str = setting(translator_settings)
    lines: int = 100
    """With --on or --part: the most recordings in a part."""
    field: str = "audio"
    """With --on or --part: the field of JSON Lines or the column of Parquet with the name of the
    recording."""
    into: Into = "text"
    quiet: Quiet = option(False, "-q")
    verbose: Verbose = option(False, "-v")


def transcribe(args: TranscribeArguments) -> None:
    """Transcribe recordings: write what is said in them, as text or as captions.

    The run must have been trained on recordings and their texts. Long recordings are cut at
    silences, so that an hour takes little memory. Several recordings are transcribed one after the
    other; the command names those that cannot be read, and continues. If there are several
    recordings, each line of text on standard output begins with the name of its recording and a
    tab.

    Examples:

      dragoman transcribe runs/talks talk.mp3

      dragoman transcribe runs/talks talk.mp3 --to talk.srt

      dragoman transcribe runs/talks monday.wav tuesday.wav --format vtt --to captions/

      dragoman transcribe runs/talks talks.txt --to transcripts --on local:4

      ffmpeg -i film.mp4 -f wav - | dragoman transcribe runs/talks - --format srt > film.srt
    """
    from dragoman.base.atomic import write_text
    from dragoman.base.wording import plural
    from dragoman.sources.frames.recordings import name_of
    from dragoman.tasks.catalogue import open_run

    run = open_run(args.run)
    if wants_parts(args):
        _in_parts(args, run)
        return
    recordings, to = input_files(args.given), None if args.to is None else Path(args.to)
    layout, several = _format_of(args, to), len(recordings) > 1
    targets = _targets(recordings, to, layout)
    if several and to is None and layout != "text":
        raise DragomanError(
            f"{plural(len(recordings), 'recording')} in the format {layout} would be mixed. Set "
            "a folder for them: --to FOLDER"
        )
    if args.words and layout != "json":
        raise DragomanError(f"--words works only with --format json, not {layout}")
    transcriber = _open(args, run)
    failures = Failures(len(recordings))
    for recording, target in zip(recordings, targets, strict=True):
        name, begun = name_of(recording), time.monotonic()
        tell = progress_line(name, "s", quiet=args.quiet)
        heard = None
        with failures:
            heard = transcriber(recording, beam=args.beam, words=args.words, progress=tell)
        if heard is None:
            continue
        content = heard.captions(layout)
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_text(target, content)
        elif several:
            sys.stdout.writelines(f"{name}\t{line}\n" for line in content.splitlines() or [""])
        else:
            sys.stdout.write(content)
        sys.stdout.flush()
        if not args.quiet:
            took = time.monotonic() - begun
            sys.stderr.write(f"{target or name}: {heard.seconds:,.1f} s of sound in {took:.1f} s\n")
    failures.end("recording", "transcribed")


def _in_parts(args: TranscribeArguments, run: Run) -> None:
    """Transcribe lists of recordings with several processes or machines."""
    for name in args.given:
        if os.path.isdir(name) or (os.path.isfile(name) and _is_sound(Path(name))):
            raise DragomanError(
                f"--on and --part take lists of recordings, one name per line, and {name} is "
                f"{'a folder' if os.path.isdir(name) else 'a recording'}. Make a list: "
                "find FOLDER -name '*.mp3' | sort > list.txt"
            )
    folder = os.getcwd()
    make = partial(transcribing, folder=folder)
    verb = LineVerb("transcribe", make, unfit=("format", "words"))
    in_parts(verb, args, run, "und", further={"folder": folder})


def _is_sound(path: Path) -> bool:
    """True if a file is a recording and not a list of recordings. A recording contains NUL bytes,
    but the names in a list do not."""
    with path.open("rb") as file:
        return b"\0" in file.read(4096)


def transcribing(args: TranscribeArguments, run: Run, precision: str, folder: str) -> LineWork:
    """Open a transcriber, and return the function that a worker process runs: given the names of
    recordings, relative to ``folder``, it writes the text of each."""
    transcriber = _open(replace(args, precision=precision or args.precision), run)
    done: dict[str, str] = {}

    def outputs(names: Sequence[str]) -> Generator[str]:
        # After an error the caller asks for the others again, so finished ones are kept.
        for name in names:
            if name.strip() and name not in done:
                path = os.path.join(folder, name)
                try:
                    done[name] = transcriber(path, beam=args.beam).text
                except DragomanError as error:
                    raise type(error)(str(error).replace(path, name)) from error
        yield from (done.get(name, "") for name in names)
        if len(done) > _REMEMBERED:
            done.clear()

    return LineWork(transcriber, outputs)


def _open(args: TranscribeArguments, run: Run) -> Transcriber:
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.tasks.transcription.transcriber import Transcriber

    return Transcriber(run, TranslatorSettings.check(**values_of(args, translator_settings)))


def _format_of(args: TranscribeArguments, to: Path | None) -> CaptionFormat:
    """Return the format that ``--format`` or the ending of ``--to`` gives."""
    from dragoman.tasks.transcription.captions import ENDING

    if args.format is not None:
        return args.format
    if to is not None and not to.is_dir():
        for layout, ending in ENDING.items():
            if to.suffix.lower() == ending:
                return layout
        if to.suffix.lower() in _OTHERS:
            raise DragomanError(
                f"--to {to}: this is the name of a document, but the output is text. Use "
                f"{to.with_suffix('.txt')}, or set --format"
            )
    return "text"


def _targets(
    recordings: Sequence[str], to: Path | None, layout: CaptionFormat
) -> list[Path | None]:
    """Return, for each recording, the file to which its text is written, or None for standard
    output. Errors: ``DragomanError`` if two recordings would share a file, or a file would replace
    a recording."""
    from dragoman.base.atomic import check_is_file
    from dragoman.sources.frames.recordings import STANDARD_INPUT
    from dragoman.tasks.transcription.captions import ENDING

    if to is None:
        return [None] * len(recordings)
    if len(recordings) == 1 and not to.is_dir():
        targets = [to]
    elif to.exists() and not to.is_dir():
        raise DragomanError(f"{len(recordings)} recordings need a folder, but {to} is a file")
    else:
        stems = ["stdin" if name == STANDARD_INPUT else Path(name).stem for name in recordings]
        targets = [to / f"{stem}{ENDING[layout]}" for stem in stems]
    seen: dict[Path, str] = {}
    for recording, target in zip(recordings, targets, strict=True):
        if target in seen:
            raise DragomanError(f"{seen[target]} and {recording} would both be written to {target}")
        seen[target] = recording
        if target.exists():
            check_is_file(target)
            if Path(recording).exists() and target.samefile(recording):
                raise DragomanError(f"{target} is the recording itself. Choose another file")
    return list(targets)
