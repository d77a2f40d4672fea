"""The sounds of English as a synthesiser needs them, and how the words of the spoken demo are said.

Formants of vowels are the means of men in Peterson and Barney (1952, "Control Methods Used in a
Study of the Vowels"); those of consonants follow the table of Klatt (1980, "Software for a
Cascade/Parallel Formant Synthesizer"), rounded. Names of sounds are those of the ARPAbet.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of speech with one target of the mouth."""

    milliseconds: float
    formants: tuple[float, float, float]
    """Hz, of the first three resonances."""
    voice: float = 0.0
    """How loud the voice is, from 0 to 1."""
    noise: float = 0.0
    """How loud breath is, from 0 to 1."""
    centre: float = 2000.0
    """Hz, around which breath is loudest."""
    width: float = 2000.0
    """Hz, the bandwidth of breath."""


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
"""Two vowels that run into each other."""

_LIPS, _TEETH, _PALATE = (300.0, 900.0, 2200.0), (300.0, 1700.0, 2600.0), (300.0, 2000.0, 2500.0)
"""Where the formants go when the mouth is closed there."""


def _stop(place: tuple[float, float, float], voice: float, centre: float) -> tuple[Sound, ...]:
    """The mouth is closed, then opens with a burst."""
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
        name: tuple(_vowel(0.6 * _VOWELS[one].milliseconds + 25, *_VOWELS[one].formants)
                    for one in both)
        for name, both in _GLIDES.items()
    },
    **_CONSONANTS,
    "CH": (_CONSONANTS["T"][0], *_CONSONANTS["SH"]),
    "JH": (_CONSONANTS["D"][0], *_hiss(60, 0.3, 2500, 700, 0.3)),
}  # fmt: skip
"""What is said for each name, one part after the other."""

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
"""How each word is said."""
