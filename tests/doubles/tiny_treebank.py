"""A treebank of a small grammar, whose trees follow from the words alone.

A phrase with "of" or "near" belongs to the noun before it, one with "with" to the verb.
"""

from __future__ import annotations

import random
from pathlib import Path

from dragoman.forms.tree import Tree

_WORDS = {
    "DT": ("the", "a"),
    "JJ": ("small", "old"),
    "NN": ("cat", "dog", "house", "tree"),
    "VBZ": ("sees", "likes"),
    "VBP": ("sleeps", "runs"),
    "RB": ("often",),
}


def treebank(count: int, seed: int = 1) -> list[Tree]:
    """Different trees."""
    draw = random.Random(seed)
    found: dict[str, Tree] = {}
    while len(found) < count:
        tree = _sentence(draw)
        found[" ".join(tree.words)] = tree
    return list(found.values())


def write_treebank(path: Path, trees: list[Tree]) -> Path:
    """As the Penn Treebank writes them: over several lines, without a label above all."""
    lines = (f"( {tree} )\n".replace(" (VP", "\n     (VP") for tree in trees)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _leaf(tag: str, draw: random.Random, *words: str) -> Tree:
    return Tree(tag, word=draw.choice(words or _WORDS[tag]))


def _sentence(draw: random.Random) -> Tree:
    verb: tuple[Tree, ...] = (_leaf("VBP", draw),)
    if draw.random() < 0.6:
        verb = (_leaf("VBZ", draw), _noun_phrase(draw, 0.5))
    if draw.random() < 0.4:
        verb = (*verb, Tree("PP", (_leaf("IN", draw, "with"), _noun_phrase(draw, 0.0))))
    if draw.random() < 0.3:
        verb = (Tree("ADVP", (_leaf("RB", draw),)), *verb)
    return Tree("S", (_noun_phrase(draw, 0.3), Tree("VP", verb), _leaf(".", draw, ".")))


def _noun_phrase(draw: random.Random, more: float) -> Tree:
    adjectives = [_leaf("JJ", draw)] if draw.random() < 0.3 else []
    plain = Tree("NP", (_leaf("DT", draw), *adjectives, _leaf("NN", draw)))
    if draw.random() >= more:
        return plain
    behind = Tree("PP", (_leaf("IN", draw, "of", "near"), _noun_phrase(draw, 0.0)))
    return Tree("NP", (plain, behind))
