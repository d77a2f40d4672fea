"""A network prepared for inference: its weights are laid out once, in int8, bf16 or fp32.

It computes the same as the network, to within rounding: every layer by oneDNN's products
(``nn/linear.py``), and the best tokens without sorting all (``best_of``); or by kernels in int8
(``native/int8.py``), with torch in between. It is a fast path for networks that are ``Advancing``:
here (``paths``) for LSTMs and convolutional models, and in ``transformer/fast_paths.py`` for
Transformers.

Shapes: N rows, V tokens, k candidates.
"""

from __future__ import annotations

import copy
import math
from functools import cache, partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.models.convolutional import Convolutional
from dragoman.models.fast_path import TRIAL_TOKENS, FastPath, on_plain_torch, trial
from dragoman.models.interface import Advancing, DecodeState, Memory, Model
from dragoman.models.recurrent import Recurrent
from dragoman.models.searched import Constrain
from dragoman.models.settings import ConvolutionalSettings, RecurrentSettings
from dragoman.models.shortlist import Shortlist
from dragoman.native import int8 as native
from dragoman.native import library, loader
from dragoman.native.measured import measures
from dragoman.nn.layout import Sequences
from dragoman.nn.linear import InferenceLinear, prepare


class PreparedNetwork(Model):
    """``network`` in ``dtype``. Its matrices are laid out now, so make it again after weights have
    changed. ``network`` itself computes teacher forcing (``decode``, ``project``).

    Threads may share a prepared network, if each state stays within one thread.
    """

    def __init__(self, network: Advancing, dtype: torch.dtype) -> None:
        """``dtype``: torch.int8 means the kernels, for which ``why_not_int8`` must have returned
        None."""
        self._plain = network
        self._network: Advancing = twin(network)
        with torch.no_grad():
            prepare(self._network, dtype)
            weight, bias = network.output_layer.weight, network.output_bias
            self._vocabulary = len(weight)
            if dtype == torch.int8:
                self._output: InferenceLinear | native.Int8Map = native.Int8Map(weight, bias)
                self._most = min(native.MAX_BEST, len(weight))
            else:
                self._output = _in_columns(weight, bias, dtype)
                self._most = min(COLUMNS, len(weight))

    @torch.no_grad()
    def encode(self, source: Sequences) -> Memory:
        return self._network.encode(source)

    def decode(self, target_in: Sequences, memory: Memory) -> Tensor:
        """Compute teacher forcing with the plain network."""
        return self._plain.decode(target_in, _to_type_of(memory, self._plain))

    def project(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """Compute logits of given hidden rows with the plain network."""
        return self._plain.project(hidden, ids)

    @torch.no_grad()
    def start(self, memory: Memory) -> DecodeState:
        return self._network.start(memory)

    def advance(self, tokens: Tensor, state: DecodeState) -> Tensor:
        """See ``Advancing.advance``: this takes a step without computing logits."""
        return self._network.advance(tokens, state)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        return self._output.any_rows(self.advance(tokens, state))[:, : self._vocabulary]

    @torch.no_grad()
    def best(
        self, tokens: Tensor, state: DecodeState, k: int, constrain: Constrain | None = None
    ) -> tuple[Tensor, Tensor]:
        if constrain is not None or k > self._most:
            return super().best(tokens, state, k, constrain)
        hidden = self.advance(tokens, state)
        if isinstance(self._output, native.Int8Map):
            return self._output.best(hidden, k)
        return best_of(self._output.any_rows(hidden), k)


def _in_columns(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> InferenceLinear:
    """Make the output layer with a multiple of ``COLUMNS`` outputs. Those beyond V belong to no
    token."""
    spare = -len(weight) % COLUMNS
    whole = torch.zeros(len(weight) + spare)
    if bias is not None:
        whole[: len(weight)] = bias
    whole[len(weight) :] = NEVER
    return InferenceLinear(F.pad(weight, (0, 0, 0, spare)), whole, dtype)


def twin(module: Any) -> Any:
    """Return a copy of a module that has the same parameters, but may compute in another way."""
    made = copy.copy(module)
    assert isinstance(made, nn.Module)
    children = module._modules.items()
    made._modules = {name: None if child is None else twin(child) for name, child in children}
    return made


def _to_type_of(memory: Memory, network: nn.Module) -> Memory:
    """Convert a memory to the type of the plain network's weights."""
    dtype = next(network.parameters()).dtype
    return Memory(memory.rows.to(dtype), memory.layout, memory.key_mask, memory.tokens)


COLUMNS = 512
"""The number of columns of the grid that holds logits, and the greatest k. torch sorts 5 of 512
numbers twice as fast as 5 of 256."""

NEVER = -1e30
"""The logit of an output that belongs to no token. It is finite, so that it cannot lead to NaN."""


def best_of(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best of logits (N, V), best first, without sorting all: log-probabilities (N, k)
    fp32 and ids (N, k). V must be a multiple of ``COLUMNS``.

    The k greatest logits of a row are in the k columns with the greatest maxima; only these columns
    are sorted. Log-probabilities need only the sum of the exponentials; computed as powers of two,
    it takes torch a third of the time of ``log_softmax``. ``logits`` are overwritten: a second
    block of memory of their size costs more than the sums.
    """
    logits = logits.float()
    grid = logits.unflatten(1, (-1, COLUMNS))  # (N, V / C, C)
    columns = grid.amax(1).topk(k).indices  # (N, k)
    chosen = grid.gather(2, columns[:, None].expand(-1, grid.shape[1], -1))  # (N, V / C, k)
    values, places = chosen.flatten(1).topk(k)
    ids = places // k * COLUMNS + columns.gather(1, places % k)
    greatest, to_twos = values[:, :1], math.log2(math.e)
    powers = torch.add(greatest * -to_twos, logits, alpha=to_twos, out=logits).exp2_()
    return values - greatest - powers.sum(1, keepdim=True).log(), ids


ROWS = 256
"""The number of rows of a batch: torch takes a step of this many as fast as one of 64
(docs/experiments.md)."""


def _make(
    precision: Literal["int8", "bf16", "fp32"], network: Advancing, _: Shortlist | None
) -> Model:
    dtypes = {"int8": torch.int8, "bf16": torch.bfloat16, "fp32": torch.float32}
    return PreparedNetwork(network, dtypes[precision])


def _small() -> Recurrent:
    settings = RecurrentSettings(model_dim=256, encoder_layers=1, decoder_layers=1)
    return Recurrent(settings, TRIAL_TOKENS, TRIAL_TOKENS)


def why_not_int8(level: str | None = None) -> str | None:
    """Return the reason why the int8 kernels of ``level`` (None: the one in use) run no network
    here; None if they can."""
    if not library.available():
        return library.status().reason
    with loader.using(level):
        if not native.is_supported():
            return "the native library has no int8 products for this processor"
        agree = _agrees(loader.level_in_use())
    return None if agree else "its kernels do not agree with plain torch on this machine"


@cache
def _agrees(level: str | None) -> bool:
    """Return True if the kernels of the level in use and plain torch compute the same logits for
    tiny models. This is tested once per process for each level."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        recurrent = RecurrentSettings(model_dim=34, attends="first", attention="additive")
        convolutional = ConvolutionalSettings(model_dim=34, channels=40)
        source = Sequences.of([torch.arange(3, 10), torch.arange(20, 22)])
        tokens = torch.tensor([[1, 5, 9], [1, 60, 3]])
        for plain in (Recurrent(recurrent, 70, 70), Convolutional(convolutional, 70, 70)):
            fast = PreparedNetwork(plain.eval(), torch.int8)
            expected = plain.step(tokens, plain.start(plain.encode(source)))
            logits = fast.step(tokens, fast.start(fast.encode(source)))
            values, ids = fast.best(tokens, fast.start(fast.encode(source)), 3)
            scores = logits.log_softmax(dim=-1).gather(1, ids)
            if not (logits - expected).norm() < 0.05 * expected.norm():
                return False
            if not torch.allclose(values, scores, atol=1e-3):
                return False
    return True


def _by_kernels(level: str | None) -> FastPath:
    make = partial(_make, "int8")

    return FastPath(
        "int8",
        make=make,
        why_not=lambda _: why_not_int8(level),
        trial=partial(trial, _small, make),
        line=lambda: f"int8, native kernels for {level}, between them torch",
        units=lambda: f"int8 by kernels for {level}",
        level=level,
        rows=ROWS,
        trial_name=f"prepared int8 {level}",
    )


def paths() -> tuple[FastPath, ...]:
    """Return the paths: int8 by the kernels of each available instruction set (only of the best one
    if nothing is measured), bf16 and fp32."""
    levels = loader.decoding_levels() or (None,)
    by_kernels = [_by_kernels(level) for level in (levels if measures() else levels[:1])]
    return (*by_kernels, *on_plain_torch(_make, _small, "prepared", ROWS))
