"""What is doubtful about the translations of one run, and which words of the source theirs are of.

For requests that ask for it: it is work for the plain model, done in a thread beside the searches,
where clients take turns. A page sends its whole text again at each pause in typing, so the last
proofs are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain

from dragoman.engine.engine import Engine
from dragoman.forms.lexicon import Lexicon
from dragoman.forms.passage import Piece
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.queue.fair_executor import FairExecutor
from dragoman.tasks.translation.proofreading.proofreader import Proof, Proofreader, ToProofread

MAX_KEPT = 16_000_000
"""Bytes of proofs that are kept, nearly."""
SENTENCES_AT_ONCE = 4
"""Sentences that are read in one turn,"""
LETTERS = 400
"""and characters of them, or one sentence: it is read once more without each of its words, so its
cost grows with the square of its length."""
Key = tuple[str, tuple[int, ...], bool]
"""Source, tokens of the translation, whether it was finished."""


class Proofs:
    """Proofreading for one run. Lives in the event loop."""

    def __init__(self, engine: Engine, proofreader: Proofreader, turns: FairExecutor) -> None:
        """``turns``: where the work is done."""
        self._engine = engine
        self._proofreader = proofreader
        self._turns = turns
        self._kept: OrderedDict[Key, Proof] = OrderedDict()
        self._size = 0

    def lexicon(self) -> Lexicon | None:
        """What the run has read."""
        return self._proofreader.lexicon

    async def __call__(self, found: Sequence[tuple[Piece, Hypothesis]], client: str) -> list[Proof]:
        """The proof of each sentence and its translation."""
        keys: list[Key] = [(piece.text, one.tokens, one.finished) for piece, one in found]
        known = {key: self._kept[key] for key in keys if key in self._kept}
        new = [key for key in dict.fromkeys(keys) if key not in known]
        read = chain.from_iterable(await self._turns.all(client, map(self._read, _turns_of(new))))
        known |= zip(new, read, strict=True)
        for key in known:
            self._keep(key, known[key])
        return [known[key] for key in keys]

    def _read(self, keys: Sequence[Key]) -> list[Proof]:
        texts = self._engine.target.raw([tokens for _, tokens, _ in keys])
        asked = [
            ToProofread(source, text, tokens, finished)
            for (source, tokens, finished), text in zip(keys, texts, strict=True)
        ]
        return list(chain.from_iterable(self._proofreader(asked)))

    def _keep(self, key: Key, proof: Proof) -> None:
        if self._kept.pop(key, None) is not None:
            self._size -= _size(key, proof)
        self._kept[key] = proof
        self._size += _size(key, proof)
        while self._size > MAX_KEPT:
            self._size -= _size(*self._kept.popitem(last=False))


def _turns_of(keys: Sequence[Key]) -> list[list[Key]]:
    """What is read in each turn."""
    turns: list[list[Key]] = []
    letters = 0
    for key in keys:
        letters += len(key[0])
        if not turns or len(turns[-1]) == SENTENCES_AT_ONCE or letters > LETTERS:
            turns.append([])
            letters = len(key[0])
        turns[-1].append(key)
    return turns


def _size(key: Key, proof: Proof) -> int:
    """Bytes, nearly."""
    return proof.alignment.nbytes + 4 * len(key[0]) + 100 * (len(key[1]) + len(proof.words) + 10)
