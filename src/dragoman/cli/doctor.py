"""``dragoman doctor``: what this machine can do."""

from __future__ import annotations

import typer

from dragoman.cli.console import prepare_process
from dragoman.cli.options import arguments


@arguments
class DoctorArguments:
    """What ``dragoman doctor`` takes."""

    measure: bool = False
    """Measure the speed of every way to train and to translate on this machine."""


def doctor(args: DoctorArguments) -> None:
    """Show the capabilities of this machine: threads, vector and matrix units, GPU, precision,
    versions.

    The output also shows whether the native kernels are used and, if not, the reason. Include it in
    bug reports. With --measure, every way to train the paper's base model and to translate is timed
    (about ten seconds on an idle machine), and the output shows which way is used.
    """
    prepare_process()
    from dragoman.engine.machine import machine_facts

    facts = machine_facts()
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        typer.echo(f"{name:<{width}}  {value}")
    if not args.measure:
        return
    from dragoman.engine.ways import (
        SHAPES,
        TRAINING_HEAD,
        TRANSLATING_HEAD,
        measure_shape,
        training_rows,
        translating_rows,
    )
    from dragoman.pictures.labels import plain_table
    from dragoman.training.speed.fastest_way import Timing

    base = SHAPES[-1]
    typer.echo(f"\nTraining {base.name}, {base.vocabulary:,} tokens, on the CPU:\n")
    typer.echo(plain_table(TRAINING_HEAD, training_rows(measure_shape(base, Timing()))))
    typer.echo("\nTranslating, a small Transformer:\n")
    typer.echo(plain_table(TRANSLATING_HEAD, translating_rows()))
