"""The task of translation, which reads a text and writes another. Transcription and reading
pictures are variants of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from dragoman.base.measure import BLEU, CER, CHRF, LOSS, PERPLEXITY, WER, Measure
from dragoman.runs.recipe.spec import Spec
from dragoman.sources.shared.rows import SourceSettings


@dataclass(frozen=True)
class TranslationSpec(Spec):
    """The description of the task of translation, which depends on the kind of source: text,
    recordings or pictures."""

    sections: ClassVar[frozenset[str]] = frozenset({"search"})
    reads_rows: ClassVar[bool] = True

    def of(self, source: SourceSettings) -> Self:
        return replace(super().of(source), **_OF_SOURCE.get(source.kind, {}))


_METRICS = {"bleu": BLEU, "chrf": CHRF, "loss": LOSS, "perplexity": PERPLEXITY}
_FINISHED = {
    "BLEU": BLEU,
    "chrF": CHRF,
    "chrF++": Measure("chrF++", "higher"),
    "TER": Measure("TER", "lower"),
}
_OF_SOURCE: Mapping[str, Mapping[str, Any]] = {
    "frames": {
        "becomes": "transcription",
        "called": "transcriber",
        "metrics": {"wer": WER, "cer": CER, **_METRICS},
        "finished": {"WER": WER, "CER": CER, **_FINISHED},
        "verbs": (("transcribe", "talk.wav"), ("look", "talk.wav")),
        "limits": (
            "It knows the voices, accents and microphones of its training data best.",
            "It may leave out or invent words, especially in silence and noise.",
        ),
    },
    "line": {
        "becomes": "picture-translation",
        # WER and CER need a run that writes the language that it reads.
        "metrics": {**_METRICS, "wer": WER, "cer": CER},
        "finished": {**_FINISHED, "WER": WER, "CER": CER},
    },
    "picture": {"becomes": "captioning"},
}
"""The fields that change with the kind of source."""

TRANSLATION = TranslationSpec(
    name="translation",
    called="translator",
    texts=("source", "target"),
    writes=True,
    noun="pairs",
    counted="target tokens",
    metrics=_METRICS,
    finished=_FINISHED,
    evaluation_options=(
        *("beam", "mbr", "precision", "shortlist", "ensemble", "output"),
        *("columns", "keys", "robust"),
    ),
    begins=(10_000, 250),
    verbs=(("translate", "< input.txt > output.txt"), ("look", "'A sentence.'")),
    hub_tag="translation",
    limits=(
        "It translates each sentence without knowing the sentences around it.",
        "It may leave out, add or invent; check numbers and names.",
    ),
)
