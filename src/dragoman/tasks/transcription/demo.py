"""The recordings of ``dragoman demo --task transcribe``, and what it shows of the trained run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.console.demo_files import RECORDINGS, Demo, DemoFiles

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.run import Run


PICTURE = "heard.svg"
_SHOWN = 3
"""The number of recordings whose words are shown."""


def make_recordings() -> DemoFiles:
    """Make the recordings that the demo learns from. Errors: ``DataError`` if the extra ``sound``
    is missing."""
    from dragoman.sources.frames.recording_file import library
    from dragoman.tasks.transcription.demo_corpus import SPOKEN_NOTICE, make_sentences, write_spoken

    library()
    telling = "Speaking {count} sentences into {folder}: play one of the WAV files."
    return DemoFiles(RECORDINGS, SPOKEN_NOTICE, telling, make_sentences, write_spoken)


def show_heard(run: Run, report: Any, console: Console) -> str:
    """Show transcripts of voices that the model was not trained on, with times and attention.
    Return a line that names the files with the figure and the report."""
    from dragoman.base.atomic import write_text
    from dragoman.insight.figures.catalogue import make_figure
    from dragoman.insight.look import look_at_sentence
    from dragoman.insight.options import LookOptions
    from dragoman.insight.subject import Subject
    from dragoman.pictures.figure import figure_svg
    from dragoman.pictures.terminal import rows_text
    from dragoman.sources.frames.form import FramesForm
    from dragoman.tasks.report import write_report
    from dragoman.tasks.transcription.transcriber import Transcriber

    assert report.heard is not None
    console.print(
        f"\nTest: {len(report.pairs):,} sentences whose combinations were held out, said by voices "
        "that were not heard in training\n",
        soft_wrap=True,
    )
    console.print(report.heard.table([Path(p.source).name for p in report.pairs]), markup=False)
    console.print("\nWhen each word is said, and how sure the model is of it:\n")
    transcriber = Transcriber(run)
    for pair in report.pairs[:_SHOWN]:
        heard = transcriber(pair.source, words=True)
        console.print(f"  {Path(pair.source).name}, said: {pair.target}", markup=False)
        words = [word for segment in heard.segments for word in segment.words]
        times = "  ".join(
            f"{word.text} {word.begin:.2f} s, {100 * (word.confidence or 0):.0f} %;"
            for word in words
        )
        console.print(f"  [bold]{heard.text}[/bold]")
        console.print(f"  {times.rstrip(';')}\n", markup=False, soft_wrap=True)
    recording, form = report.pairs[0].source, FramesForm.of(run.source)
    looks = look_at_sentence(run, LookOptions(sentence=recording, kind="cross")).heatmap
    seconds = len(looks.columns) * form.settings.subsample * form.settings.hop_ms / 1000
    console.print(
        f"Where it listens while it writes each word ({seconds:.1f} seconds from left to right):\n"
    )
    console.print(rows_text(looks, min(console.width, 100)))
    picture = run.folder / PICTURE
    write_text(picture, figure_svg(make_figure("ctc-spikes", Subject.open(run, recording))))
    return f"The same over the filter bank: {picture}; the whole report: {write_report(run)}"


DEMO = Demo(
    "demo-speech", "a Transformer with CTC, recordings to what is said in them",
    show_heard, (
        "transcribe {to} {to}-recordings/test/*.wav --format json --words",
        "evaluate {to}         # WER and CER, the worst recordings aligned",
        "train my-recordings/  # your own recordings, a .txt next to each",
    ), make_recordings,
)  # fmt: skip
