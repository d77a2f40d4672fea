"""The trained run that figures are made from, with a text and some held-out examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from dragoman.base.errors import DragomanError, RunError
from dragoman.demo.corpus import demo_corpus, pronoun_probes
from dragoman.engine.predictor import Output, Predictor
from dragoman.engine.session import begin_part, teacher_forced
from dragoman.engine.settings import EngineSettings
from dragoman.insight.head import Array
from dragoman.insight.needs import transformer_of
from dragoman.models.interface import Network
from dragoman.models.transformer.model import Transformer
from dragoman.nn.settings import InferencePrecision
from dragoman.pictures.records import AttentionRecord
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings

TrainSmall = Callable[[Sequence[str]], Network]
DEMO = Path("runs/demo")
"""The run folder of ``dragoman demo``, which figures use by default."""

_PAIRS = 40
_CANDIDATES = 16
"""A figure chooses its sentence from at most this many held-out sentences, so that the reader need
not wait."""


def _predictor(run: Run, looking: bool, precision: InferencePrecision) -> Predictor[object]:
    """Return the predictor of ``run``: the object that computes outputs and attention. ``looking``:
    True if only the attention is examined; then runs that no figure can show are accepted. Errors:
    ``RunError`` for a run that cannot be examined in this way."""
    looking = looking or run.task.writes in run.recipe.source.drawn_for
    if run.task.reads_files and not looking:
        raise RunError(
            f"{run.folder} reads {run.task.noun}; figures look into runs that read and write "
            "text, transcribe recordings or label pictures. To see where it looks: dragoman "
            f"look {run.folder} FILE"
        )
    if "target" not in run.task.texts and not looking:
        raise RunError(
            f"{run.folder} is a {run.task.called}; figures look into runs that write text or fill "
            f"it in. To use it: {run.use}"
        )
    predictor: Predictor[object] = run.predictor(EngineSettings(precision=precision))
    return predictor


@dataclass(frozen=True)
class Subject:
    """A run with its predictor, and the text that figures show."""

    predictor: Predictor[object]
    sentence: str
    """The text, or the path of the file, that the model reads; for a model that reads nothing, the
    text that counts as its output."""
    pairs: tuple[tuple[str, str], ...]
    """Pairs (source, reference) that were not in the training set; the source is "" for models that
    read nothing."""
    is_given: bool = False
    """True if the user gave this sentence."""
    train: TrainSmall | None = None
    """A function that trains a small model on the demo's sentences, given changes to the recipe
    ``demo`` such as "model.model_dim=64"; None if figures may not train one."""

    @classmethod
    def open(
        cls,
        run: Run,
        sentence: str | None = None,
        *,
        looking: bool = False,
        precision: InferencePrecision = "auto",
        train: TrainSmall | None = None,
    ) -> Subject:
        """Open a run's predictor and choose the sentence.

        ``sentence``: the text to show. By default, it is a sentence of the demo corpus for a run
        that was trained on this corpus; for any other run, it is the sample of the run's evaluation
        whose length is nearest to 60 characters. ``looking``: True to examine the attention of a
        run from which no figures can be made. ``precision``: the precision of the computation.
        ``train``: see the field ``train``.

        Errors: ``RunError``; ``DragomanError`` if there is no sentence to show.
        """
        is_given = bool(sentence)
        predictor = _predictor(run, looking, precision)
        reads = predictor.reads
        samples = [(s["source"], s["reference"]) for s in run.scores().get("samples", [])]
        if run.recipe.data.embedded == "demo":
            test = demo_corpus(train_pairs=0, dev_pairs=0, test_pairs=_PAIRS).test
            pairs = [(pair.source if reads else "", pair.target) for pair in test]
            probe = pronoun_probes()[0][0]
            sentence = sentence or (probe.source if reads else probe.reference)
        else:
            pairs = samples
            if sentence is None and samples:
                sentence = min((source for source, _ in samples), key=lambda s: abs(len(s) - 60))
        if not sentence and predictor.run.source.vocabulary is None:
            sentence = ""  # some figures show no file
        elif not sentence:
            raise DragomanError(
                f"{run.folder} has no sentences to show. Set one with --sentence TEXT"
            )
        return cls(predictor, sentence, tuple(pairs), is_given, train)

    @property
    def run(self) -> Run:
        return self.predictor.run

    @property
    def name(self) -> str:
        """The name of the run's folder. Several runs may have the same recipe, so the recipe's name
        is not used."""
        return self.run.folder.resolve().name

    @property
    def transformer(self) -> Transformer:
        """The model, for figures of a Transformer. Errors: ``DragomanError`` for another kind."""
        return transformer_of(self.predictor.plain)

    @cached_property
    def plain(self) -> Predictor[object]:
        """The run's predictor in fp32. Only in fp32 can heads be switched off and words be hidden.
        For a model that generates no text, such as a classifier, this is ``predictor`` itself."""
        if not self.run.task.writes:
            return self.predictor  # there is no other path
        return _predictor(self.run, looking=True, precision="fp32")

    @property
    def is_demo(self) -> bool:
        """True if the run was trained on the embedded demo corpus."""
        return self.run.recipe.data.embedded == "demo"

    @cached_property
    def output(self) -> Output:
        """The run's output for the sentence; for a model that reads nothing, the sentence itself.
        Errors: ``DragomanError`` if the run reads files and no file was given."""
        if not self.sentence:
            raise DragomanError(
                f"{self.run.folder} reads {self.run.task.noun}, and this figure needs one. Set "
                "--sentence FILE"
            )
        begin_part()
        return self.predictor.own_output(self.sentence)

    @cached_property
    def attention(self) -> AttentionRecord:
        """The attention weights of all layers and heads while the model reads the sentence and
        writes the output."""
        given = self.output.ids
        begin_part()
        return self.predictor.look(self.sentence, given)

    @cached_property
    def logits(self) -> Array:
        """The logits (T, V) of V tokens of the vocabulary at each of the T steps that write the
        output and its end symbol."""
        model = self.predictor.plain
        given = [self.run.target_text.bos, *self.output.ids]
        source = self.predictor.source_ids(self.sentence)
        begin_part()
        hidden = teacher_forced(model, [source], [given])
        with torch.inference_mode():
            return model.project(hidden).double().numpy()

    @cached_property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The finished hypotheses of two beam searches with a beam of 8, one without a length
        penalty and one with a strong penalty. The most likely hypothesis comes first, and none
        occurs twice. If none is finished, the only element is the best unfinished one."""
        engine = self.predictor.engine.over(self.predictor.plain)
        values = self.predictor.source_ids(self.sentence)
        begin_part()
        lists = engine.search(
            engine.request(values, SearchSettings(beam=8, n_best=8, length_penalty=alpha))
            for alpha in (0.0, 2.0)
        )
        known = {output.tokens: output for beam in lists for output in beam if output.finished}
        ended = known or {lists[0][0].tokens: lists[0][0]}
        return tuple(sorted(ended.values(), key=lambda hypothesis: -hypothesis.log_probability))

    @cached_property
    def candidates(self) -> tuple[Subject, ...]:
        """The subjects from which a figure may choose one: this subject, and the same run with
        other held-out sentences. If the user gave the sentence, only this subject."""
        if self.is_given:
            return (self,)
        texts = [source or reference for source, reference in self.pairs]
        others = [text for text in texts if text != self.sentence and text.strip()]
        return self, *(
            Subject(self.predictor, source, self.pairs) for source in others[:_CANDIDATES]
        )
