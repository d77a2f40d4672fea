"""``dragoman serve`` makes runs available in the browser and through an API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.base.errors import DragomanError
from dragoman.console.options import Quiet, Verbose, argument, arguments, option, setting, values_of
from dragoman.console.output import log_to_stderr
from dragoman.tasks.program import serving_tasks

if TYPE_CHECKING:
    from dragoman.serving.operate.settings import ServeSettings


def serve_settings() -> type[ServeSettings]:
    """Return the settings of a server: its address, its users, and its use of models."""
    from dragoman.serving.operate.settings import ServeSettings

    return ServeSettings


@arguments
class ServeArguments:
    """The arguments and options of ``dragoman serve``."""

    runs: list[Path] = argument("RUN…")
    """The run folders to serve."""
    host: str = setting(serve_settings)
    port: int = setting(serve_settings)
    allowed_host: list[str] = setting(serve_settings, default=None, metavar="NAME")
    api_keys: Path | None = setting(serve_settings)
    precision: str = setting(serve_settings)
    page: bool = setting(serve_settings)
    set_: list[str] = option()
    """Change any setting of the server, such as limits.characters=50000. docs/serve.md lists the
    settings. May be repeated."""
    quiet: Quiet = option(False, "-q")
    verbose: Verbose = option(False, "-v")


def serve(args: ServeArguments) -> None:
    """Make runs available in a browser and through an HTTP API that works with LibreTranslate's
    clients.

    Each run gets the view and the endpoints of its task: translating, writing, filling in blanks,
    classifying or parsing. Several runs of one task are selected by their languages or by name. On
    SIGTERM or Ctrl-C, the server finishes the requests that it has accepted and then stops.

    Example: dragoman serve runs/demo, then open http://127.0.0.1:5050
    """
    from dragoman.tasks import catalogue

    for run in args.runs:  # a wrong folder is reported before torch is imported
        catalogue.Run.open(run)
    from dragoman.serving.http.clients import ApiKeys
    from dragoman.serving.operate.log import catch_native
    from dragoman.serving.operate.settings import bind, parse_settings

    catch_native()
    log_to_stderr(args.quiet, args.verbose)  # again: standard error is another file now
    settings = parse_settings(values_of(args, serve_settings), args.set_)
    # Likely errors are found before anything that takes long.
    ApiKeys.load(settings.api_keys, settings.limits)
    with bind(settings) as listener:
        try:
            from dragoman.server.server import serve as serve_runs

            tasks = serving_tasks()
        except ModuleNotFoundError as error:
            from dragoman.base.errors import install

            if (error.name or "").startswith("dragoman"):
                raise
            raise DragomanError(
                f"Serving needs the package {error.name}: {install('serve')}"
            ) from error
        serve_runs(args.runs, settings, listener, tasks)
