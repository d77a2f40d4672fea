"""``dragoman serve``: runs in the browser and behind an API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", metavar="RUN…")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 5050,
    api_keys: Annotated[
        Path | None, typer.Option(help="File with the keys that may use it, one a line.")
    ] = None,
    precision: Annotated[
        str, typer.Option(help="auto (the fastest here), int8, bf16 or fp32 (the reference).")
    ] = "auto",
    page: Annotated[bool, typer.Option(help="Serve the page, or the API alone.")] = True,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting: limits.characters=50000 (see docs/serve.md)"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Serve runs: a page, and an API that LibreTranslate's clients know.

    Each run has the view and the endpoints of its task: to translate, to go on with a text, to fill
    in blanks, to label or to parse. Several are told apart by the languages that their recipes
    name, or by their names. SIGTERM and Ctrl-C finish what was taken before it stops.

    Example: dragoman serve runs/demo, then open http://127.0.0.1:5050
    """
    from dragoman.runs.run import Run

    for run in runs:  # a wrong folder is said before torch is imported
        Run.open(run)
    from dragoman.cli.console import log_to_stderr
    from dragoman.serving.http.limits import ApiKeys
    from dragoman.serving.operate.listening import bind
    from dragoman.serving.operate.settings import parse_settings

    log_to_stderr(quiet)
    settings = parse_settings(
        {
            "host": host,
            "port": port,
            "api_keys": api_keys,
            "precision": precision,
            "page": page,
        },
        set_ or [],
    )
    # What may be wrong is tried before anything that takes long.
    ApiKeys.load(settings.api_keys, settings.limits)
    with bind(settings) as listener:
        try:
            from dragoman.serving.server import serve as serve_runs
        except ModuleNotFoundError as error:
            from dragoman.errors import DragomanError

            if (error.name or "").startswith("dragoman"):
                raise
            raise DragomanError(
                f"Serving needs the package {error.name}: pip install 'dragoman[serve]'"
            ) from error
        serve_runs(runs, settings, listener)
