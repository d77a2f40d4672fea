"""The fastest settings of a program, found on the very work that is timed afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

Setting = dict[str, Any]
Options = Sequence[Sequence[Setting]]
"""Lists of alternatives, the first of each to begin with; a setting has one of every list."""

HOPELESS = 1.5
"""A setting whose first run takes so many times the best so far is not given a second."""


def fastest(options: Options, seconds: Callable[[Setting], float]) -> Setting:
    """One alternative after the other is exchanged, until no single exchange is faster.

    ``seconds`` runs the work under a setting. Every setting runs twice and the better run counts,
    since what is new to a program (shapes that it compiles code for, fresh memory) is slow once.
    """
    if all(len(alternatives) == 1 for alternatives in options):
        return _joined([alternatives[0] for alternatives in options])
    known: dict[str, float] = {}

    def cost(chosen: Sequence[Setting]) -> float:
        setting = _joined(chosen)
        name = json.dumps(setting, sort_keys=True)
        if name not in known:
            best = min(known.values(), default=float("inf"))
            first = seconds(setting)
            known[name] = first if first > HOPELESS * best else min(first, seconds(setting))
        return known[name]

    chosen = [alternatives[0] for alternatives in options]
    before = None
    while chosen != before:
        before = list(chosen)
        for place, alternatives in enumerate(options):
            others = [[*chosen[:place], one, *chosen[place + 1 :]] for one in alternatives]
            chosen = min(others, key=cost)
    return _joined(chosen)


def _joined(parts: Sequence[Setting]) -> Setting:
    return {key: value for part in parts for key, value in part.items()}
