"""Search with CTC and a decoder together (Watanabe et al., 2017): each continuation of each
hypothesis is scored by both,

    (1 - λ) · log P(c | g, x) of the decoder + λ · (log ψ(gc) - log ψ(g)) of CTC,

where ψ(g) is the probability, by CTC, that the spoken text begins with g (Graves, 2008). The sum
over a whole text is (1 - λ) log P(y | x) of the decoder + λ log P(y | x) of CTC. So a text that the
decoder invents, repeats or leaves out gets a low score while the search can still drop it.

The decoder may be any model that generates, on any path: only its steps are used.

Shapes: B recordings, N prefixes, T rows of a recording, V outputs, after which comes the blank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from dragoman.models.interface import DecodeState, Generates, Memory
from dragoman.nn.layout import Sequences

IMPOSSIBLE = -1e3
"""The value used instead of log 0, so that a forced token has a score."""
_LEAST = -1e4
"""The least log p_t. With it, a sum over all rows stays exact to a billionth."""
_BEHIND = 2 * _LEAST
"""The value used instead of log p_t of a token in rows after the end of a recording."""
_NOTHING = -torch.inf


class CtcPrefixes:
    """ψ of N prefixes of B recordings at once, in fp64 (Watanabe et al., 2017, algorithm 2).

    The prefixes are changed in place.

    CTC gives each row of the encoder a distribution over the outputs and the blank. For a prefix g,
    only

        n_t(g), b_t(g) = P(the first t rows say g, and row t is no blank / a blank)

    have to be kept. With φ_t = b_t(g) + n_t(g), or b_t(g) alone where c repeats the last token of g
    (a blank must stand between two equal ones), the prefix extended by token c has

        n_t(gc) = (n_{t-1}(gc) + φ_{t-1}) p_t(c)
        b_t(gc) = (b_{t-1}(gc) + n_{t-1}(gc)) p_t(blank)
        ψ(gc)   = Σ_t φ_{t-1} p_t(c),                   ψ(g, end) = n_T(g) + b_T(g)

    So ψ of all tokens is one matrix product, and ψ(g) = ψ(g, end) + Σ_c ψ(gc): the continuations of
    a prefix have a distribution. Both recurrences are cumulative sums of terms divided by the
    product of all p before them, which logarithms keep in range. Rows after the end of a recording
    predict the blank with certainty, which changes none of these.
    """

    def __init__(self, eos: int, device: torch.device) -> None:
        """``eos``: the output that ends a text; CTC itself never predicts it."""
        self._eos = eos
        self._known: list[Tensor] = []  # (T, V + 1) log P of each recording
        self._recordings = torch.zeros(0, dtype=torch.int64, device=device)
        self._ends = torch.zeros(0, 1, 2, dtype=torch.float64, device=device)  # (N, T + 1, 2)
        self._last = torch.zeros(0, dtype=torch.int64, device=device)  # (N,); -1: none
        self._whole = torch.zeros(0, dtype=torch.float64, device=device)  # (N,) ψ

    def add(self, known: Sequence[Tensor]) -> None:
        """Add recordings after the others, each with the empty prefix. ``known``: for each
        recording, log P of each output and of the blank in each row, (T, V + 1)."""
        first = len(self._known)
        self._known += [rows.double().clamp_min(_LEAST) for rows in known]
        count, device = len(known), self._last.device
        numbers = torch.arange(first, first + count, device=device)
        self._recordings = torch.cat([self._recordings, numbers])
        rows = self._longest
        ends = torch.full((count, rows + 1, 2), _NOTHING, dtype=torch.float64, device=device)
        ends[:, 0, 1] = 0
        ends[:, 1:, 1] = self._rows_of(numbers, None).cumsum(dim=1)
        self._ends = torch.cat([self._reaching(rows), ends])
        self._last = torch.cat([self._last, torch.full_like(numbers, -1)])
        self._whole = torch.cat([self._whole, torch.zeros_like(ends[:, 0, 0])])

    def select(self, prefixes: Tensor) -> None:
        """Keep ``prefixes`` (M,), in that order. Recordings without prefixes are dropped."""
        kept, self._recordings = self._recordings[prefixes].unique(return_inverse=True)
        self._known = [self._known[number] for number in kept.tolist()]
        self._ends = self._ends[prefixes][:, : self._longest + 1]
        self._last, self._whole = self._last[prefixes], self._whole[prefixes]

    def extend(self, tokens: Tensor, which: Tensor) -> None:
        """Extend the prefixes for which ``which`` (N,) is True by their tokens (N,)."""
        if not which.any():
            return
        kept = self._whole, self._ends, self._last
        said, blank = self._rows_of(self._recordings, tokens), self._rows_of(self._recordings, None)
        before = self._before(tokens)  # (N, T) φ_{t-1}
        is_behind = said == _BEHIND
        self._whole = (before + said).masked_fill(is_behind, _NOTHING).logsumexp(dim=1)
        nothing = torch.full_like(self._whole, _NOTHING)[:, None]
        word = _recurrence(before, said).masked_fill(is_behind, _NOTHING)
        word = torch.cat([nothing, word], dim=1)  # n_0 to n_T
        pause = torch.cat([nothing, _recurrence(word[:, :-1], blank)], dim=1)
        self._ends = torch.stack([word, pause], dim=2)
        self._last = tokens.clone()  # a search goes on to write where they stand
        if not which.all():
            self._whole = self._whole.where(which, kept[0])
            self._ends = self._ends.where(which[:, None, None], kept[1])
            self._last = self._last.where(which, kept[2])

    def following(self) -> Tensor:
        """Return log ψ(gc) - log ψ(g) of each token, and of the end, for each prefix: (N, V)."""
        both = self._ends.logsumexp(dim=2)  # (N, T + 1)
        greatest = both[:, :-1].amax(dim=1, keepdim=True).clamp_min(_LEAST)
        shares = (both[:, :-1] - greatest).exp()  # (N, T)
        scores = torch.cat(
            [
                share[:, : len(known)] @ known[:, :-1].exp()
                for share, known in zip(
                    shares.split(self._recordings.bincount().tolist()), self._known, strict=True
                )
            ]
        ).log()
        scores += greatest
        repeats = (self._last >= 0).nonzero()[:, 0]
        if len(repeats):
            last = self._last[repeats]
            said = self._rows_of(self._recordings[repeats], last)
            scores[repeats, last] = (self._ends[repeats, :-1, 1] + said).logsumexp(dim=1)
        scores[:, self._eos] = both[:, -1]
        # Of a prefix that has no room, CTC does not say what follows.
        known = self._whole[:, None] > _NOTHING
        return torch.where(known, scores - self._whole[:, None], 0).clamp(IMPOSSIBLE, 0)

    @property
    def _longest(self) -> int:
        return max((len(rows) for rows in self._known), default=0)

    def _before(self, tokens: Tensor) -> Tensor:
        """Return log φ_{t-1} of each prefix before its token, (N, T)."""
        both = self._ends[:, :-1].logsumexp(dim=2)
        return torch.where((tokens == self._last)[:, None], self._ends[:, :-1, 1], both)

    def _rows_of(self, recordings: Tensor, tokens: Tensor | None) -> Tensor:
        """Return log p_t of one token in each of some recordings, (M, T); None: of the blank."""
        rows = torch.full(
            (len(recordings), self._longest), 0.0 if tokens is None else _BEHIND,
            dtype=torch.float64, device=recordings.device,
        )  # fmt: skip
        chosen = [-1] * len(recordings) if tokens is None else tokens.tolist()
        for place, (number, token) in enumerate(zip(recordings.tolist(), chosen, strict=True)):
            known = self._known[number]
            rows[place, : len(known)] = known[:, token]
        return rows

    def _reaching(self, rows: int) -> Tensor:
        """Return ``_ends`` of all prefixes, extended to ``rows`` rows with certain blanks."""
        missing = rows + 1 - self._ends.shape[1]
        if missing <= 0 or not len(self._ends):
            return self._ends if missing <= 0 else self._ends.new_zeros(0, rows + 1, 2)
        behind = torch.full_like(self._ends[:, :1], _NOTHING).repeat(1, missing, 1)
        behind[:, :, 1] = self._ends[:, -1].logsumexp(dim=1)[:, None]
        return torch.cat([self._ends, behind], dim=1)


def _recurrence(given: Tensor, said: Tensor) -> Tensor:
    """Return log x_t of x_t = (x_{t-1} + given_{t-1}) p_t, with x_0 = 0: (N, T). All arguments are
    logarithms, and ``said`` is log p_t."""
    until = said.cumsum(dim=1)
    return until + (given - (until - said)).logcumsumexp(dim=1)


Head = Callable[[Tensor], Tensor]
"""The CTC layer over encoded rows: (P, D) -> logits (P, V + 1) of the outputs and the blank."""


class CtcState(DecodeState):
    """A search under way in the decoder and in CTC."""

    def __init__(self, state: DecodeState, prefixes: CtcPrefixes, head: Head) -> None:
        self.state = state
        self.prefixes = prefixes
        self._head = head

    @property
    def lengths(self) -> Tensor:
        return self.state.lengths

    def select(self, rows: Tensor) -> None:
        self.state.select(rows)
        self.prefixes.select(rows)

    def admit(self, memory: Memory) -> None:
        self.state.admit(memory)
        self.hear(memory)

    def hear(self, memory: Memory) -> None:
        """Add the recordings of ``memory`` to the prefixes."""
        known = torch.log_softmax(self._head(memory.rows).float(), dim=-1)
        self.prefixes.add(known.split(list(memory.layout.lengths)))


class WithCtc(Generates):
    """A decoder with CTC, in the interface of a decoder. Its logits are the scores of both
    together, which are not normalised: ``best`` keeps them unchanged."""

    normalises = False

    def __init__(self, model: Generates, head: Head, weight: float, *, eos: int) -> None:
        """``head``: the CTC layer over the rows that ``model`` encodes. ``weight``: λ, the share of
        CTC."""
        self._model = model
        self._head = head
        self._weight = weight
        self._eos = eos

    def encode(self, source: Sequences) -> Memory:
        return self._model.encode(source)

    def start(self, memory: Memory) -> CtcState:
        prefixes = CtcPrefixes(self._eos, memory.rows.device)
        state = CtcState(self._model.start(memory), prefixes, self._head)
        state.hear(memory)
        return state

    def step(self, tokens: Tensor, state: DecodeState) -> Tensor:
        assert isinstance(state, CtcState)  # a state comes back to the model that made it
        taken = state.lengths.to(tokens.device, copy=True)
        decoder = torch.log_softmax(self._model.step(tokens, state.state).float(), dim=-1)
        for place, column in enumerate(tokens.T):
            state.prefixes.extend(column, taken + place > 0)  # nobody says the begin symbol
        ctc = state.prefixes.following().to(decoder.dtype)
        return (1 - self._weight) * decoder + self._weight * ctc
