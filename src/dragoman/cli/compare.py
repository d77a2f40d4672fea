"""``dragoman compare``: is one system better than another, or was it luck?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def compare(
    systems: Annotated[
        list[Path],
        typer.Argument(help="Run folders, or files of translations; the first is the baseline."),
    ],
    source: Annotated[Path | None, typer.Option(help="Source sentences to translate.")] = None,
    reference: Annotated[Path | None, typer.Option(help="Their references.")] = None,
    test: Annotated[
        str, typer.Option(help="bootstrap (paired, Koehn 2004) or randomisation (Riezler 2005).")
    ] = "bootstrap",
    samples: Annotated[
        int | None, typer.Option(min=1, help="Resamplings; 1,000 (bootstrap) or 10,000.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 12345,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of a table.")] = False,
) -> None:
    """Compare systems on the same sentences, with significance.

    Without --source and --reference the test set of the first run's recipe is used.
    """
    from dragoman.cli.console import log_to_stderr
    from dragoman.tasks.evaluation import compare_systems

    log_to_stderr()
    comparison = compare_systems(systems, source, reference, test, samples, seed)
    typer.echo(json.dumps(comparison.to_dict(), indent=2) if as_json else comparison.table())
