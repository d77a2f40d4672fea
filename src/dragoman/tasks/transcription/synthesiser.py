"""A small formant synthesiser: voice and breath, filtered by a model of the vocal tract.

The voice is a train of pulses, breath is noise (Klatt, 1980; the source-filter model of Fant,
1960). Short overlapping stretches of both are multiplied with the response of a cascade of
resonators whose frequencies glide from sound to sound. The voice is meant to be recognised as
synthetic: it sounds like programs of the eighties.

Formants of vowels are the means of men in Peterson and Barney (1952, "Control Methods Used in a
Study of the Vowels"); those of consonants follow the table of Klatt (1980, "Software for a
Cascade/Parallel Formant Synthesizer"), rounded. Names of sounds are those of the ARPAbet.

Shapes: F frames, B bins of the spectrum, N samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of speech with one position of the mouth."""

    milliseconds: float
    formants: tuple[float, float, float]
    """The frequencies of the first three resonances, in Hz."""
    voice: float = 0.0
    """The loudness of the voice, from 0 to 1."""
    noise: float = 0.0
    """The loudness of breath, from 0 to 1."""
    centre: float = 2000.0
    """The frequency at which breath is loudest, in Hz."""
    width: float = 2000.0
    """The bandwidth of breath, in Hz."""


def _vowel(milliseconds: float, *formants: float) -> Sound:
    first, second, third = formants
    return Sound(milliseconds, (first, second, third), voice=1.0)


_VOWELS = {
    "IY": _vowel(130, 270, 2290, 3010),
    "IH": _vowel(90, 390, 1990, 2550),
    "EH": _vowel(110, 530, 1840, 2480),
    "AE": _vowel(150, 660, 1720, 2410),
    "AA": _vowel(150, 730, 1090, 2440),
    "AO": _vowel(150, 570, 840, 2410),
    "UH": _vowel(90, 440, 1020, 2240),
    "UW": _vowel(130, 300, 870, 2240),
    "AH": _vowel(100, 640, 1190, 2390),
    "ER": _vowel(140, 490, 1350, 1690),
    "AX": _vowel(60, 500, 1500, 2500),
}
_GLIDES = {
    "AY": ("AA", "IH"), "EY": ("EH", "IY"), "OW": ("AO", "UH"), "AW": ("AA", "UH"),
    "OY": ("AO", "IH"),
}  # fmt: skip
"""Diphthongs: two vowels that glide into each other."""

_LIPS, _TEETH, _PALATE = (300.0, 900.0, 2200.0), (300.0, 1700.0, 2600.0), (300.0, 2000.0, 2500.0)
"""The formants of a closed mouth at each place of articulation."""


def _stop(place: tuple[float, float, float], voice: float, centre: float) -> tuple[Sound, ...]:
    """Make a stop consonant: the mouth is closed, then opens with a burst of breath. ``place``: the
    formants in Hz; ``voice``: the loudness of the voice while the mouth is closed, 0 for P, T and
    K; ``centre``: the frequency in Hz at which the burst is loudest."""
    closed = Sound(55 if voice else 65, place, voice=voice)
    burst = Sound(18 if voice else 35, place, 0.0, 0.5, centre, 1200.0)
    return closed, burst


def _hiss(
    milliseconds: float, loud: float, centre: float, width: float, voice: float = 0.0
) -> tuple[Sound, ...]:
    return (Sound(milliseconds, (320.0, 1500.0, 2600.0), voice, loud, centre, width),)


_CONSONANTS: dict[str, tuple[Sound, ...]] = {
    "W": (Sound(60, (290, 610, 2150), voice=0.7),),
    "Y": (Sound(60, (260, 2070, 3020), voice=0.7),),
    "R": (Sound(65, (310, 1060, 1380), voice=0.7),),
    "L": (Sound(65, (310, 1050, 2880), voice=0.7),),
    "M": (Sound(70, (250, 950, 2200), voice=0.4),),
    "N": (Sound(65, (250, 1600, 2600), voice=0.4),),
    "NG": (Sound(75, (250, 2100, 2700), voice=0.4),),
    "F": _hiss(95, 0.12, 2800, 3000),
    "V": _hiss(60, 0.06, 2800, 3000, 0.4),
    "TH": _hiss(85, 0.08, 3300, 2500),
    "DH": _hiss(45, 0.04, 3300, 2500, 0.45),
    "S": _hiss(105, 0.5, 3700, 700),
    "Z": _hiss(75, 0.3, 3700, 700, 0.35),
    "SH": _hiss(110, 0.5, 2500, 700),
    "HH": (Sound(60, (500, 1500, 2500), 0.0, 0.12, 1500, 2500),),
    "P": _stop(_LIPS, 0.0, 900),
    "B": _stop(_LIPS, 0.15, 900),
    "T": _stop(_TEETH, 0.0, 3300),
    "D": _stop(_TEETH, 0.15, 3300),
    "K": _stop(_PALATE, 0.0, 1900),
    "G": _stop(_PALATE, 0.15, 1900),
}

