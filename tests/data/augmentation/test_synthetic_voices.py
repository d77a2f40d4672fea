"""Texts spoken by programs that this test writes: which are called, with what, and how often."""

from __future__ import annotations

import os
import wave
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from dragoman.data.augmentation import synthetic_voices
from dragoman.data.augmentation.synthetic_voices import missing_programs, spoken, voices
from dragoman.errors import DataError

VOICES = """\
Pty Language       Age/Gender VoiceName          File                 Other Languages
 2  en-gb           --/M      English_(Great_Britain) gmw/en               (en 2)
 3  en-us           --/M      us-mbrola-1        mb/mb-us1            (en 8)
 5  en-029          --/M      English_(Caribbean) gmw/en-029           (en 10)
 5  no              --/M      Norwegian          gmq/no               (en 11)
"""
PROGRAM = """\
#!/bin/sh
case "$1" in --voices=en*) exec cat {here}/voices;; --voices=*) exit 0;; esac
said=$(cat)
case "$said" in *broken*) echo "no such voice" >&2; exit 3;; esac
echo "$0 $* <- $said" >> {here}/calls
while [ $# -gt 1 ]; do shift; case "$1" in *.wav) cp {here}/tone.wav "$1";; esac; done
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    voices.cache_clear()
    yield
    voices.cache_clear()


def installed(here: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Path:
    """Programs of these names that write one tone, with silence around it -> their calls."""
    tone = np.zeros(4_000)
    tone[1_000:3_000] = 8_000 * np.sin(np.arange(2_000) / 4)
    with wave.open(str(here / "tone.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(tone.astype("<i2").tobytes())
    (here / "voices").write_text(VOICES)
    (here / "bin").mkdir()
    for name in names:
        (here / "bin" / name).write_text(PROGRAM.format(here=here))
        (here / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{here / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    which = synthetic_voices.shutil.which
    monkeypatch.setattr(
        synthetic_voices.shutil, "which", lambda name: which(name, path=str(here / "bin"))
    )
    (here / "calls").touch()
    return here / "calls"


def samples_of(path: str) -> np.ndarray:
    with wave.open(path) as file:
        assert file.getframerate() == 16_000
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def test_each_text_is_spoken_by_several_and_once_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = installed(tmp_path, monkeypatch, "espeak-ng", "flite")
    texts, to = ["one two", "one two", "B A K E R < six"], tmp_path / "kept"
    to.mkdir()
    found = list(spoken(texts, 3, "en", to))
    assert [pair.target for pair in found] == [text for text in texts for _ in range(3)]
    assert [pair.line for pair in found] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert all(len({pair.group for pair in found[at : at + 3]}) == 3 for at in (0, 3, 6))
    assert len({pair.source for pair in found}) == 9, "as often as there are examples"
    heard = [samples_of(pair.source) for pair in found]
    assert all(2_000 <= len(one) <= 2_700 for one in heard), "the silence is cut off, but a margin"
    assert len({int(np.abs(one).max()) for one in heard}) == 9, "none is as loud as another"
    begun = calls.read_text()
    assert begun.count("\n") == 9
    assert list(spoken(texts, 3, "en", to)) == found and calls.read_text() == begun
    assert [pair.source for pair in islice(spoken(texts, 2, "en", to), 2)] == [
        pair.source for pair in found[:2]
    ]


def test_a_spelled_word_is_spelled_and_no_text_is_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = installed(tmp_path, monkeypatch, "espeak-ng")
    list(spoken(["B A K E R < six", "--voices=en -w x", "a tone"], 1, "en", tmp_path))
    said = {call.partition(" <- ")[2] for call in calls.read_text().splitlines()}
    spelled = '<say-as interpret-as="characters">BAKER</say-as> &lt; six'
    assert said == {spelled, "--voices=en -w x", "a tone"}


def test_accents_and_recorded_voices_are_taken_and_those_of_others_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "espeak-ng", "flite")
    found = {voice.name for voice in voices("en")}
    assert {name.partition("+")[0] for name in found if "+" in name} == {"en-gb", "en-029"}
    assert {name for name in found if "+" not in name} == {
        "flite kal16", "flite awb", "flite rms", "flite slt",
    }  # fmt: skip
    assert missing_programs("en") == []
    assert {name.partition("+")[0] for name, _, _ in voices("en-GB") if "+" in name} == {"en-gb"}
    assert len({name for name, _, _ in voices("en-NZ")}) == len(found), "else all of the language"


def test_a_program_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "flite")
    assert missing_programs("en") == ["espeak-ng"] and missing_programs("de") == ["espeak-ng"]
    assert len(set(voices("en"))) == 4
    with pytest.raises(DataError, match="neither is installed"):
        voices("de")


def test_what_cannot_be_spoken_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "espeak-ng")
    with pytest.raises(DataError, match="speaks no 'xx'"):
        voices("xx")
    to = tmp_path / "kept"
    to.mkdir()
    with pytest.raises(DataError, match="could not speak 'a broken tone'"):
        list(spoken(["a broken tone"], 1, "en", to))
    assert not list(to.iterdir())
