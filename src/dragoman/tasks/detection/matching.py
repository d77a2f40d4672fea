"""Which query is to answer for which box: the assignment of the least cost (Kuhn, 1955, *The
Hungarian method*; in the form of shortest paths of Jonker and Volgenant, 1987).

Shapes: T boxes, Q queries, T <= Q.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Costs = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


def assignment(costs: Costs) -> Places:
    """(T, Q) finite costs -> (T,) a query for each box, no query twice, of the least sum.

    Boxes are taken in one by one. For each, the cheapest path leads from it to a query that is
    free, along boxes that give up their query for another; prices of boxes and queries (the dual
    solution) keep all costs at 0 or more, so that the search is Dijkstra's.
    """
    boxes, queries = costs.shape
    assert boxes <= queries, "each box needs a query"
    price_of_box, price = np.zeros(boxes), np.zeros(queries)
    owner = np.full(queries, -1)  # the box of each query
    for box in range(boxes):
        cost = np.full(queries, np.inf)  # of the cheapest path to each query
        before = np.full(queries, -1)  # the query before it on that path; -1: it is the first
        done = np.zeros(queries, np.bool_)
        at, here, reached = box, -1, 0.0
        while True:
            through = reached + costs[at] - price_of_box[at] - price
            shorter = ~done & (through < cost)
            cost[shorter], before[shorter] = through[shorter], here
            here = int(np.where(done, np.inf, cost).argmin())
            reached = float(cost[here])
            if owner[here] < 0:
                break
            done[here] = True
            at = int(owner[here])
        price_of_box[box] += reached
        price_of_box[owner[done]] += reached - cost[done]
        price[done] -= reached - cost[done]
        while here >= 0:
            last, here = here, int(before[here])
            owner[last] = box if here < 0 else owner[here]
    found = np.empty(boxes, np.int64)
    taken = np.flatnonzero(owner >= 0)
    found[owner[taken]] = taken
    return found
