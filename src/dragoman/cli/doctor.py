"""``dragoman doctor``: what this machine can do."""

from __future__ import annotations

import typer


def doctor() -> None:
    """Say what this machine can do: threads, vector and matrix units, GPU, precision, versions.

    Also why the native kernels are used or not; put its output into any report of a fault.
    """
    from dragoman.tasks.machine import machine_facts

    facts = machine_facts()
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        typer.echo(f"{name:<{width}}  {value}")
