"""Synthetic voices speak the training texts, as more speakers for a transcription.

espeak-ng speaks many languages, each with the same 24 voices and with each of its accents; flite
speaks English with four voices that were made from recordings. Voice, rate, pitch and loudness
for a text are drawn from the text and its place alone, so that the same recipe learns from the
same sound. Sound is kept and reused.
"""

from __future__ import annotations

import hashlib
import html
import os
import random
import re
import shutil
import subprocess
import tempfile
import unicodedata
import wave
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.base.atomic import replacing_file
from dragoman.base.errors import DataError
from dragoman.forms.form import Pair
from dragoman.forms.languages import base

PROGRAMS = ("espeak-ng", "flite")
FLITE = ("kal16", "awb", "rms", "slt")
VARIANTS = (
    "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "f1", "f2", "f3", "f4", "f5", "Andy", "Annie",
    "Denis", "Diogo", "Gene", "Hugo", "Lee", "Linda", "Michael", "Pablo", "Steph",
)  # fmt: skip
"""The voices of espeak-ng, without those that whisper, croak or imitate machines."""
_NOT_ITS_OWN = ("mb/", "!v/")
"""The folders of MBROLA's voices, which need another program, and of variants, which are no
languages."""
_CODES = {"zh": "cmn", "no": "nb"}
"""The codes of espeak-ng for languages."""
_NOT_WRITTEN_SO = "latn"
"""A part of the names of voices that read a transliteration."""
_SPELLED = re.compile(r"(?<!\S)[A-Z](?: [A-Z]){2,}(?!\S)")
"""Three or more capital letters in a row are a spelled word. Fewer may be words (*Y A*)."""
_SPELLED_ENGLISH = re.compile(r"(?<!\S)[A-Z](?: [A-Z])+(?!\S)")
_VERSION = 1
"""The version of the sound that is made of a text; a new version makes it again."""
_QUIET = 0.02
"""Sound begins and ends where it is louder than this share of the loudest sample."""
_MARGIN = 0.02
"""The seconds that are kept around the sound."""
_TOGETHER = 64
"""The number of clips that are made before the next texts are read."""
_HEADER = 44
"""The bytes of a WAV file without sound."""
_LONGEST_SECONDS = 60
"""The most seconds that a program may take for one text."""

Samples = npt.NDArray[np.int16]


class Speaker(NamedTuple):
    """A speaker whose voice a program synthesises."""

    name: str
    program: str
    options: tuple[str, ...]
    """The options of the program for this voice."""


