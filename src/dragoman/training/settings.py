"""How long a model is trained, how its updates are made, and which of its weights are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from dragoman.plural import plural
from dragoman.settings import Settings
from dragoman.training.schedule import ScheduleSettings
from dragoman.training.way import Way


class OptimizerSettings(Settings):
    """Adam's constants; the defaults are the paper's."""

    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Memory of the mean gradient (β₁)."""
    beta2: float = Field(default=0.98, ge=0, lt=1)
    """Memory of the mean squared gradient (β₂)."""
    epsilon: float = Field(default=1e-9, gt=0, le=1)
    """Added to the root of the latter (ε)."""
    weight_decay: float = Field(default=0.0, ge=0, le=10)
    """Decoupled decay (AdamW), times the learning rate; the paper has none."""


class LayerSettings(Settings):
    """Layers that learn at rates of their own, for a model that begins with another run (ULMFiT:
    Howard and Ruder, 2018)."""

    decay: float = Field(default=1.0, gt=0, le=1)
    """Each layer learns at so much of the rate of the one above it (the paper: 1 / 2.6 = 0.385);
    1: all alike."""
    thaw: int = Field(default=0, ge=0, le=1_000_000_000)
    """Updates after which one layer more begins to learn, from the top down (gradual unfreezing;
    the paper: an epoch). 0: all learn from the first update on."""


class GuidedSettings(Settings):
    """A head that is taught to align, beside translating (Garg et al. 2019)."""

    weight: float = Field(default=0.0, ge=0, le=1000)
    """Weight of the alignment loss beside that of the translation (λ; the paper has 0.05). 0: no
    head is taught. The head learns the links of a corpus (`links`), or else those of an HMM; for
    trees, links from each symbol to the word that comes next."""
    layer: int = Field(default=0, ge=0, le=1000)
    """Layer of the decoder, counted from 1; 0: the last but one, or the only one."""
    head: int = Field(default=1, ge=1, le=10_000)
    """Which head of its attention over the source, counted from 1."""

    def place(self, heads: Sequence[int]) -> tuple[int, int]:
        """Layer and head, counted from 0, in a model with so many ``heads`` over its source in each
        layer of its decoder. Errors: ``ValueError`` for a head that it has not."""
        if not heads:
            raise ValueError(
                "training.guided teaches a head to align, and this model has no head that looks at "
                "a source: set training.guided.weight = 0"
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
    """What a run followed until its plan was corrected; the program writes it."""

    until: int = Field(ge=1, le=1_000_000_000)
    """The last update of this plan."""
    updates: int = Field(ge=1, le=1_000_000_000)
    """How many updates the run was to take by this plan."""
    validate_every: int = Field(ge=0, le=1_000_000_000)
    """Updates between validations."""
    snapshot_every: int = Field(ge=0, le=1_000_000_000)
    """Updates between snapshots."""
    warmup: int = Field(ge=0, le=1_000_000_000)
    """Updates until the rate is highest."""


class TrainingSettings(Settings):
    """Everything about training, data and model aside."""

    updates: int = Field(default=100_000, ge=1, le=1_000_000_000)
    """Number of updates of the weights (steps)."""
    minutes: float = Field(default=0.0, ge=0, le=10_000_000)
    """The time that `updates` were counted for; after the first minute they are counted again,
    once. 0: none."""
    first_plan: FirstPlan | None = None
    """The plan that was followed before the number of updates was corrected."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Precision of matrix products; auto: bf16 if it is measured to be more than 10 % faster than
    fp32. Weights are always fp32."""
    kernels: Literal["auto", "plain"] = "auto"
    """auto: native kernels or torch, whichever is measured to be faster; plain: torch alone, the
    reference."""
    way: Way | None = None
    """What `auto` chose, so that a run repeated with its recipe gives the same numbers."""
    guided: GuidedSettings = GuidedSettings()
    """A head that is taught to align words."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of the target distribution that is spread evenly over all tokens (ε_ls)."""
    clip_norm: float = Field(default=0.0, ge=0, le=1_000_000)
    """Gradients (per target token) longer than this are shortened to it; 0: never, as the paper."""
    optimizer: OptimizerSettings = OptimizerSettings()
    """Adam."""
    schedule: ScheduleSettings = ScheduleSettings()
    """The learning rate over time."""
    layers: LayerSettings = LayerSettings()
    """The learning rate from layer to layer."""
    validate_every: int = Field(default=1000, ge=0, le=1_000_000_000)
    """Updates between validations; the last update is validated too. 0: never."""
    metric: str = Field(default="loss", min_length=1, max_length=100)
    """The score of the validation that decides which weights are best. Default: the task's own
    (BLEU for translation)."""
    patience: int = Field(default=0, ge=0, le=1_000_000)
    """Stop after this many validations without a better score. 0: never."""
    checkpoint_every: int = Field(default=0, ge=0, le=1_000_000_000)
    """Updates between checkpoints, from which a killed run goes on. 0: only by time."""
    checkpoint_minutes: float = Field(default=5.0, ge=0, le=100_000)
    """Minutes between checkpoints. 0: only by updates."""
    snapshot_every: int = Field(default=0, ge=0, le=1_000_000_000)
    """Updates between snapshots of the weights for averaging. 0: with every validation."""
    keep_snapshots: int = Field(default=10, ge=1, le=10_000)
    """How many of the last snapshots stay on disk."""
    average_last: int = Field(default=0, ge=0, le=10_000)
    """At the end, average this many of the last snapshots. 0: none."""
    final_weights: Literal["better", "best", "average", "last"] = "better"
    """What model.safetensors holds at the end: the best validated weights, the average, the last,
    or (better) the average if it scores higher than the best."""
    ema: float = Field(default=0.0, ge=0, lt=1)
    """Decay of an exponential moving average of the weights, which is then what is validated and
    kept as best. 0: none."""
    max_bad_updates: int = Field(default=10, ge=1, le=1_000_000)
    """Stop after this many updates in a row whose loss or gradient is not finite."""
    line_every_seconds: float = Field(default=10.0, gt=0, le=86_400)
    """Seconds between progress lines if no terminal is attached."""
    tensorboard: bool = False
    """Write TensorBoard event files beside metrics.jsonl."""

    def at(self, update: int) -> TrainingSettings:
        """These settings as they were in force after ``update`` updates."""
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
