"""What is measured of a language model: while it trains, and of a finished run.

Losses are over all tokens of a text and its end symbol, given nothing. *Bits per byte* are the
same in units that do not depend on the vocabulary: -log2 P of the text over its length in UTF-8,
a byte counted for the end of each text, as a file with a text a line has it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.atomic import write_text
from dragoman.data.corpora import read_lines
from dragoman.errors import DragomanError
from dragoman.search.settings import SearchSettings
from dragoman.tasks.prepare import plain_pairs
from dragoman.tasks.run import SCORES, Run
from dragoman.tasks.validation import Validation
from dragoman.training.records import Evaluation, Sample

_SAMPLES = 3
_TOGETHER = 1000


class Texts(Validation):
    """``loss`` (nats per token), ``perplexity`` and ``bits_per_byte``; some texts are shown to the
    model by their first half, and it goes on."""

    def searched(self, examples: int) -> int:
        return min(_SAMPLES, examples)

    def __call__(self, update: int) -> Evaluation:
        total, tokens = self.loss()
        loss = total / max(tokens, 1)
        scores = {
            "loss": loss,
            "perplexity": math.exp(min(loss, 700.0)),
            "bits_per_byte": total / math.log(2) / max(1, _bytes([p.target for p in self.pairs])),
        }
        return Evaluation(scores, self._samples())

    def _samples(self) -> tuple[Sample, ...]:
        engine = self.engine()
        texts = [pair.target for pair in self.some()]
        written = engine.target.tokens(texts)
        begun = [tokens[: len(tokens) // 2] for tokens in written]
        nothing = engine.source.values(texts)
        found = engine.search(
            engine.request(source, SearchSettings(beam=1, max_length=2 * len(whole)), begin)
            for source, whole, begin in zip(nothing, written, begun, strict=True)
        )
        gone_on = engine.target.raw([best.tokens for best, *_ in found])
        return tuple(
            Sample(begin, text, on)
            for begin, text, on in zip(engine.target.raw(begun), texts, gone_on, strict=True)
        )


@dataclass(frozen=True)
class Evaluated:
    """What a run thinks of some texts."""

    run: str
    weights: str
    test: str
    texts: int
    tokens: int
    seconds: float
    nll: float
    """-log P of all of them, in nats."""
    length: int
    """Bytes."""

    @property
    def scores(self) -> dict[str, float]:
        """By name."""
        return {
            "perplexity": math.exp(min(self.nll / max(self.tokens, 1), 700.0)),
            "bits_per_byte": self.nll / math.log(2) / max(self.length, 1),
        }

    def table(self) -> str:
        """Plain text."""
        return "\n".join(
            [
                f"{self.run} ({self.weights}) on {self.test}",
                f"{self.texts:,} texts, {self.tokens:,} tokens; {self.seconds:.1f} s",
                "",
                *(f"{name:<14} {value:8.3f}" for name, value in self.scores.items()),
                "",
                "Perplexity is per token of this vocabulary; bits per byte compare across them.",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        signature = f"tokens:{self.tokens}|bytes:{self.length}|end:counted"
        return {
            "run": self.run,
            "weights": self.weights,
            "test": self.test,
            "sentences": self.texts,
            "seconds": round(self.seconds, 2),
            "scores": {
                name: {"value": value, "signature": signature}
                for name, value in self.scores.items()
            },
        }

    def to_json(self) -> str:
        """``to_dict`` as text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


def evaluate_run(
    run: str | Path | Run,
    source: Path | None = None,
    references: Sequence[Path] = (),
    search_changes: Sequence[str] = (),
    precision: str = "auto",
    *,
    shortlist: bool = False,
    ensemble: Sequence[Run] = (),
    mbr: int = 0,
    keep: bool = True,
) -> Evaluated:
    """Score texts (``source``: a file with one a line; the recipe's test set if left out).

    With ``keep``, the figures on the recipe's own test set are written to the run's scores.json.
    Errors: ``RunError`` for a run, ``DataError`` for files that cannot be used, ``DragomanError``
    for what only translations have: references, a search.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    of_translations = references or search_changes or shortlist or ensemble or mbr
    if of_translations or precision != "auto":
        raise DragomanError(
            f"{opened.folder} is a language model: it is measured on one file of texts, without "
            "references, alone, and without a search (--beam, --set, --shortlist, --precision)"
        )
    if source is not None:
        texts, test = list(read_lines(source)), source.name
    else:
        opened.require_text("test")
        texts = [pair.target for pair in plain_pairs(opened.recipe, "test")]
        test = "the held-out test set"
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise DragomanError(
            f"there is no text to measure {opened.folder} on; give a file with one a line: "
            f"dragoman evaluate {opened.folder} test.txt"
        )
    # Here, so that what is wrong above is said at once: it imports torch, which takes seconds.
    from dragoman.tasks.engine import Engine
    from dragoman.tasks.settings import EngineSettings

    engine = Engine.open(opened, EngineSettings(precision="fp32"))
    began, nll, tokens = time.perf_counter(), 0.0, 0
    waiting = iter(texts)
    while part := list(islice(waiting, _TOGETHER)):
        written = engine.target.tokens(part)
        for scored in engine.score(engine.source.values(part), written):
            nll -= sum(scored.token_log_probabilities)
            tokens += len(scored.token_log_probabilities)
    seconds = time.perf_counter() - began
    result = Evaluated(
        opened.folder.name, opened.weights_in_words, test, len(texts), tokens, seconds, nll,
        _bytes(texts),
    )  # fmt: skip
    if keep and source is None:
        record = json.dumps(result.to_dict(), indent=2, ensure_ascii=False)
        write_text(opened.folder / SCORES, record + "\n")
    return result


def _bytes(texts: Sequence[str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts)
