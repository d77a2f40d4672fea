"""The trained run that figures are made from, with a text and some held-out examples; the
requirements of figures and experiments, and the messages for models that do not meet them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.base.errors import DragomanError, RunError
from dragoman.demo.corpus import demo_corpus, pronoun_probes
from dragoman.engine.predictor import Output, Predictor
from dragoman.engine.session import begin_part, teacher_forced
from dragoman.engine.settings import EngineSettings
from dragoman.models.catalogue.classifier import Classifier
from dragoman.models.encoding import Encoder
from dragoman.models.front_ends import BAND_WEIGHTS
from dragoman.models.interface import Network
from dragoman.models.transformer.model import Transformer
from dragoman.nn.settings import InferencePrecision
from dragoman.pictures.figure import Words
from dragoman.pictures.records import AttentionRecord
from dragoman.runs.run import Run
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.settings import SearchSettings

Array = NDArray[np.float64]
TrainSmall = Callable[[Sequence[str]], Network]
DEMO = Path("runs/demo")
"""The run folder of ``dragoman demo``, which figures use by default."""

_PAIRS = 40
_CANDIDATES = 16
"""A figure chooses its sentence from at most this many held-out sentences, so that the reader need
not wait."""
Need = Literal[
    "inside", "writes", "patches", "learned places", "spikes", "bands",
    "encoder", "decoder", "cross",
]  # fmt: skip
"""The requirements that a figure has of a model. inside: a Transformer, whose queries, keys,
values, positions and norms can be read. writes: a model that writes text token by token, so that
its choices can be shown. patches: a model that labels pictures by attention over their patches;
learned places: the same with learned positions. spikes: a model that transcribes recordings and was
trained with CTC. bands: a model of recordings whose first heads each read a slice of the frequency
bands. encoder, decoder, cross: a model with attention in this part."""
_LACKING: dict[Need, Words] = {
    "inside": Words(
        "This shows the inside of a Transformer, and this run is a {kind} model.",
        "Transformer의 내부를 보여 줍니다. 이 모델은 {kind} 모델입니다.",
    ),
    "writes": Words(
        "This {kind} model writes nothing, so it chooses no words one after another.",
        "이 {kind} 모델은 문장을 쓰지 않으므로 단어를 차례로 고르지 않습니다.",
    ),
    "patches": Words(
        "This figure looks at the patches of a picture, and this {kind} model reads no pictures.",
        "이 그림은 이미지의 패치를 보여 줍니다. 이 {kind} 모델은 이미지를 읽지 않습니다.",
    ),
    "learned places": Words(
        "This figure shows learned positions of patches, and this {kind} model has none.",
        "이 그림은 패치의 학습된 위치 임베딩을 보여 줍니다. 이 {kind} 모델에는 없습니다.",
    ),
    "spikes": Words(
        "This figure shows CTC over a recording, and this {kind} model has not learned it.",
        "이 그림은 녹음 위에 CTC를 보여 줍니다. 이 {kind} 모델은 CTC를 배우지 않았습니다.",
    ),
    "bands": Words(
        "This figure shows heads over slices of the bands of a recording, and this {kind} model "
        "has none: train one with --set source.band_heads=4.",
        "이 그림은 녹음의 주파수 대역을 나누어 보는 헤드를 보여 줍니다. 이 {kind} 모델에는 그런 "
        "헤드가 없습니다. --set source.band_heads=4로 학습하면 생깁니다.",
    ),
    "encoder": Words(
        "The encoder of this {kind} model has no attention to draw.",
        "이 {kind} 모델의 인코더에는 그릴 어텐션이 없습니다.",
    ),
    "decoder": Words(
        "The decoder of this {kind} model does not attend to what it has written.",
        "이 {kind} 모델의 디코더는 번역문의 앞부분을 보는 어텐션이 없습니다.",
    ),
    "cross": Words(
        "This {kind} model has no attention from target to source.",
        "이 {kind} 모델에는 번역문이 원문을 보는 어텐션이 없습니다.",
    ),
}
_OF_WORDS = Words(
    "This figure shows words that were read, and this model reads recordings.",
    "이 그림은 읽은 단어를 보여 줍니다. 이 모델은 녹음을 읽습니다.",
)


def lacking(needs: Collection[Need], model: Network) -> Words | None:
    """Return the reason why ``model`` does not meet ``needs``, or None if it meets them."""
    front = model.front_end
    in_line = front is not None and not front.across  # the rows follow time
    if needs and in_line and not {"spikes", "bands"} & {*needs}:
        return _OF_WORDS
    has: set[Need] = {attention.part for attention in model.attentions}
    if isinstance(model, Transformer):
        has.add("inside")
    if model.settings.writes:
        has.add("writes")
    if isinstance(model, Classifier) and isinstance(model.body, Encoder):
        has |= _of_patches(model.body)
    if in_line and model.ctc is not None:
        has.add("spikes")
    if front is not None and BAND_WEIGHTS in front.attention_names:
        has.add("bands")
    for need in needs:
        if need not in has:
            words, kind = _LACKING[need], model.settings.kind
            return Words(words.english.format(kind=kind), words.korean.format(kind=kind))
    return None


def _of_patches(model: Encoder) -> set[Need]:
    if model.front_end is None or not model.front_end.across:
        return set()
    return {"patches"} if model.source_positions.table is None else {"patches", "learned places"}


def has_learned_positions(model: Network) -> bool:
    """Return True if a Transformer has learned positions. Errors: as ``transformer_of``."""
    return transformer_of(model).settings.positions.kind == "learned"


def transformer_of(model: Network) -> Transformer:
    """Return ``model`` as a Transformer. Errors: ``DragomanError`` for a model of another kind."""
    if isinstance(model, Transformer):
        return model
    raise DragomanError(_LACKING["inside"].english.format(kind=model.settings.kind))


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
