"""How all workers compute: as the first one that has begun."""

from __future__ import annotations

import json
from dataclasses import asdict

from dragoman.cluster.parts.mapper import Way
from dragoman.cluster.parts.plan import NOTES
from dragoman.stores.store import Store, StoreError

_NAME = f"{NOTES}/way.json"


def agreed_way(store: Store, own: Way) -> Way:
    """The way that stands, or from now on this one."""
    store.create(_NAME, json.dumps(asdict(own)).encode())
    found = way_that_stands(store)
    assert found is not None, "it was created if it was not there"
    return found


def way_that_stands(store: Store) -> Way | None:
    """None before the first worker is ready."""
    stat = store.stat(_NAME)
    if stat is None:
        return None
    try:
        return Way(**json.loads(store.read(_NAME, 0, stat.size)))
    except (ValueError, TypeError) as error:
        raise StoreError(f"{store.place(_NAME)} is damaged: {error!r}") from error
