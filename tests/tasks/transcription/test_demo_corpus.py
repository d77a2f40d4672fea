"""The spoken demo: sounds have the resonances of the table, and nothing held out is trained on."""

from __future__ import annotations

import wave
from pathlib import Path
from random import Random

import numpy as np
import pytest

from dragoman.demo.corpus import Split
from dragoman.tasks.transcription.demo import make_sentences, write_spoken
from dragoman.tasks.transcription.synthesiser import (
    RATE,
    SOUNDS,
    WORDS,
    Samples,
    Sound,
    Voice,
    render,
    speak,
)

SMALL: dict[Split, int] = {"train": 300, "dev": 10, "test": 20}
MAN = Voice("man", pitch=100, formants=1.0, tempo=1.0, breath=1.0)


def spectrum(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Hz, and the power around each: harmonics are smoothed away."""
    middle = samples[len(samples) // 4 : -len(samples) // 4]
    power = np.abs(np.fft.rfft(middle * np.hanning(len(middle)))) ** 2
    hertz = np.fft.rfftfreq(len(middle), 1 / RATE)
    window = np.hanning(round(220 / hertz[1]))
    return hertz, np.convolve(power, window / window.sum(), "same")


def resonances(samples: Samples, count: int) -> np.ndarray:
    """Hz of the poles of linear prediction (order 10) nearest to the unit circle, in their order:
    found without any of the synthesiser's own arithmetic."""
    sound = np.append(samples[0], samples[1:] - 0.9 * samples[:-1]) * np.hanning(len(samples))
    lags = np.correlate(sound, sound, "full")[len(sound) - 1 :][:11]
    matrix = np.array([[lags[abs(i - j)] for j in range(10)] for i in range(10)])
    poles = np.roots(np.append(1.0, -np.linalg.solve(matrix, lags[1:])))
    poles = sorted((p for p in poles if p.imag > 0), key=lambda pole: -abs(pole))[:count]
    return np.sort([float(np.angle(pole)) * RATE / (2 * np.pi) for pole in poles])


@pytest.mark.parametrize("name", ["IY", "AE", "AA", "EH"])
@pytest.mark.parametrize("longer", [1.0, 1.15])
def test_a_vowel_has_the_resonances_of_the_table(name: str, longer: float) -> None:
    (vowel,) = SOUNDS[name]
    steady = Sound(600, vowel.formants, voice=1.0)
    voice = Voice("", pitch=100, formants=longer, tempo=1.0, breath=1.0)
    found = resonances(render([steady], voice, Random(1))[1_000:-1_000], 3)
    # Harmonics are 100 Hz apart, which is how well a resonance can be told.
    assert found[:2] == pytest.approx(longer * np.array(vowel.formants[:2]), abs=110)


@pytest.mark.parametrize("pitch", [90, 220])
def test_the_voice_has_its_pitch(pitch: int) -> None:
    voice = Voice("", pitch=pitch, formants=1.0, tempo=1.0, breath=1.0)
    sound = render([Sound(500, (500, 1500, 2500), voice=1.0)], voice, Random(2))
    lags = np.correlate(sound, sound, "full")[len(sound) :]
    longest, shortest = RATE // 60, RATE // 350
    period = shortest + int(np.argmax(lags[shortest:longest])) + 1
    assert RATE / period == pytest.approx(pitch, rel=0.2)


def test_hissing_is_high_and_a_voice_is_low() -> None:
    centres = {}
    for name in ("S", "SH", "AA"):
        (sound,) = SOUNDS[name]
        longer = Sound(400, sound.formants, sound.voice, sound.noise, sound.centre, sound.width)
        hertz, power = spectrum(render([longer], MAN, Random(3)))
        centres[name] = float((hertz * power).sum() / power.sum())
    assert centres["S"] > 3_300 > centres["SH"] > 2_000 > centres["AA"]


def test_the_same_is_said_the_same_and_otherwise_by_another_voice_or_another_time() -> None:
    text = "the small cat eats an old bear"
    once = speak(text, Voice.of(3), 1)
    assert np.array_equal(once, speak(text, Voice.of(3), 1))
    others = [speak(text, Voice.of(4), 1), speak(text, Voice.of(3), 2)]
    assert all(len(one) != len(once) or not np.array_equal(one, once) for one in others)
    assert np.abs(once).max() <= 1 and 1 < len(once) / RATE < 5
    with pytest.raises(KeyError):
        speak("the platypus", Voice.of(3))


def test_every_word_is_said_otherwise_than_the_others() -> None:
    assert all(name in SOUNDS for names in WORDS.values() for name in names)
    assert len(set(WORDS.values())) == len(WORDS)


def test_parts_share_no_sentence_no_voice_and_no_combination() -> None:
    parts = make_sentences(SMALL)
    assert {name: len(part) for name, part in parts.items()} == SMALL
    assert parts == make_sentences(SMALL)
    every = [one.text for part in parts.values() for one in part]
    assert len(set(every)) == len(every)
    assert {word for text in every for word in text.split()} <= set(WORDS)
    voices = {name: {one.voice.name for one in part} for name, part in parts.items()}
    assert len(voices["train"]) == 24
    assert not (voices["train"] & voices["test"] or voices["dev"] & voices["test"])
    for name, other in (("train", "test"), ("train", "dev"), ("dev", "test")):
        held = [{combination(one.text) for one in parts[part]} for part in (name, other)]  # type: ignore[index]
        assert not held[0] & held[1]


def combination(text: str) -> frozenset[str]:
    """Verb and nouns, without tense, articles and adjectives: found without the grammar."""
    said = ("small", "big", "old", "young", "strong", "black", "tired", "fresh")
    base = {"saw": "see", "found": "find", "ate": "eat", "caught": "catch", "carries": "carry"}
    words = [w for w in text.split() if w not in (*said, "the", "a", "an", "my")]
    verb = base.get(words[1], words[1])
    for ending in ("ies", "ied"):
        verb = verb.removesuffix(ending) + "y" if verb.endswith(ending) else verb
    for ending in ("es", "ed", "s", "d"):
        if verb.endswith(ending):
            verb = verb.removesuffix(ending)
            break
    return frozenset({verb.removesuffix("e"), words[0], words[2]})


def test_recordings_are_written_with_their_lists(tmp_path: Path) -> None:
    parts = make_sentences({"train": 3, "dev": 1, "test": 1})
    write_spoken(tmp_path / "new", parts)
    lines = (tmp_path / "new/train.tsv").read_text().splitlines()
    assert [line.split("\t")[1] for line in lines] == [one.text for one in parts["train"]]
    file, _, speaker = lines[2].split("\t")
    assert speaker in file
    with wave.open(str(tmp_path / "new" / file)) as sound:
        assert (sound.getframerate(), sound.getnchannels()) == (RATE, 1)
        frames = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    assert np.abs(frames / 32_767 - parts["train"][2].samples()).max() < 1e-4
