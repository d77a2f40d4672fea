"""The base class of all messages, the shape of every error, and the description of the endpoints:
as OpenAPI and as a page.

The endpoints read bodies themselves (JSON or a form, one error for both), so their models are added
to the description here. Errors of OpenAI's paths have the shape that its clients read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response


class Message(BaseModel):
    """A part of a request or an answer. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


def json_in_parts(message: Message, name: str, items: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """Write the JSON of ``message`` in parts: a long list at once would block all other threads.

    ``items``: the JSON of each item of its list ``name``, in parts. The list is written after all
    other fields; fields that are None are left out.
    """
    others = message.model_dump_json(exclude={name}, exclude_none=True).removesuffix("}")
    comma = "" if others == "{" else ","
    yield f"{others}{comma}{json.dumps(name)}:[".encode()
    for number, item in enumerate(items):
        if number:
            yield b","
        yield from item
    yield b"]}"


Texts = str | Annotated[list[str], Field(fail_fast=True)]
"""One text, or several. The first mistake in a list is enough, here and in every other request: to
list all mistakes of a megabyte would block the server for seconds."""


class ErrorBody(Message):
    """Every error has this shape, whatever its status."""

    error: str
    """What was wrong, and what to do."""
    code: str
    """Which refusal it is, by a name that stays: docs/http-api.md lists them all."""
    values: dict[str, str | int | float | list[str]]
    """The numbers and names that stand in the sentence."""


STYLE = Path(__file__).with_name("docs.css")
"""The style sheet of the page ``/docs``."""


def error_of(description: str, body: type[BaseModel] = ErrorBody) -> dict[str, Any]:
    """The description of an answer with an error.

    It refers to the model by name: for each model of each endpoint FastAPI makes a validator, which
    takes most of the time to build an application.
    """
    schema = {"$ref": f"#/components/schemas/{body.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: error_of("The request must change"),
    403: error_of("An API key is missing or not known"),
    408: error_of("The request did not arrive in time"),
    413: error_of("The request is too large"),
    415: error_of("The body must be JSON"),
    421: error_of("The server does not accept the name in the header Host"),
    429: error_of("Too many requests; see the header Retry-After"),
    500: error_of("The server failed"),
    503: error_of("The server is shutting down"),
    504: error_of("The request took too long"),
}
"""The answers besides 200 of an endpoint that translates."""


def written(model: BaseModel) -> bytes:
    """Write an answer as JSON; fields that are None are left out."""
    return model.model_dump_json(exclude_none=True).encode()


def json_response(body: bytes) -> Response:
    """A response whose body is JSON already."""
    return Response(body, media_type="application/json")


def describe(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> None:
    """Add to ``/openapi.json`` the bodies that the endpoints read themselves, and the errors."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            described = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=app.description,
                routes=app.routes,
                tags=app.openapi_tags,
            )
            schemas = described.setdefault("components", {}).setdefault("schemas", {})
            named: list[type[BaseModel]] = [*bodies, ErrorBody]
            for body in named:
                whole = body.model_json_schema(ref_template="#/components/schemas/{model}")
                schemas |= whole.pop("$defs", {})
                schemas[body.__name__] = whole
            app.openapi_schema = described
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


# ---- /docs: the description as a page that loads only its style (Swagger's comes from a CDN)


def docs_html(description: Mapping[str, Any]) -> str:
    """A page with every path and every type of an OpenAPI description."""
    title = escape(f"{description['info']['title']} {description['info']['version']}: API")
    paths = "".join(
        _path_html(f"{method.upper()} {path}", operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    )
    types = "".join(
        _type_html(*one) for one in sorted(description["components"]["schemas"].items())
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<link rel="stylesheet" href="docs.css"><main><h1>{title}</h1>'
        f"<p>{escape(description['info']['description'])}</p>"
        f'<p><a href="openapi.json">OpenAPI description</a></p>{paths}'
        f"<h2>Types</h2>{types}</main>\n"
    ).replace("`", "")


def _path_html(name: str, operation: Mapping[str, Any]) -> str:
    takes = _kinds_html(operation.get("requestBody", {}))
    gives = _kinds_html(operation["responses"].get("200", {}))
    about = escape(f"{operation['summary']}. {operation.get('description', '')}")
    return f"<section><h2>{name}</h2><p>{about}</p><p>Takes {takes}; gives {gives}.</p></section>"


def _kinds_html(body: Mapping[str, Any]) -> str:
    kinds = [_kind_html(one.get("schema", {})) for one in body.get("content", {}).values()]
    return " or ".join(dict.fromkeys(kinds)) or "nothing"


def _type_html(name: str, schema: Mapping[str, Any]) -> str:
    fields = "".join(_field_html(*one) for one in schema.get("properties", {}).items())
    about = escape(schema.get("description", ""))
    return f'<h3 id="{name}">{name}</h3><p>{about}</p><table>{fields}</table>'


def _field_html(name: str, schema: Mapping[str, Any]) -> str:
    about = escape(schema.get("description", ""))
    return f"<tr><th>{escape(name)}<td>{_kind_html(schema)}<td>{about}"


def _kind_html(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_kind_html, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_kind_html(schema.get('items', {}))}"
    return escape(str(schema.get("enum", schema.get("type", "anything"))))


TRANSCRIPTIONS, MODELS = "/v1/audio/transcriptions", "/v1/models"
IMAGES = "/v1/images/generations"


class OpenAiError(Message):
    """What went wrong."""

    message: str
    """What was wrong, and what to do."""
    type: str
    """`invalid_request_error`, `rate_limit_error` or `server_error`."""
    param: str | None
    """The field that is wrong."""
    code: str
    """As of every other error of the server."""
    values: dict[str, str | int | float | Annotated[list[str], Field(fail_fast=True)]]
    """The numbers and names that stand in the sentence."""


class OpenAiErrorBody(Message):
    """Every error of these paths, in OpenAI's shape."""

    error: OpenAiError


OPENAI_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: error_of("The request must change", OpenAiErrorBody),
    413: error_of("The request is too large", OpenAiErrorBody),
    429: error_of("Too many requests; see the header Retry-After", OpenAiErrorBody),
    500: error_of("The server failed", OpenAiErrorBody),
    504: error_of("The request took too long", OpenAiErrorBody),
}
"""The answers besides 200 of an endpoint for OpenAI's clients."""


def shaped(path: str, status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of an error in the shape of its path: ours, or OpenAI's."""
    is_theirs = path in (TRANSCRIPTIONS, MODELS, IMAGES)
    return openai_error(status, body) if is_theirs else dict(body)


def openai_error(status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a body of ours (``refusals.error_body``) into OpenAI's shape; the values stay."""
    kind = "invalid_request_error"
    if status == 429:
        kind = "rate_limit_error"
    elif status >= 500:
        kind = "server_error"
    told = {
        "message": body["error"],
        "type": kind,
        "param": body["values"].get("field"),
        "code": body["code"],
        "values": body["values"],
    }
    return {"error": told}
