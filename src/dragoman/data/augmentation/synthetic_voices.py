"""Training texts spoken by synthetic voices, as more speakers for a transcription.

espeak-ng speaks many languages, each by the same 24 voices and with each of its accents; flite
speaks English by four voices that were cut from recordings. Each text is spoken by a voice, at a
rate, a pitch and a loudness that are drawn from the text and its place alone, so that the same
recipe learns from the same sound. What was spoken once is kept.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import tempfile
import wave
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt

from dragoman.atomic import replacing_file
from dragoman.data.files.pair import Pair
from dragoman.errors import DataError

PROGRAMS = ("espeak-ng", "flite")
_FLITE = ("kal16", "awb", "rms", "slt")
_VARIANTS = (
    "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "f1", "f2", "f3", "f4", "f5", "Andy", "Annie",
    "Denis", "Diogo", "Gene", "Hugo", "Lee", "Linda", "Michael", "Pablo", "Steph",
)  # fmt: skip
"""Voices of espeak-ng that whisper, croak or imitate machines are left out."""
_RECORDED_ELSEWHERE = "mb/"
"""Where the data of MBROLA's voices lies, which are another program's."""
_SPELLED = re.compile(r"(?<!\S)[A-Za-z](?: [A-Za-z])+(?!\S)")
"""Single letters in a row: a word spelled."""
_VERSION = 1
"""Of what is made of a text; another one is spoken anew."""
_QUIET = 0.02
"""Of the loudest sample: sound begins and ends where it is louder."""
_MARGIN = 0.02
"""Seconds that are kept around it."""
_TOGETHER = 256
"""Texts that are spoken before the next are read."""
_LONGEST_SECONDS = 60
"""That a program may take for one text."""

Samples = npt.NDArray[np.int16]


class Speaker(NamedTuple):
    """A synthetic speaker."""

    name: str
    program: str
    options: tuple[str, ...]
    """Of the program."""


@lru_cache
def voices(language: str) -> tuple[Speaker, ...]:
    """The synthetic speakers of a language, as far as programs are installed.

    Errors: ``DataError`` where there are none.
    """
    code = language.split("-")[0].lower()
    found = [
        Speaker(f"{accent}+{variant}", "espeak-ng", ("-v", f"{accent}+{variant}"))
        for accent in _accents(language.lower()) or _accents(code)
        for variant in _VARIANTS
    ]
    if code == "en" and shutil.which("flite") is not None:
        # As often as an accent of espeak-ng: they sound more like people.
        each = max(1, len(_VARIANTS) // len(_FLITE))
        found += [Speaker(f"flite {name}", "flite", ("-voice", name)) for name in _FLITE] * each
    if found:
        return tuple(found)
    if shutil.which("espeak-ng") is None:
        raise DataError(
            f"data.synthetic_voices needs {' or '.join(PROGRAMS)}, and neither is installed "
            f"(Debian: apt install {' '.join(PROGRAMS)}). Install one, or set it to 0"
        )
    raise DataError(
        f"espeak-ng speaks no {language!r}: set languages.target to a language that it speaks "
        "(espeak-ng --voices), or data.synthetic_voices to 0"
    )


def missing_programs(language: str) -> list[str]:
    """Those that would speak the language too and are not installed."""
    wanted = PROGRAMS if language.split("-")[0].lower() == "en" else PROGRAMS[:1]
    return [name for name in wanted if shutil.which(name) is None]


def fingerprint(language: str, times: int) -> str:
    """What decides which sound is made of the texts, besides the texts."""
    names = " ".join(voice.name for voice in voices(language))
    return hashlib.sha256(f"{_VERSION} {times} {names}".encode()).hexdigest()


def spoken(texts: Iterable[str], times: int, language: str, folder: Path) -> Iterator[Pair]:
    """Each text ``times`` times, by different voices: the file of its sound in ``folder``, and the
    text. Errors: ``DataError`` for a program that fails."""
    who = voices(language)
    numbered = iter(enumerate(texts, start=1))
    with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        while some := list(islice(numbered, _TOGETHER)):
            tasks = [
                (line, text, draw, voice)
                for line, text in some
                for draw, voice in _drawn(text, line, times, who)
            ]
            files = pool.map(lambda task: _speak(task[1], task[3], task[2], folder), tasks)
            for (line, text, _, voice), file in zip(tasks, files, strict=True):
                yield Pair(line, str(file), text, group=voice.name)


def _drawn(
    text: str, line: int, times: int, who: Sequence[Speaker]
) -> Iterator[tuple[random.Random, Speaker]]:
    """A voice, and what draws how it speaks."""
    first = random.Random(f"{line} {text}")
    order = list(dict.fromkeys(first.sample(who, len(who))))
    for number in range(times):
        yield random.Random(f"{line} {number} {text}"), order[number % len(order)]


def _speak(text: str, voice: Speaker, draw: random.Random, folder: Path) -> Path:
    """The file of its sound, made unless it is there."""
    key = hashlib.sha256(f"{_VERSION} {voice.name} {draw.random()} {text}".encode()).hexdigest()
    file = folder / f"{key[:32]}.wav"
    if file.exists():
        return file
    with tempfile.TemporaryDirectory(prefix="voice-") as scratch:
        raw = Path(scratch) / "said.wav"
        try:
            subprocess.run(
                [voice.program, *voice.options, *_manner(voice, draw), *_to(voice, raw)],
                input=_marked(text) if voice.program == "espeak-ng" else text,
                check=True, capture_output=True, text=True, timeout=_LONGEST_SECONDS,
            )  # fmt: skip
            rate, samples = _read(raw)
        except (OSError, subprocess.SubprocessError, EOFError, wave.Error) as error:
            raise DataError(f"{voice.program} could not speak {text[:80]!r}: {error}") from error
    _write(file, _as_recorded(samples, rate, draw), rate)
    return file


def _manner(voice: Speaker, draw: random.Random) -> list[str]:
    """How fast and how high it is spoken."""
    if voice.program == "espeak-ng":
        return ["-s", str(draw.randint(110, 210)), "-p", str(draw.randint(20, 80))]
    return ["--setf", f"duration_stretch={draw.uniform(0.75, 1.35):.2f}"]


def _to(voice: Speaker, file: Path) -> list[str]:
    """Where the sound goes; the text comes by standard input, so that none is an option."""
    return ["-m", "--stdin", "-w", str(file)] if voice.program == "espeak-ng" else ["-o", str(file)]


def _marked(text: str) -> str:
    """In SSML, with spelled words named letter by letter: *B A K E R* has no article in it."""
    return _SPELLED.sub(
        lambda found: (
            f'<say-as interpret-as="characters">{found.group().replace(" ", "")}</say-as>'
        ),
        escape(text),
    )


def _read(path: Path) -> tuple[int, Samples]:
    """Samples a second, and the samples."""
    with wave.open(str(path)) as file:
        return file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2")


def _as_recorded(samples: Samples, rate: int, draw: random.Random) -> Samples:
    """Without the silence around it, as loud as a recording may be, with a little noise."""
    loud = np.abs(samples.astype(np.int32))
    heard = np.flatnonzero(loud > _QUIET * loud.max(initial=1))
    if not len(heard):  # a text of marks alone
        return np.zeros(rate // 2, np.int16)
    margin = round(_MARGIN * rate)
    clip = samples[max(0, heard[0] - margin) : heard[-1] + margin]
    scale = draw.uniform(2_000, 16_000) / loud.max()
    noise = np.random.default_rng(draw.getrandbits(32)).normal(0, draw.uniform(0, 30), len(clip))
    recorded: Samples = np.clip(clip * scale + noise, -32_768, 32_767).astype(np.int16)
    return recorded


def _write(path: Path, samples: Samples, rate: int) -> None:
    with replacing_file(path, forced=False) as partial, wave.open(str(partial), "wb") as file:
        file.setparams((1, 2, rate, len(samples), "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())


def _accents(language: str) -> list[str]:
    """How espeak-ng speaks a language, or a language of a country (*en-us*); nothing where it does
    not, or is not installed."""
    if shutil.which("espeak-ng") is None:
        return []
    said = subprocess.run(["espeak-ng", f"--voices={language}"], capture_output=True, text=True)
    rows = [line.split() for line in said.stdout.splitlines()[1:]]
    return sorted(
        {
            row[1]
            for row in rows
            if len(row) > 4
            and f"{row[1]}-".startswith(f"{language}-")
            and not any(part.startswith(_RECORDED_ELSEWHERE) for part in row)
        }
    )
