"""Speed and memory of runs in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.base.errors import RunError
from dragoman.studies.systems import measure_in_turns

pytestmark = pytest.mark.system


def test_every_run_translates_in_every_round(tiny_run: Path) -> None:
    one, other = measure_in_turns([tiny_run, tiny_run], ["The dog sleeps.", "A man."], rounds=2)
    for pace in (one, other):
        assert len(pace.seconds) == 2 and pace.sentences == 2 and pace.path
        assert pace.sentences_per_second == 2 / min(pace.seconds)


def test_a_run_that_cannot_translate_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="could not translate: there is no run folder"):
        measure_in_turns([tmp_path / "nowhere"], ["Hello."])
