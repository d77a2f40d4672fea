"""Word alignment from pairs of sentences alone, learned by expectation maximisation.

IBM model 1 (Brown et al. 1993, section 4.4) is the dictionary p(t | s), how often source token s is
translated by target token t; where in its sentence a token stands plays no part.

The HMM of Vogel, Ney and Tillmann (1996) says which source token each target token comes from:

    P(t_1 … t_J, a_1 … a_J | s) = Π_j p(a_j | a_{j-1}, I) · p(t_j | s_{a_j})

Its lexicon p(t | s) begins as model 1 has it. How far the alignment jumps from one target token to
the next, p(a_j | a_{j-1}, I), depends on the width of the jump alone, mixed with a little of every
place. A target token may come from nothing; the place before it is then remembered (Och and Ney
2003). Both directions are learned together. Sentences of equal lengths are worked on together.

Shapes: S source vocabulary, T target vocabulary, N cells of the lexicon: (s, t) that occur together
in any pair; B pairs of one shape, I source tokens, J target tokens.
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
    """(N,) s x T + t, sorted."""
    probability: Floats
    """(N,) p(t | s) of each cell."""
    expected: Floats
    """(N,) how many links between s and t are expected in the pairs it was learned from."""
    counts: npt.NDArray[np.int64]
    """(T,) how often each target token occurs."""


def learn_dictionary(
    pairs: Iterable[tuple[Integers, Integers]],
    source_vocabulary: int,
    target_vocabulary: int,
    *,
    rounds: int,
    most: int,
) -> Dictionary:
    """From tokenised sentence pairs, without special symbols.

    ``rounds`` of expectation maximisation; ``most``: pairs of a source and a target token to learn
    from, sentence pairs beyond are left out.
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
    """Two alignments of one pair of sentences, as (source, target) links made in both directions,
    joined into one (Koehn, Och and Marcu 2003; Och and Ney 2003).

    Begin with the links that both have; let them grow to neighbours, also diagonal ones, among
    those that either has, as long as that gives a link to a word that has none; at last add what
    links two words that both have none.
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
"""Pairs of a source and a target token to learn from; sentence pairs beyond are left out."""

_NOTHING = 0.2
"""Probability that a target token comes from nothing."""
_ANYWHERE = 0.2
"""Share of jumps that go to any place alike."""
_UNSEEN = 1e-9
"""p(t | s) of tokens that never stood in one pair."""
_CELLS_AT_ONCE = 1 << 19
_KEPT = 1e-7
"""p(t | s) from which a cell is written to a file: what is below is as good as unseen."""

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
        """``cells``, ``probability``: as ``Dictionary`` has them, whose number ``sources`` is
        nothing. ``sources``, ``targets``: sizes of the vocabularies. ``jumps``: the weight of each
        width of a jump, from the longest backwards to the longest forwards, not normalised."""
        self._keys = cells
        self._lexicon = np.append(probability, 0.0)
        """(N + 1,) p(t | s); the last is that of cells that there are not."""
        self._sources, self._targets = sources, targets
        self._jumps = jumps

    @classmethod
    def begin(cls, pairs: Sequence[TokenPair], sources: int, targets: int, rounds: int) -> Hmm:
        """Begins with the lexicon of IBM model 1, and jumps of any width alike."""
        nothing = np.array([sources], np.int64)
        with_nothing: list[TokenPair] = [
            (np.append(source, nothing).astype(np.int64), target) for source, target in pairs
        ]
        dictionary = learn_dictionary(
            with_nothing,
            sources + 1,
            targets,
            rounds=rounds,
            most=1 << 62,
        )
        jumps = np.ones(2 * max((len(s) for s, _ in pairs), default=1) + 1)
        return cls(dictionary.cells, dictionary.probability, sources, targets, jumps)

    def arrays(self) -> dict[str, npt.NDArray[np.int32]]:
        """The arrays that are written to a file; fp32 numbers as the int32 of their bits."""
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
        """Reads what ``arrays`` returned. Errors: ``ValueError`` if it cannot be that."""
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
        """(B, I), (B, J) -> (B, J, I + 1): where p(t | s) stands in the lexicon, that of nothing
        last; -1 where it does not."""
        none = np.full((len(source), 1), self._sources, np.int64)
        keys = np.concatenate([source, none], axis=1)[:, None] * self._targets + target[:, :, None]
        if not len(self._keys):
            return np.full(keys.shape, -1, np.int64)
        place = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(self._keys[place] == keys, place, -1)

    def _transitions(self, sources: int) -> Floats:
        """(I + 1, I): from each place to each; the last row is from before the first token."""
        longest = len(self._jumps) // 2
        before = np.append(np.arange(sources), -1)[:, None]
        width = (np.arange(sources) - before).clip(-longest, longest)  # (I + 1, I)
        jumps = self._jumps[width + longest]
        jumps = jumps / jumps.sum(axis=1, keepdims=True)
        mixed: Floats = (1 - _NOTHING) * ((1 - _ANYWHERE) * jumps + _ANYWHERE / sources)
        return mixed

    def expect(self, cells: Tokens) -> Expected:
        """Forward and backward, scaled to sum to one at each token. A state is a source place, or
        nothing after a source place."""
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
        """``lexicon`` (N,) expected counts of each cell, ``jumps`` of each width."""
        source_of = self._keys // self._targets
        whole = np.bincount(source_of, lexicon, self._sources + 1)[source_of]
        known = np.where(whole > 0, lexicon / np.maximum(whole, 1e-300), self._lexicon[:-1])
        self._lexicon[:-1] = known
        self._jumps = jumps + 1e-6 * jumps.sum() / len(jumps)

    def no_counts(self) -> tuple[Floats, Floats]:
        """Zero counts for the lexicon and for the jumps, with which counting begins."""
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
        counts: Floats = np.bincount(width.ravel(), followed.ravel(), len(self._jumps)).astype(
            float
        )
        return counts


class StatisticalAligner:
    """Both directions, learned from the same pairs, and to agree (Liang, Taskar and Klein 2006).

    What is counted for the lexicon is the product of what both directions expect: a link that one
    of them alone believes in teaches neither.
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
        """From tokenised pairs, without special symbols; those that are empty on a side are left
        out. ``rounds`` of IBM model 1 and then of the HMM; ``most`` pairs of a source and a target
        token to learn from, what comes behind is not read. ``watch`` gets how many rounds of the
        HMM are done: first 0, when the lexicon has been begun."""
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
        """One round over the cells of both directions."""
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
        """Links of (source, target) tokens: what both directions hold for most probable, joined by
        grow-diag-final-and."""
        return [grow_diag_final_and(*both) for both in self.directions(pairs)]

    def directions(self, pairs: Sequence[TokenPair]) -> list[tuple[Links, Links]]:
        """Links of (source, target) tokens as each direction by itself holds them for most
        probable."""
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
    """Pairs of equal lengths together: which they are, sources (B, I) and targets (B, J)."""
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
