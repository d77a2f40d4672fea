"""Models that write bytes at random: nothing unreadable comes out, whichever way one asks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from serving_echo import serves
from untrained_run import untrained_run

from dragoman.tasks.catalogue import Run

TINY = (
    "model.model_dim=32", "model.ffn_dim=32", "model.attention.num_heads=2", "text.vocabulary=330",
    "text.byte_fallback=true",
)  # fmt: skip
OF = {
    "translator": ("demo", "search.max_length=40"),
    "writer": ("demo-letters", "model.layers=1"),
    "filler": ("demo-masked", "model.layers=1"),
}
DRAWN = {"sampling": {"temperature": 9.0, "seed": 3}}
ASKED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "translator": [
        ("/v1/translate", {"text": "The dog sees it.", "n_best": 8, **DRAWN}),
        ("/v1/translate", {"text": "The dog sees it.", "stream": True, **DRAWN}),
        ("/v1/look", {"text": "The dog.", "attention": [], "choices": 20}),
        ("/v1/look", {"text": "The dog.", "attention": [], "prefix_tokens": [*range(3, 30)]}),
    ],
    "writer": [
        ("/v1/write", {"text": "Der Hund", "longest": 60, **DRAWN}),
        ("/v1/write", {"text": "Der Hund", "longest": 60, "stream": True, **DRAWN}),
        ("/v1/continuations", {"text": "Der Hund", "word": 1}),
    ],
    "filler": [("/v1/fill", {"text": "the ___ sees ___ .", "top": 16, "pieces": 3})],
}


@pytest.mark.parametrize("name", OF)
def test_nothing_unreadable_is_written(name: str, tmp_path: Path) -> None:
    recipe, *changes = OF[name]
    run = Run.open(untrained_run(tmp_path, *TINY, *changes, recipe_name=recipe))
    assert run.target_text.bytes.sum() == 256

    async def check() -> None:
        async with serves(run, name)() as client:
            for path, asked in ASKED[name]:
                answer = await client.post(path, json=asked)
                assert answer.status_code == 200, answer.text
                assert "<0x" in answer.text or name != "translator", "bytes were written"
                assert "\ufffd" not in answer.text and "\\ufffd" not in answer.text.lower(), asked

    asyncio.run(check())
