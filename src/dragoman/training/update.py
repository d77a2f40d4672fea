"""One update of the weights: the gradients of the micro-batches are summed over the processes and
clipped, and the optimizer takes one step.

The module holds everything that an update changes: the flat parameters, their moments and the
moving average. The trainer decides when to update.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dragoman.base.errors import RunError, TrainingError
from dragoman.base.measure import perplexity
from dragoman.native import loader
from dragoman.native.pointers import add_directly
from dragoman.nn.linear import refresh, use_precision
from dragoman.training.arithmetic import computing, note, way_of_run
from dragoman.training.checkpoint import Checkpoint, TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.gradients import Gradients, MakeBatch, Splits
from dragoman.training.losses.objectives import Objective
from dragoman.training.muon import Muon
from dragoman.training.optimizer import Adam, FlatParameters, LayerRates, within
from dragoman.training.records import UpdateRecord
from dragoman.training.schedule import Schedule
from dragoman.training.settings import TrainingSettings, TrainingWay
from dragoman.training.weights import MovingAverage

Batches = Callable[[int, int, int], Sequence[MakeBatch]]
"""A function from the number of updates done, the number of the process and the number of all
processes to the micro-batches of that process in the next update. The function is pure: the
micro-batches of all processes together have the same examples for any number of processes."""


class Updater:
    """The model's weights, and everything that is needed to update them."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        settings: TrainingSettings,
        schedule: Schedule,
        ranks: Ranks,
    ) -> None:
        """Prepare the updates of ``model``, which is moved to the ranks' device, and its parameters
        into flat memory. ``objective``: the function whose loss is minimised; ``schedule``: the
        learning rate of each update, counted from 1."""
        self.model = model.to(ranks.device)
        self.objective = objective
        self.settings = settings
        self.schedule = schedule
        self.ranks = ranks
        self.flat = FlatParameters(model.named_parameters())
        self.adam = Adam(self.flat, settings.optimizer)
        self.muon: Muon | None = None
        if settings.optimizer.kind == "muon":
            self.muon = Muon(model, self.flat, self.adam, ranks)
        self.layers = LayerRates(model, self.flat, settings.layers)
        self.average = MovingAverage(self.flat.values, settings.ema) if settings.ema else None
        self.way: TrainingWay | None = None
        """The way in which the model computes; ``repeat_choices`` chooses it."""
        self._masks_by_kernels = False

    def update(self, state: TrainingState, batches: Batches, gradients: Gradients) -> UpdateRecord:
        """Make the update that follows ``state``, and change ``state`` accordingly. If the loss or
        the gradient is not finite, the weights are not changed: the update is skipped."""
        assert self.way is not None, "repeat_choices comes first"
        began = time.perf_counter()
        number = state.update + 1
        with computing(self.way):
            share = batches(state.update, self.ranks.rank, self.ranks.size)
            sums = gradients.accumulate(state.update, share)
            self.ranks.all_reduce(self.flat.gradients)
            self.ranks.all_reduce(sums)
            parts = self.layers.at(number)
            for span, part in parts:
                if not part:  # frozen: what it would have moved by says nothing
                    self.flat.gradients[span].zero_()
            length = self.flat.gradients.norm().double()
            loss, nll, tokens, norm = torch.cat([sums, length[None]]).tolist()
            if tokens == 0:
                raise TrainingError(f"update {number} has no tokens: the data are empty.")
            loss, nll, norm = loss / tokens, nll / tokens, norm / tokens
            good = math.isfinite(loss) and math.isfinite(norm)
            rate = self.schedule(number)
            if good:
                clip = self.settings.clip_norm
                shorten = clip / norm if clip and norm > clip else 1.0
                threads = self.way.threads if self.way.by_kernels else 0
                divisor = tokens / shorten
                if self.muon is not None:
                    self.muon.step(rate, divisor, self.way.precision, threads, parts)
                    parts = within(parts, self.muon.left)
                self.adam.step(rate, divisor, threads=threads, shares=parts)
                refresh(self.model)
                state.steps += 1
                if self.average is not None:
                    self.average.follow(self.flat.values, state.steps)
        seconds = time.perf_counter() - began
        state.update = number
        state.elapsed += seconds
        state.bad_in_a_row = 0 if good else state.bad_in_a_row + 1
        state.bad_in_all += not good
        return UpdateRecord(
            update=number,
            loss=loss if good else None,
            nll=nll if good else None,
            perplexity=perplexity(nll) if good else None,
            tokens=int(tokens),
            seconds=seconds,
            tokens_per_second=tokens / seconds,
            learning_rate=rate,
            gradient_norm=norm if good else None,
            elapsed=state.elapsed,
            skipped=not good,
        )

    def gradients(self, seed: int, splits: Splits, warn: Callable[[str], None]) -> Gradients:
        """Return the object that computes the gradients for ``update``. ``seed``: the seed of
        dropout. ``warn``: a function that is called with warnings."""
        return Gradients(
            self.model,
            self.objective,
            self.flat.gradients,
            seed=seed,
            splits=splits,
            warn=warn,
            masks_by_kernels=self._masks_by_kernels,
        )

    # ---- what is saved, and gone on from

    def weights(self) -> dict[str, Tensor]:
        """Return the current weights by name. They share memory with the model."""
        return self.flat.views(self.flat.values)

    def moments(self) -> dict[str, dict[str, Tensor]]:
        """Return the numbers that a checkpoint contains besides the weights, by name."""
        return {name: self.flat.views(buffer) for name, buffer in self._moments().items()}

    def restore(self, checkpoint: Checkpoint | None, state: TrainingState) -> None:
        """Load ``checkpoint``, if there is one. Then give the weights and moments of the first
        process to all processes.

        Errors: ``RunError`` if the moments are those of another optimizer.
        """
        kind = self.settings.optimizer.kind
        if checkpoint is None:
            state.optimizer = kind
        else:
            if state.optimizer != kind:
                raise RunError(
                    f"the checkpoint holds the moments of {state.optimizer}, and "
                    f'training.optimizer.kind is "{kind}": set it to "{state.optimizer}" to go on.'
                )
            self.flat.fill(self.flat.values, checkpoint.weights)
            for name, buffer in self._moments().items():
                if name in checkpoint.moments:
                    self.flat.fill(buffer, checkpoint.moments[name])
        for buffer in (self.flat.values, *self._moments().values()):
            self.ranks.broadcast(buffer)
        self.adam.steps = state.steps

    def repeat_choices(self, state: TrainingState) -> str | None:
        """Compute in the way that ``state`` records. If it records none, compute in the way of the
        settings.

        Returns a warning if the results of a resumed run will not be the same to the last bit as
        if it had never stopped.
        """
        way, warning = way_of_run(self.model, self.settings, state, self.ranks)
        note(way, state, self.ranks)
        self.compute_by(way)
        self._masks_by_kernels = state.masks == "kernels"
        return warning

    def compute_by(self, way: TrainingWay) -> None:
        """From now on, let the model compute in the way ``way`` inside ``computing(way)``."""
        self.way, self._masks_by_kernels = way, way.by_kernels
        with loader.using(way.level):
            use_precision(self.model, way.precision, by_kernels=way.by_kernels)
        add_directly(self.model.parameters(), on=way.by_kernels)

    def _moments(self) -> dict[str, Tensor]:
        moments = {"first": self.adam.first, "second": self.adam.second}
        return moments if self.average is None else moments | {"ema": self.average.values}