SOUNDS: dict[str, tuple[Sound, ...]] = {
    **{name: (vowel,) for name, vowel in _VOWELS.items()},
    **{
        name: tuple(_vowel(0.6 * _VOWELS[vowel].milliseconds + 25, *_VOWELS[vowel].formants)
                    for vowel in both)
        for name, both in _GLIDES.items()
    },
    **_CONSONANTS,
    "CH": (_CONSONANTS["T"][0], *_CONSONANTS["SH"]),
    "JH": (_CONSONANTS["D"][0], *_hiss(60, 0.3, 2500, 700, 0.3)),
}  # fmt: skip
"""The parts of each sound, in order."""

_TABLE = """
a AX, an AE N, the DH AX, my M AY
man M AE N, woman W UH M AX N, child CH AY L D, boy B OY, girl G ER L, king K IH NG
queen K W IY N, animal AE N AX M AX L, dinosaur D AY N AX S AO R, dog D AO G, cat K AE T
horse HH AO R S, bear B EH R, lion L AY AX N, mouse M AW S, bird B ER D, cow K AW, pig P IH G
goat G OW T, camel K AE M AX L, snake S N EY K, apple AE P AX L, soup S UW P, bread B R EH D
cake K EY K, pear P EH R, egg EH G
small S M AO L, big B IH G, old OW L D, young Y AH NG, strong S T R AO NG, black B L AE K
tired T AY ER D, fresh F R EH SH
sees S IY Z, saw S AO, finds F AY N D Z, found F AW N D, loves L AH V Z, loved L AH V D
chases CH EY S IH Z, chased CH EY S T, catches K AE CH IH Z, caught K AO T
carries K EH R IY Z, carried K EH R IY D, helps HH EH L P S, helped HH EH L P T
follows F AA L OW Z, followed F AA L OW D, eats IY T S, ate EY T
"""
WORDS: dict[str, tuple[str, ...]] = {
    word: tuple(names)
    for line in _TABLE.strip().splitlines()
    for word, *names in (entry.split() for entry in line.split(","))
}
"""The names of the sounds of each word."""


Samples = npt.NDArray[np.float32]
"""Samples (N,) from -1 to 1."""
_Array = npt.NDArray[np.float64]

RATE = 8_000
"""The sample rate of all sounds, in Hz."""
_HOP = 32
"""The number of samples between two frames: 4 ms."""
_WINDOW = 4 * _HOP
_POINTS = 2 * _WINDOW
"""The points of the Fourier transform, with room for the ringing after a stretch."""
_BANDWIDTHS = (70.0, 100.0, 150.0)
"""The bandwidths of the three formants, in Hz."""
_HIGHEST = 0.47 * RATE
"""The highest formant frequency, in Hz."""
_GLIDE, _ATTACK = 9, 5
"""The number of frames over which formants (``_GLIDE``) and loudness (``_ATTACK``) change from one
sound to the next."""
_LOUD = 0.08
"""The root mean square of the speech."""


@dataclass(frozen=True, slots=True)
class Voice:
    """The properties of a synthetic speaker."""

    name: str
    pitch: float
    """The pitch in the middle of a sentence, in Hz."""
    formants: float
    """The factor of all formants: a short vocal tract has higher ones."""
    tempo: float
    """The factor by which all durations are multiplied."""
    breath: float
    """The factor by which all noise is multiplied."""

    @classmethod
    def of(cls, number: int) -> Voice:
        """Return the voice with this number. A number always gives the same voice."""
        draw = Random(f"voice {number}")
        height = draw.random()
        return cls(
            f"voice-{number:02}",
            pitch=90 + 130 * height + draw.uniform(-10, 10),
            formants=0.92 + 0.22 * height + draw.uniform(-0.03, 0.03),
            tempo=draw.uniform(0.85, 1.2),
            breath=draw.uniform(0.7, 1.4),
        )


def speak(sentence: str, voice: Voice, seed: int = 0) -> Samples:
    """Synthesise a sentence of words in ``WORDS``; the same voice and ``seed`` give the same
    samples.

    Two seeds differ like two utterances of a person: in pauses, durations and melody. Errors:
    ``KeyError`` for a word that is not in ``WORDS``.
    """
    draw = Random(f"{voice.name} {seed} {sentence}")
    rest = Sound(80, (500.0, 1500.0, 2500.0))
    sounds = [rest]
    for word in sentence.split():
        sounds += [sound for name in WORDS[word] for sound in SOUNDS[name]]
        sounds.append(Sound(draw.choice((0, 0, 20, 60)), sounds[-1].formants))
    return render([*sounds, rest], voice, draw)


