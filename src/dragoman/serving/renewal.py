"""Keys and runs taken up anew while the server serves (SIGHUP).

What is new is loaded first, beside the old; then the new takes the old one's place at once, for the
requests that come from then on, and the old one finishes those that came before. What cannot be
loaded leaves everything as it was, and the log says why.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.runs.run import Run
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.served_tasks import open_run
from dragoman.serving.service.catalogue import Catalogue
from dragoman.serving.service.served_run import ServedRun
from dragoman.serving.service.service import Service

logger = logging.getLogger("dragoman")

_FILES = ("recipe.toml", "*.safetensors", "*.model")
"""What a run translates with."""

Stamp = tuple[tuple[str, int, int, int], ...]


class Renewal:
    """Renews a service when asked to. Lives in the event loop."""

    def __init__(self, service: Service, folders: Mapping[str, Path]) -> None:
        """``folders``: of each run, by its name. They were loaded a moment ago."""
        self._service = service
        self._folders = dict(folders)
        self._stamps = {name: stamp(folder) for name, folder in folders.items()}
        self._reading = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self) -> None:
        """Renew as soon as an earlier renewal is done."""
        task = asyncio.get_running_loop().create_task(self.renew())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def renew(self) -> None:
        """Keys at once, and then the runs whose files have changed. Only runs wait for an earlier
        renewal, which may wait for requests under way: a key that was taken back is not known from
        now on, whatever these do."""
        try:
            await self._renew_keys()
        except DragomanError as error:
            logger.error("Nothing else was taken up anew: %s", error)
            return
        async with self._turn:
            try:
                if await self._renew_runs():
                    # Models hold themselves in circles; nobody else would look for them soon.
                    gc.collect()
            except DragomanError as error:
                logger.error("No run was taken up anew: %s", error)
            except Exception:  # whatever a damaged run fails with: the old one serves on
                logger.exception("taking up the runs anew failed; the old ones serve on")

    async def _renew_keys(self) -> None:
        settings = self._service.settings
        if settings.api_keys is not None:
            async with self._reading:
                load = partial(ApiKeys.load, settings.api_keys, settings.limits)
                self._service.keys = await asyncio.to_thread(load)
            logger.info("The API keys were read again.")

    async def _renew_runs(self) -> bool:
        """Whether there were any to renew."""
        service = self._service
        stamps = {name: stamp(folder) for name, folder in self._folders.items()}
        changed = [name for name in stamps if stamps[name] != self._stamps[name]]
        if not changed:
            logger.info("No run has changed.")
            return False
        new = await asyncio.to_thread(self._open, changed)
        old = service.catalogue
        for run in new.values():
            run.start()
        service.catalogue = Catalogue([new.get(run.name, run) for run in old.runs], old.detector)
        self._stamps = stamps
        before = set(service.under_way)  # a request that comes to run later takes the new one
        logger.info("Taken up anew: %s.", ", ".join(changed))
        while before & service.under_way:
            await asyncio.sleep(0.05)
        await asyncio.gather(*(run.close() for run in old.runs if run.name in new))
        return True

    def _open(self, names: list[str]) -> dict[str, ServedRun]:
        settings = self._service.settings
        return {name: open_run(Run.open(self._folders[name]), settings, name) for name in names}


def stamp(folder: Path) -> Stamp:
    """Changes whenever a file changes that a run translates with."""
    found = []
    for pattern in _FILES:
        for path in sorted(folder.glob(pattern)):
            about = path.stat()
            found.append((path.name, about.st_mtime_ns, about.st_size, about.st_ino))
    return tuple(found)
