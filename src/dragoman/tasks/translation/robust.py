"""Measures how much noise in the source lowers the scores of a translator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.data.hashing import torch_seed
from dragoman.forms.noise import NoiseSettings, with_noise
from dragoman.metrics.translation import References, evaluate_translation
from dragoman.pictures.labels import plain_table

_NOISES = {
    "typos in 10 % of the words": NoiseSettings(typos=0.1, texts=1),
    "typos in 20 % of the words": NoiseSettings(typos=0.2, texts=1),
    "5 % of the words missing": NoiseSettings(words=0.05, texts=1),
    "lower case": NoiseSettings(case=1, texts=1),
    "no punctuation": NoiseSettings(punctuation=1, texts=1),
    "no accents": NoiseSettings(accents=1, texts=1),
}


@dataclass(frozen=True)
class NoiseScore:
    """The scores on sources with one kind of noise."""

    noise: str
    changed: float
    """The share of the sources that the noise changes."""
    bleu: float
    chrf: float


def robustness(
    translate: Callable[[Sequence[str]], Sequence[str]],
    sources: Sequence[str],
    references: References,
    language: str,
) -> list[NoiseScore]:
    """Translate the sources with each kind of noise that changes any of them, and score the
    translations. The noise is the same in every call. ``language``: that of the references."""
    scores = []
    for name, settings in _NOISES.items():
        noisy = [
            with_noise(source, settings, torch_seed(0, place))
            for place, source in enumerate(sources)
        ]
        changed = sum(map(str.__ne__, noisy, sources)) / max(1, len(sources))
        if changed:
            measured = evaluate_translation(
                translate(noisy), references, language, metrics=("BLEU", "chrF")
            )
            scores.append(NoiseScore(name, changed, measured["BLEU"], measured["chrF"]))
    return scores


def noise_table(scores: Sequence[NoiseScore], bleu: float, chrf: float) -> str:
    """Return a table of the scores with each noise, and of the difference from ``bleu`` and
    ``chrf``, the scores without noise."""
    header = ("noise in the source", "sources", "BLEU", "change", "chrF", "change")
    rows = [
        (
            score.noise, f"{score.changed:.0%}", f"{score.bleu:.2f}", f"{score.bleu - bleu:+.2f}",
            f"{score.chrf:.2f}", f"{score.chrf - chrf:+.2f}",
        )
        for score in scores
    ]  # fmt: skip
    return plain_table(header, [("none", "", f"{bleu:.2f}", "", f"{chrf:.2f}", ""), *rows])
