"""The base class of all requests and answers, the format of errors, and the description of the
endpoints, as OpenAPI and as a page.

FastAPI does not read the bodies of requests: the endpoints do, so that JSON and forms get the same
errors. Therefore, this module adds the types of the bodies to the OpenAPI description. On the paths
that are compatible with OpenAI's API, errors have the format that OpenAI's clients read.
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
    """Yield the JSON of ``message`` in parts, because encoding a long list at once would block all
    other threads.

    ``name`` is the field with the list, and ``items`` the JSON of each of its items, in parts. The
    list is written after all other fields. Fields that are None are left out.
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
"""One text, or a list of texts. Here and in every other list of a request, checking ends at the
first mistake, because listing all mistakes in a megabyte would block the server for seconds."""
ApiKey = Annotated[str | None, Field(description="The API key, if the header has none.")]
"""The API key in the body of a request, for clients that send no header ``Authorization``."""


class KeyedMessage(Message):
    """The base class of requests whose body may contain the API key."""

    api_key: ApiKey = None


class ErrorBody(Message):
    """The body of an error, for every path except those that are compatible with OpenAI's API."""

    error: str
    """The reason for the error and its remedy, as an English sentence. The wording may change."""
    code: str
    """The name of the error, which does not change. docs/http-api.md lists all codes."""
    values: dict[str, str | int | float | list[str]]
    """The numbers and names in the sentence, by name, so that a program can write its own."""


STYLE = Path(__file__).with_name("docs.css")
"""The style sheet of the page ``/docs``."""


def error_of(description: str, body: type[BaseModel] = ErrorBody) -> dict[str, Any]:
    """Describe an answer with an error, for OpenAPI.

    The description refers to the type of the body by name. If it contained the type itself, FastAPI
    would make a validator for each type of each endpoint, which takes most of the time to build an
    application.
    """
    schema = {"$ref": f"#/components/schemas/{body.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: error_of("The request is wrong and must be changed"),
    403: error_of("An API key is missing or unknown"),
    408: error_of("The request did not arrive in time"),
    413: error_of("The request is too large"),
    415: error_of("The body must be JSON"),
    421: error_of("The server does not have the name in the header Host"),
    429: error_of("Too many requests; see the header Retry-After"),
    500: error_of("The server failed"),
    503: error_of("The server is shutting down"),
    504: error_of("The request took too long"),
}
"""The answers with an error of an endpoint, by status, for OpenAPI."""


def json_of(model: BaseModel) -> bytes:
    """Write an answer as JSON; fields that are None are left out."""
    return model.model_dump_json(exclude_none=True).encode()


def json_response(body: bytes) -> Response:
    """A response whose body is JSON already."""
    return Response(body, media_type="application/json")


def describe(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> None:
    """Add the types of the bodies that the endpoints read themselves, and the types of errors, to
    the OpenAPI description."""

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
    """Return a page in HTML with every path and every type of an OpenAPI description."""
    title = escape(f"{description['info']['title']} {description['info']['version']}: API")
    paths = "".join(
        _path_html(f"{method.upper()} {path}", operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    )
    types = "".join(
        _type_html(*entry) for entry in sorted(description["components"]["schemas"].items())
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
    kinds = [_kind_html(media.get("schema", {})) for media in body.get("content", {}).values()]
    return " or ".join(dict.fromkeys(kinds)) or "nothing"


def _type_html(name: str, schema: Mapping[str, Any]) -> str:
    fields = "".join(_field_html(*field) for field in schema.get("properties", {}).items())
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
    """An error in the format that OpenAI's clients read."""

    message: str
    """The reason for the error and its remedy, as an English sentence. The wording may change."""
    type: str
    """The kind of error: `invalid_request_error`, `rate_limit_error` or `server_error`."""
    param: str | None
    """The name of the wrong field; null if no single field is wrong."""
    code: str
    """The name of the error, which does not change. docs/http-api.md lists all codes."""
    values: dict[str, str | int | float | Annotated[list[str], Field(fail_fast=True)]]
    """The numbers and names in the sentence, by name, so that a program can write its own."""


class OpenAiErrorBody(Message):
    """The body of an error, for the paths that are compatible with OpenAI's API."""

    error: OpenAiError
    """The error with its reason and remedy."""


OPENAI_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: error_of(REFUSALS[status]["description"], OpenAiErrorBody)
    for status in (400, 413, 429, 500, 504)
}
"""The answers with an error of an endpoint for OpenAI's clients, by status, for OpenAPI."""


def error_at(path: str, status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of an error in the format that belongs to its path: dragoman's, or
    OpenAI's."""
    is_theirs = path in (TRANSCRIPTIONS, MODELS, IMAGES)
    return openai_error(status, body) if is_theirs else dict(body)


def openai_error(status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the body of an error in dragoman's format (``refusals.error_body``) into OpenAI's
    format. The values stay the same."""
    kind = "invalid_request_error"
    if status == 429:
        kind = "rate_limit_error"
    elif status >= 500:
        kind = "server_error"
    error = {
        "message": body["error"],
        "type": kind,
        "param": body["values"].get("field"),
        "code": body["code"],
        "values": body["values"],
    }
    return {"error": error}
