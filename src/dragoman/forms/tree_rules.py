"""What may follow in a tree that is being written: brackets that fit, over exactly these words.

A tree has one bracket above all, which closes behind the last word. No bracket is empty. At most
``chain`` brackets within each other hold the same words, so that there is an end: a chain that is
full can only be broken by a word, and a word is only spent where enough are left to break what is
still open. The same holds for tokens: a bracket opens only if there is room to close all.

So in every hypothesis something may follow, and whatever is chosen, the output is a tree over all
words within ``longest`` tokens. Every tree with chains that are not longer, and not more tokens,
can be written.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.forms.rules import Booleans, Rules
from dragoman.forms.tree_symbols import TreeSymbols
from dragoman.tree import DEEPEST

_NOTHING = -1
_MORE = 0


class _Frame(NamedTuple):
    """A bracket that is open."""

    symbol: int
    depth: int
    """How many are open, this one included."""
    run: int
    """How many of them begin with this one's first word, this one included and those below
    counted: brackets that might yet come to hold the same words."""
    breaks: int
    """Words that it takes to break the runs below its own."""
    below: _Frame | None


class _State(NamedTuple):
    """What matters of the symbols so far."""

    left: int
    """Words that are still to come."""
    frame: _Frame | None
    """The innermost open bracket; None before the first and behind the last."""
    inside: int
    """What that holds: ``_NOTHING``; one bracket, by how many brackets within it, itself included,
    hold the same words; or ``_MORE``: a word, or several of anything."""
    begun: bool


class TreeRules(Rules):
    """Of one sentence."""

    def __init__(self, symbols: TreeSymbols, words: int, longest: int | None = None) -> None:
        """``words``: at least one. ``longest``: tokens of a tree; never fewer than the flat one
        has; left out, ``usual_longest``."""
        assert words > 0, "a tree has words"
        self._symbols = symbols
        self._words = words
        self._chain = symbols.chain
        usual = usual_longest(words, symbols.chain)
        self._longest = max(words + 2, usual if longest is None else min(longest, usual))
        self._known: dict[bytes, _State] = {}

    @property
    def longest(self) -> int:
        return self._longest

    def allowed(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        symbols = self._symbols
        found = np.zeros((len(tokens), symbols.size), np.bool_)
        # States of the last step alone are kept: a hypothesis is one of those and one token more.
        states: dict[bytes, _State] = {}
        rows = np.ascontiguousarray(tokens, np.int32)
        for number, row in enumerate(rows):
            state = self._state(row)
            states[row.tobytes()] = state
            word, opens, closes, ends = self._may(state, len(row))
            if word:
                found[number, symbols.words.start : symbols.words.stop] = True
            if opens:
                found[number, symbols.opening.start :: 2] = True
            if closes and state.frame is not None:
                found[number, state.frame.symbol + 1] = True
            found[number, symbols.eos] = ends
        self._known = states
        return found

    def _state(self, row: npt.NDArray[np.int32]) -> _State:
        if len(row) and (before := self._known.get(row[:-1].tobytes())) is not None:
            return self._after(before, int(row[-1]))
        state = _State(self._words, None, _NOTHING, False)
        for symbol in row.tolist():
            state = self._after(state, symbol)
        return state

    def _may(self, state: _State, length: int) -> tuple[bool, bool, bool, bool]:
        """Whether a word, an opening bracket, a closing one, the end may follow."""
        frame, left = state.frame, state.left
        if frame is None:
            return False, not state.begun, False, state.begun
        symbols = self._symbols
        # What each open bracket and each word still takes, and an opening one twice.
        room = self._longest - length - left - frame.depth
        word = left > 0 and self._can_end(self._after(state, symbols.words.start))
        opens = (
            room >= 2
            and frame.depth < DEEPEST - 1
            and self._can_end(self._after(state, symbols.opening.start))
        )
        closes = state.inside not in (_NOTHING, self._chain) and self._can_end(
            self._after(state, frame.symbol + 1)
        )
        return word, opens, closes, False

    def _can_end(self, state: _State) -> bool:
        """Whether there are words enough for all that must yet hold one."""
        frame = state.frame
        if frame is None:
            return state.left == 0
        breaks = frame.breaks + self._to_break(frame.run + max(state.inside, 0))
        return state.left >= breaks + (state.inside == _NOTHING)

    def _to_break(self, run: int) -> int:
        """Words that part so many brackets into chains that are not too long."""
        return -(-run // self._chain) - 1

    def _after(self, state: _State, symbol: int) -> _State:
        symbols, frame = self._symbols, state.frame
        if symbol in symbols.words:
            return _State(state.left - 1, frame, _MORE, True)
        if symbol in symbols.opening:
            if frame is None:
                opened = _Frame(symbol, 1, 1, 0, None)
            elif state.inside == _NOTHING:
                opened = _Frame(symbol, frame.depth + 1, frame.run + 1, frame.breaks, frame)
            else:
                # What is open holds something already, so it is no longer of a run with this one.
                breaks = frame.breaks + self._to_break(frame.run)
                opened = _Frame(symbol, frame.depth + 1, 1, breaks, frame)
            return _State(state.left, opened, _NOTHING, True)
        assert frame is not None and symbol == frame.symbol + 1, "only what was allowed"
        chain = max(state.inside, 0) + 1
        if frame.below is None:
            return _State(state.left, None, chain, True)
        return _State(state.left, frame.below, chain if frame.run > 1 else _MORE, True)


def usual_longest(words: int, chain: int) -> int:
    """Tokens of the longest tree that is written for so many words: twice as many brackets as
    words, and a chain more. In the Wall Street Journal trees have hardly more than one a word."""
    return words + 2 * (2 * words + chain)
