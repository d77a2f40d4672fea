"""Settings of training: its length, its updates, their arithmetic, and the weights that are
kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from dragoman.base.settings import Settings
from dragoman.base.wording import plural
from dragoman.native.processor import cores, processor
from dragoman.sources.augment import NoiseSettings, PictureAugmentSettings, SpecAugmentSettings
from dragoman.training.schedule import ScheduleSettings

PLAIN = "plain"
"""This value in place of the name of an instruction set means that torch does the work."""

_ON_GPU = "GPU: "
"""The beginning of the name of a way's machine if a GPU does the work."""


class TrainingWay(Settings):
    """The kernels, precision and number of threads that were the fastest in a measurement. Written
    by dragoman, and chosen again on a different kind of machine."""

    # Each way gives the same results to within rounding and other last digits, so a run keeps the
    # one that it began with. Which one that is, is measured (``fastest_way.py``); ``arithmetic.py``
    # says which ways there are on this machine, and puts one in force.

    kernels: str = Field(min_length=1, max_length=100)
    """The instruction set of the native kernels. plain: only torch."""
    precision: Literal["fp32", "bf16"]
    """The precision of matrix products."""
    threads: int = Field(ge=1, le=4096)
    """The number of threads in each process."""
    machine: str = Field(min_length=1, max_length=1000)
    """The processor on which the speed was measured, the number of cores that were available, and
    the name of the GPU, if a GPU does the work."""

    @property
    def by_kernels(self) -> bool:
        return self.kernels != PLAIN

    @property
    def on_gpu(self) -> bool:
        return self.machine.startswith(_ON_GPU)

    @property
    def level(self) -> str | None:
        """The instruction set of the kernels, or None if torch does the work."""
        return self.kernels if self.by_kernels else None

    def summary(self) -> str:
        """Return a phrase for a person, such as "avx2 kernels in fp32, 2 threads"."""
        if self.on_gpu:
            gpu = self.machine.removeprefix(_ON_GPU).partition(";")[0]
            return f"{gpu} in {self.precision}"
        what = f"{self.kernels} kernels" if self.by_kernels else "plain torch"
        return f"{what} in {self.precision}, {plural(self.threads, 'thread')}"

    def on(self, threads: int) -> TrainingWay:
        return self.model_copy(update={"threads": threads})


def this_machine(gpu: str = "") -> str:
    """Return a text that describes what the speed of a way depends on: the processor, the number of
    cores, and ``gpu``, the name of the GPU that does the work ("" if none does)."""
    machine = f"{processor()}; cores: {cores()}"
    return f"{_ON_GPU}{gpu}; {machine}" if gpu else machine


