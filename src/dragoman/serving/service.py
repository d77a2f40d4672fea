"""What all endpoints share: who asks, within which limits, and for how long.

``Service`` holds the parts of one server; endpoints are thin over it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from dragoman.errors import SearchError
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving.catalogue import Catalogue, Choice
from dragoman.serving.connection import address_of, read_fields, while_connected
from dragoman.serving.limits import ApiKeys, Client, Limiter, key_in_header
from dragoman.serving.meters import Meters
from dragoman.serving.passage import Passage
from dragoman.serving.refusals import Refusal, bad_request
from dragoman.serving.served import ServedRun, Wish, first_problem
from dragoman.serving.settings import ServeSettings

T = TypeVar("T")
Body = TypeVar("Body", bound=BaseModel)


class Service:
    """The parts of one server. Lives in the event loop."""

    def __init__(
        self, catalogue: Catalogue, settings: ServeSettings, keys: ApiKeys, meters: Meters
    ) -> None:
        self.catalogue = catalogue
        self.settings = settings
        self.keys = keys
        self.meters = meters
        self.limiter = Limiter(settings.limits)
        self.closing = False
        """Set when the server is told to stop: it finishes what it took."""

    async def read(self, http: Request, model: type[Body]) -> Body:
        """The body of a request, checked. Raises Refusal 400."""
        fields = await read_fields(http)
        try:
            return model.model_validate(fields)
        except ValidationError as error:
            raise bad_request(f"Invalid request: {_describe(error)}") from None

    def client(self, http: Request, key: str | None = None) -> Client:
        """Who asks. Raises Refusal 403 without a valid key where one is needed."""
        given = key or key_in_header(http.headers.get("authorization"))
        return self.keys.client(given, address_of(http))

    @contextmanager
    def admit(self, http: Request, key: str | None = None) -> Iterator[Client]:
        """A request of a client, within the limits. Raises Refusal 403 or 429."""
        client = self.client(http, key)
        with self.limiter.admit(client):
            yield client

    async def finish(self, http: Request, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work`` in the time that a request has, and only while its client is there.

        Raises Refusal 504, ClientGone, and as 400 what a search cannot meet.
        """
        try:
            async with asyncio.timeout(self.settings.limits.seconds):
                return await while_connected(http.receive, work)
        except TimeoutError:
            raise self.too_slow() from None
        except SearchError as error:
            raise bad_request(str(error)) from None

    def too_slow(self) -> Refusal:
        seconds = self.settings.limits.seconds
        return Refusal(
            504, f"This took longer than {seconds:g} seconds and was stopped. Send less at once."
        )

    async def translate(
        self, choices: Sequence[Choice], texts: Sequence[str], wishes: dict[str, Wish], client: str
    ) -> list[tuple[Passage, list[list[Hypothesis]]]]:
        """Each text by its chosen run, all at the same time; ``wishes`` by the run's name."""
        groups: dict[str, list[int]] = {}
        for number, choice in enumerate(choices):
            groups.setdefault(choice.run.name, []).append(number)
        results: list[tuple[Passage, list[list[Hypothesis]]] | None] = [None] * len(texts)

        async def run_group(run: ServedRun, numbers: list[int]) -> None:
            own = [texts[number] for number in numbers]
            self.meters.characters.labels(run.name).inc(sum(map(len, own)))
            passages, found = await run.translate(own, wishes[run.name], client)
            for number, passage, hypotheses in zip(numbers, passages, found, strict=True):
                results[number] = (passage, hypotheses)

        tasks = [
            asyncio.ensure_future(run_group(self.catalogue.named(name), numbers))
            for name, numbers in groups.items()
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return [result for result in results if result is not None]


def _describe(error: ValidationError) -> str:
    problem = error.errors()[0]
    if problem["type"] == "missing":
        return f"missing {problem['loc'][0]} parameter"
    return first_problem(error)
