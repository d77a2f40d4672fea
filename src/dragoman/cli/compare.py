"""``dragoman compare``: is one system better than another, or was it luck?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def compare(
    systems: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders, folders of runs that differ by their seed (train --seeds), or files "
            "of translations; the first is the baseline."
        ),
    ],
    source: Annotated[Path | None, typer.Option(help="Source sentences to translate.")] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(help="Their references; may be given again for further ones."),
    ] = None,
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

    Without --source and --reference the test set of the first run's recipe is used. The score of a
    folder of runs is the mean over them, with their standard deviation (sd): what the seed alone
    changes. The p-value is about the sentences: how sure the difference is on others like these.

    Example: dragoman compare runs/small runs/large --test bootstrap
    """
    from dragoman.cli.console import log_to_stderr
    from dragoman.tasks.comparison import compare as compare_systems

    log_to_stderr()
    compared = compare_systems(systems, source, reference or (), test, samples, seed)
    typer.echo(json.dumps(compared.to_dict(), indent=2) if as_json else compared.table())