def render(sounds: Sequence[Sound], voice: Voice, draw: Random) -> Samples:
    """Synthesise ``sounds`` one after the other. ``draw``: the source of random numbers, for
    durations, loudness and melody."""
    counts = [
        round(sound.milliseconds * voice.tempo * draw.uniform(0.9, 1.1) * RATE / 1000 / _HOP)
        for sound in sounds
    ]
    formants = _smooth(np.repeat([sound.formants for sound in sounds], counts, axis=0), _GLIDE)
    formants = np.minimum(formants * voice.formants, _HIGHEST)
    others = [(sound.voice, sound.noise, sound.centre, sound.width) for sound in sounds]
    tracks = np.repeat(others, counts, axis=0)
    loud, breath = _smooth(tracks[:, :2], _ATTACK).T
    frames = len(tracks)
    count = (frames - 1) * _HOP + _WINDOW
    noise = np.random.default_rng(draw.getrandbits(32))
    voiced = _filter(_pulses(frames, count, voice, draw), _throat(formants) * loud[:, None])
    hissed = _filter(
        noise.standard_normal(count),
        _resonance(tracks[:, 2], tracks[:, 3], at_peak=True) * (breath * voice.breath)[:, None],
    )
    both = voiced + 0.5 * hissed
    both *= _LOUD * draw.uniform(0.6, 1.3) / max(1e-9, float(np.sqrt(np.mean(both**2))))
    both += 0.0015 * noise.standard_normal(len(both))
    return np.clip(both, -1, 1).astype(np.float32)


def _smooth(tracks: _Array, frames: int) -> _Array:
    """Smooth each column of (F, K) over ``frames`` frames."""
    window = np.hanning(frames + 2)[1:-1]
    padded = np.pad(tracks, ((frames // 2, frames // 2), (0, 0)), mode="edge")
    columns = [np.convolve(column, window / window.sum(), "valid") for column in padded.T]
    return np.stack(columns, axis=1)


def _pulses(frames: int, count: int, voice: Voice, draw: Random) -> _Array:
    """Return (``count``,) samples with a pulse for each opening of the vocal folds. The pitch falls
    over a sentence and wavers; a pulse between two samples is divided between both."""
    at = np.arange(count) / max(1, count)
    waver = draw.uniform(0.02, 0.06) * np.sin(2 * np.pi * (draw.uniform(1, 3) * at + draw.random()))
    pitch = voice.pitch * (draw.uniform(1.05, 1.2) - 0.25 * at + waver)
    phase = np.cumsum(pitch) / RATE
    whole = np.flatnonzero(np.diff(np.floor(phase)))
    share = (phase[whole + 1] % 1) / (pitch[whole + 1] / RATE)
    samples = np.zeros(count)
    # All pulses have the same energy at any pitch.
    strength = np.sqrt(RATE / pitch[whole])
    samples[whole] += share * strength
    samples[whole + 1] += (1 - share) * strength
    return samples


def _throat(formants: _Array) -> npt.NDArray[np.complex128]:
    """Return the frequency response (F, B) of mouth and vocal folds for ``formants`` (F, 3) in Hz.
    The folds make low frequencies louder."""
    z = np.exp(-2j * np.pi * np.fft.rfftfreq(_POINTS))
    response = np.repeat(((1 - z) / (1 - 0.92 * z) ** 2)[None], len(formants), axis=0)
    for column, width in enumerate(_BANDWIDTHS):
        response *= _resonance(formants[:, column], np.full(len(formants), width))
    return response


def _resonance(hertz: _Array, width: _Array, at_peak: bool = False) -> npt.NDArray[np.complex128]:
    """Return the frequency response (F, B) of a two-pole resonator. ``hertz`` and ``width`` (F,):
    its frequency and bandwidth in each frame; its gain is 1 at 0 Hz, or with ``at_peak`` at its
    peak."""
    z = np.exp(-2j * np.pi * np.fft.rfftfreq(_POINTS))[None]
    radius = np.exp(-np.pi * width / RATE)
    second = -(radius**2)
    first = 2 * radius * np.cos(2 * np.pi * hertz / RATE)
    response = 1 / (1 - first[:, None] * z - second[:, None] * z**2)
    scale = 1 / np.abs(response).max(axis=1) if at_peak else 1 - first - second
    return np.asarray(response * scale[:, None])


def _filter(samples: _Array, response: npt.NDArray[np.complex128]) -> _Array:
    """Return (N,): the sum of overlapping stretches of ``samples``, each filtered with its own row
    of ``response`` (F, B)."""
    frames = len(response)
    stretches = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::_HOP][:frames]
    windowed = stretches * np.hanning(_WINDOW + 1)[:-1]
    made = np.fft.irfft(np.fft.rfft(windowed, _POINTS) * response, _POINTS)
    parts = made.reshape(frames, _POINTS // _HOP, _HOP)
    sums = np.zeros((frames + _POINTS // _HOP, _HOP))
    for place in range(_POINTS // _HOP):
        sums[place : place + frames] += parts[:, place]
    return sums.reshape(-1)
