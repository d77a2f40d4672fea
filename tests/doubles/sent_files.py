"""Files as a client sends them to be labelled, whole and damaged, and what it is answered. Not a
test."""

from __future__ import annotations

import base64
import random
from collections.abc import Sequence
from typing import Any

import httpx
from refusal_kinds import KINDS


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def sent(
    client: httpx.AsyncClient, *files: bytes, names: Sequence[str] = (), **fields: Any
) -> httpx.Response:
    called = names or [f"{n}.wav" for n in range(len(files))]
    parts = [("file", (name, data)) for name, data in zip(called, files, strict=True)]
    return await client.post("/v1/classify", files=parts, data=fields)


def told_once(answer: httpx.Response, status: int, words: str) -> None:
    """An error in one line, as every other."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error", "code", "values"]
    assert words in body["error"] and "\n" not in body["error"]
    kind = KINDS[body["code"]]
    assert (kind.status, set(kind.values)) == (status, set(body["values"])), body


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Cut off, with some bytes that are others, or with a part in another place."""
    changed = bytearray(data)
    kind = draw.randrange(4)
    if kind == 0:
        return data[: draw.randrange(len(data))]
    if kind in (1, 3):
        within = draw.choice([64, 300, len(data)])
        for _ in range(draw.choice([1, 3, 20, 300])):
            changed[draw.randrange(min(within, len(data)))] = draw.randrange(256)
    if kind in (2, 3):
        to, begin, length = (
            draw.randrange(len(data)),
            draw.randrange(len(data)),
            draw.randrange(400),
        )
        changed[to : to + length] = data[begin : begin + length]
    return bytes(changed)
