"""Line breaks of a text, put into its translation: each at the space nearest to where it stood."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.formats.units.unit import Target


def broken(target: Target, source: str, breaks: Sequence[tuple[int, str]]) -> Target:
    """``breaks``: the places of spaces in ``source``, in their order, and what is written for each
    in the translation. Those for which no space is left are left out."""
    if not breaks:
        return target
    spaces = []  # (place in the text, piece, place in the piece)
    length = 0
    for number, one in enumerate(target):
        if isinstance(one, str):
            spaces += [(length + n, number, n) for n, c in enumerate(one) if c == " "]
            length += len(one)
    as_many = len(spaces) == source.count(" ")
    chosen: dict[int, list[tuple[int, str]]] = {}
    first = before = counted = 0  # spaces before the place that has been counted to
    for number, (place, written) in enumerate(breaks):
        last = len(spaces) - (len(breaks) - number - 1)  # the others need one each
        nearest, wanted = first, place / max(1, len(source)) * length
        if as_many:
            before += source.count(" ", counted, place)
            nearest, counted = before, place
        else:
            while nearest + 1 < last and _nearer(spaces, nearest + 1, nearest, wanted):
                nearest += 1
        if nearest < min(last, len(spaces)):
            _, piece, at = spaces[nearest]
            chosen.setdefault(piece, []).append((at, written))
            first = nearest + 1
    found: Target = []
    for number, one in enumerate(target):
        if isinstance(one, str) and number in chosen:
            text, end = "", 0
            for at, written in chosen[number]:
                text += one[end:at] + written
                end = at + 1
            found.append(text + one[end:])
        else:
            found.append(one)
    return found


def _nearer(spaces: Sequence[tuple[int, int, int]], one: int, other: int, place: float) -> bool:
    return abs(spaces[one][0] - place) < abs(spaces[other][0] - place)
