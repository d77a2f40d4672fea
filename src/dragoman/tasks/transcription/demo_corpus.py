"""The spoken demo: sentences of the embedded corpus's grammar, spoken by synthetic voices.

Both are synthetic: a grammar writes the sentences, and a formant synthesiser speaks them. Sentences
are split into parts by their combination of words, as everywhere in the demo. Voices are split too:
those of dev and test do not occur in training.
"""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

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
