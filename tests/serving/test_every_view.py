"""What every view of the page asks the server, of a run of every task over every source."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from every_task import SERVED_CELLS, run_of_every_task
from serving_echo import serves

from dragoman.tasks.catalogue import Run

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return run_of_every_task(tmp_path_factory.mktemp("every"))


@pytest.mark.parametrize("name", [f"{task}-{source}" for task, source, _ in SERVED_CELLS])
def test_what_every_view_asks_is_answered(folders: dict[str, Path], name: str) -> None:
    async def check() -> None:
        async with serves(Run.open(folders[name]), name)() as client:
            (info,) = (await client.get("/v1/info")).json()["runs"]
            told = await client.get(f"/v1/runs/{name}")
            assert told.status_code == 200, told.text
            view = told.json()
            assert (view["name"], view["source"], view["target"]) == (
                name, info["source"], info["target"]
            )  # fmt: skip
            figures = await client.get("/v1/figures", params={"run": name})
            assert figures.status_code == 200, figures.text
            shown = [one["name"] for one in figures.json()["figures"] if not one.get("missing")]
            for figure in shown if info["figures"] else []:
                made = await client.post("/v1/figures", json={"name": figure, "run": name})
                assert made.status_code in (200, 400), made.text
            looked = await client.post("/v1/look", json={"text": "the dog", "run": name})
            assert looked.status_code == (200 if info["look"] else 400), looked.text

    asyncio.run(check())
