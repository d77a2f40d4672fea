"""Peak memory is this program's own."""

from __future__ import annotations

import subprocess
import sys

from dragoman.native.allocator import peak_bytes


def test_it_counts_what_is_held_no_more() -> None:
    held = b"x" * 300_000_000
    del held
    assert peak_bytes() > 300_000_000


def test_what_started_a_program_does_not_count() -> None:
    held = b"x" * 300_000_000
    told = subprocess.run(
        [sys.executable, "-c", "from dragoman.native.allocator import peak_bytes as m; print(m())"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert 1_000_000 < int(told.stdout) < 100_000_000 < len(held) < peak_bytes()
