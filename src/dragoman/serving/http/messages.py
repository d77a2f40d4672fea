"""What every part of a request or an answer is, and the shape of every error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Message(BaseModel):
    """A part of a request or an answer. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


def json_in_parts(message: Message, name: str, items: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """The JSON of ``message``, part by part: to write a long list at once would hold up everybody.

    ``items``: the JSON of each item of its list ``name``, in parts. The list is written behind all
    other fields, and fields that are None are left out."""
    others = message.model_dump_json(exclude={name}, exclude_none=True).removesuffix("}")
    comma = "" if others == "{" else ","
    yield f"{others}{comma}{json.dumps(name)}:[".encode()
    for number, item in enumerate(items):
        if number:
            yield b","
        yield from item
    yield b"]}"


Texts = str | Annotated[list[str], Field(fail_fast=True)]
"""One text, or several. In a list that is wrong the first mistake is enough, here and in every
other request: to list all mistakes of a megabyte would hold up everybody for seconds."""


class ErrorBody(Message):
    """Every error has this shape, whatever its status."""

    error: str
    """What was wrong, and what to do."""
    code: str
    """Which refusal it is, by a name that stays: docs/serve.md lists them all."""
    values: dict[str, str | int | float | list[str]]
    """The numbers and names that stand in the sentence."""
