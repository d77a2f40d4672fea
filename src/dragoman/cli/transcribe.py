"""``dragoman transcribe``: recordings in, text or captions out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dragoman.cli.given import named_files
from dragoman.cli.options import (
    Quiet,
    RunFolder,
    argument,
    arguments,
    option,
    search_settings,
    setting,
    translator_settings,
    values_of,
)

if TYPE_CHECKING:
    from dragoman.recordings.captions import CaptionFormat


@arguments
class TranscribeArguments:
    """What ``dragoman transcribe`` takes."""

    run: RunFolder = argument("RUN")
    given: list[str] = argument("RECORDING")
    """Recordings (WAV, FLAC, OGG, Opus or MP3, of any rate), or folders of them. -: standard
    input."""
    format: Literal["text", "srt", "vtt", "tsv", "json"] | None = None
    """The output format. text: one line per segment. srt, vtt: captions. tsv: begin and end in
    milliseconds, and the text. json: text and segments with their times in seconds. Default: by the
    ending of --to, or text."""
    to: Path | None = None
    """Write to this file. For several recordings, a folder, in which each recording has a file of
    its name. A file appears only when it is complete."""
    words: bool = False
    """Also write when each word is said, and how sure the model is of it (--format json). The run
    must have been trained with CTC (training.ctc_weight)."""
    beam: int | None = setting(search_settings, default=None)
    precision: str = setting(translator_settings)
    quiet: Quiet = option(False, "-q")


def transcribe(args: TranscribeArguments) -> None:
    """Transcribe recordings: write what is said in them, as text or as captions.

    The run must have been trained on recordings and their texts. Long recordings are cut at
    silences, so that an hour takes little memory. Several recordings are transcribed one after the
    other; those that cannot be read are named, and the others are written. On standard output, a
    line of text of several recordings begins with the name of its recording and a tab.

    Examples:

      dragoman transcribe runs/talks talk.mp3

      dragoman transcribe runs/talks talk.mp3 --to talk.srt

      dragoman transcribe runs/talks monday.wav tuesday.wav --format vtt --to captions/

      ffmpeg -i film.mp4 -f wav - | dragoman transcribe runs/talks - --format srt > film.srt
    """
    from dragoman.atomic import write_text
    from dragoman.cli.console import log_to_stderr
    from dragoman.errors import DragomanError
    from dragoman.forms.rows.recording_file import called
    from dragoman.plural import plural
    from dragoman.runs.run import Run

    log_to_stderr(args.quiet)
    run, recordings = Run.open(args.run), named_files(args.given)
    layout, several = _format_of(args), len(recordings) > 1
    targets = _targets(recordings, args.to, layout)
    if several and args.to is None and layout != "text":
        raise DragomanError(
            f"{plural(len(recordings), 'recording')} in the format {layout} would run into each "
            "other: say where they go, with --to FOLDER"
        )
    if args.words and layout != "json":
        raise DragomanError(f"--words is for --format json, and this is {layout}")
    from dragoman.engine.settings import TranslatorSettings
    from dragoman.tasks.translation.transcriber import Transcriber

    settings = TranslatorSettings.check(**values_of(args, translator_settings))
    transcriber = Transcriber(run, settings)
    if not args.quiet:
        sys.stderr.write(f"{transcriber.description}\n")
    failed = 0
    for recording, target in zip(recordings, targets, strict=True):
        name, begun = called(recording), time.monotonic()
        tell = _progress_line(name, quiet=args.quiet)
        try:
            found = transcriber(recording, beam=args.beam, words=args.words, progress=tell)
        except DragomanError as error:
            if not several:
                raise
            sys.stderr.write(f"error: {error}\n")
            failed += 1
            continue
        content = found.captions(layout)
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
            sys.stderr.write(f"{target or name}: {found.seconds:,.1f} s of sound in {took:.1f} s\n")
    if failed:
        raise DragomanError(
            f"{plural(failed, 'recording')} of {len(recordings)} could not be transcribed, as told "
            "above"
        )


def _format_of(args: TranscribeArguments) -> CaptionFormat:
    """What --format says, or the ending of --to."""
    from dragoman.recordings.captions import ENDING

    if args.format is not None:
        return args.format
    if args.to is not None and not args.to.is_dir():
        for layout, ending in ENDING.items():
            if args.to.suffix.lower() == ending:
                return layout
    return "text"


def _targets(
    recordings: Sequence[str], to: Path | None, layout: CaptionFormat
) -> list[Path | None]:
    """Where the text of each recording goes; None: standard output. Errors: ``DragomanError`` for
    two that would have the same file, or one that would take the place of a recording."""
    from dragoman.atomic import check_is_file
    from dragoman.errors import DragomanError
    from dragoman.forms.rows.recording_file import STANDARD_INPUT
    from dragoman.recordings.captions import ENDING

    if to is None:
        return [None] * len(recordings)
    if len(recordings) == 1 and not to.is_dir():
        targets = [to]
    elif to.exists() and not to.is_dir():
        raise DragomanError(f"{len(recordings)} recordings go into a folder, and {to} is a file")
    else:
        stems = ["stdin" if one == STANDARD_INPUT else Path(one).stem for one in recordings]
        targets = [to / f"{stem}{ENDING[layout]}" for stem in stems]
    seen: dict[Path, str] = {}
    for recording, target in zip(recordings, targets, strict=True):
        if target in seen:
            raise DragomanError(f"{seen[target]} and {recording} would both be written to {target}")
        seen[target] = recording
        if target.exists():
            check_is_file(target)
            if Path(recording).exists() and target.samefile(recording):
                raise DragomanError(f"{target} is the recording itself: name another file")
    return list(targets)


def _progress_line(name: str, *, quiet: bool) -> Callable[[float, float], None]:
    """Tells on a terminal how much of a recording is done, and how long the rest will take."""
    shown, begun = sys.stderr.isatty() and not quiet, time.monotonic()

    def tell(done: float, of: float) -> None:
        if not shown:
            return
        end = "\r\033[K"
        if done < of:
            left = (time.monotonic() - begun) * (of - done) / done if done else None
            rest = "" if left is None else f", {left:,.0f} s left"
            end = f"\r\033[K{name}: {done:,.0f} of {of:,.0f} s{rest}"
        sys.stderr.write(end)
        sys.stderr.flush()

    return tell
