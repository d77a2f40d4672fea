"""Translation: a text is read, and another one written. What is said in a recording is written
likewise, by a transcription, and what stands in a picture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from dragoman.measure import BLEU, CER, CHRF, LOSS, PERPLEXITY, WER, Measure
from dragoman.sources.shared.settings import FramesSource, LineSource, SourceSettings
from dragoman.specs.spec import Spec


@dataclass(frozen=True)
class TranslationSpec(Spec):
    """Two texts."""

    sections: ClassVar[frozenset[str]] = frozenset({"search"})
    reads_rows: ClassVar[bool] = True

    def of(self, source: SourceSettings) -> Self:
        found = super().of(source)
        if isinstance(source, LineSource):  # where it writes the language that it reads
            return replace(
                found,
                metrics={**self.metrics, "wer": WER, "cer": CER},
                finished={**self.finished, "WER": WER, "CER": CER},
            )
        if not isinstance(source, FramesSource):
            return found
        return replace(
            found,
            called="transcriber",
            metrics={"wer": WER, "cer": CER, **self.metrics},
            finished={"WER": WER, "CER": CER, **self.finished},
            verbs=(("transcribe", "talk.wav"), ("look", "talk.wav")),
            limits=(
                "It knows the voices, accents and microphones of its training data best.",
                "It may leave out or invent words, especially in silence and noise.",
            ),
        )


TRANSLATION = TranslationSpec(
    name="translation",
    called="translator",
    sides=("source", "target"),
    texts=("source", "target"),
    reads=True,
    writes=True,
    noun="pairs",
    counted="target tokens",
    metrics={"bleu": BLEU, "chrf": CHRF, "loss": LOSS, "perplexity": PERPLEXITY},
    finished={
        "BLEU": BLEU,
        "chrF": CHRF,
        "chrF++": Measure("chrF++", "higher"),
        "TER": Measure("TER", "lower"),
    },
    evaluation_options=(
        *("beam", "mbr", "precision", "shortlist", "ensemble", "output"),
        *("columns", "keys"),
    ),
    begins=(10_000, 250),
    verbs=(("translate", "< input.txt > output.txt"), ("look", "'A sentence.'")),
    hub_tag="translation",
    limits=(
        "It translates sentence by sentence and knows nothing of those around.",
        "It may leave out, add or invent; figures and names deserve a second look.",
    ),
)
