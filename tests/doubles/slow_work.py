"""In which threads slow work is done while a server answers. Not a test: tests import it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import httpx
import pytest


class SlowWork:
    """Functions that take long, each with the threads that it has run in."""

    def __init__(self, functions: Sequence[tuple[Any, str]], patch: pytest.MonkeyPatch) -> None:
        """Their owners and names."""
        self._ran_in: dict[str, set[int]] = {}
        for owner, name in functions:
            self._watch(owner, name, patch)

    def _watch(self, owner: Any, name: str, patch: pytest.MonkeyPatch) -> None:
        original = getattr(owner, name)
        ran_in = self._ran_in.setdefault(f"{getattr(owner, '__name__', owner)}.{name}", set())

        def watched(*arguments: Any, **named: Any) -> Any:
            ran_in.add(threading.get_ident())
            return original(*arguments, **named)

        is_class_method = isinstance(vars(owner).get(name), classmethod)
        patch.setattr(owner, name, staticmethod(watched) if is_class_method else watched)

    @staticmethod
    async def ask(client: httpx.AsyncClient, asked: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Requests, all of which must be answered."""
        for path, values in asked:
            answer = await client.post(path, json=values)
            assert answer.status_code == 200, (path, answer.text)
            assert "event: error" not in answer.text

    def require_elsewhere(self) -> None:
        """Each was called, and never in this thread, which is the event loop's."""
        assert [name for name, idents in self._ran_in.items() if not idents] == []
        loop = threading.get_ident()
        assert [name for name, idents in self._ran_in.items() if loop in idents] == []
