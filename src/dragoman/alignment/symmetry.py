"""Two alignments of one pair of sentences, made in both directions, joined into one.

grow-diag-final-and (Koehn, Och and Marcu 2003; Och and Ney 2003): begin with the links that both
have; let them grow to neighbours, also diagonal ones, among those that either has, as long as that
gives a link to a word that has none; at last add what links two words that both have none.
"""

from __future__ import annotations

from dragoman.metrics.alignment import Links

_NEIGHBOURS = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """Of (source, target) links of both directions."""
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
    for one in (forward, backward):
        for source, target in sorted(one):
            if source not in sources and target not in targets:
                links.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(links)
