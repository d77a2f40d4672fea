"""The demo of transcription: the corpus that it speaks, and what it shows of the trained run.

A grammar writes the sentences, and a formant synthesiser speaks them. Sentences are split into
parts by their combination of words, as everywhere in the demo. Voices are split too: those of dev
and test do not occur in training.
"""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dragoman.console.demo_files import RECORDINGS, Demo, DemoFiles
from dragoman.demo.corpus import Split, split_of
from dragoman.demo.grammar import Clause, Determiner, NounPhrase, Tense
from dragoman.demo.lexicon import (
    ADJECTIVES,
    ANIMAL_WORDS,
    ATTRIBUTES,
    CARRY,
    CATCH,
    CHASE,
    EAT_OF_ANIMALS,
    EAT_OF_PEOPLE,
    FIND,
    FOLLOW,
    HELP,
    LOVE,
    NOUNS,
    PEOPLE_WORDS,
    SEE,
)
from dragoman.tasks.transcription.synthesiser import RATE, WORDS, Samples, Voice, speak

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.runs.run import Run


PICTURE = "heard.svg"
_SHOWN = 3
"""The number of recordings whose words are shown."""

SPOKEN_NOTICE = (
    "The recordings are synthetic: a small grammar generated the sentences, and a formant "
    "synthesiser in the program speaks them. High scores only show that the program works; they "
    "say nothing about real speech."
)

SIZES: dict[Split, int] = {"train": 1_500, "dev": 60, "test": 120}
"""The number of sentences in each part."""
_VOICES: dict[Split, range] = {"train": range(24), "dev": range(24, 28), "test": range(28, 36)}
_VERBS = (
    SEE, FIND, LOVE, CHASE, CATCH, CARRY, HELP, FOLLOW, EAT_OF_ANIMALS, EAT_OF_PEOPLE,
)  # fmt: skip
_DETERMINERS: tuple[Determiner, ...] = ("the", "the", "a", "my")
_TENSES: tuple[Tense, ...] = ("present", "past")


def make_recordings() -> DemoFiles:
    """Make the recordings that the demo learns from. Errors: ``DataError`` if the extra ``sound``
    is missing."""
    from dragoman.sources.frames.recordings import library

    library()
    telling = "Speaking {count} sentences into {folder}: play one of the WAV files."
    return DemoFiles(RECORDINGS, SPOKEN_NOTICE, telling, make_sentences, write_spoken)


class Spoken(NamedTuple):
    """A sentence, and the voice that says it."""

    text: str
    voice: Voice
    seed: int

    def samples(self) -> Samples:
        """Synthesise the sentence with its voice."""
        return speak(self.text, self.voice, self.seed)


def make_sentences(
    sizes: dict[Split, int] | None = None, seed: int = 1
) -> dict[Split, tuple[Spoken, ...]]:
    """Make the sentences of each part of the corpus; the same ``seed`` gives the same sentences.
    ``sizes``: how many sentences each part gets. All sentences are different."""
    wanted = SIZES if sizes is None else sizes
    draw, seen = Random(seed), set[str]()
    parts: dict[Split, list[Spoken]] = {name: [] for name in wanted}
    for text, split in _sentences(draw):
        if len(parts[split]) < wanted[split] and text not in seen:
            seen.add(text)
            voices = _VOICES[split]
            voice = Voice.of(voices[len(parts[split]) % len(voices)])
            parts[split].append(Spoken(text, voice, len(seen)))
        if all(len(parts[name]) >= wanted[name] for name in wanted):
            break
    return {name: tuple(part) for name, part in parts.items()}


def write_spoken(folder: Path, parts: dict[Split, tuple[Spoken, ...]]) -> None:
    """Write the recordings as WAV files, and a list of each part: file, text and speaker."""
    for name, spoken in parts.items():
        (folder / name).mkdir(parents=True)
        lines = []
        for number, sentence in enumerate(spoken):
            file = f"{name}/{number:04}-{sentence.voice.name}.wav"
            write_wav(folder / file, sentence.samples())
            lines.append(f"{file}\t{sentence.text}\t{sentence.voice.name}\n")
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")


def write_wav(path: Path, samples: Samples) -> None:
    """Write ``samples`` as a WAV file of one channel with 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((samples * 32_767).astype(np.dtype("<i2")).tobytes())


def _sentences(draw: Random) -> Iterator[tuple[str, Split]]:
    """Yield an endless sequence of sentences that the synthesiser can speak, each with its part."""
    living = PEOPLE_WORDS + ANIMAL_WORDS
    while True:
        verb = draw.choice(_VERBS)
        who = draw.choice([noun for noun in living if noun.kind in verb.subjects])
        things = [n for n in NOUNS if n.kind in verb.objects and n is not who]
        whom = draw.choice([noun for noun in things if noun.english in WORDS])
        subject, other = (
            NounPhrase(
                noun,
                draw.choice(_DETERMINERS),
                ADJECTIVES[draw.choice(ATTRIBUTES[noun.kind])] if draw.random() < 0.5 else None,
            )
            for noun in (who, whom)
        )
        clause = Clause(subject, verb, draw.choice(_TENSES), other)
        yield clause.english(), split_of(clause.combination())


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
