"""How endpoints are described, and how answers are written.

Bodies are read by the endpoints themselves (JSON or a form, one error for both), so their models
are named here for the description.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.responses import Response

from dragoman.serving.http.messages import ErrorBody


def error_of(description: str, body: type[BaseModel] = ErrorBody) -> dict[str, Any]:
    """The description of an answer that says what went wrong.

    By name, not by its model: of each model of each endpoint FastAPI makes a validator, which is
    most of the time that an application takes to be put together.
    """
    schema = {"$ref": f"#/components/schemas/{body.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: error_of("The request must change"),
    403: error_of("An API key is missing or not known"),
    408: error_of("The request did not arrive in time"),
    413: error_of("The request is too large"),
    415: error_of("The body must be JSON"),
    421: error_of("The server does not go by the name in the header Host"),
    429: error_of("Too many requests; see the header Retry-After"),
    500: error_of("The server failed"),
    503: error_of("The server is shutting down"),
    504: error_of("The request took too long"),
}
"""What an endpoint that translates may answer but 200."""


def body_of(model: type[BaseModel], *, form: bool = False, files: bool = False) -> dict[str, Any]:
    """The description of a body of ``model``; a ``form``, or one with ``files``, may be sent
    too."""
    reference = {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}
    content: dict[str, Any] = {"application/json": reference}
    if form:
        content["application/x-www-form-urlencoded"] = reference
    if files:
        file = {"type": "array", "items": {"type": "string", "format": "binary"}}
        parts = {"type": "object", "required": ["file"], "properties": {"file": file}}
        content["multipart/form-data"] = {"schema": parts}
    return {"requestBody": {"required": True, "content": content}}


def written(model: BaseModel) -> bytes:
    """An answer as JSON; what is None is left out."""
    return model.model_dump_json(exclude_none=True).encode()


def answer(model: BaseModel) -> Response:
    """A JSON answer that is small; others are ``written`` beside the event loop."""
    return json_response(written(model))


def json_response(body: bytes) -> Response:
    """An answer that is JSON already."""
    return Response(body, media_type="application/json")


def describe(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> None:
    """Make ``/openapi.json`` tell the bodies that the endpoints read themselves, and errors."""

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
