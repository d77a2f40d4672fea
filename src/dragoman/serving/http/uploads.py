"""Files in a request: parts of a form (multipart), or base64 in JSON.

The files are kept only in memory, until the request ends, and are never logged.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field, PrivateAttr
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from dragoman.base.errors import DataError
from dragoman.serving.http.connection import (
    NAMES,
    PARTS,
    InMemoryParser,
    check_json,
    media_type,
    read_fields,
)
from dragoman.serving.http.limits import LimitSettings
from dragoman.serving.http.messages import KeyedMessage
from dragoman.serving.http.refusals import Refusal
from dragoman.sources.shared.files import InMemory

FIELDS_BYTES = 65_536
"""The largest number of bytes of a request, without its files."""
_BASE64 = bytes(range(65, 91)) + bytes(range(97, 123)) + b"0123456789+/=-_"
"""The characters of base64, without white space, which no encoder inserts in JSON."""
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\\"<>|:*?]")


@dataclass(frozen=True)
class Upload:
    """A file that a client uploaded."""

    called: str
    content: bytes | str = field(repr=False)
    """The content of the file, as bytes or in base64."""

    def read(self) -> InMemory:
        """Decode the file, which takes long if it is large. Raises Refusal 400 for invalid
        base64."""
        if isinstance(self.content, bytes):
            return InMemory(self.called, self.content)
        text = self.content
        if text.startswith("data:"):  # Browsers and chat clients write pictures in this form.
            text = text.partition(",")[2]
        try:
            data = base64.b64decode(text.encode("ascii"), validate=True)
        except (UnicodeEncodeError, binascii.Error) as error:
            raise Refusal(
                "bad_file", file=self.called, problem=f"{self.called} is not base64"
            ) from error
        return InMemory(self.called, data)


class WithFiles(KeyedMessage):
    """The base class of requests that may contain files."""

    file: str | Annotated[list[str], Field(fail_fast=True)] | None = None
    """A picture, recording or document, whichever this endpoint reads, in base64; or a list of such
    files. In a form (multipart/form-data), the field `file` is the file itself, and may be
    repeated."""
    _parts: list[Upload] = PrivateAttr(default_factory=list)
    takes_one: ClassVar[bool] = False
    """True if such a request may have only one file. A form with more files is not read to its
    end."""

    @classmethod
    def most_bytes(cls, limits: LimitSettings) -> int:
        """Return the largest number of bytes of such a request. Base64 turns three bytes into
        four."""
        return max(limits.body_bytes, math.ceil(limits.upload_bytes * 4 / 3) + FIELDS_BYTES)

    @classmethod
    def form(cls) -> dict[str, Any]:
        """Describe such a request as a form, for OpenAPI."""
        described = cls.model_json_schema(ref_template="#/components/schemas/{model}")
        described.pop("$defs", None)
        file = {"type": "string", "format": "binary"}
        described["properties"]["file"] = (
            file if cls.takes_one else {"type": "array", "items": file}
        )
        described["required"] = ["file", *described.get("required", ())]
        return described

    def attach(self, parts: list[Upload]) -> None:
        """Store the files that were in the form."""
        self._parts = parts

    @property
    def uploads(self) -> list[Upload]:
        """The files of the request, from the form or from the field ``file``."""
        if isinstance(self.file, str):
            return [Upload("file", self.file)]
        return self._parts or [Upload(f"file[{n}]", text) for n, text in enumerate(self.file or ())]


@contextmanager
def readable(file: InMemory) -> Iterator[None]:
    """Turn the ``DataError`` of an unusable file into Refusal 400."""
    try:
        yield
    except DataError as error:
        raise Refusal("bad_file", file=file.called, problem=str(error)) from None


async def read_with_files(
    http: Request, model: type[WithFiles], limits: LimitSettings, max_values: int
) -> tuple[dict[str, Any], list[Upload]]:
    """Return the fields of a body in JSON or of a form, and the files of the form. Raises Refusal
    for any other body, for a body that is too large or has more than ``max_values`` values, and for
    too many files."""
    kind = media_type(http)
    if kind == PARTS:
        return await _parts(http, 1 if model.takes_one else limits.items)
    check_json(kind)
    body = await http.body()
    if len(body) > limits.body_bytes:
        is_json = body[:64].lstrip()[:1] == b"{"
        beside = await asyncio.to_thread(_beside_base64, body) if is_json else len(body)
        if beside > FIELDS_BYTES:
            raise Refusal("body_too_large", most=limits.body_bytes)
    return await read_fields(http, max_values), []


def _beside_base64(body: bytes) -> int:
    """Return the number of bytes of a body that are not base64. Many of them would take long to
    parse as JSON."""
    return len(body.translate(None, _BASE64)) - body.count(
        b"\\/"
    )  # PHP escapes each slash in this way.


async def _parts(http: Request, most_files: int) -> tuple[dict[str, Any], list[Upload]]:
    parser = InMemoryParser(
        http.headers,
        http.stream(),
        max_files=most_files,
        max_fields=NAMES,
        max_part_size=FIELDS_BYTES,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        if error.message.startswith("Too many files"):
            raise Refusal("too_many_files", files=most_files + 1, most=most_files) from None
        raise Refusal("bad_form", error.message, problem=error.message) from None
    fields: dict[str, Any] = {}
    uploads: list[Upload] = []
    try:
        for name, value in form.multi_items():
            if not isinstance(value, UploadFile) and name.endswith("[]"):
                fields.setdefault(name, []).append(value)
            elif not isinstance(value, UploadFile):
                fields[name] = value
            elif name == "file":
                uploads.append(Upload(file_name(value.filename), await value.read()))
            else:
                problem = f"The field of a file must be called file, not {name[:40]!r}"
                raise Refusal("bad_form", problem=problem)
    finally:
        await form.close()
    return fields, uploads


def file_name(given: str | None) -> str:
    """Return the name of a client's file, made safe for messages and addresses: only the last part
    of the path, on one line, without characters that have a meaning in file systems or HTML."""
    name = _NOT_IN_NAMES.sub("_", (given or "file").replace("\\", "/").rsplit("/", 1)[-1])
    return name[-100:].lstrip(".") or "file"