@lru_cache
def voices(language: str) -> tuple[Speaker, ...]:
    """Return the synthetic speakers of a language, as far as programs are installed, and of its
    region (*en-us*) if there are any.

    Errors: ``DataError`` if there is none.
    """
    named, code = language.lower(), base(language)
    speakers = [
        Speaker(f"{accent}+{variant}", "espeak-ng", ("-v", f"{accent}+{variant}"))
        for accent in _accents(named) or _accents(_CODES.get(code, code))
        for variant in VARIANTS
    ]
    if code == "en" and shutil.which("flite") is not None:
        # They sound more like people, so each is as frequent as an accent of espeak-ng.
        each = max(1, len(VARIANTS) // len(FLITE))
        speakers += [Speaker(f"flite {name}", "flite", ("-voice", name)) for name in FLITE] * each
    if speakers:
        return tuple(speakers)
    if shutil.which("espeak-ng") is None:
        raise DataError(
            f"data.synthetic_voices needs {' or '.join(PROGRAMS)}, but neither is installed "
            f"(Debian: apt install {' '.join(PROGRAMS)}). Install one, or set it to 0"
        )
    raise DataError(
        f"espeak-ng does not speak {language!r}. Set languages.source and languages.target to a "
        "language that it speaks (espeak-ng --voices), or data.synthetic_voices to 0"
    )


def missing_programs(language: str) -> list[str]:
    """Return the programs that also speak the language and are not installed."""
    wanted = PROGRAMS if base(language) == "en" else PROGRAMS[:1]
    return [name for name in wanted if shutil.which(name) is None]


def fingerprint(language: str, times: int) -> str:
    """Return a hash of all that determines the sound of a text, besides the text."""
    who = voices(language)
    programs = [_version(name) for name in sorted({speaker.program for speaker in who})]
    names = " ".join(speaker.name for speaker in who)
    return hashlib.sha256(f"{_VERSION} {times} {programs} {names}".encode()).hexdigest()


def speak_all(texts: Iterable[str], times: int, language: str, folder: Path) -> Iterator[Pair]:
    """Yield each text ``times`` times, by different voices: the file of its sound in ``folder``,
    and the text. Texts without letters and digits, and silent results, are skipped. Errors:
    ``DataError`` for a program that fails."""
    who = voices(language)
    numbered = iter(enumerate(texts, start=1))
    pool = ThreadPoolExecutor(max(1, os.cpu_count() or 1))
    try:
        while some := list(islice(numbered, max(1, _TOGETHER // times))):
            tasks = [
                (line, text, draw, speaker)
                for line, text in some
                if _can_be_said(text)
                for draw, speaker in _draw_voices(text, line, times, who)
            ]
            files = pool.map(lambda task: _speak(task[1], task[3], task[2], folder), tasks)
            for (line, text, _, speaker), file in zip(tasks, files, strict=True):
                if file is not None:
                    yield Pair(line, str(file), text, group=speaker.name)
    finally:
        pool.shutdown(cancel_futures=True)


def _can_be_said(text: str) -> bool:
    odd = any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)
    return not odd and any(letter.isalnum() for letter in text)


def _draw_voices(
    text: str, line: int, times: int, who: Sequence[Speaker]
) -> Iterator[tuple[random.Random, Speaker]]:
    """Yield voices, each with the generator of its manner."""
    first = random.Random(f"{line} {text}")
    order = list(dict.fromkeys(first.sample(who, len(who))))
    for number in range(times):
        yield random.Random(f"{line} {number} {text}"), order[number % len(order)]


def _speak(text: str, speaker: Speaker, draw: random.Random, folder: Path) -> Path | None:
    """Return the file of the sound, made if necessary; None for silence."""
    of = f"{_VERSION} {_version(speaker.program)} {speaker.name} {draw.random()} {text}"
    file = folder / f"{hashlib.sha256(of.encode()).hexdigest()[:32]}.wav"
    if file.exists() and file.stat().st_size > _HEADER:
        return file
    with tempfile.TemporaryDirectory(prefix="voice-") as scratch:
        raw = Path(scratch) / "said.wav"
        try:
            how = [*speaker.options, *manner(speaker.program, draw), *_to(speaker, raw)]
            done = subprocess.run(
                [speaker.program, *how],
                input=_input(text, speaker), capture_output=True, text=True,
                timeout=_LONGEST_SECONDS,
            )  # fmt: skip
            if done.returncode or not raw.exists():
                raise _error(speaker, text, done.stderr or f"its exit code is {done.returncode}")
            rate, samples = _read(raw)
        except (OSError, ValueError, subprocess.SubprocessError, EOFError, wave.Error) as error:
            raise _error(speaker, text, str(error)) from error
    recorded = as_recorded(samples, rate, draw)
    if recorded is None:
        return None
    _write(file, recorded, rate)
    return file


def _error(speaker: Speaker, text: str, why: str) -> DataError:
    reason = " ".join(why.split())[-200:]
    return DataError(f"{speaker.name} of {speaker.program} could not speak {text[:80]!r}: {reason}")


def manner(program: str, draw: random.Random) -> list[str]:
    """Return the options of a program for a random rate and pitch."""
    if program == "espeak-ng":
        return ["-s", str(draw.randint(110, 210)), "-p", str(draw.randint(20, 80))]
    return ["--setf", f"duration_stretch={draw.uniform(0.75, 1.35):.2f}"]


def _to(speaker: Speaker, file: Path) -> list[str]:
    """Return the options for the output file. The text comes by standard input, so that it
    cannot be taken for an option."""
    return (
        ["-m", "--stdin", "-w", str(file)] if speaker.program == "espeak-ng" else ["-o", str(file)]
    )


def _input(text: str, speaker: Speaker) -> str:
    """Return the input: SSML for espeak-ng, with spelled words marked letter by letter, so that
    *B A K E R* contains no article. flite does this by itself."""
    if speaker.program != "espeak-ng":
        return text
    pattern = _SPELLED_ENGLISH if speaker.name.startswith("en-") else _SPELLED
    return pattern.sub(
        lambda match: (
            f'<say-as interpret-as="characters">{match.group().replace(" ", "")}</say-as>'
        ),
        html.escape(text, quote=False),
    )


def _read(path: Path) -> tuple[int, Samples]:
    """Return the sample rate and the samples. Errors: ``ValueError`` for a file that is cut off."""
    with wave.open(str(path)) as file:
        count, content = file.getnframes(), file.readframes(file.getnframes())
        if len(content) != 2 * count:
            raise ValueError("its sound is cut off. Check the free space for temporary files")
        return file.getframerate(), np.frombuffer(content, "<i2")


def as_recorded(samples: Samples, rate: int, draw: random.Random) -> Samples | None:
    """Return the samples without surrounding silence, as loud as a recording may be, with a
    little noise; None for silence."""
    loud = np.abs(samples.astype(np.int32))
    heard = np.flatnonzero(loud > _QUIET * loud.max(initial=1))
    if not len(heard):
        return None
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
    """Return the accents of espeak-ng for a language, or for a language of a country; none if it
    has none or is not installed. Errors: ``DataError`` if the program fails."""
    if shutil.which("espeak-ng") is None:
        return []
    rows = [line.split() for line in _ask("espeak-ng", f"--voices={language}").splitlines()[1:]]
    return sorted(
        {
            row[1]
            for row in rows
            if len(row) > 4
            and f"{row[1]}-".startswith(f"{language}-")
            and _NOT_WRITTEN_SO not in row[1]
            and not any(part.startswith(_NOT_ITS_OWN) for part in row)
        }
    )


@lru_cache
def _version(program: str) -> str:
    """Return the version text of a program; other versions may sound different."""
    return " ".join(_ask(program, "--version").split())


def _ask(program: str, question: str) -> str:
    try:
        done = subprocess.run(
            [program, question], capture_output=True, text=True, timeout=_LONGEST_SECONDS
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise DataError(f"{program} does not start: {error}") from error
    return done.stdout
