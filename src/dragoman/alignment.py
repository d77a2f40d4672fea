"""Word alignment from pairs of sentences alone, learned by expectation maximisation.

IBM model 1 (Brown et al. 1993, section 4.4) learns the dictionary p(t | s): how often target token
t translates source token s, wherever in their sentences they are.

The HMM of Vogel, Ney and Tillmann (1996) says which source token each target token comes from:

    P(t_1 … t_J, a_1 … a_J | s) = Π_j p(a_j | a_{j-1}, I) · p(t_j | s_{a_j})

Its lexicon p(t | s) begins with the dictionary of model 1. The probability of a jump from one
source token to the next, p(a_j | a_{j-1}, I), depends on its width alone, mixed with a small
probability of every place. A target token may come from nothing; the next jump is then counted from
the last source token (Och and Ney 2003). Both directions are learned together, and sentences of
equal lengths are computed together. ``grow_diag_final_and`` joins the two directions.

Shapes: S source vocabulary, T target vocabulary, N cells of the lexicon (one for each s and t that
occur together in a pair of sentences), B pairs of one shape, I source tokens, J target tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from dragoman.base.atomic import replacing_file
from dragoman.base.errors import RunError
from dragoman.base.tensor_file import open_tensors
from dragoman.metrics.alignment import Links

_NEIGHBOURS = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
Integers = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dictionary:
    """p(t | s) for every s and t that occur together."""

    cells: npt.NDArray[np.int64]
    """(N,) the number of each cell, s x T + t, sorted."""
    probability: Floats
    """(N,) p(t | s) of each cell."""
    expected: Floats
    """(N,) the expected number of links between s and t in the pairs that were learned from."""
    counts: npt.NDArray[np.int64]
    """(T,) the number of times that each target token occurs."""


def learn_dictionary(
    pairs: Iterable[tuple[Integers, Integers]],
    source_vocabulary: int,
    target_vocabulary: int,
    *,
    rounds: int,
    most: int,
) -> Dictionary:
    """Learn IBM model 1 from tokenised sentence pairs, without special symbols.

    ``rounds``: the number of rounds of expectation maximisation; ``most``: the largest number of
    pairs of a source and a target token; sentence pairs beyond it are left out.
    """
    keys, places, counts = _links(pairs, target_vocabulary, most)
    cells, which = np.unique(keys, return_inverse=True)  # the (s, t) that occur together
    source_of = cells // target_vocabulary
    probability: Floats = np.ones(len(cells))
    expected: Floats = np.zeros(len(cells))
    for _ in range(rounds):
        # E: each target token is shared out among the source tokens of its sentence; M: p(t | s).
        share = probability[which]
        share /= np.bincount(places, share)[places]
        expected = np.bincount(which, share, len(cells)).astype(np.float64)
        probability = expected / np.bincount(source_of, expected, source_vocabulary)[source_of]
    return Dictionary(cells, probability, expected, counts)


def _links(
    pairs: Iterable[tuple[Integers, Integers]], target_vocabulary: int, most: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Every (source, target) token pair of every sentence pair, as s x T + t; the target position
    that each belongs to; how often each target token occurs."""
    keys, places = [], []
    counts = np.zeros(target_vocabulary, np.int64)
    position = total = 0
    for source, target in pairs:
        if total + len(source) * len(target) > most:
            break
        total += len(source) * len(target)
        grid = source.astype(np.int64)[:, None] * target_vocabulary + target.astype(np.int64)
        keys.append(grid.ravel())
        places.append(np.tile(np.arange(position, position + len(target)), len(source)))
        position += len(target)
        counts += np.bincount(target, minlength=target_vocabulary)
    empty = [np.zeros(0, np.int64)]
    return np.concatenate(keys or empty), np.concatenate(places or empty), counts


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """Join the alignments of one pair of sentences in both directions, as (source, target) links
    (Koehn, Och and Marcu 2003; Och and Ney 2003).

    Begin with the links of both directions. Add neighbouring links of either direction, diagonal
    ones too, as long as one of the two words has no link yet. Finally, add the links of either
    direction between two words that both have none.
    """
    either, links = forward | backward, set(forward & backward)
    sources, targets = {s for s, _ in links}, {t for _, t in links}
    waiting = sorted(links)
    while waiting:
        grown = []
        for source, target in waiting:
            for down, right in _NEIGHBOURS:
                new = (source + down, target + right)
                lonely = new[0] not in sources or new[1] not in targets
                if new in either and new not in links and lonely:
                    links.add(new)
                    sources.add(new[0])
                    targets.add(new[1])
                    grown.append(new)
        waiting = sorted(grown)
    for direction in (forward, backward):
        for source, target in sorted(direction):
            if source not in sources and target not in targets:
                links.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(links)