class OptimizerSettings(Settings):
    """The rule by which gradients move the weights. The defaults are the paper's."""

    kind: Literal["adam", "muon"] = "adam"
    """muon: Muon moves the matrices of attention, feed-forward, recurrent and convolutional layers,
    and Adam moves all other parameters; adam: Adam moves all parameters, as in the paper."""
    momentum: float = Field(default=0.95, ge=0, lt=1)
    """The decay rate of Muon's mean gradient (μ)."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """The decay rate of the mean gradient (β₁)."""
    beta2: float = Field(default=0.98, ge=0, lt=1)
    """The decay rate of the mean squared gradient (β₂)."""
    epsilon: float = Field(default=1e-9, gt=0, le=1)
    """A constant added to the denominator (ε)."""
    weight_decay: float = Field(default=0.0, ge=0, le=10)
    """Decoupled weight decay (AdamW), multiplied by the learning rate. The paper has none."""


class LayerSettings(Settings):
    """Layer-wise learning rates, for models that start from another run (ULMFiT: Howard and Ruder,
    2018)."""

    decay: float = Field(default=1.0, gt=0, le=1)
    """The learning rate of each layer, relative to the layer above it (ULMFiT: 1 / 2.6 = 0.385). 1:
    the same rate for all layers."""
    thaw: int = Field(default=0, ge=0, le=1_000_000_000)
    """Gradual unfreezing: the number of updates after which one more layer, from the top down, is
    trained (ULMFiT: one epoch). 0: all layers are trained from the start."""


class GuidedSettings(Settings):
    """Guided alignment: one attention head is also trained to align words (Garg et al., 2019)."""

    weight: float = Field(default=0.0, ge=0, le=1000)
    """The weight of the alignment loss, which is added to the translation loss (λ; Garg et al.:
    0.05). 0: off. The head is trained on the links of a corpus (`links`) or, if there are none, on
    the links of an HMM; for trees, on links from each symbol to the next word."""
    layer: int = Field(default=0, ge=0, le=1000)
    """The decoder layer of the head, numbered from 1. 0: the last but one, or the only one."""
    head: int = Field(default=1, ge=1, le=10_000)
    """The cross-attention head in that layer, numbered from 1."""

    def place(self, heads: Sequence[int]) -> tuple[int, int]:
        """Return the layer and the head, counted from 0. ``heads``: for each decoder layer that
        attends to the source, the number of its heads. Errors: ``ValueError`` for a head that does
        not exist."""
        if not heads:
            raise ValueError(
                "training.guided needs a head that attends to a source, and this model has none. "
                "Set training.guided.weight = 0"
            )
        layer = self.layer or max(1, len(heads) - 1)
        if layer > len(heads):
            raise ValueError(
                f"training.guided.layer = {layer}: this model attends to its source in "
                f"{plural(len(heads), 'layer')}"
            )
        if self.head > heads[layer - 1]:
            raise ValueError(
                f"training.guided.head = {self.head}: layer {layer} of this model has "
                f"{plural(heads[layer - 1], 'head')}"
            )
        return layer - 1, self.head - 1


class FirstPlan(Settings):
    """The plan with which the run began. dragoman writes it when it corrects the number of updates
    after the first minute, so that a repeated run changes its plan after the same update."""

    until: int = Field(ge=1, le=1_000_000_000)
    """The last update of this plan."""
    updates: int = Field(ge=1, le=1_000_000_000)
    """The total number of updates in this plan."""
    validate_every: int = Field(ge=0, le=1_000_000_000)
    """The number of updates between validations."""
    snapshot_every: int = Field(ge=0, le=1_000_000_000)
    """The number of updates between snapshots."""
    warmup: int = Field(ge=0, le=1_000_000_000)
    """The number of updates until the learning rate reaches its peak."""


class TrainingSettings(Settings):
    """Settings of training: how long and in which way a model is trained."""

    updates: int = Field(default=100_000, ge=1, le=1_000_000_000)
    """The number of updates of the weights (steps)."""
    minutes: float = Field(default=0.0, ge=0, le=10_000_000)
    """The training time for which `updates` was calculated. After the first minute, `updates` is
    recalculated once. 0: no time was given."""
    first_plan: FirstPlan | None = None
    """The plan with which the run began, kept when the number of updates is corrected."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """The precision of matrix products. auto: bf16 if a measurement shows it to be more than 10 %
    faster than fp32. Weights are always fp32."""
    kernels: Literal["auto", "plain"] = "auto"
    """auto: native kernels or torch, whichever a measurement shows to be faster; plain: only torch,
    the reference."""
    way: TrainingWay | None = None
    """The choice that `auto` made. It is recorded so that a run repeated with the same recipe gives
    the same numbers."""
    guided: GuidedSettings = GuidedSettings()
    """Guided alignment: one attention head learns to align words."""
    ctc_weight: float = Field(default=0.0, ge=0, lt=1)
    """For transcription: the weight of CTC on the encoder, a second loss that teaches the order of
    the words (λ; usually 0.3). The weight of the decoder's loss is 1 - λ. On little data, a model
    without CTC hardly learns. 0: off."""
    spec_augment: SpecAugmentSettings = SpecAugmentSettings()
    """SpecAugment, and other random variations of recordings."""
    picture_augment: PictureAugmentSettings = PictureAugmentSettings()
    """Random variations of the pictures that a model reads."""
    noise: NoiseSettings = NoiseSettings()
    """Typing errors and other noise in source text."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """The share of the target distribution that is spread evenly over all tokens (ε_ls)."""
    consistency: float = Field(default=0.0, ge=0, lt=1)
    """R-Drop (Liang et al., 2021): each example is read twice with different dropout masks, and
    this share of the target distribution is the prediction of the other pass (λ; α of the paper is
    λ / (1 - λ)). An update takes two to three times as long. 0: off."""
    teaching: float = Field(default=0.5, ge=0, le=1)
    """The share of the target distribution that is the prediction of the teachers, if the recipe
    has any (`data.teachers`). 0: the teachers are not asked."""
    clip_norm: float = Field(default=0.0, ge=0, le=1_000_000)
    """The maximum norm of the gradient (per target token); larger gradients are scaled down to it.
    0: no clipping, as in the paper."""
    optimizer: OptimizerSettings = OptimizerSettings()
    """The optimizer, Adam or Muon, and its settings."""
    schedule: ScheduleSettings = ScheduleSettings()
    """The learning rate from update to update."""
    layers: LayerSettings = LayerSettings()
    """The learning rate from layer to layer."""
    validate_every: int = Field(default=1000, ge=0, le=1_000_000_000)
    """The number of updates between validations. A validation always follows the last update. 0: no
    validations."""
    metric: str = Field(default="loss", min_length=1, max_length=100)
    """The validation score that determines the best weights. A recipe that does not set it uses the
    main metric of the task (BLEU for translation, WER for recordings)."""
    patience: int = Field(default=0, ge=0, le=1_000_000)
    """Stop after this many validations without an improvement. 0: never."""
    checkpoint_every: int = Field(default=0, ge=0, le=1_000_000_000)
    """The number of updates between checkpoints, from which a killed run is resumed. 0: use
    checkpoint_minutes only."""
    checkpoint_minutes: float = Field(default=5.0, ge=0, le=100_000)
    """The number of minutes between checkpoints. 0: use checkpoint_every only."""
    snapshot_every: int = Field(default=0, ge=0, le=1_000_000_000)
    """The number of updates between snapshots, which are saved for averaging. 0: a snapshot is
    saved with every validation."""
    keep_snapshots: int = Field(default=10, ge=1, le=10_000)
    """The number of most recent snapshots to keep on disk."""
    film: int | None = Field(default=None, ge=0, le=1000)
    """The maximum number of snapshots of the film: thin snapshots (fp16) from update 0 to the last,
    evenly spread on a logarithmic scale, that show how the model learned. They are never averaged.
    0: no film. If it is not set, 20 for a model of fewer than 20 million parameters, else 0."""
    average_last: int = Field(default=0, ge=0, le=10_000)
    """The number of most recent snapshots to average at the end. 0: no averaging."""
    final_weights: Literal["better", "best", "average", "last"] = "better"
    """The weights that are saved as model.safetensors at the end. best: the weights with the best
    validation score; average: the average of snapshots; last: the weights after the last update;
    better: the average if it scores better than the best weights, else the best weights."""
    blend: bool = False
    """Blend the final weights with the weights of the run from which the tuning started: (1 - α) ·
    old + α · tuned (Wortsman et al., 2022). The α is the best one for the new dev set that raises
    the loss on the old dev set by at most 1.5 %."""
    ema: float = Field(default=0.0, ge=0, lt=1)
    """The decay of an exponential moving average of the weights. If the decay is not 0, the
    averaged weights are validated and saved. 0: off."""
    max_bad_updates: int = Field(default=10, ge=1, le=1_000_000)
    """Stop after this many consecutive updates with a loss or gradient that is not finite."""
    line_every_seconds: float = Field(default=10.0, gt=0, le=86_400)
    """The number of seconds between progress lines if the output is not a terminal."""
    tensorboard: bool = False
    """Also write TensorBoard event files, next to metrics.jsonl."""

    def at(self, update: int) -> TrainingSettings:
        """Return the settings that were in force after ``update`` updates."""
        first = self.first_plan
        if first is None or update > first.until:
            return self
        counts = first.model_dump(include={"updates", "validate_every", "snapshot_every"})
        schedule = self.schedule.model_copy(update={"warmup": first.warmup})
        return self.model_copy(update={**counts, "schedule": schedule})

    @model_validator(mode="after")
    def _fitting(self) -> TrainingSettings:
        if self.average_last > self.keep_snapshots:
            raise ValueError(
                f"average_last = {self.average_last} needs keep_snapshots to be at least as many "
                f"(it is {self.keep_snapshots})"
            )
        if self.final_weights == "average" and self.average_last == 0:
            raise ValueError('final_weights = "average" needs average_last')
        return self
