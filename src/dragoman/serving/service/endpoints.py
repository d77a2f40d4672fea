"""Endpoints that read one message and answer another, each a function over both."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from dragoman.serving.http.connection import FORM, PARTS
from dragoman.serving.http.messages import REFUSALS, json_response
from dragoman.serving.service.service import Service

Body = TypeVar("Body", bound=BaseModel)
Work = Callable[[Body, str], Coroutine[Any, Any, bytes]]
"""A request and its client's name -> the answer as JSON."""


class Endpoints(APIRouter):
    """Some endpoints over one server, and the messages that they read themselves."""

    def __init__(self, service: Service, prefix: str = "/v1", tag: str = "dragoman") -> None:
        super().__init__(prefix=prefix, tags=[tag])
        self.service = service
        self.bodies: list[type[BaseModel]] = []

    def reads(
        self, body: type[BaseModel], *, form: bool = False, files: bool = False
    ) -> dict[str, Any]:
        """How the body of an endpoint is described; a ``form``, or one with ``files``, may be sent
        too."""
        self.bodies.append(body)
        reference = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}
        content: dict[str, Any] = {"application/json": reference}
        if form:
            content[FORM] = reference
        if files:
            file = {"type": "array", "items": {"type": "string", "format": "binary"}}
            parts = {"type": "object", "required": ["file"], "properties": {"file": file}}
            content[PARTS] = {"schema": parts}
        return {"requestBody": {"required": True, "content": content}}

    def answers(
        self,
        path: str,
        body: type[Body],
        answer: Any,
        summary: str,
        *,
        form: bool = False,
        files: bool = False,
        refusals: Mapping[int | str, dict[str, Any]] = REFUSALS,
    ) -> Callable[[Work[Body]], Work[Body]]:
        """Makes an endpoint of a function, within the limits of its client and the time that a
        request has. ``files``: whether the body may be a form with files (``WithFiles``).
        ``refusals``: what it may answer but 200."""

        def add(work: Work[Body]) -> Work[Body]:
            async def endpoint(http: Request) -> Response:
                async with self.service.receive(http, body, forms=form) as (request, client):
                    return json_response(await self.service.finish(http, work(request, client)))

            endpoint.__doc__ = work.__doc__
            self.post(
                path,
                name=work.__name__,
                summary=summary,
                responses={200: {"model": answer}, **refusals},
                openapi_extra=self.reads(body, form=form, files=files),
            )(endpoint)
            return work

        return add