TokenPair = tuple[Integers, Integers]
"""Tokens of a source and of its translation, without special symbols."""

ROUNDS = 5
"""The number of rounds of expectation maximisation, for IBM model 1 and then for the HMM."""
MAX_CELLS = 12_000_000
"""The most pairs of a source and a target token to learn from; sentence pairs beyond it are left
out."""

_NOTHING = 0.2
"""The probability that a target token comes from nothing."""
_ANYWHERE = 0.2
"""The share of jumps that go to every place with the same probability."""
_UNSEEN = 1e-9
"""p(t | s) of tokens that never occur in one pair."""
_CELLS_AT_ONCE = 1 << 19
_KEPT = 1e-7
"""The least p(t | s) of a cell that is written to a file; less is as good as unseen."""

_NUMBERS = ("lexicon", "jumps")
_ARRAYS = ("sources", "targets", *_NUMBERS)
"""The names of the arrays of each direction in a file."""

Tokens = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Expected:
    """The expectations of one direction for B pairs of one shape."""

    places: Floats
    """(B, J, I + 1): how probably each target token comes from each source place; nothing last."""
    followed: Floats
    """(I + 1, I): how often each place follows each; the last row: each begins."""
    known: float
    """log P of all of them."""

    @property
    def best(self) -> Tokens:
        """(B, J): the most probable place of each target token, -1 for nothing."""
        places: Tokens = self.places.argmax(axis=-1)
        return np.where(places == self.places.shape[-1] - 1, -1, places)


