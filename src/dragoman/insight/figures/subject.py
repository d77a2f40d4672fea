"""The trained run that figures look into, with a sentence and some pairs it never saw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dragoman.data.demo_corpus import demo_corpus, pronoun_probes
from dragoman.errors import DragomanError
from dragoman.pictures.records import AttentionRecord
from dragoman.tasks.run import Run
from dragoman.tasks.translator import Translation, Translator, TranslatorSettings

DEMO = Path("runs/demo")
"""Where ``dragoman demo`` leaves its run: what figures look into unless told otherwise."""

_PAIRS = 40


@dataclass(frozen=True)
class Subject:
    """A run, opened on the plain path, and the sentence to look at."""

    translator: Translator
    sentence: str
    pairs: tuple[tuple[str, str], ...]
    """Sources and references that training did not see."""

    @classmethod
    def open(cls, folder: Path, sentence: str | None = None) -> Subject:
        """``sentence``: given, or the demo's own, or the first sample of the run's evaluation.

        Errors: ``RunError``; ``DragomanError`` if there is no sentence to show.
        """
        run = Run.open(folder)
        translator = Translator(run, TranslatorSettings(precision="fp32"))
        samples = [(s["source"], s["reference"]) for s in run.scores().get("samples", [])]
        if run.recipe.data.embedded == "demo":
            test = demo_corpus().test[:_PAIRS]
            pairs = [(pair.source, pair.target) for pair in test]
            sentence = sentence or pronoun_probes()[0][0].source
        else:
            pairs = samples
            if sentence is None and samples:
                sentence = min((source for source, _ in samples), key=lambda s: abs(len(s) - 60))
        if not sentence:
            raise DragomanError(
                f"{folder} has no sentences of its own to show yet; give one: --sentence TEXT"
            )
        return cls(translator, sentence, tuple(pairs))

    @property
    def run(self) -> Run:
        return self.translator.run

    @property
    def name(self) -> str:
        """The run's name, as its recipe gives it."""
        return self.run.recipe.name

    @property
    def is_demo(self) -> bool:
        """Whether it learned the embedded corpus."""
        return self.run.recipe.data.embedded == "demo"

    @cached_property
    def translation(self) -> Translation:
        """What the run makes of the sentence."""
        return self.translator(self.sentence)

    @cached_property
    def attention(self) -> AttentionRecord:
        """Every weight of that translation."""
        return self.translator.look(self.sentence, self.translation.ids)
