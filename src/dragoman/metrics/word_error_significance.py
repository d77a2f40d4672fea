"""Whether one run hears better than another, or was luckier with the speakers of this test set.

The tests are those of ``significance.py``, over word and character error rates. The recordings of
one speaker resemble each other, so that an interval over recordings alone is too narrow: where
speakers are known, whole speakers are drawn or exchanged, with all their recordings (a bootstrap of
blocks; Liu and Peng, 2020, "Statistical Testing on ASR Performance via Blockwise Bootstrap").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.significance import (
    MeasuredSystem,
    Significance,
    Test,
    compare_statistics,
)
from dragoman.metrics.unicode_form import composed, form_of
from dragoman.metrics.word_errors import SIGNATURE, counted
from dragoman.plural import plural

CHARACTERS_SIGNATURE = "characters, spaces among them, case and punctuation count"

_Array = NDArray[np.float64]


def compare_word_errors(
    systems: Mapping[str, Sequence[Sequence[str]]],
    references: Sequence[str],
    groups: Sequence[str],
    test: Test = "bootstrap",
    samples: int | None = None,
    seed: int = 12345,
    noun: str = "recording",
) -> Significance:
    """Test each system against the first one, by WER and CER.

    ``systems``: as ``compare_systems`` takes them. ``groups``: the speaker of each recording;
    where each has its own, nothing is known of them. ``noun``: what is read, one of it.
    Errors: ``DataError`` for an exchange of outputs with a system of several runs.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    by_speaker = 1 < len(numbers) < len(groups)
    rows = [numbers[group] for group in groups] if by_speaker else list(range(len(groups)))
    form = form_of(references, *(lines for runs in systems.values() for lines in runs))
    references = composed(references)
    words: list[list[_Array]] = []
    characters: list[list[_Array]] = []
    for runs in systems.values():
        both = [_statistics(references, composed(hypotheses)) for hypotheses in runs]
        words.append([_summed(one, rows) for one, _ in both])
        characters.append([_summed(other, rows) for _, other in both])
    measured = {
        "WER": MeasuredSystem(words, _rates, SIGNATURE + form, less_is_better=True),
        "CER": MeasuredSystem(characters, _rates, CHARACTERS_SIGNATURE + form, less_is_better=True),
    }
    notes = [f"{plural(len(groups), noun)}: whole speakers are drawn"] if by_speaker else []
    unit = "speaker" if by_speaker else noun
    return compare_statistics(list(systems), measured, test, samples, seed, tuple(notes), unit)


def chance_of_word_errors(references: Sequence[str], learned: Sequence[str]) -> float:
    """The WER, in percent, of a run that hears the same in each recording: nothing, or the most
    frequent text of those that it has ``learned`` from."""
    references, learned = composed(references), composed(learned)
    counts = Counter(" ".join(said.split()) for said in learned)
    usual = max(counts, key=counts.__getitem__, default="")
    said = [counted(reference.split(), usual.split()) for reference in references]
    wrong = sum(one.errors for one in said)
    return min(100.0, 100 * wrong / max(1, sum(one.reference for one in said)))


def _statistics(references: Sequence[str], hypotheses: Sequence[str]) -> tuple[_Array, _Array]:
    """(N, 2) of words and (N, 2) of characters: the errors and the length of each reference."""
    words, characters = list[tuple[int, int]](), list[tuple[int, int]]()
    for said, written in zip(references, hypotheses, strict=True):
        of_words = counted(said.split(), written.split())
        of_characters = counted(list(said.strip()), list(written.strip()))
        words.append((of_words.errors, of_words.reference))
        characters.append((of_characters.errors, of_characters.reference))
    return np.array(words, float), np.array(characters, float)


def _summed(statistics: _Array, rows: Sequence[int]) -> _Array:
    """(N, K) -> (G, K): ``rows`` says to which of the G each of the N belongs."""
    found = np.zeros((max(rows) + 1, statistics.shape[1]))
    np.add.at(found, list(rows), statistics)
    return found


def _rates(sums: NDArray[Any]) -> _Array:
    """Errors per 100 words or characters that were said."""
    return np.asarray(100 * sums[:, 0] / np.maximum(1, sums[:, 1]))