class Hmm:
    """One direction: each target token comes from one source token or from nothing."""

    def __init__(
        self, cells: Tokens, probability: Floats, sources: int, targets: int, jumps: Floats
    ) -> None:
        """``cells``, ``probability``: as in ``Dictionary``; the source token with the number
        ``sources`` stands for nothing. ``sources``, ``targets``: the sizes of the vocabularies.
        ``jumps``: the weight of each width of a jump, from the longest backwards to the longest
        forwards, not normalised."""
        self._keys = cells
        self._lexicon = np.append(probability, 0.0)
        """(N + 1,) p(t | s) of each cell; the last number, 0, is for pairs without a cell."""
        self._sources, self._targets = sources, targets
        self._jumps = jumps

    @classmethod
    def begin(cls, pairs: Sequence[TokenPair], sources: int, targets: int, rounds: int) -> Hmm:
        """Begin with the lexicon of IBM model 1, and equal weights for jumps of all widths."""
        with_nothing: list[TokenPair] = [
            (np.append(source, sources).astype(np.int64), target) for source, target in pairs
        ]
        dictionary = learn_dictionary(
            with_nothing, sources + 1, targets, rounds=rounds, most=1 << 62
        )
        jumps = np.ones(2 * max((len(s) for s, _ in pairs), default=1) + 1)
        return cls(dictionary.cells, dictionary.probability, sources, targets, jumps)

    def arrays(self) -> dict[str, npt.NDArray[np.int32]]:
        """Return the arrays for a file; fp32 numbers as the int32 of their bits."""
        kept = self._lexicon[:-1] >= _KEPT
        keys = self._keys[kept]
        return {
            "sources": (keys // self._targets).astype(np.int32),
            "targets": (keys % self._targets).astype(np.int32),
            "lexicon": self._lexicon[:-1][kept].astype(np.float32).view(np.int32),
            "jumps": self._jumps.astype(np.float32).view(np.int32),
        }

    @classmethod
    def of_arrays(
        cls, arrays: Mapping[str, npt.NDArray[np.int32]], sources: int, targets: int
    ) -> Hmm:
        """Make the model from what ``arrays`` returned. Errors: ``ValueError`` for other arrays."""
        of_source, of_target = (arrays[name].astype(np.int64) for name in ("sources", "targets"))
        lexicon, jumps = (arrays[name].view(np.float32).astype(float) for name in _NUMBERS)
        keys = of_source * targets + of_target if of_source.shape == of_target.shape else None
        if (
            keys is None
            or keys.ndim != 1
            or keys.shape != lexicon.shape
            or jumps.ndim != 1
            or len(jumps) % 2 != 1
            or not ((of_source >= 0) & (of_source <= sources)).all()
            or not ((of_target >= 0) & (of_target < targets)).all()
            or not (np.diff(keys) > 0).all()
            or not ((lexicon >= 0) & (lexicon < 1.001)).all()
            or not ((jumps > 0) & (jumps < np.inf)).all()
        ):
            raise ValueError("the tables are not those of an HMM")
        return cls(keys, lexicon, sources, targets, jumps)

    def cells(self, source: Tokens, target: Tokens) -> Tokens:
        """(B, I), (B, J) -> (B, J, I + 1): the index of p(t | s) in the lexicon, or -1 for pairs
        without a cell; the last column is for nothing."""
        none = np.full((len(source), 1), self._sources, np.int64)
        keys = np.concatenate([source, none], axis=1)[:, None] * self._targets + target[:, :, None]
        if not len(self._keys):
            return np.full(keys.shape, -1, np.int64)
        place = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(self._keys[place] == keys, place, -1)

    def _transitions(self, sources: int) -> Floats:
        """(I + 1, I): the probabilities of the jumps from each place to each; the last row is for
        the first jump."""
        longest = len(self._jumps) // 2
        before = np.append(np.arange(sources), -1)[:, None]
        width = (np.arange(sources) - before).clip(-longest, longest)  # (I + 1, I)
        jumps = self._jumps[width + longest]
        jumps = jumps / jumps.sum(axis=1, keepdims=True)
        mixed: Floats = (1 - _NOTHING) * ((1 - _ANYWHERE) * jumps + _ANYWHERE / sources)
        return mixed

    def expect(self, cells: Tokens) -> Expected:
        """Run the forward-backward algorithm, scaled to sum to one at each token. A state is a
        source place, or nothing after a source place."""
        emitted = self._lexicon[cells].clip(_UNSEEN)
        batch, length, sources = emitted.shape[0], emitted.shape[1], emitted.shape[2] - 1
        moves = self._transitions(sources)
        real, none = emitted[:, :, :-1], emitted[:, :, -1:]  # (B, J, I), (B, J, 1)
        forward = np.empty((batch, length, 2 * sources))
        scale = np.empty((batch, length))
        for place in range(length):
            if place:
                before = forward[:, place - 1, :sources] + forward[:, place - 1, sources:]
                arrives, stays = before @ moves[:-1], _NOTHING * before
            else:
                arrives = np.broadcast_to(moves[-1], (batch, sources))
                stays = np.full((batch, sources), _NOTHING / sources)
            forward[:, place, :sources] = arrives * real[:, place]
            forward[:, place, sources:] = stays * none[:, place]
            scale[:, place] = forward[:, place].sum(axis=1)
            forward[:, place] /= scale[:, place, None]
        backward = np.ones((batch, sources))
        places = np.empty((batch, length, sources + 1))
        followed = np.zeros((sources + 1, sources))
        for place in reversed(range(length)):
            state = forward[:, place].reshape(batch, 2, sources) * backward[:, None]
            places[:, place, :-1], places[:, place, -1] = state[:, 0], state[:, 1].sum(axis=1)
            going = real[:, place] * backward / scale[:, place, None]  # (B, I)
            if place:
                before = forward[:, place - 1, :sources] + forward[:, place - 1, sources:]
                followed[:-1] += (before.T @ going) * moves[:-1]
                quiet = _NOTHING * none[:, place] * backward / scale[:, place, None]
                backward = going @ moves[:-1].T + quiet
            else:
                followed[-1] += going.sum(axis=0) * moves[-1]
        return Expected(places, followed, float(np.log(scale).sum()))

    def improve(self, lexicon: Floats, jumps: Floats) -> None:
        """Replace the lexicon and the weights of jumps by those that fit the expected counts:
        ``lexicon`` (N,) of each cell, and ``jumps`` of each width."""
        source_of = self._keys // self._targets
        whole = np.bincount(source_of, lexicon, self._sources + 1)[source_of]
        known = np.where(whole > 0, lexicon / np.maximum(whole, 1e-300), self._lexicon[:-1])
        self._lexicon[:-1] = known
        self._jumps = jumps + 1e-6 * jumps.sum() / len(jumps)

    def no_counts(self) -> tuple[Floats, Floats]:
        """Return counts of 0 for the lexicon and for the jumps, with which counting begins."""
        return np.zeros(len(self._keys)), np.zeros(len(self._jumps))

    def count_cells(self, cells: Tokens, expected: Floats) -> Floats:
        """(N,): the expected count of each cell of the lexicon."""
        known = cells >= 0
        return np.bincount(cells[known], expected[known], len(self._keys)).astype(np.float64)

    def count_jumps(self, followed: Floats) -> Floats:
        """The expected count of each width of a jump."""
        sources = followed.shape[1]
        before = np.append(np.arange(sources), -1)[:, None]
        width = np.arange(sources) - before + len(self._jumps) // 2
        counted = np.bincount(width.ravel(), followed.ravel(), len(self._jumps))
        return counted.astype(np.float64)


class StatisticalAligner:
    """The HMMs of both directions, trained on the same pairs to agree with each other (Liang,
    Taskar and Klein 2006).

    A link counts for the lexicon with the product of its probabilities in both directions: a link
    that only one of them expects teaches neither.
    """

    def __init__(self, forward: Hmm, backward: Hmm) -> None:
        self._forward = forward
        self._backward = backward

    @classmethod
    def learn(
        cls,
        pairs: Iterable[TokenPair],
        source_vocabulary: int,
        target_vocabulary: int,
        *,
        rounds: int = ROUNDS,
        most: int = MAX_CELLS,
        watch: Callable[[int], None] = lambda _: None,
    ) -> StatisticalAligner:
        """Learn from tokenised pairs, without special symbols; pairs with an empty side are left
        out. ``rounds``: the rounds of IBM model 1, and then of the HMM; ``most``: the largest
        number of pairs of a source and a target token; reading stops before it is exceeded.
        ``watch`` is called with the number of finished rounds of the HMM, first with 0."""
        used: list[TokenPair] = []
        cells = 0
        for source, target in pairs:
            cells += (len(source) + 1) * (len(target) + 1)
            if cells > most:
                break
            if len(source) and len(target):
                used.append((source, target))
        turned = [(target, source) for source, target in used]
        aligner = cls(
            Hmm.begin(used, source_vocabulary, target_vocabulary, rounds),
            Hmm.begin(turned, target_vocabulary, source_vocabulary, rounds),
        )
        groups = [
            (aligner._forward.cells(source, target), aligner._backward.cells(target, source))
            for _, source, target in _by_shape(used)
        ]
        watch(0)
        for done in range(1, rounds + 1 if groups else 1):
            aligner.improve(groups)
            watch(done)
        return aligner

    def save(self, path: Path) -> None:
        """Write the tables of both directions, whole or not at all."""
        arrays = {
            f"{name}.{kind}": array
            for name, model in (("forward", self._forward), ("backward", self._backward))
            for kind, array in model.arrays().items()
        }
        with replacing_file(path) as temporary:
            save_file(arrays, temporary)

    @classmethod
    def load(cls, path: Path, source_vocabulary: int, target_vocabulary: int) -> StatisticalAligner:
        """Read what ``save`` wrote. Errors: ``RunError`` for a damaged file."""
        sizes = source_vocabulary, target_vocabulary
        with open_tensors(path, "I32") as file:
            try:
                forward, backward = (
                    Hmm.of_arrays({kind: file.read(f"{name}.{kind}") for kind in _ARRAYS}, *sized)
                    for name, sized in (("forward", sizes), ("backward", sizes[::-1]))
                )
            except (KeyError, ValueError):
                raise RunError(f"{path} is damaged: it contains no aligner. Delete it") from None
        return cls(forward, backward)

    def improve(self, groups: Sequence[tuple[Tokens, Tokens]]) -> None:
        """Do one round of expectation maximisation over the cells of both directions."""
        counts = [model.no_counts() for model in (self._forward, self._backward)]
        for cells in groups:
            both = self._forward.expect(cells[0]), self._backward.expect(cells[1])
            for model, own, other, own_cells, (lexicon, jumps) in zip(
                (self._forward, self._backward), both, both[::-1], cells, counts, strict=True
            ):
                expected = own.places.copy()
                expected[:, :, :-1] *= other.places[:, :, :-1].transpose(0, 2, 1)
                lexicon += model.count_cells(own_cells, expected)
                jumps += model.count_jumps(own.followed)
        for model, (lexicon, jumps) in zip((self._forward, self._backward), counts, strict=True):
            model.improve(lexicon, jumps)

    def align(self, pairs: Sequence[TokenPair]) -> list[Links]:
        """Return the links of (source, target) tokens: the most probable ones of both directions,
        joined by grow-diag-final-and."""
        return [grow_diag_final_and(*both) for both in self.directions(pairs)]

    def directions(self, pairs: Sequence[TokenPair]) -> list[tuple[Links, Links]]:
        """Return the most probable links of (source, target) tokens of each direction by itself."""
        links: list[tuple[Links, Links]] = [(frozenset(), frozenset())] * len(pairs)
        for places, source, target in _by_shape(pairs):
            forward = self._forward.expect(self._forward.cells(source, target)).best.tolist()
            backward = self._backward.expect(self._backward.cells(target, source)).best.tolist()
            for place, sources, targets in zip(places, forward, backward, strict=True):
                links[place] = (
                    frozenset((s, t) for t, s in enumerate(sources) if s >= 0),
                    frozenset((s, t) for s, t in enumerate(targets) if t >= 0),
                )
        return links


def _by_shape(pairs: Sequence[TokenPair]) -> Iterator[tuple[list[int], Tokens, Tokens]]:
    """Yield pairs of equal lengths together: their numbers, sources (B, I) and targets (B, J)."""
    shapes: dict[tuple[int, int], list[int]] = {}
    for place, (source, target) in enumerate(pairs):
        if len(source) and len(target):
            shapes.setdefault((len(source), len(target)), []).append(place)
    for (sources, targets), members in sorted(shapes.items()):
        step = max(1, _CELLS_AT_ONCE // ((sources + 1) * targets))
        for first in range(0, len(members), step):
            part = members[first : first + step]
            source, target = (
                np.stack([pairs[n][side] for n in part]).astype(np.int64) for side in (0, 1)
            )
            yield part, source, target
