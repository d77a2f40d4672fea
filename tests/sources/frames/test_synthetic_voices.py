"""Texts spoken by programs that this test writes: which are called, with what, and how often."""

from __future__ import annotations

import os
import wave
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from dragoman.base.errors import DataError
from dragoman.sources.frames import synthetic_voices
from dragoman.sources.frames.synthetic_voices import (
    fingerprint,
    missing_programs,
    speak_all,
    voices,
)

VOICES = """\
Pty Language       Age/Gender VoiceName          File                 Other Languages
 2  en-gb           --/M      English_(Great_Britain) gmw/en               (en 2)
 3  en-us           --/M      us-mbrola-1        mb/mb-us1            (en 8)
 5  en-029          --/M      English_(Caribbean) gmw/en-029           (en 10)
 5  no              --/M      Norwegian          gmq/no               (en 11)
"""
VARIANTS = """\
Pty Language       Age/Gender VoiceName          File                 Other Languages
 5  variant         --/M      Storm              !v/Storm             (en-us 5)
 5  cmn             --/M      Chinese_(Mandarin) sit/cmn              (zh-cmn 5)
 5  cmn-latn-pinyin --/M      Mandarin_(Pinyin)  sit/cmn-Latn-pinyin  (zh 5)
 5  fr-fr           --/M      French_(France)    roa/fr               (fr 5)
"""
PROGRAM = """\
#!/bin/sh
case "$1" in
    --version) exec cat {here}/version;;
    --voices=en*) exec cat {here}/voices;;
    --voices=*) exec cat {here}/variants;;
esac
said=$(cat)
case "$said" in
    *broken*) echo "no such voice" >&2; exit 3;;
    *full*) head -c 4000 {here}/tone.wav > {here}/cut.wav; mv {here}/cut.wav {here}/tone.wav;;
    *silent*) cp {here}/silence.wav {here}/tone.wav;;
esac
echo "$0 $* <- $said" >> {here}/calls
while [ $# -gt 1 ]; do shift; case "$1" in *.wav) cp {here}/tone.wav "$1";; esac; done
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    for one in (voices, synthetic_voices._version):
        one.cache_clear()
    yield
    for one in (voices, synthetic_voices._version):
        one.cache_clear()


def installed(here: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Path:
    """Programs of these names that write one tone, with silence around it -> their calls."""
    tone = np.zeros(4_000)
    tone[1_000:3_000] = 8_000 * np.sin(np.arange(2_000) / 4)
    for name, samples in (("tone", tone), ("silence", np.zeros(4_000))):
        with wave.open(str(here / f"{name}.wav"), "wb") as file:
            file.setparams((1, 2, 16_000, 0, "NONE", ""))
            file.writeframes(samples.astype("<i2").tobytes())
    (here / "voices").write_text(VOICES)
    (here / "variants").write_text(VARIANTS)
    (here / "version").write_text("1")
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
    found = list(speak_all(texts, 3, "en", to))
    assert [pair.target for pair in found] == [text for text in texts for _ in range(3)]
    assert [pair.line for pair in found] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert all(len({pair.group for pair in found[at : at + 3]}) == 3 for at in (0, 3, 6))
    assert len({pair.source for pair in found}) == 9, "as often as there are examples"
    heard = [samples_of(pair.source) for pair in found]
    assert all(2_000 <= len(one) <= 2_700 for one in heard), "the silence is cut off, but a margin"
    assert len({int(np.abs(one).max()) for one in heard}) == 9, "none is as loud as another"
    begun = calls.read_text()
    assert begun.count("\n") == 9
    assert list(speak_all(texts, 3, "en", to)) == found and calls.read_text() == begun
    assert [pair.source for pair in islice(speak_all(texts, 2, "en", to), 2)] == [
        pair.source for pair in found[:2]
    ]


def test_a_spelled_word_is_spelled_and_no_text_is_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = installed(tmp_path, monkeypatch, "espeak-ng")
    texts = ["B A K E R < six", "--voices=en -w x", "a tone", "I A M", "y a", "A B"]
    list(speak_all(texts, 1, "en", tmp_path))
    said = {call.partition(" <- ")[2] for call in calls.read_text().splitlines()}
    spelled = '<say-as interpret-as="characters">BAKER</say-as> &lt; six'
    marked = '<say-as interpret-as="characters">{}</say-as>'.format
    others = {"--voices=en -w x", "a tone", "y a", marked("IAM"), marked("AB")}
    assert said == {spelled, *others}
    assert all(" -m --stdin " in call for call in calls.read_text().splitlines())
    calls.write_text("")
    list(speak_all(["IL Y A", "B A K E R"], 1, "fr", tmp_path))
    said = {call.partition(" <- ")[2] for call in calls.read_text().splitlines()}
    assert said == {"IL Y A", marked("BAKER")}, "two letters may be two words"


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
    assert {name.partition("+")[0] for name, _, _ in voices("zh-Hans")} == {"cmn"}
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
    with pytest.raises(DataError, match="does not speak 'xx'"):
        voices("xx")
    with pytest.raises(DataError, match="does not speak 'variant'"):
        voices("variant")
    to = tmp_path / "kept"
    to.mkdir()
    with pytest.raises(DataError, match="could not speak 'a broken tone': no such voice"):
        list(speak_all(["a broken tone"], 1, "en", to))
    assert not list(to.iterdir())
    with pytest.raises(DataError, match=r"is cut off. Check the free space"):
        list(speak_all(["a full disk"], 1, "en", to))
    assert not list(to.iterdir())


def test_what_nobody_would_hear_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "espeak-ng")
    texts = ["", " ", "...", "a\0b", "\udcff a", "a tone"]
    assert [pair.target for pair in speak_all(texts, 1, "en", tmp_path)] == ["a tone"]
    assert not list(speak_all(["silent"], 1, "en", tmp_path))


def test_what_is_kept_is_spoken_anew_where_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = installed(tmp_path, monkeypatch, "espeak-ng")
    (first,) = speak_all(["a tone"], 1, "en", tmp_path)
    whole = Path(first.source).read_bytes()
    Path(first.source).write_bytes(b"")
    assert list(speak_all(["a tone"], 1, "en", tmp_path)) == [first]
    assert Path(first.source).read_bytes() == whole and calls.read_text().count("\n") == 2


def test_other_voices_versions_and_numbers_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "espeak-ng", "flite")
    found = [fingerprint("en", 1), fingerprint("en", 2), fingerprint("en-GB", 1)]
    assert found[0] == fingerprint("en-NZ", 1), "which has no voices of its own"
    (tmp_path / "version").write_text("2")
    synthetic_voices._version.cache_clear()
    found.append(fingerprint("en", 1))
    assert len(set(found)) == 4


def test_who_stops_does_not_wait_for_what_was_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = installed(tmp_path, monkeypatch, "espeak-ng")
    found = speak_all([f"tone {n}" for n in range(1_000)], 100, "en", tmp_path)
    next(found)
    found.close()
    assert calls.read_text().count("\n") <= 100
