"""One update: the micro-batches' gradients, their exchange, clipping, Adam's step, the record.

Everything that an update changes lives here: the flat parameters, Adam's moments, the moving
average. The trainer decides when.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from dragoman.errors import TrainingError
from dragoman.native import library
from dragoman.native.gradients import add_directly
from dragoman.nn.linear import kernels_fit, refresh, use_precision
from dragoman.training.averaging import MovingAverage
from dragoman.training.checkpoint import Checkpoint, TrainingState
from dragoman.training.distributed import Ranks
from dragoman.training.loss import CrossEntropy
from dragoman.training.optimizer import Adam, FlatParameters
from dragoman.training.precision import choose_precision
from dragoman.training.records import UpdateRecord
from dragoman.training.schedule import Schedule
from dragoman.training.settings import TrainingSettings
from dragoman.training.update_step import EncoderDecoder, Gradients, MakeBatch, UpdateStep

Batches = Callable[[int, int, int], Sequence[MakeBatch]]
"""Updates done, process, number of processes -> what that process does of the next update. A pure
function; the shares of all processes together are the same examples for any number of them."""


class Updater:
    """The model's weights and how they change."""

    def __init__(
        self,
        model: EncoderDecoder,
        settings: TrainingSettings,
        schedule: Schedule,
        ranks: Ranks,
        cross_entropy: CrossEntropy | None = None,
    ) -> None:
        """``model`` is moved to the ranks' device, and its parameters into flat memory."""
        self.settings = settings
        self.schedule = schedule
        self.ranks = ranks
        self.step = UpdateStep(model, settings.label_smoothing, cross_entropy)
        self._asks_autograd = cross_entropy is None
        """The loss in pieces asks autograd for gradients, so kernels must not keep them from it."""
        self._by_kernels = False
        self.step.to(ranks.device)
        self.flat = FlatParameters(model.named_parameters())
        self.adam = Adam(self.flat, settings.optimizer)
        self.average = MovingAverage(self.flat.values, settings.ema) if settings.ema else None

    def weights(self) -> dict[str, Tensor]:
        """The present weights by name; they share memory with the model."""
        return self.flat.views(self.flat.values)

    def moments(self) -> dict[str, dict[str, Tensor]]:
        """What a checkpoint holds beside the weights, by name."""
        return {name: self.flat.views(buffer) for name, buffer in self._moments().items()}

    def restore(self, checkpoint: Checkpoint | None, state: TrainingState) -> None:
        """Take over a checkpoint, where this process has one; then all take over the first's."""
        if checkpoint is not None:
            self.flat.fill(self.flat.values, checkpoint.weights)
            for name, buffer in self._moments().items():
                if name in checkpoint.moments:
                    self.flat.fill(buffer, checkpoint.moments[name])
        for buffer in (self.flat.values, *self._moments().values()):
            self.ranks.spread(buffer)
        self.adam.steps = state.steps

    def repeat_choices(self, state: TrainingState) -> str | None:
        """Choose precision and threads, or choose again what ``state`` says was chosen.

        Returns a warning where the results of a resumed run will not be the same to the last bit.
        """
        if self.settings.precision != "auto" or not state.precision:
            state.precision = choose_precision(self.settings.precision, self.ranks.device)
        warning = self._choose_kernels(state)
        cores, threads = os.cpu_count() or 1, torch.get_num_threads()
        if state.threads and (state.threads, state.processes) != (threads, self.ranks.size):
            if (state.cores, state.processes) == (cores, self.ranks.size):
                torch.set_num_threads(state.threads)
            else:
                warning = (
                    f"this run was begun on {state.processes} x {state.threads} threads and goes "
                    f"on with {self.ranks.size} x {threads}: its weights will differ in the last "
                    "digits from what they would have been"
                )
        state.threads, state.cores = torch.get_num_threads(), cores
        state.processes = self.ranks.size
        return warning

    def _choose_kernels(self, state: TrainingState) -> str | None:
        """Native kernels where they fit, unless the run was begun without them."""
        precision = state.precision
        assert precision
        wanted = self.settings.kernels == "auto" and state.kernels != "plain"
        on_cpu = self.ranks.device.type == "cpu"
        fit = wanted and on_cpu and kernels_fit(self.step, precision)
        level = (library.status().level or "plain") if fit else "plain"
        use_precision(self.step, precision, by_kernels=fit)
        self._by_kernels = fit
        add_directly(self.step.parameters(), on=fit and not self._asks_autograd)
        begun, state.kernels = state.kernels, level
        if begun and begun != level:
            return (
                f"this run was begun with {begun} kernels and goes on with {level} ones: its "
                "weights will differ in the last digits from what they would have been"
            )
        return None

    def update(self, state: TrainingState, batches: Batches, gradients: Gradients) -> UpdateRecord:
        """Make the update that follows ``state``; skip it if loss or gradient are not finite."""
        with library.own_threads() if self._by_kernels else nullcontext():
            return self._update(state, batches, gradients)

    def _update(self, state: TrainingState, batches: Batches, gradients: Gradients) -> UpdateRecord:
        began = time.perf_counter()
        number = state.update + 1
        share = batches(state.update, self.ranks.rank, self.ranks.size)
        sums = gradients.accumulate(state.update, share)
        self.ranks.add_up(self.flat.gradients)
        self.ranks.add_up(sums)
        length = self.flat.gradients.norm().double()
        loss, nll, tokens, norm = torch.cat([sums, length[None]]).tolist()
        if tokens == 0:
            raise TrainingError(f"update {number} has no target tokens: the data are empty.")
        loss, nll, norm = loss / tokens, nll / tokens, norm / tokens
        good = math.isfinite(loss) and math.isfinite(norm)
        rate = self.schedule(number)
        if good:
            threads = state.threads if self._by_kernels else 0
            self._change_weights(rate, norm, tokens, state.steps + 1, threads)
            state.steps += 1
        seconds = time.perf_counter() - began
        state.update = number
        state.elapsed += seconds
        state.bad_in_a_row = 0 if good else state.bad_in_a_row + 1
        state.bad_in_all += not good
        return UpdateRecord(
            update=number,
            loss=loss if good else None,
            nll=nll if good else None,
            perplexity=math.exp(min(nll, 700.0)) if good else None,
            tokens=int(tokens),
            seconds=seconds,
            tokens_per_second=tokens / seconds,
            learning_rate=rate,
            gradient_norm=norm if good else None,
            elapsed=state.elapsed,
            skipped=not good,
        )

    def _change_weights(
        self, rate: float, norm: float, tokens: float, step: int, threads: int
    ) -> None:
        clip = self.settings.clip_norm
        shorten = clip / norm if clip and norm > clip else 1.0
        self.adam.step(rate, tokens / shorten, threads=threads)
        refresh(self.step)
        if self.average is not None:
            self.average.follow(self.flat.values, step)

    def _moments(self) -> dict[str, Tensor]:
        moments = {"first": self.adam.first, "second": self.adam.second}
        return moments if self.average is None else moments | {"ema": self.average.values}
