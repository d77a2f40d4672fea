"""What all tests of the server share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait where a client that asks too often does."""
    monkeypatch.setattr("dragoman.serving.service.service.TOO_MANY_SECONDS", 0)
