"""A constituency tree, drawn: in a terminal, from left to right, and as SVG, from the top down.

S
├─ NP
│  ├─ DT The
│  └─ NN cat
└─ VP ─ VBZ sleeps
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count

from dragoman.forms.tree import Tree
from dragoman.pictures.labels import escape, text_width, visible
from dragoman.pictures.theme import FONT_SIZE, svg, text_svg

_LEVEL = 42.0
"""Pixels from one row of labels to the next."""
_BETWEEN = 14.0
"""The distance of two words in pixels."""
_MARGIN = 14.0
_ABOVE, _BELOW = 15.0, 5.0
"""Pixels from a label's baseline to where a line from above ends, and to where one begins."""

_UNDER = 3.5
"""Pixels from a label's baseline to the line that marks it."""


def tree_text(tree: Tree, no_tag: str = "") -> str:
    """Lines of text, as wide as the tree is deep. ``no_tag``: a tag that is not shown."""
    return "\n".join(_lines(tree, no_tag))


def _lines(tree: Tree, no_tag: str) -> list[str]:
    if tree.word is not None:
        tag = "" if tree.label == no_tag else f"{visible(tree.label)} "
        return [tag + visible(tree.word)]
    label = visible(tree.label)
    if len(tree.children) == 1:
        first, *rest = _lines(tree.children[0], no_tag)
        begin = f"{label} ─ "
        return [begin + first, *(" " * len(begin) + line for line in rest)]
    out = [label]
    for child in tree.children:
        last = child is tree.children[-1]
        first, *rest = _lines(child, no_tag)
        out.append(("└─ " if last else "├─ ") + first)
        out += [("   " if last else "│  ") + line for line in rest]
    return out


@dataclass
class _DrawnTree:
    """The parts that are drawn so far."""

    no_tag: str
    marked: Collection[int]
    bottom: float
    """The height of the baseline of the words."""
    places: Iterator[int]
    """The numbers of the brackets that are not drawn yet."""
    lines: list[str]
    texts: list[str]
    right: float = _MARGIN
    """The place where the next word may begin."""


def tree_svg(
    tree: Tree, no_tag: str = "", *, marked: Collection[int] = (), alone: bool = True
) -> str:
    """The tree with its words on one line at the bottom. ``no_tag``: a tag that is not drawn;
    ``marked``: brackets whose labels are underlined, by their places in ``Tree.brackets()``;
    ``alone=False`` is for a page that brings the style."""
    depth = _depth(tree)
    bottom = _MARGIN + FONT_SIZE + depth * _LEVEL
    drawn = _DrawnTree(no_tag, marked, bottom, count(), [], [])
    _draw(tree, 0, drawn)
    body = f'<g class="axis line">{"".join(drawn.lines)}</g>{"".join(drawn.texts)}'
    width = drawn.right - _BETWEEN + _MARGIN
    title = escape(" ".join(tree.words))
    return svg(body, width, bottom + _MARGIN, title, alone=alone)


def _depth(tree: Tree) -> int:
    """Rows between this one's label and the words; a tag is a row of its own."""
    return 1 if tree.is_leaf else 1 + max(map(_depth, tree.children))


def _draw(tree: Tree, row: int, drawn: _DrawnTree) -> float:
    """-> where the middle of its label stands."""
    y = _MARGIN + FONT_SIZE + row * _LEVEL
    if tree.word is not None:
        shown = tree.label != drawn.no_tag
        size = max(
            text_width(tree.word, FONT_SIZE), text_width(tree.label, FONT_SIZE) if shown else 0.0
        )
        x = drawn.right + size / 2
        drawn.right += size + _BETWEEN
        if shown:
            drawn.texts.append(text_svg(tree.label, x, y, "muted", "middle"))
        drawn.lines.append(_line(x, y + _BELOW if shown else y - _ABOVE, x, drawn.bottom - _ABOVE))
        drawn.texts.append(text_svg(tree.word, x, drawn.bottom, anchor="middle"))
        return x
    begin, is_marked = drawn.right, next(drawn.places) in drawn.marked
    places = [_draw(child, row + 1, drawn) for child in tree.children]
    # A label wider than all that it holds would lie over its neighbour's.
    half = text_width(tree.label, FONT_SIZE) / 2
    x = max(begin + half, (places[0] + places[-1]) / 2)
    drawn.right = max(drawn.right, x + half + _BETWEEN)
    drawn.lines += [_line(x, y + _BELOW, at, y + _LEVEL - _ABOVE) for at in places]
    drawn.texts.append(text_svg(tree.label, x, y, "f1" if is_marked else "f0", "middle"))
    if is_marked:
        under = y + _UNDER
        drawn.texts.append(
            f'<path class="line s1" d="M{x - half:.1f} {under:.1f}H{x + half:.1f}" '
            'stroke-width="2"/>'
        )
    return x


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'
