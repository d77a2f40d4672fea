"""The trained run that figures look into, with a sentence and some pairs it never saw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from dragoman.data.demo_corpus import demo_corpus, pronoun_probes
from dragoman.errors import DragomanError
from dragoman.insight.head import Array
from dragoman.insight.needs import transformer_of
from dragoman.insight.parts import begin_part
from dragoman.models.transformer import Transformer
from dragoman.nn.layout import Sequences
from dragoman.pictures.records import AttentionRecord
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings
from dragoman.tasks.run import Run
from dragoman.tasks.settings import TranslatorSettings
from dragoman.tasks.translator import Translation, Translator

DEMO = Path("runs/demo")
"""Where ``dragoman demo`` leaves its run: what figures look into unless told otherwise."""

_PAIRS = 40
_CANDIDATES = 16
"""Held-out sentences that a figure may choose from: as many as do not keep a reader waiting."""


@dataclass(frozen=True)
class Subject:
    """A run, opened on the plain path, and the sentence to look at."""

    translator: Translator
    sentence: str
    pairs: tuple[tuple[str, str], ...]
    """Sources and references that training did not see."""
    is_given: bool = False
    """Whether somebody asked for this sentence."""

    @classmethod
    def open(cls, folder: Path, sentence: str | None = None) -> Subject:
        """``sentence``: given, or the demo's own, or the first sample of the run's evaluation.

        Errors: ``RunError``; ``DragomanError`` if there is no sentence to show.
        """
        is_given = bool(sentence)
        run = Run.open(folder)
        translator = Translator(run, TranslatorSettings(precision="fp32", whole=True))
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
                f"{run.recipe.name} has no sentences of its own to show yet; give one: "
                "--sentence TEXT"
            )
        return cls(translator, sentence, tuple(pairs), is_given)

    @property
    def run(self) -> Run:
        return self.translator.run

    @property
    def name(self) -> str:
        """The run's name, as its recipe gives it."""
        return self.run.recipe.name

    @property
    def transformer(self) -> Transformer:
        """Its model, for figures that open one. Errors: ``DragomanError`` for another kind."""
        return transformer_of(self.translator.plain)

    @property
    def is_demo(self) -> bool:
        """Whether it learned the embedded corpus."""
        return self.run.recipe.data.embedded == "demo"

    @cached_property
    def translation(self) -> Translation:
        """What the run makes of the sentence."""
        begin_part()
        return self.translator(self.sentence)

    @cached_property
    def attention(self) -> AttentionRecord:
        """Every weight of that translation."""
        given = self.translation.ids
        begin_part()
        return self.translator.look(self.sentence, given)

    @cached_property
    def logits(self) -> Array:
        """(T, V) of the translation's steps, that of the end symbol included."""
        model = self.translator.plain
        given = [self.run.target_text.bos, *self.translation.ids]
        source = self.translator.source_ids(self.sentence)
        begin_part()
        with torch.inference_mode():
            memory = model.encode(Sequences.of([torch.tensor(source)]))
            hidden = model.decode(Sequences.of([torch.tensor(given)]), memory)
            return model.project(hidden).double().numpy()

    @cached_property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """What beams of 8 find without a penalty and with a strong one, the likeliest first."""
        engine, values = self.translator.engine, self.translator.source_ids(self.sentence)
        begin_part()
        lists = engine.search(
            engine.request(values, SearchSettings(beam=8, n_best=8, length_penalty=alpha))
            for alpha in (0.0, 2.0)
        )
        known = {one.tokens: one for found in lists for one in found if one.finished}
        ended = known or {lists[0][0].tokens: lists[0][0]}
        return tuple(sorted(ended.values(), key=lambda one: -one.log_probability))

    @cached_property
    def candidates(self) -> tuple[Subject, ...]:
        """What a figure may choose its sentence from: this one alone if somebody asked for it."""
        if self.is_given:
            return (self,)
        others = [source for source, _ in self.pairs if source != self.sentence and source.strip()]
        return self, *(
            Subject(self.translator, source, self.pairs) for source in others[:_CANDIDATES]
        )
